"""Agents' own tools: C{gh}, C{curl} and others use GitHub's API from a sandbox without a key; writes are approved."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import Resource
from twisted.web.server import Site
from twisted.web.vhost import NameVirtualHost

from tests.extent import seldom
from tests.functional import canary, opencode
from tests.functional.github import DOWNLOAD, DOWNLOAD_BYTES, HOST, GitHub
from tests.functional.install import GH
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import PASSPHRASE, OperatedTestCase, kinds
from tests.functional.process import Command, Finished, Running
from tests.functional.reactor import Patience, until
from tests.functional.script import Call, Say

TOKEN = "github_pat_canary_5130742"
USERS_TOKEN = "ghp_canary_of_the_user_8812"
OTHER = "other.example"
MODELS = "api.openai.com"
_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_ISSUE = "gh issue create -R acme/web -t Crash -b Body"
_STATUS = 'curl -sS -H "Authorization: Bearer $AILERON_TOKEN" "$AILERON_URL/v1/runs/{}"'
_COMMENT = (
    f"curl -sS -w '\\n%{{http_code}}' -X POST -d '{{\"body\": \"Hi\"}}' https://{HOST}/repos/acme/web/issues/7/comments"
)
# In the agent's place: runs the scripts that come into the project, one after another, until an empty one.
_AGENT = """#!/bin/bash
n=1
while :; do
  while [ ! -e todo-$n ]; do sleep 0.05; done
  [ -s todo-$n ] || exit 0
  bash -u todo-$n >out-$n 2>err-$n
  echo $? >code.new; mv code.new code-$n
  n=$((n + 1))
done
"""
_WAITS_AND_REFUSED = ["pending_approval", "earlier_request_pending"]
_URLLIB = f"""
import urllib.request as u
print(u.urlopen(u.Request("https://{HOST}/repos/acme/web", headers={{"User-Agent": "x"}})).read().decode())
"""
# It ignores the variables that name a proxy.
_HTTP_CLIENT = f"""
import http.client as c
each = c.HTTPSConnection("{HOST}", timeout=20)
each.request("GET", "/repos/acme/web", headers={{"User-Agent": "x"}})
print(each.getresponse().read().decode())
"""
_ISSUER = """
import os, socket, ssl, sys, urllib.parse
proxy, host = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"]), sys.argv[1]
each = socket.create_connection((proxy.hostname, proxy.port), 20)
each.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\n\\r\\n".encode())
assert b" 200 " in each.recv(4096)
with ssl.create_default_context().wrap_socket(each, server_hostname=host) as secure:
    print(dict(part[0] for part in secure.getpeercert()["issuer"])["commonName"])
"""
# One process that asks for something, is refused, and cleans up by another connection.
_CLEANS_UP = f"""
import urllib.error as e, urllib.request as u
for method, path, body in (("POST", "7/comments", b'{{"body": "Draft"}}'), ("DELETE", "comments/5", None)):
    url = "https://{HOST}/repos/acme/web/issues/" + path
    try:
        u.urlopen(u.Request(url, body, {{"User-Agent": "x", "Content-Type": "application/json"}}, method=method))
    except e.HTTPError as error:
        print(error.read().decode())
"""
# What a program at the sandbox's port of HTTPS may try. Each attempt prints what came back.
_HOSTILE = f"""
import socket, ssl
def send(data, size=65536):
    with socket.create_connection(("127.0.0.1", 443), 20) as each:
        try:
            for start in range(0, len(data), size):
                each.sendall(data[start:start + size])
            return each.recv(100).hex() or "closed"
        except OSError:
            return "closed"
def hello(name, most=None):
    context, out = ssl.create_default_context(), ssl.MemoryBIO()
    context.check_hostname = False
    if most: context.minimum_version = context.maximum_version = most; context.set_ciphers("ALL:@SECLEVEL=0")
    try:
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name).do_handshake()
    except ssl.SSLWantReadError:
        return out.read()
def ask(name, host):
    context = ssl.create_default_context()
    with context.wrap_socket(socket.create_connection((name, 443), 20), server_hostname=name) as each:
        each.sendall(f"GET / HTTP/1.1\\r\\nHost: {{host}}\\r\\n\\r\\n".encode())
        return each.recv(100).split(b"\\r\\n")[0].decode()
