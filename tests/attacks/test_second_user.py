"""Everything as an ordinary user, and a second ordinary user who attacks that user's daemon."""

from __future__ import annotations

import html
import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs

from aileron.home.lock import running_pid
from tests.attacks.users import FIRST, SECOND, TwoUsersTestCase
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, SHIP, kinds
from tests.functional.process import Running
from tests.functional.reactor import until
from tests.functional.test_credentials import OAuth2TestCase

_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
# In the agent's place: calls the gated tool through aileron-mcp, as it was set up for the agent, and prints the answer.
_AGENT = """
import json, os, subprocess, sys
server = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]
pipe = subprocess.PIPE
mcp = subprocess.Popen(server["command"], stdin=pipe, stdout=pipe, env={**os.environ, **server["environment"]})
def send(**message):
    mcp.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    mcp.stdin.flush()
def ask(number, method, **params):
    send(id=number, method=method, params=params)
    for line in mcp.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
client = {"name": "test", "version": "1"}
ask(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
send(method="notifications/initialized")
done = ask(2, "tools/call", name="ship_update", arguments=json.loads(sys.argv[-1]))
print(json.dumps([os.getuid(), done]), flush=True)
mcp.stdin.close()
mcp.wait(20)
"""
# As the second user: what became of everything that one can try against the first user's files and processes.
_TRY = """
import ctypes, errno, json, os, signal, socket, sys, urllib.parse
given, libc = json.loads(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
def tried(attempt, *arguments):
    try:
        return attempt(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
def read(path):
    with open(path, "rb") as file:
        file.read(1)
    return "read"
def made(path):
    with open(path, "x"):
        return "made"
def called(number):
    return "done" if number >= 0 else errno.errorcode[ctypes.get_errno()]
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def memory(pid):
    here = ctypes.create_string_buffer(8)
    mine, there = Piece(ctypes.addressof(here), 8), Piece(0x10000, 8)
    return called(libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(there), 1, 0))
def descriptor(pid):
    handle = os.pidfd_open(pid)
    return called(libc.syscall(438, handle, 0, 0))
def asked(host, port, path, authority, key):
    lines = [f"GET {path} HTTP/1.1", "Host: " + authority, "Connection: close"]
    lines += ["Authorization: Bearer " + key] if key else []
    came = b""
    try:
        with socket.create_connection((host, port), 20) as connection:
            connection.sendall("\\r\\n".join([*lines, "", ""]).encode())
            came = connection.makefile("rb").read()
    except (ConnectionError, socket.timeout):
        pass
    return came.decode("latin-1")[:40]
home, pids = given["home"], given["pids"]
print(json.dumps({
    "whole": [tried(os.listdir, home), tried(made, home + "/evil"), tried(os.rename, home, home + "-old")],
    "files": {path: [tried(read, path), tried(os.link, path, given["mine"] + "/link"), tried(os.unlink, path)]
              for path in given["files"]},
    "processes": {pid: {
        "files": [tried(read, f"/proc/{pid}/{name}") for name in ("environ", "mem", "maps", "auxv")],
        "links": [tried(os.readlink, f"/proc/{pid}/{name}") for name in ("cwd", "exe", "root", "fd/0")],
        "descriptors": tried(os.listdir, f"/proc/{pid}/fd"),
        "signals": [tried(os.kill, pid, number) for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, 0)],
        "attached": called(libc.ptrace(16, pid, None, None)),
        "memory": memory(pid),
        "taken": tried(descriptor, pid),
    } for pid in pids},
    "asked": [asked(*each) for each in given["asked"]],
}))
"""
# As the second user: takes the ports that the first user's daemon had, and tells what comes there.
_OCCUPY = """
import json, socket, sys, threading
def serve(listening):
    while True:
        connection, _ = listening.accept()
        with connection:
            print("came", connection.recv(4096), flush=True)
for host, port in json.loads(sys.argv[1]):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    threading.Thread(target=serve, args=(listening,), daemon=True).start()
print("up", flush=True)
threading.Event().wait(120)
"""
_PLANTED = ("directory", "open directory", "link", "link to theirs", "file", "pipe", "socket")
# As the second user: puts something of each kind where the first user's home is to be.
_PLANT = """
import json, os, socket, sys
place, kind, victim = json.loads(sys.argv[1])
os.makedirs("own", exist_ok=True)
if kind == "directory":
    os.mkdir(place, 0o777)
elif kind == "open directory":
    os.mkdir(place)
    os.chmod(place, 0o777)
elif kind == "link":
    os.symlink(os.path.abspath("own"), place)
elif kind == "link to theirs":
    os.symlink(victim, place)
elif kind == "file":
    open(place, "x").close()
elif kind == "pipe":
    os.mkfifo(place, 0o666)
elif kind == "socket":
    socket.socket(socket.AF_UNIX).bind(place)
print("null")
"""
# As the second user: everything that one can send to the page that the first user's browser is to come back to.
_RETURN = """
import json, socket, sys
port, targets = json.loads(sys.argv[1])
def asked(method, target, host):
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        lines = (f"{method} {target} HTTP/1.1", "Host: " + host, "Connection: close", "", "")
        connection.sendall("\\r\\n".join(lines).encode())
        return connection.makefile("rb").read().split(b" ", 2)[1].decode()
own = f"127.0.0.1:{port}"
print(json.dumps([asked("GET", each, own) for each in targets]
    + [asked("POST", targets[0], own), asked("GET", targets[0], "evil.test"), asked("GET", "/", own)]))
"""


