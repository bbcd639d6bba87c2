"""The plan of a launch: what will be run, in which environment, decided without doing anything."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from aileron.client import SessionEnvironment
from aileron.model.errors import Forbidden, NotFound

from .agent import Agent
from .registration import GatewayAccess, Invocation, McpServer, Register, Upstream

PASSPHRASE = "AILERON_VAULT_PASSPHRASE"
NOTES_TOOLS = (
    "aileron: the gateway notes tools that the provider runs itself, such as web search: no sandbox stops these. "
    "To refuse them, set gateway.provider_tools in config.yaml."
)
_OURS = "AILERON_"


@frozen
class DaemonFacts:
    """Facts about the running daemon that a launch needs.

    :ivar upstreams: of its gateway, by the provider's name; None if it has no gateway.
    """

    url: str
    operator_url: str
    launch_key: str = field(repr=False)
    upstreams: Mapping[str, Upstream] | None = None

    def gateway(self, key: str, *, notes_tools: bool = False) -> GatewayAccess | None:
        """Return the gateway for a session with this gateway key; L{None} if the daemon has none."""
        return None if self.upstreams is None else GatewayAccess(self.url, key, self.upstreams, notes_tools)


@frozen
class Programs:
    """Absolute paths of what will be run: the agent, and C{aileron-mcp}."""

    agent: str
    mcp: str


@frozen
class LaunchPlan:
    """One agent's process.

    :ivar argv: holds no secret.
    :ivar environment: the whole environment, the session's token and gateway key in it.
    :ivar notes: what the user is to be told, a line each.
    :ivar descriptors: that it inherits besides the standard ones: its number for each, and ours.
    :ivar directory: nobody else's, for as long as it runs; L{None}: it needs no file.
    :ivar files: texts in that directory, by name; no secret.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()
    descriptors: Mapping[int, int] = field(factory=dict)
    directory: str | None = None
    files: Mapping[str, str] = field(factory=dict)


@frozen
class Preparation:
    """A launch of which everything on this machine was found and checked, and nothing was opened or started."""

    agent: Agent
    invocation: Invocation
    programs: Programs
    register: Register

    def plan(self, url: str, token: str, gateway: GatewayAccess | None, directory: str) -> LaunchPlan:
        """Plan it in a session: the parent's environment without C{AILERON_*}, our tools, and the gateway.

        :param url: of the daemon's site for agents.
        :param token: the session's.
        :param gateway: L{None}: its LLM traffic is left alone.
        :param directory: where files for it can lie.
        """
        arguments, environment = self.invocation.arguments, self.invocation.environment
        wanted = SessionEnvironment.of(environment)  # by the user
        session = SessionEnvironment(
            url,
            token,
            self.agent.wait_seconds(arguments, wanted.wait_seconds),
            self.agent.name,
            attended=self.agent.full_screen(arguments),
            listed_actions=wanted.listed_actions,
        )
        server = McpServer(self.programs.mcp, session.on_this_machine().variables())
        ours = self.register(server, gateway, directory)
        theirs = {name: value for name, value in environment.items() if not name.startswith(_OURS)}
        return LaunchPlan(
            argv=(self.programs.agent, *ours.arguments, *arguments),
            environment={**theirs, **ours.variables},
            notes=(*ours.notes, NOTES_TOOLS) if gateway is not None and gateway.notes_tools else ours.notes,
            directory=directory if ours.files else None,
            files=ours.files,
        )


def prepare(agent: Agent, invocation: Invocation, interpreter: str) -> Preparation:
    """Find and check all that a launch needs.

    :param interpreter: as of L{find_programs}.
    :raises Forbidden: the vault's passphrase is in the environment, where no agent must be started.
    :raises NotFound: a program is not installed.
    :raises InvalidRequest: the user's own settings cannot be added to.
    """
    if PASSPHRASE in invocation.environment:
        raise Forbidden(f"{PASSPHRASE} is set, so no agent was started. Unset it first.")
    programs = find_programs(agent, invocation.environment, interpreter)
    return Preparation(agent, invocation, programs, agent.prepare(invocation))


def write_files(plan: LaunchPlan) -> None:
    """Write the plan's files into its directory, which exists and is empty.

    :raises OSError: a file could not be written.
    """
    for name, text in plan.files.items():
        (Path(plan.directory or "") / name).write_text(text, encoding="utf-8")


def find_programs(agent: Agent, parent: Mapping[str, str], interpreter: str) -> Programs:
    """Return where the agent and C{aileron-mcp} lie.

    :param interpreter: the path of Python; C{aileron-mcp} is installed beside it as a rule.
    :raises NotFound: one of them is not there.
    """
    path = parent.get("PATH", os.defpath)
    beside = f"{Path(interpreter).absolute().parent}{os.pathsep}{path}"
    return Programs(
        agent=_find_program(agent.name, path, f"{agent.name} was not found on PATH. Install it first."),
        mcp=_find_program("aileron-mcp", beside, "aileron-mcp is not installed. Reinstall the aileron package."),
    )


def _find_program(name: str, path: str, otherwise: str) -> str:
    found = shutil.which(name, path=path)
    if found is None:
        raise NotFound(otherwise)
    return os.path.abspath(found)