print("other", send(hello("{OTHER}")))
print("none", send(hello(None)))
print("plain", send(b"GET / HTTP/1.1\\r\\nHost: {HOST}\\r\\n\\r\\n"))
print("large", send(b"\\x16\\x03\\x01\\x40\\x00\\x01\\x10\\x00\\x00" + bytes(1 << 20)))
print("old", send(hello("{HOST}", ssl.TLSVersion.TLSv1_1))[:4])
print("pieces", send(hello("{HOST}"), 1)[:4])
print("host", ask("{HOST}", "{OTHER}"))
"""
# Each pattern in a form that does not find itself.
_LOOK = f"""
grep -rl -e '[{USERS_TOKEN[0]}]{USERS_TOKEN[1:]}' -e '[{TOKEN[0]}]{TOKEN[1:]}' /proc/*/environ /proc/*/cmdline /tmp .
env
"""
# What the agent's model asks for: a command, and the same once more when the test says so.
_PULL = "gh pr create -R acme/web --head feature --base main -t Fix -b Body"
_AGAIN = f"while [ ! -e approved ]; do sleep 0.1; done; {_PULL}"


@attrs.define
class Inside:
    """An agent in a sandbox that runs the scripts of a test."""

    case: OwnToolsTestCase
    launcher: Running
    number: int = 0

    @property
    def project(self) -> Path:
        """The directory in which it works."""
        return self.case.home.project

    def begin(self, script: str) -> int:
        """Have it run a script, and return the script's number."""
        self.number += 1
        path = self.project / "todo.new"
        path.write_text(script)
        path.rename(self.project / f"todo-{self.number}")
        return self.number

    async def finish(self, number: int, seconds: float = 60) -> Finished:
        """Wait for a script, and return what came of it."""
        code = self.project / f"code-{number}"
        await until(self.case.reactor, code.exists, seconds, f"script {number}: {self.launcher!r}")
        out, err = ((self.project / f"{name}-{number}").read_text() for name in ("out", "err"))
        return Finished(int(code.read_text()), None, out, err, 0)

    async def run(self, script: str) -> Finished:
        """Run a script."""
        return await self.finish(self.begin(script))

    async def end(self) -> str:
        """End the agent, and return what its launcher said."""
        self.begin("")
        return " ".join((await self.launcher.finish(60)).stderr.split())


class OwnToolsTestCase(OperatedTestCase):
    """A user of GitHub. All commands run in a network in which GitHub is a double.

    :ivar behind: stands before each command.
    """

    skip = None if GH.exists() else f"{GH} is not installed"
    as_processes = True
    executes_daemons = True
    timeout = 600

    def setUp(self) -> None:
        """Begin with no network."""
        super().setUp()
        self.behind: Sequence[str] = ()
        self.github = GitHub(TOKEN)
        self.model: ScriptedLLM | None = None

    def start(self, command: Command) -> Running:
        """Start a process in the network, once there is one."""
        return super().start(command.behind(*self.behind))

    async def begin(self, hold_seconds: int = 2) -> None:
        """Have a daemon, GitHub's token bound, and the service added."""
        await self.open_internet(self.github, HOST, OTHER)
        await self.operator("vault", "init")
        await self.set_config(f"own_tools: {{hold_seconds: {hold_seconds}}}\n")
        words = ("binding", "setup", "builtin://github", "--secret-fd", "4")
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
        bound = attrs.evolve(command, feeds={**command.feeds, 4: TOKEN.encode()})
        self._expect(await self.run_command(bound), 0)
        await self.operator("own-tools", "add", "github", "--yes")

    async def open_internet(self, double: Resource, *names: str) -> None:
        """Have a network in which hosts, besides that of the model, lead to a double."""
        hosts: Any = NameVirtualHost()
        hosts.default = double
        if self.model is not None:
            hosts.addHost(MODELS.encode(), self.model.resource)
        site = cast(IProtocolFactory, Site(hosts))
        self.behind = (await Internet.open(self, [*names, MODELS], {HTTPS: site})).prefix

    def launch_scripted(self, service: str, **environment: str) -> Running:
        """Launch OpenCode in a sandbox with its own tools. Its model follows the script."""
        opencode.configure_user(self.home, json.dumps({"model": "openai/gpt-5.1"}))
        command = self.launched(home=None, OPENAI_API_KEY="sk-not-a-key", **environment)
        place = command.arguments.index("launch") + 1
        options = ("--sandbox", "--own-tools", service)
        arguments = (*command.arguments[:place], *options, *command.arguments[place:])
        return self.start(attrs.evolve(command, arguments=arguments))

    def enter(self, *options: str, services: str = "github", **environment: str) -> Inside:
        """Launch the agent, whose user has a token too."""
        programs = self.write_agent()
        command = self.home.script("aileron", "launch", "--sandbox", "--own-tools", services, *options, "opencode")
        theirs = {"PATH": f"{programs}:{command.environment['PATH']}", "GH_TOKEN": USERS_TOKEN, **environment}
        return Inside(self, self.start(attrs.evolve(command, environment={**command.environment, **theirs})))

    def write_agent(self) -> Path:
        """Put the agent into a directory of its own, and return that."""
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "opencode").write_text(_AGENT)
        (programs / "opencode").chmod(0o700)
        return programs

    def has_effects(self, count: int) -> bool:
        """Return whether GitHub has seen so many writes."""
        return len(self.github.effects) >= count

    async def pending(self, count: int = 1) -> list[Mapping[str, Any]]:
        """Return the approvals that wait, as soon as there are C{count}."""
        patience = Patience(self.reactor, 60)
        while len(items := (await self.told("approval", "list"))["items"]) < count:
            self.assertFalse(patience.is_over, f"there are no {count} approvals")
        self.assertEqual(len(items), count)
        return list(items)