class AttackedTestCase(TwoUsersTestCase):
    """What is asserted of a process that the second user attacked."""

    def assert_closed(self, process: Mapping[str, Any]) -> None:
        """Assert that the process was not looked into, traced or signalled."""
        refused = {"EACCES", "EPERM"}
        self.assertLessEqual({*process["files"], *process["links"], process["descriptors"]}, refused, process)
        ended = [process["attached"], process["memory"], process["taken"], *process["signals"]]
        self.assertEqual(ended, ["EPERM"] * 7, process)


class FirstUserTests(AttackedTestCase):
    """The main job of a user who is not root."""

    def launch_agent(self) -> Running:
        """Launch, in the sandbox, a program that passes for the agent."""
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "opencode").write_text(f"#!{_PYTHON} -I\n{_AGENT}")
        (programs / "opencode").chmod(0o755)
        self.give()
        command = self.home.script("aileron", "launch", "--sandbox", "opencode", "run", json.dumps(SHIP))
        path = f"{programs}:{command.environment['PATH']}"
        return self.start(attrs.evolve(command, environment={**command.environment, "PATH": path}))

    async def only_approval(self, agent: Running) -> str:
        """The id of the one request that is pending, as soon as there is one."""
        for _ in range(60):
            items = (await self.told_without_login("approval", "list"))["items"]
            if items:
                return str(items[0]["id"])
            self.assertFalse(agent.is_over, agent)
            await self.pause(0.5)
        raise AssertionError(f"there is no request: {agent!r}")

    async def look_into(self, pids: list[int]) -> None:
        """Have the second user look into every process of the first user's: launcher, server, sandbox and agent."""
        given = {"home": str(self.state.root), "files": [], "pids": pids, "asked": [], "mine": ""}
        for each in (await self.attack(_TRY, given))["processes"].values():
            self.assert_closed(each)

    async def test_main_job(self) -> None:
        """A gated call from the sandbox by MCP is approved, runs once, and is on record; every process is the user's.

        No process of the user, whose command lines everybody can read, has a key or a token there.
        """
        await self.prepare()
        agent = self.launch_agent()
        approval_id = await self.only_approval(agent)
        lines = dict(self.processes_of(FIRST))
        self.assertIn(running_pid(self.state), lines)
        self.assertTrue([words for words in lines.values() if any("aileron-mcp" in word for word in words)], lines)
        for words in lines.values():
            self.assertNotIn("ail_", " ".join(words))
        await self.look_into(list(lines))
        self.assertEqual(self.workspace.messages, [])
        await self.operator("approval", "approve", approval_id, "--yes")
        finished = await agent.finish(90)
        self.assertEqual(finished.exit_code, 0, finished)
        uid, result = json.loads(finished.stdout.splitlines()[-1])
        self.assertEqual((uid, result.get("isError", False)), (FIRST, False), result)
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
        found = await self.told_without_login("audit", "list", "--run", approval_id)
        types = kinds(list(reversed(found["items"])))
        self.assertEqual([types[0], types[-1]], ["approval.requested", "execution.succeeded"])
        self.assertIn("approval.approved", types)
        await self.command("audit", "verify")
        self.assertEqual({path.stat().st_uid for path in self.state.root.rglob("*")}, {FIRST})


