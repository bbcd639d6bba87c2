"""The way out of a sandbox: package managers and git by the proxy, and nothing else by any way."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from unittest import SkipTest

import attrs
from twisted.internet.threads import deferToThread

from tests.agents import ways_out
from tests.agents.egress import Outside
from tests.attacks.sandboxed import SandboxTestCase
from tests.extent import seldom
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.operated import SHIP
from tests.functional.process import Command, Finished
from tests.functional.reactor import until
from tests.functional.registries import Registries
from tests.functional.script import Call, Say

_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_PROVEN = "checked: TCP, UDP, DNS, Unix sockets and inherited descriptors lead nowhere but to Aileron"
_SHELL = """
import json, os, sys
os.execvp("bash", ["bash", "-uc", json.loads(sys.argv[-1])])
"""
_INSTALL = """
git clone -q {url}/demo.git cloned && cat cloned/said.txt && echo " git"
{python} -m pip install -q --no-input --disable-pip-version-check --no-deps --target packages \\
  --index-url {url}/simple demo \\
  && {python} -c 'import sys; sys.path.insert(0, "packages"); import demo; print(demo.SAID, "pip")'
npm install --silent --no-fund --no-audit --registry {url}/npm/ demo && node -p 'require("demo") + " npm"'
"""
# In the place of go, where that is not installed: a client that finds the proxy by the variables that go obeys.
_GO = """
{python} -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), end="")' \
  {url}/go/demo/@v/list