class ReadTests(OwnToolsTestCase):
    """Commands that read, and what is not a tool's business."""

    async def test_reads(self) -> None:
        """gh, curl and urllib read at once, by REST and GraphQL, and nothing waits.

        A login that the user has stored for gh is not there. The tokens are nowhere in the sandbox.
        """
        stored = self.home.user / ".config" / "gh"
        stored.mkdir(parents=True)
        (stored / "hosts.yml").write_text("github.com:\n    oauth_token: gho_stored\n    user: me\n")
        await self.begin()
        inside = self.enter(HOMEBREW_TOKEN=USERS_TOKEN)
        for script, expected in (
            ("gh api repos/acme/web", '"acme/web"'),
            ("gh issue list -R acme/web", "Crash at start"),
            (f"curl -sS https://{HOST}/repos/acme/web", '"acme/web"'),
            (f"{_PYTHON} -c '{_URLLIB}'", '"acme/web"'),
            (f"{_PYTHON} -c '{_HTTP_CLIENT}'", '"acme/web"'),
            (f"cat {stored}/hosts.yml && echo nothing", "nothing"),
        ):
            finished = await inside.run(script)
            self.assertIn(expected, finished.stdout, finished)
            self.assertNotIn("gho_stored", finished.stdout)
        looked = await inside.run(_LOOK)
        found = looked.stdout.splitlines()
        self.assertEqual([line for line in found if "=" not in line], [], looked)
        self.assertIn("GH_TOKEN=aileron-placeholder", found)
        self.assertIn("HOMEBREW_TOKEN=aileron-placeholder", found)
        said = await inside.end()
        self.assertIn("your own GH_TOKEN stays outside", said)
        self.assertIn(f"Its proxy allows: {HOST} (own tools).", said)
        self.assertEqual((len(self.github.reads), self.github.refused), (5, []))
        events = await self.audit()
        self.assertEqual(kinds(events).count("own_tools.read"), 5)
        for secret in (TOKEN, USERS_TOKEN):
            self.assertNotIn(secret, json.dumps(events))
            self.assertEqual(canary.in_files(self.home.aileron, secret), [])

    @seldom
    async def test_hostile(self) -> None:
        """At the sandbox's port of HTTPS nothing but a hello of TLS 1.2 for a service's host is served."""
        await self.begin()
        inside = self.enter()
        (self.home.project / "hostile.py").write_text(_HOSTILE)
        finished = await inside.run(f"{_PYTHON} -W ignore hostile.py")
        refused = "15030300020270"
        # Where the rest of a long hello was not read, the system may close the connection before the alert is read.
        told = finished.stdout.replace("large closed", f"large {refused}")
        self.assertEqual(
            [line.split(" ", 1) for line in told.splitlines()],
            [
                ["other", refused],
                ["none", refused],
                ["plain", refused],
                ["large", refused],
                ["old", "1503"],
                ["pieces", "1603"],
                ["host", "HTTP/1.1 421 The Host header does not name the host of this connection"],
            ],
            finished,
        )
        await inside.end()
        self.assertEqual((self.github.reads, self.github.refused), ([], []))

    @seldom
    async def test_download(self) -> None:
        """A download of 50 MB comes whole, and the daemon does not hold it in memory."""
        await self.begin()
        inside = self.enter()
        await inside.run("gh api repos/acme/web")
        before = self.peak_bytes()
        finished = await inside.run(f"curl -sS -H 'Authorization: token '$GH_TOKEN https://{HOST}{DOWNLOAD} | wc -c")
        self.assertEqual(finished.stdout.strip(), str(DOWNLOAD_BYTES), finished)
        self.assertLess(self.peak_bytes() - before, DOWNLOAD_BYTES // 5)
        await inside.end()
        (ended,) = [each for each in await self.audit() if each["type"] == "own_tools.read_ended"]
        self.assertEqual((ended["payload"]["bytes"], ended["payload"]["complete"]), (DOWNLOAD_BYTES, True))

    def peak_bytes(self) -> int:
        """Return the most memory that the daemon ever had."""
        text = Path(f"/proc/{self.home.discovery()['pid']}/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) << 10

    @seldom
    async def test_refused(self) -> None:
        """Another token is refused; a host that is not opened passes as it would without own tools."""
        await self.begin()
        inside = self.enter("--egress", OTHER)
        foreign = await inside.run(f"curl -sS -H 'Authorization: token {USERS_TOKEN}' https://{HOST}/user")
        self.assertIn("Authorization", json.loads(foreign.stdout)["message"])
        for host, issuer in ((HOST, "Aileron, for one session"), (OTHER, "Test Authority")):
            finished = await inside.run(f"{_PYTHON} - {host} <<'END'\n{_ISSUER}\nEND\n")
            self.assertEqual(finished.stdout.strip(), issuer, finished)
        await inside.end()
        self.assertEqual((self.github.reads, self.github.refused), ([], []))
        (refused,) = [each for each in await self.audit() if each["type"] == "own_tools.refused"]
        self.assertNotIn(USERS_TOKEN, json.dumps(refused))


class CommandTests(OwnToolsTestCase):
    """Commands without a sandbox."""

    async def use(self, *words: str) -> Finished:
        """Run a command with the service, as a user who has a token too."""
        command = self.home.script("aileron", "own-tools", "run", "--services", "github", *words)
        return await self.run_command(
            attrs.evolve(command, environment={**command.environment, "GH_TOKEN": USERS_TOKEN})
        )

    async def test_run(self) -> None:
        """gh and curl read at once, a write waits and is repeated by the next command, and exit codes are passed on."""
        await self.begin()
        read = await self.use("gh", "api", "repos/acme/web")
        self.assertEqual((read.exit_code, '"acme/web"' in read.stdout), (0, True), read)
        looked = await self.use("--", "sh", "-c", 'echo "$GH_TOKEN"; env; exit 7')
        self.assertEqual((looked.exit_code, looked.stdout.split("\n")[0]), (7, "aileron-placeholder"), looked)
        self.assertNotIn(USERS_TOKEN, looked.stdout)
        parked = await self.use("bash", "-c", _COMMENT)
        self.assertIn('"code": "pending_approval"', parked.stdout)
        (approval,) = await self.pending()
        shown = await self.operator("approval", "show", approval["id"])
        self.assertIn("claimed_command", shown.stdout)
        await self.approve(approval["id"])
        await until(self.reactor, partial(self.has_effects, 1), 30, "the effect")
        repeated = await self.use("bash", "-c", _COMMENT)
        self.assertIn('"number"', repeated.stdout)
        self.assertEqual(self.github.effects, ["POST /repos/acme/web/issues/7/comments Hi"])
        sessions = (await self.told("session", "list"))["items"]
        self.assertEqual({each["agent"] for each in sessions if each["agent"]}, {"command"})


class WriteTests(OwnToolsTestCase):
    """Commands that change something."""

    async def test_parked(self) -> None:
        """A write waits, and its command is told where; once approved it is done, and a repetition gets the answer."""
        await self.begin()
        inside = self.enter()
        for script, problem, answer in (
            (_ISSUE, "waits for the user's approval: http://", "https://github.com/acme/web/issues/8"),
            (_COMMENT, '"code": "pending_approval"', '"number"'),
        ):
            before = len(self.github.effects)
            parked = await inside.run(script)
            self.assertIn(problem, parked.stdout + parked.stderr)
            self.assertEqual(len(self.github.effects), before)
            (approval,) = await self.pending()
            self.assertIn(f"/approvals/{approval['id']}", parked.stdout + parked.stderr)
            asked = await inside.run(_STATUS.format(approval["id"]))
            self.assertEqual(json.loads(asked.stdout)["status"], "pending_approval", asked)
            await self.approve(approval["id"])
            await until(self.reactor, partial(self.has_effects, before + 1), 30, "the effect")
            repeated = await inside.run(script)
            self.assertEqual(repeated.exit_code, 0, repeated)
            self.assertIn(answer, repeated.stdout)
        await inside.end()
        self.assertEqual(self.github.effects, ["IssueCreate", "POST /repos/acme/web/issues/7/comments Hi"])

    async def test_commands(self) -> None:
        """While a process waits for an approval, no further change of it is asked for; other processes ask each.

        The operator sees the command line that each process claims.
        """
        await self.begin()
        inside = self.enter()
        script = self.home.project / "clean.py"
        script.write_text(_CLEANS_UP)
        finished = await inside.run(f"{_PYTHON} clean.py")
        waits, refused = filter(None, finished.stdout.splitlines())
        self.assertEqual([json.loads(each)["code"] for each in (waits, refused)], _WAITS_AND_REFUSED, finished)
        (approval,) = await self.pending()
        shown = await self.operator("approval", "show", approval["id"])
        self.assertIn("claimed_command", shown.stdout)
        self.assertIn("clean.py", shown.stdout)
        await inside.run(
            f"{_COMMENT}; {_COMMENT.replace('Hi', 'Ho')}; curl -sS -X DELETE https://{HOST}/repos/acme/web"
        )
        claimed = [
            (await self.told("run", "show", each["id"]))["arguments"]["recognised"]["claimed_command"]
            for each in await self.pending(4)
        ]
        self.assertEqual(sorted(each.split()[0] for each in claimed), [_PYTHON, "curl", "curl", "curl"])
        await inside.end()
        self.assertEqual(self.github.effects, [])
        (event,) = [each for each in await self.audit() if each["type"] == "own_tools.refused"]
        self.assertIn(f"{_PYTHON} clean.py", json.dumps(event))

    @seldom
    async def test_held(self) -> None:
        """A command whose write is approved while it waits notices nothing; one that is denied reads the reason."""
        await self.begin(hold_seconds=60)
        inside = self.enter()
        number = inside.begin(_ISSUE)
        (approval,) = await self.pending()
        await self.approve(approval["id"])
        finished = await inside.finish(number)
        self.assertEqual((finished.exit_code, finished.stdout), (0, "https://github.com/acme/web/issues/8\n"), finished)
        number = inside.begin(_COMMENT)
        (approval,) = await self.pending()
        await self.operator("approval", "deny", approval["id"], "--reason", "Not this issue.")
        denied = await inside.finish(number)
        self.assertIn("Not this issue.", denied.stdout)
        self.assertTrue(denied.stdout.endswith("\n403"), denied)
        await inside.end()
        self.assertEqual(self.github.effects, ["IssueCreate"])

    @seldom
    async def test_killed(self) -> None:
        """If the daemon is killed while it sends, the outcome is unknown, and nothing is sent again.

        The session's tools are refused from then on, with the reason.
        """
        await self.begin()
        inside = self.enter()
        await inside.run(_COMMENT)
        self.github.holds = True
        (approval,) = await self.pending()
        await self.operator("approval", "approve", approval["id"], "--yes")
        await until(self.reactor, partial(self.has_effects, 1), 30, "the effect")
        await self.kill_daemon()
        self.github.holds = False
        await self.unlock()
        (run,) = (await self.told("run", "list", "--state", "unknown"))["items"]
        repeated = await inside.run(_COMMENT.replace("-sS", "-vsS"))
        self.assertNotEqual(repeated.exit_code, 0)
        self.assertIn("launch the agent again", repeated.stderr)
        said = await inside.end()
        self.assertIn("unknown outcome", said)
        self.assertEqual(len(self.github.effects), 1)
        self.assertEqual(run["id"], approval["id"])


class AgentTests(OwnToolsTestCase):
    """A real agent, whose model follows a script."""

    @seldom
    async def test_pull_request(self) -> None:
        """OpenCode runs gh in its own shell: the model reads that the write waits, and later its answer."""
        commands = [Call("bash", {"command": each, "description": "Opens"}) for each in (_PULL, _AGAIN)]
        self.model = self.llm({"gpt-5.1": [*commands, Say("all done")]})
        await self.begin()
        agent = self.launch_scripted("github", GH_TOKEN=USERS_TOKEN)
        (approval,) = await self.pending()
        await until(self.reactor, self.has_heard, 60, "the model's first result")
        await self.approve(approval["id"])
        await until(self.reactor, partial(self.has_effects, 1), 30, "the effect")
        (self.home.project / "approved").touch()
        finished = await agent.finish(120)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("all done", finished.stdout)
        waits, answer = self.model.script.received[-1].tool_results
        self.assertIn("waits for the user's approval", waits)
        self.assertIn("https://github.com/acme/web/pull/9", answer)
        self.assertEqual((self.github.effects, self.github.refused), (["PullRequestCreate"], []))

    def has_heard(self) -> bool:
        """Whether the model has got the result of a command."""
        return self.model is not None and any(each.tool_results for each in self.model.script.received)