class SecondUserTests(AttackedTestCase):
    """What another ordinary user gets of it: nothing."""

    async def test_files_and_processes(self) -> None:
        """No file of the home is read, linked, removed or added, and no process is looked into, stopped or traced.

        Neither site answers a byte, at any address, even to keys that became known.
        """
        await self.prepare()
        found = self.home.discovery()
        places = [(urlsplit(str(found[site])), site) for site in ("url", "operator_url")]
        keys = (None, found["launch_key"], found["local_key"])
        paths = ("/v1/health", "/v1/status", "/mcp", "/v1/audit", "/handover", "/")
        asked = [
            (host, place.port, path, place.netloc, key)
            for place, site in places
            for host in ("127.0.0.1", *(("::1",) if site == "operator_url" else ()))
            for path in paths
            for key in keys
        ]
        files = [str(path) for path in self.state.root.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 6)
        pid = running_pid(self.state)
        given = {
            "home": str(self.state.root),
            "files": files,
            "pids": [pid],
            "asked": asked,
            "mine": str(self.elsewhere),
        }
        tried = await self.attack(_TRY, given, 120)
        self.assertEqual(tried["whole"], ["EACCES"] * 3)
        self.assertEqual(tried["files"], {path: ["EACCES"] * 3 for path in files})
        self.assertEqual(tried["asked"], [""] * len(asked))
        (process,) = tried["processes"].values()
        self.assert_closed(process)
        self.assertEqual(running_pid(self.state), pid)
        self.assertEqual((await self.told_without_login("status"))["vault_state"], "unlocked")

    async def test_same_home(self) -> None:
        """Every command in the first user's home ends with one sentence of the reason, and changes nothing there."""
        await self.prepare()
        pid, before = running_pid(self.state), self.contents()
        for words in (("status",), ("daemon", "start"), ("daemon", "stop"), ("doctor",), ("vault", "lock"), ("pause",)):
            finished = await self.as_second(*words)
            said = finished.stdout + finished.stderr
            self.assertNotEqual(finished.exit_code, 0, (words, said))
            self.assertNotIn("Traceback", said, words)
            self.assertTrue("another user" in said or "ermission denied" in said, (words, said))
        self.assertEqual((running_pid(self.state), self.contents()), (pid, before))
        self.assertEqual((await self.told_without_login("status"))["vault_state"], "unlocked")

    def contents(self) -> dict[str, tuple[int, int]]:
        """Owner and mode of everything in the home."""
        return {str(path): (path.stat().st_uid, path.stat().st_mode) for path in self.state.root.rglob("*")}

    async def test_ports(self) -> None:
        """On the ports that the daemon had it gets no connection of a command: the daemon has other ones."""
        await self.prepare()
        before = self.home.discovery()
        ports = [urlsplit(str(before[site])).port for site in ("url", "operator_url")]
        await self.command("daemon", "stop")
        wanted = [("127.0.0.1", ports[0]), ("127.0.0.1", ports[1]), ("::1", ports[1])]
        taken = self.start_as(SECOND, self.second(sys.executable, "-I", "-c", _OCCUPY, json.dumps(wanted)))
        await taken.expect("up")
        await self.operator("vault", "unlock")
        after = self.home.discovery()
        self.assertFalse({urlsplit(str(after[site])).port for site in ("url", "operator_url")} & set(ports))
        self.assertEqual((await self.told_without_login("status"))["vault_state"], "unlocked")
        await self.operator("pause")
        self.assertNotIn("came", taken.output)

    async def test_one_address(self) -> None:
        """Where it has the operator site's port on one of the two addresses of localhost, the daemon uses neither."""
        await self.prepare()
        port = urlsplit(str(self.home.discovery()["operator_url"])).port
        await self.command("daemon", "stop")
        taken = self.start_as(SECOND, self.second(sys.executable, "-I", "-c", _OCCUPY, json.dumps([("::1", port)])))
        await taken.expect("up")
        await self.operator("vault", "unlock")
        self.assertNotEqual(urlsplit(str(self.home.discovery()["operator_url"])).port, port)
        self.assertNotIn("came", taken.output)

    async def test_planted(self) -> None:
        """Whatever it puts where the first user's home is to be, nothing is written there, and the reason is told."""
        shared = self.home.root / "shared"
        shared.mkdir()
        shared.chmod(0o1777)
        for number, kind in enumerate(_PLANTED):
            place = shared / str(number)
            await self.attack(_PLANT, [str(place), kind, str(self.home.user)])
            before = self.planted(place)
            for words in (("daemon", "start"), ("vault", "init"), ("status",)):
                finished = await self.run_command(self.home.script("aileron", *words, AILERON_HOME=str(place)), 60)
                said = finished.stdout + finished.stderr
                self.assertNotEqual(finished.exit_code, 0, (kind, words, said))
                self.assertNotIn("Traceback", said, (kind, words))
            self.assertEqual(self.planted(place), before, kind)

    def planted(self, place: Path) -> list[Any]:
        """What is there now, and in the second user's own directory."""
        inside = sorted(map(str, place.rglob("*"))) if place.is_dir() else []
        return [place.lstat().st_mode, place.lstat().st_uid, inside, sorted(os.listdir(self.elsewhere / "own"))]


