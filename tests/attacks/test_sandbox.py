"""An agent in the sandbox that tries to get out: a program of the attacker's in the agent's place."""

from __future__ import annotations

import json
import os
import socket
import sys
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import SkipTest
from urllib.parse import urlsplit

import attrs

from aileron.home.lock import running_pid
from tests.attacks.sandboxed import SandboxTestCase
from tests.functional.operated import GATED, SHIP
from tests.functional.process import Command
from tests.functional.reactor import until

# In the agent's place: tries everything, and prints what came of each as JSON.
_AGENT = """
import errno, fcntl, http.client, json, os, pathlib, signal, socket, sys, urllib.parse
given = json.loads(sys.argv[-1])
server = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]["environment"]
def tried(attempt, *arguments):
    try:
        return attempt(*arguments) or "done"
    except OSError as error:
        return errno.errorcode[error.errno]
def connected(url):
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), 10):
        return "connected"
def written(path):
    with open(path, "a"):
        return "written"
def asked():
    address = urllib.parse.urlsplit(server["AILERON_URL"])
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    headers = {"Authorization": "Bearer " + server["AILERON_TOKEN"], "Content-Type": "application/json"}
    connection.request("POST", "/v1/actions/%s/run" % given["action"], json.dumps({"args": given["args"]}), headers)
    return connection.getresponse().status
def typed():
    with open("/dev/tty", "wb", buffering=0) as terminal:
        fcntl.ioctl(terminal, 0x5412, b"x")
print(json.dumps({
    "asked": tried(asked),
    "sites": {url: tried(connected, url) for url in given["sites"]},
    "listed": {path: tried(os.listdir, path) for path in given["hidden"]},
    "read": {path: tried(pathlib.Path(path).read_text) for path in given["files"]},
    "written": {path: tried(written, path) for path in given["written"]},
    "moved": {path: tried(os.rename, path, path + ".old") for path in given["moved"]},
    "signal": tried(os.kill, given["daemon"], signal.SIGTERM),
    "typed": tried(typed),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
    "secrets": [name for name, value in os.environ.items() if name.startswith("AILERON_")],
}), flush=True)
"""
# In the agent's place: asks whoever holds keys, by each kind of socket that is not a network's own.
_CALLER = """
import ctypes, errno, json, os, pathlib, socket, sys, time
given = json.loads(sys.argv[-1])
def tried(attempt, *arguments):
    try:
        return attempt(*arguments) or "done"
    except OSError as error:
        return errno.errorcode[error.errno]
def stream(path):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        return "connected"
def datagram(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", path)
def half_a_pair(path):
    for one in socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM):
        one.sendto(b"x", path)
def virtual():
    with socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM) as line:
        line.connect((2, 1))
def ring():
    number = ctypes.CDLL(None, use_errno=True).syscall(425, 8, ctypes.create_string_buffer(120))
    raise OSError(ctypes.get_errno(), "") if number < 0 else SystemExit("a ring")
def local():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        one, other = socket.socketpair()
        one.send(b"x")
        return other.recv(1).decode()
pathlib.Path("started").touch()
while not os.path.exists(given["late"]):
    time.sleep(0.05)
print(json.dumps({
    "streams": [tried(stream, path) for path in (*given["early"], given["late"])],
    "datagrams": [tried(datagram, given["datagram"]), tried(half_a_pair, given["datagram"])],
    "others": [tried(virtual), tried(ring)],
    "local": tried(local),
}), flush=True)
"""
# In the agent's place: opens its standard input again, for writing, and tells what it reads from it.
_REOPENER = """
import os
try:
    with open(os.open("/proc/self/fd/0", os.O_WRONLY), "w") as file:
        file.write("evil")
except OSError:
    pass
print(os.pread(0, 100, 0), flush=True)
"""
# In the agent's place: writes what it is given, and says what came of each.
_WRITER = """
import errno, json, os, sys
given = json.loads(sys.argv[-1])
def written(path):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as file:
            file.write("#")
        return "written"
    except OSError as error:
        return errno.errorcode[error.errno]
print(json.dumps([written(path) for path in given]), flush=True)
"""
_PROFILES = (
    ".mozilla",
    ".librewolf",
    ".zen",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/BraveSoftware",
    ".config/opera",
    ".config/thunderbird",
    ".cache/chromium",
    ".cache/google-chrome-canary",
    ".tor project",
)