"""
_CARGO = """
cargo init -q --vcs none --name user user && cd user && cargo add -q --registry local demo && cargo fetch -q \\
  && cat $CARGO_HOME/registry/src/*/demo-1.0.0/src/lib.rs
"""
# Everything that is not an allowed host: what each attempt came to, as JSON.
_ATTEMPTS = """
import errno, json, os, socket, ssl, sys, urllib.parse
given = json.loads(sys.argv[-1])
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
def tried(attempt, *arguments):
    try:
        return attempt(*arguments) or "done"
    except ssl.SSLError as error:
        return error.reason
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))
def sent(line):
    with socket.create_connection((proxy.hostname, proxy.port), 20) as each:
        each.sendall(line.encode() + b"\\r\\n\\r\\n")
        return each.recv(4096).split(b"\\r\\n")[0].decode()
def tunnel(said):
    each = socket.create_connection((proxy.hostname, proxy.port), 20)
    each.sendall(f"CONNECT {given['allowed']} HTTP/1.1\\r\\n\\r\\n".encode())
    answer = each.recv(4096)
    assert b" 200 " in answer, answer
    if isinstance(said, str):
        with each:
            each.sendall(said.encode())
            return str(each.recv(4096))
    context = ssl.create_default_context(cafile=given["authority"])
    context.check_hostname = False
    with context.wrap_socket(each, server_hostname=said[0]) as secure:
        return "connected"
def stream(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as each:
        each.settimeout(5)
        each.connect(address)
def datagram(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        each.sendto(b"x", address)
def listed():
    return sorted(int(each) for each in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + each))
host, port = given["allowed"].split(":")
print(json.dumps({
    "other": sent("CONNECT other.example:443 HTTP/1.1"),
    "itself": sent("CONNECT localhost:%d HTTP/1.1" % given["site"]),
    "address": sent("CONNECT 127.0.0.1:%s HTTP/1.1" % port),
    "plain": sent("GET http://%s/ HTTP/1.1" % given["allowed"]),
    "same": tried(tunnel, [host]),
    "another name": tried(tunnel, ["other.example"]),
    "no name": tried(tunnel, [None]),
    "no TLS": tried(tunnel, "GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"),
    "tcp": tried(stream, socket.AF_INET, (host, int(port))),
    "udp": tried(datagram, ("192.0.2.1", 53)),
    "dns": tried(socket.getaddrinfo, "example.org", 443),
    "unix": tried(stream, socket.AF_UNIX, "/run/x"),
    "abstract": tried(stream, socket.AF_UNIX, b"\\0x"),
    "descriptors": listed(),
}), flush=True)
"""


class EgressTestCase(SandboxTestCase):
    """C{aileron launch --sandbox --egress}."""

    async def begin(self, agent: str = _SHELL) -> Registries:
        """A daemon, what passes for the agent, and registries that the project may reach."""
        self.put_agent(agent)
        await self.operator("vault", "init")
        registries = Registries.listen(self.reactor, self.home.root / "served", self.home.project / "authority.pem")
        self.finally_(registries.site.stop)
        (self.state.root / "egress.toml").write_text(registries.entry(self.home.project))
        await self.operator("config", "trust", "--yes")
        return registries

    async def inside(self, script: str, registries: Registries, **more: str) -> Finished:
        """What came of a shell script in the sandbox."""
        said = {**registries.environment(), **more}
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in said.items())
        return await self.run_command(self.let_out(exports + script), 120)

    def let_out(self, given: object) -> Command:
        """The command by which the user launches the agent with a way out."""
        quiet = {"PIP_CONFIG_FILE": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "npm_config_update_notifier": "false"}
        command = self.agent(given, "--sandbox", "--egress", "project")
        return attrs.evolve(command, environment={**command.environment, **quiet})


class PackageTests(EgressTestCase):
    """Programs that fetch."""

    async def test_package_managers(self) -> None:
        """git, pip, npm and what stands for go fetch from hosts that the trusted file allows, and are counted."""
        registries = await self.begin()
        finished = await self.inside((_INSTALL + _GO).format(url=registries.url, python=_PYTHON), registries)
        said = [f"installed by the proxy {name}" for name in ("git", "pip", "npm", "go")]
        self.assertEqual(finished.stdout.split("\n")[:-1], said, finished.stderr)
        self.assertIn(_PROVEN, " ".join(finished.stderr.split()))
        events = {event["type"]: event["payload"] for event in await self.audit()}
        for each in ("egress.admitted", "egress.connected"):
            self.assertEqual(events[each]["basis"], "egress.toml")
        (host,) = events["egress.ended"]["hosts"]
        self.assertEqual(host["host"], registries.host)
        self.assertGreater(min(host["sent"], host["received"]), 1000)

    @seldom
    async def test_cargo(self) -> None:
        """cargo fetches a crate likewise, where it is installed."""
        found = shutil.which("cargo")
        if found is None:
            raise SkipTest("cargo is not installed")
        registries = await self.begin()
        real = subprocess.run(["rustup", "which", "cargo"], capture_output=True, text=True, check=False).stdout.strip()
        finished = await self.inside(
            _CARGO,
            registries,
            PATH=f"{Path(real or found).parent}:{os.environ['PATH']}",
            CARGO_HOME=str(self.home.project / "cargo"),
            CARGO_REGISTRIES_LOCAL_INDEX=f"sparse+{registries.url}/index/",
        )
        self.assertIn('SAID: &str = "installed by the proxy"', finished.stdout, finished.stderr)

    @seldom
    async def test_restart(self) -> None:
        """The daemon may be restarted under the agent: the next connection goes through as before."""
        registries = await self.begin()
        clone = f"git clone -q {registries.url}/demo.git $x && cat $x/said.txt && touch done-$x; "
        wait = "while [ ! -e go ]; do sleep 0.1; done; "
        said = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in registries.environment().items())
        running = self.start(self.let_out(f"{said}x=one; {clone}{wait}x=two; {clone}"))
        await until(self.reactor, (self.home.project / "done-one").exists, 60, "the first clone")
        await self.command("daemon", "stop")
        await self.unlock()
        (self.home.project / "go").touch()
        finished = await running.finish(60)
        self.assertEqual(finished.stdout, "installed by the proxy" * 2, finished.stderr)


class BoundaryTests(EgressTestCase):
    """What is not an allowed host."""

    async def test_nothing_else(self) -> None:
        """Other hosts, names, protocols and ways lead nowhere; what was refused waits for the operator, once."""
        registries = await self.begin(_ATTEMPTS)
        site = int(self.home.discovery()["url"].rpartition(":")[2])
        given = {"allowed": registries.host, "authority": str(registries.authority), "site": site}
        finished = await self.run_command(self.let_out(given), 60)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        found = json.loads(finished.stdout)
        waits = "is not allowed: it waits for approval; see aileron network list"
        self.assertEqual(found.pop("other"), f"HTTP/1.1 403 Aileron: other.example:443 {waits}")
        self.assertEqual(found.pop("itself"), f"HTTP/1.1 403 Aileron: localhost:{site} {waits}")
        self.assertIn(" 403 ", found.pop("address"))
        self.assertIn(" 405 ", found.pop("plain"))
        self.assertEqual(found.pop("same"), "connected")
        self.assertEqual({found.pop(name) for name in ("another name", "no name")}, {"TLSV1_UNRECOGNIZED_NAME"})
        self.assertNotIn("HTTP", found.pop("no TLS"))
        refused = {"tcp": "ECONNREFUSED", "udp": "ENETUNREACH", "unix": "EAFNOSUPPORT", "abstract": "EAFNOSUPPORT"}
        self.assertEqual({name: found[name] for name in refused}, refused)
        self.assertNotEqual(found["dns"], "done")
        self.assertEqual(found["descriptors"], [0, 1, 2])
        blocked = [event["payload"]["why"] for event in await self.audit() if event["type"] == "egress.blocked"]
        self.assertEqual(blocked, ["names other.example", "has no server name (SNI)", "is not TLS"])

    async def test_unproven(self) -> None:
        """Where the agent would inherit a socket that could call others, it is not started, and the user reads why."""
        await self.begin("print('started')")
        command = self.let_out("")
        inherited, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        with inherited, other:

            def launched() -> subprocess.CompletedProcess[str]:
                return subprocess.run(
                    command.arguments,
                    env=command.environment,
                    cwd=command.directory,
                    stdin=inherited.fileno(),
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )

            finished = await deferToThread(launched)
        self.assertEqual((finished.returncode, finished.stdout), (1, ""))
        said = " ".join(finished.stderr.split())
        self.assertIn("the agent was not started, because its boundary could not be proven", said)
        self.assertIn("descriptor 0 is a socket that could call another peer", said)

    @seldom
    async def test_ways(self) -> None:
        """What agents are to try in a sandbox reaches somebody where there is none, so that it can fail there."""
        outside = Outside.listen(self.home.project / "outside.sock")
        self.addCleanup(outside.close)
        given = {"environment": {}, "url": "", **outside.addresses()}
        (self.home.project / ways_out.GIVEN).write_text(json.dumps(given))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inherited:
            ran = await deferToThread(
                subprocess.run,
                [_PYTHON, ways_out.__file__, str(self.home.project)],
                stdin=inherited.fileno(),
                capture_output=True,
                text=True,
                timeout=60,
                check=True,
            )
        found = json.loads(ran.stdout.partition(ways_out.MARK)[2])
        self.assertEqual({found[way] for way in ("tcp", "unix")}, {ways_out.DONE})
        self.assertEqual((found["udp"], found["descriptors"]), ("timed out", ["0 calls others"]))
        self.assertEqual(outside.reached(), ["tcp", "udp", "unix"])


class DecisionTests(EgressTestCase):
    """The operator's answers, while the agent runs."""

    async def test_decisions(self) -> None:
        """A refused host waits; allowed, it is connected to at the next try; always allowed, the file says so."""
        registries = await self.begin()
        ask = "curl -sS -m 60 -o /dev/null https://{host}.example/ 2>&1; touch tried-{host}; "
        wait = "while [ ! -e go-{host} ]; do sleep 0.1; done; "
        first, second = (wait.format(host=host) + ask.format(host=host) for host in ("a", "b"))
        running = self.start(self.let_out(ask.format(host="a") + ask.format(host="b") + first + second))
        await self._tried("a", "b")
        waiting = (await self.told("egress", "list"))["items"]
        asked = {(each["host"], each["state"]) for each in waiting}
        self.assertEqual(asked, {("a.example:443", "pending"), ("b.example:443", "pending")})
        self.assertEqual((await self.status())["counts"]["pending_approvals"], 2)
        await self.operator("egress", "allow", "a.example")
        await self.operator("egress", "allow", "b.example", "--always")
        for host in "ab":
            (self.home.project / f"tried-{host}").unlink()
            (self.home.project / f"go-{host}").touch()
        finished = await running.finish(60)
        said = finished.stdout.splitlines()
        self.assertEqual([line.count("403") - line.count("502") for line in said], [1, 1, -1, -1], said)
        self.assertIn('hosts = ["b.example:443"]', (self.state.root / "egress.toml").read_text())
        self.assertIn("Nothing new to trust", (await self.operator("config", "trust", "--yes")).stdout)
        types = [event["type"] for event in await self.audit() if event["type"].startswith("egress")]
        self.assertEqual(types.count("egress.allowed"), 2)
        self.assertEqual(registries.host in (self.state.root / "egress.toml").read_text(), True)

    async def _tried(self, *hosts: str) -> None:
        there = [self.home.project / f"tried-{host}" for host in hosts]
        await until(self.reactor, lambda: all(path.exists() for path in there), 60, "the agent's first tries")


class AgentTests(GatewayedTestCase):
    """A real agent."""

    async def test_opencode(self) -> None:
        """OpenCode in a sandbox does its main job, and its shell clones from an allowed host.

        It thinks through the gateway and asks for an action, which runs when it is approved; all of it goes by the
        sandbox's proxy.  What its provider would run itself is noted for its session, and it is told so.
        """
        registries = Registries.listen(self.reactor, self.home.root / "served", self.home.project / "authority.pem")
        self.finally_(registries.site.stop)
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in registries.environment().items())
        script = f"{exports} git clone -q {registries.url}/demo.git cloned && cat cloned/said.txt"
        cloning = Call("bash", {"command": script, "description": "Clones"})
        llm = self.llm({"gpt-5.1": [cloning, Call("_ship_update", SHIP), Say("all done")]})
        self.use_upstream(llm)
        await self.furnish()
        (self.state.root / "egress.toml").write_text(registries.entry(self.home.project))
        await self.operator("config", "trust", "--yes")
        self.configure_agent("openai/gpt-5.1")
        command = self.launched(OPENAI_API_KEY="sk-not-a-key")
        place = command.arguments.index("launch") + 1
        options = ("--sandbox", "--egress", "project")
        arguments = (*command.arguments[:place], *options, *command.arguments[place:])
        agent = self.start(attrs.evolve(command, arguments=arguments))
        (approval,) = await self.waiting()
        self.assertEqual(self.workspace.requests, [])
        await self.approve(approval["id"])
        finished = await agent.finish(90)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("all done", finished.stdout)
        self.assertIn("installed by the proxy", llm.script.received[-1].tool_results[0])
        self.assertIn(_PROVEN, " ".join(finished.stderr.split()))
        self.assertIn("the gateway notes tools that the provider runs itself", finished.stderr)
        (session,) = (await self.told("sessions", "list"))["items"]
        self.assertTrue(session["notes_tools"])
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