class SigningInTests(AttackedTestCase, OAuth2TestCase):
    """A first user who signs in at a service, whose browser is to come back to a port of this machine."""

    def write_connector(self, more: str = "") -> None:
        """Have the connector say where a person signs in."""
        super().write_connector(f'authorize_url = "{self.server.authorize_url}"\nscopes = ["read"]')
        self.give()

    async def signing_in(self) -> tuple[Running, Mapping[str, str]]:
        """A command that waits for the browser, and what it had the browser ask for."""
        seen, program = self.home.root / "seen", self.home.root / "browser"
        program.write_text(f'#!/bin/sh\ncat "$1" > {seen}.part && mv {seen}.part {seen}\n')
        program.chmod(0o755)
        running = self.start(self.home.on_terminal("aileron", "binding", "setup", CONNECTOR, BROWSER=str(program)))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await running.expect("Client ID: ")
        running.send("aileron")
        await until(self.reactor, seen.exists, 30, f"a page to open: {running!r}")
        (url,) = set(re.findall(r'href="([^"]+)"', seen.read_text()))
        return running, dict(parse_qsl(urlsplit(html.unescape(url)).query))

    async def test_callback(self) -> None:
        """Whatever a second user brings to that port ends nothing, and no code of theirs is exchanged."""
        await self.operator("vault", "init")
        self.write_connector()
        path = self.action_file(GATED, gated=True)
        self.give()
        await self.add(path)
        running, asked = await self.signing_in()
        port = urlsplit(asked["redirect_uri"]).port
        targets = [
            f"/callback{query}"
            for query in (
                "?code=evil&state=evil",
                "?code=evil",
                "?error=access_denied",
                "?error=x&state=",
                "?state",
                "",
            )
        ]
        answers = await self.attack(_RETURN, [port, targets])
        self.assertLessEqual(set(answers), {"400", "404"})
        self.assertEqual(len(answers), len(targets) + 3)
        await self.pause(0.5)
        self.assertFalse(running.is_over, running)
        self.assertEqual(self.grants.spent, [])
        back = f"/callback?code=true&state={asked['state']}"
        ours = self.home.script("python", "-I", "-c", _RETURN, json.dumps([port, [back]]))
        self.assertIn("303", (await self.run_command(ours, 30)).stdout)
        await running.expect("The service refused: invalid_client")  # the code was invented, and was exchanged
