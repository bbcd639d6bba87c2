"""A user with a running daemon: a vault, a connector to the kit's service, two actions, and the operator's commands."""

import atexit
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import attrs
from twisted.internet.error import CannotListenError
from twisted.internet.task import deferLater

from aileron.home.lock import running_pid
from aileron.home.paths import Home as State
from tests.functional import opencode
from tests.functional.case import FunctionalTestCase
from tests.functional.commands import ALONE, command_line, fork_daemons
from tests.functional.forkserver import ForkServer
from tests.functional.gallery import Gallery, looking
from tests.functional.home import Home, installed
from tests.functional.mcp_client import CLIENT, McpClient
from tests.functional.process import Command, Finished, Running
from tests.functional.reactor import Patience, until
from tests.functional.slack import FakeSlack, Workspace
from tests.functional.web import Reply, Web

PASSPHRASE = "Blaue Wiese 47 Kuchen Turm"
CONNECTOR = "local://me/slack"
GATED, UNGATED, CHECK = "ship-update", "post-note", "check-slack"
SHIP = {"channel": "#engineering", "summary": "The parser is out."}

_STUCK = 10.0
TURN = re.compile(
    r"a turn of the reactor (?:has taken|took) (?P<seconds>[0-9.]+) s.*?(?: (?P<kind>busy|blocked),)? at .*"
)
"""What the daemon logs of a long turn."""

_ACTION = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/slack"
version = "1.0.0"
capabilities = ["post_message"]

[[inputs]]
name = "channel"
type = "string"
description = "Channel name with the leading #"

[[inputs]]
name = "summary"
type = "string"
multiline = true
max_length = 200
description = "What was shipped, in one or two sentences"

[[execute]]
id = "post"
connector = "local://me/slack"
op = "post_message"
inputs = {{ channel = "${{args.channel}}", text = "{before}${{args.summary}}" }}

[approval]
required = {gated}
+++
# {name}

Tells a channel something.
"""


@attrs.frozen
class AgentSession:
    """An agent's session, opened as a launcher does."""

    id: str
    token: str = attrs.field(repr=False)
    gateway_key: str = attrs.field(repr=False)


@attrs.frozen
class Furnished:
    """A home that is ready, and the service that its connector names."""

    home: Path
    token: str = attrs.field(repr=False)
    port: int


