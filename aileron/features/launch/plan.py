"""The plan of a launch: the command, environment and files, computed without side effects."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from aileron.client import SessionEnvironment
from aileron.model.errors import Forbidden, NotFound

from .agent import Agent
from .registration import GatewayAccess, Invocation, McpServer, PromptAccess, Register, Upstream, WakeAccess

PASSPHRASE = "AILERON_VAULT_PASSPHRASE"
NOTES_TOOLS = (
    "aileron: the gateway notes tools that the provider runs itself, such as web search: no sandbox stops these. "
    "To refuse them, set gateway.provider_tools in config.yaml."
)
_OURS = "AILERON_"


@frozen
class DaemonFacts:
    """Facts about the running daemon that a launch needs.

    :ivar url: the URL of the agent site.
    :ivar upstreams: the gateway's upstreams by the provider's name, or None if the daemon has no gateway.
    :ivar lists_prompts: whether the daemon lists the agents' own permission prompts.
    :ivar checks_calls: whether rules of permission prompts ask or deny.
    :ivar wakes: whether the daemon knows outcomes that wake an agent.
    :ivar resumes: whether launches resume an agent that has ended, unless the user says otherwise.
    """

    url: str
    operator_url: str
    launch_key: str = field(repr=False)
    upstreams: Mapping[str, Upstream] | None = None
    lists_prompts: bool = False
    checks_calls: bool = False
    wakes: bool = False
    resumes: bool = False

    def wake(self, wanted: bool | None) -> WakeAccess | None:
        """Return the settings by which outcomes wake an agent, or None if the daemon wakes none or the user wants none.

        :param wanted: whether an agent that has ended is resumed; False to leave the agent alone altogether; None for
            the operator's configuration.
        """
        if not self.wakes or wanted is False:
            return None
        return WakeAccess(self.url, resumes=wanted is True or self.resumes)

    def prompts(self, wanted: bool | None) -> PromptAccess | None:
        """Return the settings of the inbox for an agent's permission prompts, or None.

        None means that the daemon has no such inbox, or the user does not want it.

        :param wanted: whether the user wants the prompts listed; None for the agent's usual way.
        """
        is_there = self.lists_prompts and wanted is not False
        return PromptAccess(self.url, asks=wanted is True, checks=self.checks_calls) if is_there else None

    def gateway(self, key: str, *, notes_tools: bool = False) -> GatewayAccess | None:
        """Return the gateway for a session with this key, or None if the daemon has no gateway."""
        return None if self.upstreams is None else GatewayAccess(self.url, key, self.upstreams, notes_tools)


@frozen
class Programs:
    """The absolute paths of the agent's program and of C{aileron-mcp}, its tool server."""

    agent: str
    mcp: str


@frozen
class LaunchPlan:
    """The plan of an agent's process.

    :ivar argv: the command, without secrets.
    :ivar environment: the complete environment, including the session's token and gateway key.
    :ivar notes: the messages for the user, one per line.
    :ivar descriptors: the inherited file descriptors besides the standard ones: the agent's number to this process's.
    :ivar directory: a private directory that exists while the agent runs, or None if the agent needs no file.
    :ivar files: the texts of the files in that directory by name, without secrets.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()
    descriptors: Mapping[int, int] = field(factory=dict)
    directory: str | None = None
    files: Mapping[str, str] = field(factory=dict)


@frozen
class Preparation:
    """A launch whose programs and settings were found and checked. Nothing has been opened or started yet."""

    agent: Agent
    invocation: Invocation
    programs: Programs
    register: Register

    def plan(
        self,
        url: str,
        token: str,
        gateway: GatewayAccess | None,
        directory: str,
        prompts: PromptAccess | None = None,
        wake: WakeAccess | None = None,
    ) -> LaunchPlan:
        """Plan the launch in a session: with Aileron's tools, the gateway, and the environment without C{AILERON_*}.

        :param url: the URL of the agent site.
        :param token: the session's token.
        :param gateway: the gateway, or None to leave the agent's LLM traffic alone.
        :param directory: the directory for the agent's files.
        :param prompts: the inbox for the agent's permission prompts, or None to leave them alone.
        :param wake: the outcomes that wake the agent, or None.
        """
        arguments, environment = self.invocation.arguments, self.invocation.environment
        wanted = SessionEnvironment.of(environment)  # set by the user
        session = SessionEnvironment(
            url,
            token,
            self.agent.wait_seconds(arguments, wanted.wait_seconds),
            self.agent.name,
            attended=self.agent.full_screen(arguments),
            listed_actions=wanted.listed_actions,
        )
        server = McpServer(self.programs.mcp, session.on_this_machine().variables())
        ours = self.register(server, gateway, directory, prompts, wake)
        theirs = {name: value for name, value in environment.items() if not name.startswith(_OURS)}
        return LaunchPlan(
            argv=(self.programs.agent, *ours.arguments, *arguments),
            environment={**theirs, **ours.variables},
            notes=(*ours.notes, NOTES_TOOLS) if gateway is not None and gateway.notes_tools else ours.notes,
            directory=directory if ours.files else None,
            files=ours.files,
        )


def prepare(agent: Agent, invocation: Invocation, interpreter: str) -> Preparation:
    """Find the programs and check the settings that a launch needs.

    :param interpreter: the path of the Python interpreter, see L{find_programs}.
    :raises Forbidden: if the vault's passphrase is in the environment.
    :raises NotFound: if a program is not installed.
    :raises InvalidRequest: if the user's own settings cannot be extended.
    """
    if PASSPHRASE in invocation.environment:
        raise Forbidden(f"{PASSPHRASE} is set, so no agent was started. Unset it first.")
    programs = find_programs(agent, invocation.environment, interpreter)
    return Preparation(agent, invocation, programs, agent.prepare(invocation))


def write_files(plan: LaunchPlan) -> None:
    """Write the plan's files into its directory, which must exist.

    :raises OSError: if a file cannot be written.
    """
    for name, text in plan.files.items():
        (Path(plan.directory or "") / name).write_text(text, encoding="utf-8")


def find_programs(agent: Agent, parent: Mapping[str, str], interpreter: str) -> Programs:
    """Return the paths of the agent's program and of C{aileron-mcp}.

    :param parent: the environment whose C{PATH} is searched.
    :param interpreter: the path of the Python interpreter. Its directory is searched for C{aileron-mcp} first.
    :raises NotFound: if one of them is not installed.
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