def _passages() -> Mapping[str, list[str]]:
    """Where the interpreter lies below C{/var/tmp}: the directories that lead to it, each with the next one alone."""
    found: dict[str, set[str]] = {}
    for prefix in map(Path, map(os.path.realpath, (sys.prefix, sys.base_prefix))):
        for parent in prefix.parents:
            if parent.is_relative_to("/var/tmp"):
                found.setdefault(str(parent), set()).add(prefix.relative_to(parent).parts[0])
    return {path: sorted(names) for path, names in found.items()}


class SandboxTests(SandboxTestCase):
    """C{aileron launch --sandbox}."""

    async def test_nothing_to_be_had(self) -> None:
        """It sees no home, profile, process or site but its own; its calls still reach you, and wait."""
        await self.prepare()
        found = json.loads((await self.run_in(self.given())).stdout.splitlines()[-1])
        self.assertEqual(found["asked"], 202)
        self.assertEqual(list(found["sites"].values()), ["ECONNREFUSED"] * 3 + ["ENETUNREACH"])
        listed = {path: names if names == "done" else sorted(names) for path, names in found["listed"].items()}
        empty = "done"
        self.assertEqual(listed, {**dict.fromkeys(listed, empty), **_passages()})
        self.assertEqual(set(found["read"].values()), {"ENOENT"})
        self.assertEqual(list(found["written"].values()), ["written", "EROFS", "EROFS", "EROFS", "EROFS"])
        self.assertEqual(set(found["moved"].values()), {"EBUSY"})
        self.assertEqual((found["signal"], found["secrets"]), ("ESRCH", []))
        self.assertLess(found["processes"], 6)
        self.assertEqual((len(await self.waiting()), self.workspace.requests), (1, []))

    async def test_told(self) -> None:
        """What it made or changed that a shell, an editor or a package manager obeys by itself is told to you."""
        await self.prepare()
        self.put_agent(_WRITER)
        project = self.home.project
        made = [".vscode/tasks.json", "sub/.envrc", ".npmrc", ".claude/settings.json", "sub/\x1b[2J.pth", "plain.txt"]
        unheard = [".shadowenv.d/x.lisp", "eslint.config.js", "lefthook.toml", "CMakePresets.json", "mise/tasks/x"]
        made += unheard
        (project / ".npmrc").write_text("before")
        finished = await self.run_in([str(project / name) for name in made])
        self.assertEqual(json.loads(finished.stdout.splitlines()[-1]), ["written"] * len(made))
        for name in (".vscode/tasks.json", "sub/.envrc", ".npmrc", ".claude/settings.json", *unheard):
            self.assertIn(f"  {project / name}\n", finished.stderr)
        self.assertNotIn("\x1b", finished.stderr)
        self.assertNotIn("plain.txt", finished.stderr)

    async def test_own_files(self) -> None:
        """What it would leave in its own directories for its next start outside is gone, but for sessions and logs.

        What stays is told.
        """
        await self.prepare()
        self.put_agent(_WRITER)
        user, data = self.home.user, self.home.user / ".local/share/opencode"
        (data / "bin").mkdir(parents=True)
        (data / "bin/rg").write_text("a program")
        gone = [user / ".cache/opencode/node_modules/evil/index.js", user / ".local/state/opencode/evil.json"]
        gone += [data / name for name in ("bin/rg", "bin/evil", "auth.json", "snapshot/x/config", "evil/evil.js")]
        stays = [data / name for name in ("storage/session.json", "log/a.log", "opencode.db")]
        finished = await self.run_in(list(map(str, (*gone, *stays))))
        self.assertEqual(json.loads(finished.stdout.splitlines()[-1])[-3:], ["written"] * 3)
        self.assertEqual([path for path in gone if path.exists()], [data / "bin/rg"])
        self.assertEqual((data / "bin/rg").read_text(), "a program")
        self.assertEqual([path.read_text() for path in stays], ["#"] * 3)
        told = " ".join(finished.stderr.split())
        self.assertIn(f"this stays: {data}/log (1 new or changed file), {data}/storage (1 new or changed file)", told)
        self.assertIn(f"{data}/opencode.db (1 new or changed file)", told)

    async def test_nobody_to_be_asked(self) -> None:
        """No socket of somebody who holds your keys answers there, wherever it lies and however late it is made."""
        await self.prepare()
        self.put_agent(_CALLER)
        user, project = self.home.user, self.home.project
        early = [
            user / ".gnupg/S.gpg-agent",
            user / ".1password/agent.sock",
            user / ".ssh/master",
            project / "own.sock",
        ]
        late, letters = user / "late.sock", user / "letters.sock"
        given = {"early": list(map(str, early)), "late": str(late), "datagram": str(letters)}
        holders = [self.holder(path) for path in early] + [self.holder(letters, socket.SOCK_DGRAM)]
        agent = self.start(self.agent(given, "--sandbox"))
        await until(self.reactor, (project / "started").exists, 60, "the agent")
        holders.append(self.holder(late))
        finished = await agent.finish(60)
        found = json.loads(finished.stdout.splitlines()[-1])
        self.assertEqual(set(found["streams"] + found["datagrams"]), {"EAFNOSUPPORT"})
        self.assertEqual((found["others"], found["local"]), (["EAFNOSUPPORT", "ENOSYS"], "x"))
        for holder in holders:
            with self.assertRaises(BlockingIOError):
                holder.accept() if holder.type == socket.SOCK_STREAM else holder.recv(1)

    def holder(self, path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
        """Somebody who would answer at a path."""
        path.parent.mkdir(exist_ok=True)
        holder = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(holder.close)
        holder.bind(str(path))
        holder.setblocking(False)
        if kind == socket.SOCK_STREAM:
            holder.listen()
        return holder

    async def test_standard_input(self) -> None:
        """A file that is its standard input it can read, and not write."""
        await self.prepare()
        self.put_agent(_REOPENER)
        user = self.home.user
        (user / "text").write_text("what the user gave")
        given = self.agent({}, "--sandbox")
        finished = await self.run_command(given.behind("sh", "-c", 'exec "$@" <"$0"', f"{user}/text"), 60)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("b'evil the user gave'", finished.stdout, "it has a copy")
        self.assertEqual((user / "text").read_text(), "what the user gave")

    async def test_typing(self) -> None:
        """What it would type into the terminal that it shares with your shell is refused, and outside it is not."""
        if Path("/proc/sys/dev/tty/legacy_tiocsti").read_text().strip() != "1":
            raise SkipTest("this system lets nobody type into terminals")
        await self.prepare()
        for options, typed in ((("--sandbox",), "EPERM"), ((), "done")):
            harmless = {**self.given(), "daemon": 1 << 22, "files": [], "written": [], "hidden": [], "sites": []}
            harmless |= {"moved": []}
            command = attrs.evolve(self.agent(harmless, *options), terminal=True)
            shown = (await self.run_command(command, 60)).stdout
            self.assertIn(f'"typed": "{typed}"', shown, options)

    async def prepare(self) -> None:
        """A daemon, an agent of the attacker's, and what a user has in the home."""
        await self.furnish()
        self.put_agent(_AGENT)
        for name in _PROFILES:
            directory = self.home.user / name
            directory.mkdir(parents=True)
            (directory / "cookies").write_text("a login")
        (self.home.project / ".envrc").touch()

    def given(self) -> Mapping[str, Any]:
        """What the attacker knows from outside."""
        found, user, project = self.home.discovery(), self.home.user, self.home.project
        operator_site = f"http://127.0.0.1:{urlsplit(found['operator_url']).port}"
        profiles = [str(user / name) for name in _PROFILES]
        files = ("daemon.json", "secrets.json", "aileron.db", "config.yaml", "run")
        written = (project / "mine", project / ".envrc", user / ".bashrc", Path(sys.prefix) / "evil.pth", "/etc/evil")
        return {
            "action": GATED,
            "args": SHIP,
            "daemon": running_pid(self.state),
            "sites": [operator_site, self.service.url, "http://127.0.0.1:22", "http://192.0.2.1:80"],
            "hidden": [str(self.home.aileron), *profiles, "/run/user", "/var/tmp", *_passages()],
            "files": [*(str(self.home.aileron / name) for name in files), *(f"{path}/cookies" for path in profiles)],
            "written": list(map(str, written)),
            "moved": [str(project / ".envrc"), str(project)],
        }


class ProgramTests(SandboxTestCase):
    """Programs that run outside, and lie where the agent works."""

    async def test_environment(self) -> None:
        """Where Aileron, Python and the agent lie in the project, none of their files can be written or replaced."""
        command = await self.launched_from_project(["bin/evil", "pyvenv.cfg", f"{self.packages}/evil.pth"])
        finished = await self.run_command(command, 60)
        self.assertEqual(finished.exit_code, 0, finished)
        self.assertEqual(json.loads(finished.stdout.splitlines()[-1]), ["EROFS"] * 3, finished.stderr)

    async def test_path(self) -> None:
        """A directory of C{PATH} in the project stays as it is, and a program there that a link in another leads to."""
        await self.furnish()
        self.put_agent(_WRITER)
        project = self.home.project
        for name in ("tools", "scripts", "node_modules/.bin", "node_modules/left"):
            (project / name).mkdir(parents=True)
        (project / "scripts/linked").touch()
        (self.programs / "linked").symlink_to(project / "scripts/linked")
        paths = ["tools/git", "node_modules/left/index.js", "scripts/linked", "scripts/other"]
        command = self.agent([str(project / path) for path in paths], "--sandbox")
        finished = await self.run_command(self.with_path(command, f"{project}/tools:{project}/node_modules/.bin"), 60)
        self.assertEqual(json.loads(finished.stdout.splitlines()[-1]), ["EROFS"] * 3 + ["written"], finished.stderr)

    async def test_refused(self) -> None:
        """What cannot be protected is refused before the agent starts, with the reason."""
        await self.furnish()
        self.put_agent(_WRITER)
        project = self.home.project
        (project / "bin").symlink_to(self.programs)
        for entry, words in (
            (".", "PATH has the relative entry ."),
            ("", "PATH has the relative entry (empty)"),
            (f"{project}/missing", "which does not exist and which the agent could create"),
            (f"{project}/bin", "contains a symbolic link"),
            (str(project), "which runs outside the sandbox. Work in another directory"),
        ):
            finished = await self.run_command(self.with_path(self.agent([], "--sandbox"), entry), 60)
            self.assertEqual((finished.exit_code, finished.stdout), (1, ""), finished)
            self.assertIn(words, " ".join(finished.stderr.split()))

    @property
    def packages(self) -> str:
        """Where an environment keeps its packages."""
        return f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"

    def with_path(self, command: Command, entries: str) -> Command:
        """The same command, with more in C{PATH}."""
        path = f"{command.environment['PATH']}:{entries}"
        return attrs.evolve(command, environment={**command.environment, "PATH": path})

    async def launched_from_project(self, names: list[str]) -> Command:
        """A launch by an environment in the project, of an agent that writes these files of it."""
        await self.furnish()
        self.put_agent(_WRITER)
        environment = self.home.project / ".venv"
        venv.create(environment, symlinks=True)
        installed = Path(sys.prefix) / self.packages
        (environment / self.packages / "installed.pth").write_text(f"{installed}\n")
        command = self.agent([str(environment / name) for name in names], "--sandbox")
        python = (str(environment / "bin/python3"), "-P", "-m", "aileron")
        return attrs.evolve(command, arguments=(*python, *command.arguments[1:]))