class OperatedTestCase(FunctionalTestCase):
    """The user's commands, and what is true before and after them.

    A test begins with `furnish`, or with those steps of it that it is about.

    :cvar as_processes: whether commands are processes of their own, as they are for users.
    :cvar executes_daemons: whether the daemon is executed, as users start it; else it is forked, modules loaded.
    """

    maxDiff = None
    as_processes = False
    executes_daemons = False
    _furnished: ClassVar[dict[tuple[str, str], Furnished]] = {}

    def setUp(self) -> None:
        """Start the service; whatever daemon there is at the end is killed."""
        super().setUp()
        self.service = self._listening()
        self.web = Web(self.reactor)
        self.state = State(self.home.aileron)
        self._tokens: dict[str, str] = {}
        self.command_line = command_line(self.reactor)
        self.finally_(self.kill_daemon)
        self.addCleanup(self.check_turns)

    @property
    def workspace(self) -> Workspace:
        """What the service saw."""
        return self.service.workspace

    # the user's home --------------------------------------------------------------------------

    async def furnish(self, config: str = "") -> None:
        """A daemon with an open vault, the connector with its key bound, and both actions.

        The first time by the user's own steps; afterwards a copy of that home is unlocked.

        :param config: the text of ``config.yaml``, trusted; empty: there is none.
        """
        wanted = self.service.url, config
        if wanted not in self._furnished:
            await self._furnish_slowly()
            if config:
                await self._trust_config(config)
            await self.command("daemon", "stop")
            self._furnished[wanted] = Furnished(self._kept(), self.workspace.token, self.service.port)
        else:
            shutil.copytree(self._furnished[wanted].home, self.home.aileron)
        await self.unlock()

    async def _furnish_slowly(self) -> None:
        await self.operator("vault", "init")
        self.write_connector()
        await self.add_actions()
        await self.bind()

    def _kept(self) -> Path:
        """A copy of the home for later tests, which the interpreter deletes at its end."""
        directory = tempfile.mkdtemp(prefix="aileron-furnished-")
        atexit.register(shutil.rmtree, directory)
        return Path(shutil.copytree(self.home.aileron, Path(directory) / "home"))

    def _listening(self) -> FakeSlack:
        """The service at the address that a furnished home names, if there is one and it is still free."""
        for furnished in self._furnished.values():
            with suppress(CannotListenError):
                return self.slack(furnished.token, furnished.port)
        return self.slack()

    def write_connector(self) -> None:
        """Put the built-in Slack's copy, which names the test's own service, into the home."""
        text = (files("aileron.connectors") / "builtin" / "slack.toml").read_text()
        address = self.service.url.removeprefix("http://")
        text = text.replace("builtin://slack", CONNECTOR)
        text = re.sub(
            r"(?m)^base_url = .*$", f'base_url = {{ default = "{self.service.url}", bindable = false }}', text
        )
        text = re.sub(r"(?m)^hosts = .*$", f'hosts = ["{address}"]\nprivate_network = true', text)
        self._put_connector("slack", text)

    def open_gallery(self) -> None:
        """Start the service that answers with pictures and the like, and put its connector into the home."""
        gallery = Gallery.listen(self.reactor)
        self.finally_(gallery.stop)
        self._put_connector("gallery", gallery.connector())

    def looking(self, name: str, operation: str, *, gated: bool = False) -> Path:
        """The file of an action that looks at something in the gallery."""
        path = self.home.project / f"{name}.md"
        path.write_text(looking(name, operation, gated=gated))
        return path

    def _put_connector(self, name: str, text: str) -> None:
        path = self.state.connectors / f"{name}.toml"
        path.write_text(text)
        path.chmod(0o600)

    def check_file(self) -> Path:
        """The action that setup adds to check Slack's connection, for the test's own service, in the project."""
        path = self.home.project / f"{CHECK}.md"
        text = (files("aileron.connectors") / "builtin" / "actions" / "slack" / path.name).read_text()
        path.write_text(text.replace("builtin://slack", CONNECTOR))
        return path

    def action_file(self, name: str, *, gated: bool, before: str = "") -> Path:
        """An action file in the project.

        :param before: stands before the summary in what is posted.
        """
        path = self.home.project / f"{name}.md"
        path.write_text(_ACTION.format(name=name, before=before, gated="true" if gated else "false"))
        return path

    async def add_actions(self) -> None:
        """Add the gated and the ungated action."""
        await self.add(self.action_file(GATED, gated=True), self.action_file(UNGATED, gated=False))

    async def add(self, *paths: Path, force: bool = False) -> None:
        """Put actions into the home and trust them, with the connectors that they need."""
        options = ("--yes", "--force") if force else ("--yes",)
        await self.operator("action", "add", *map(str, paths), *options)

    async def bind(self) -> None:
        """Bind the service's token."""
        await self.feed(self.workspace.token, "binding", "setup", CONNECTOR)

    # commands ---------------------------------------------------------------------------------

    async def command(self, *arguments: str, code: int = 0) -> Finished:
        """Run ``aileron`` without a passphrase; it must end with ``code``."""
        return self._expect(await self.aileron(*arguments), code)

    async def operator(self, *arguments: str, code: int = 0) -> Finished:
        """Run ``aileron`` with the passphrase on a descriptor; it must end with ``code``."""
        return self._expect(await self.aileron(*arguments, passphrase=PASSPHRASE), code)

    async def feed(self, secret: str, *arguments: str) -> None:
        """Run ``aileron`` with the passphrase on one descriptor and a secret on another; it must succeed."""
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": secret}
        self._expect(await self.command_line.run(arguments, self.home.environment(), fed, self.confine), 0)

    async def operator_within(self, environment: Mapping[str, str], *arguments: str) -> Finished:
        """What came of ``aileron`` in surroundings with these variables, with the passphrase on a descriptor."""
        fed = {"--passphrase-fd": PASSPHRASE}
        return await self.command_line.run(arguments, self.home.environment(**environment), fed, self.confine)

    async def aileron(self, *arguments: str, passphrase: str | None = None) -> Finished:
        """What came of ``aileron``, which may end in any way."""
        if not self.as_processes and arguments[0] not in ALONE:
            fed = {} if passphrase is None else {"--passphrase-fd": passphrase}
            return await self.command_line.run(arguments, self.home.environment(), fed, self.confine)
        if passphrase is None:
            return await self.run_command(self.home.script("aileron", *arguments))
        return await self.run_command(self._as_operator(*arguments))

    def on_terminal(self, *arguments: str, **environment: str) -> Running:
        """Start ``aileron`` on a terminal of its own; it is forked, modules loaded."""
        command = self.home.on_terminal("aileron", *arguments, **environment)
        return self.start(attrs.evolve(command, arguments=(*self.forked("aileron"), *arguments)))

    def forked(self, program: str) -> tuple[str, ...]:
        """What stands in the place of ``aileron`` or ``aileron-mcp``; see `ForkServer.command`."""
        return ForkServer.lend().command(program)

    async def told(self, *arguments: str) -> Any:
        """What an operator's command says with ``--json``."""
        return json.loads((await self.operator(*arguments, "--json")).stdout)

    async def approve(self, approval_id: str, *more: str, code: int = 0) -> Finished:
        """Approve one on the command line."""
        return await self.operator("approval", "approve", approval_id, "--yes", *more, code=code)

    async def audit(self, *filters: str) -> list[Mapping[str, Any]]:
        """The record, oldest first."""
        return list(reversed((await self.told("audit", "list", "--limit", "200", *filters))["items"]))

    async def operator_token(self) -> str:
        """A token of the operator's, for requests that no command makes."""
        return await self.command_line.log_in(self.state, PASSPHRASE)

    def confine(self) -> None:
        """Called in each command's own thread before it; here nothing is taken from it."""
        if not self.executes_daemons:
            fork_daemons()

    def _as_operator(self, *arguments: str) -> Command:
        return self.home.with_passphrase(PASSPHRASE, "aileron", *arguments)

    def _expect(self, finished: Finished, code: int) -> Finished:
        self.assertEqual(finished.exit_code, code, f"{finished.stdout}\n{finished.stderr}")
        return finished

    # the daemon -------------------------------------------------------------------------------

    async def status(self) -> Mapping[str, Any]:
        """What the daemon says of itself; nothing while it does not answer."""
        found = self.home.discovery()
        return (await self.web.ask("GET", f"{found['url']}/v1/status", found["launch_key"])).body

    async def waiting(self, count: int = 1, seconds: float = 60) -> list[Mapping[str, Any]]:
        """The approvals that wait, as soon as there are ``count``, oldest first."""
        patience = Patience(self.reactor, seconds)
        while (await self.status())["counts"]["pending_approvals"] < count:
            self.assertFalse(patience.is_over, f"there are no {count} approvals")
            await self.pause(0.1)
        items: list[Mapping[str, Any]] = []
        first = f"{self.home.discovery()['operator_url']}/v1/action-approvals?limit=200"
        url = first
        while url:
            listed = (await self.web.ask("GET", url, await self._reading_token())).body
            items += listed["items"]
            url = f"{first}&cursor={listed['cursor']}" if listed["cursor"] else ""
        self.assertEqual(len(items), count)
        return items

    async def _reading_token(self) -> str:
        """A token of the operator's for looking, one a life of the daemon."""
        instance = self.home.discovery()["instance"]
        if instance not in self._tokens:
            self._tokens[instance] = await self.operator_token()
        return self._tokens[instance]

    async def posted(self, count: int = 1, seconds: float = 30) -> None:
        """Wait until the service has taken so many messages."""
        await until(self.reactor, lambda: len(self.workspace.messages) >= count, seconds, f"{count} messages")

    def check_turns(self) -> None:
        """Nobody was kept waiting: no turn of the daemon's reactor computed for over 250 ms, or took many seconds.

        One that is kept from computing for a moment is the machine's, which has others to serve.  Where a command
        has started a daemon its log is there, or nothing was looked at.
        """
        lines = [line for path in self.state.log.glob("aileron.log*") for line in path.read_text().splitlines()]
        if (self.state.log / "daemon.out").exists():
            self.assertTrue(lines, f"the daemon has left no log in {self.state.log}")
        found = [turn for line in lines if (turn := TURN.search(line))]
        long = [turn[0] for turn in found if turn["kind"] == "busy" or float(turn["seconds"]) > _STUCK]
        self.assertFalse(long, "\n".join((f"{len(long)} turns were too long, among them:", *long[:10])))

    async def kill_daemon(self) -> None:
        """``kill -9`` whatever daemon serves the home, and wait until it is gone."""
        pid = running_pid(self.state) if self.state.root.exists() else None
        if pid:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.kill(pid, signal.SIGKILL)
            await until(self.reactor, lambda: running_pid(self.state) != pid, 30, "the end of a killed daemon")
            with suppress(ChildProcessError):  # it is our child where a thread has started it
                os.waitpid(pid, 0)

    async def unlock(self) -> None:
        """Start the daemon, or start it anew, with the vault open."""
        await self.operator("vault", "unlock")

    async def set_config(self, text: str) -> None:
        """Trust this ``config.yaml``, and have another life of the daemon obey it."""
        await self._trust_config(text)
        await self.command("daemon", "stop")
        await self.unlock()

    async def _trust_config(self, text: str) -> None:
        self.state.config.write_text(text)
        await self.operator("config", "trust", "--yes")

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        await deferLater(self.reactor, seconds)

    # agents -----------------------------------------------------------------------------------

    def launched(self, prompt: str = "tell the team", home: Home | None = None, **environment: str) -> Command:
        """``aileron launch opencode run …``, its model in the user's own configuration file.

        :param home: another user's home for the agent; the daemon stays this home's.
        """
        user = home or self.home
        command = opencode.headless(user, prompt, None)
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        if not (programs / "opencode").exists():
            (programs / "opencode").symlink_to(command.arguments[0])
        places = {"AILERON_HOME": str(self.home.aileron), "PATH": f"{programs}:{command.environment['PATH']}"}
        return attrs.evolve(
            command,
            arguments=(installed("aileron"), "launch", "opencode", *command.arguments[1:]),
            environment={**command.environment, **places, **environment},
        )

    def launch(self, prompt: str = "tell the team", home: Home | None = None, **environment: str) -> Running:
        """Start it."""
        return self.start(self.launched(prompt, home, **environment))

    async def session(self, agent: str = "test") -> AgentSession:
        """A session without an agent, for the test to be one."""
        found = self.home.discovery()
        body = {"agent": agent, "working_dir": str(self.home.project)}
        opened = (await self.web.ask("POST", f"{found['url']}/v1/sessions", found["launch_key"], body)).body
        return AgentSession(opened["id"], opened["token"], opened["gateway_key"])

    async def run_action(
        self, session: AgentSession, name: str, arguments: Mapping[str, Any] = SHIP, wait: int | None = None
    ) -> Reply:
        """Run an action as an agent does.

        :param wait: in seconds, for the outcome.
        """
        prefer = {} if wait is None else {"Prefer": f"wait={wait}"}
        url = f"{self.home.discovery()['url']}/v1/actions/{name}/run"
        return await self.web.ask("POST", url, session.token, {"args": arguments}, seconds=(wait or 0) + 30, **prefer)

    async def result(self, session: AgentSession, approval_id: str, wait: int = 0) -> Reply:
        """How a run stands, for an agent."""
        url = f"{self.home.discovery()['url']}/v1/action-approvals/{approval_id}/result?wait={wait}"
        return await self.web.ask("GET", url, session.token, seconds=wait + 30)

    async def mcp(
        self,
        session: AgentSession,
        wait_seconds: int = 45,
        hello: Mapping[str, Any] | None = CLIENT,
        **more: str,
    ) -> McpClient:
        """The installed ``aileron-mcp`` of a session, its hands shaken; it is killed at the end.

        :param hello: what the client says of itself; None: no hands are shaken.
        :param more: what a launcher would say besides.
        """
        ours = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        environment = self.home.environment(**ours, AILERON_WAIT_SECONDS=str(wait_seconds), **more)
        forks = not (self.as_processes or self.executes_daemons)
        program = self.forked("aileron-mcp") if forks else None
        client = self.start_mcp(environment, self.home.project, program)
        if hello is not None:
            await client.shake_hands(hello)
        return client


def kinds(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What happened, in order."""
    return [record["type"] for record in records]
