"""The description of an agent: its settings, the files it may write, and the function that registers the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from attrs import frozen

from aileron.base.text import visible
from aileron.model.errors import InvalidRequest

from .layers import AgentSettings, LayerReader, Location, read_settings
from .registration import GatewayAccess, Invocation, McpServer, Providers, Register, Registration
from .servers import ServerSource

SERVER_NAME = "aileron"
"""What an agent calls our tool server."""

CALL_TIMEOUT_SECONDS = 3_600
"""How long an agent is to wait for one call: its default is often shorter than an approval takes."""

UNATTENDED_WAIT_SECONDS = CALL_TIMEOUT_SECONDS - 15
"""How long a call waits for a decision at most, and without a person before the agent: it is answered before the agent
gives it up."""

ATTENDED_WAIT_SECONDS = 45
"""How long a call waits for a decision where a person sits before the agent, which then goes on with something else."""


@frozen(kw_only=True)
class Agent:
    """One kind of agent.

    :ivar name: what the user calls it, the claim of its sessions, and its program on C{PATH}.
    :ivar register: what makes it use the server, with settings of providers to be registered beside it, and the
        directory where files may lie.
    :ivar route: what sends its LLM traffic through the gateway.
    :ivar draws: whether it draws on the whole terminal when started with these arguments.
    :ivar sources: where it looks for settings, the one that wins first.
    :ivar servers: where it keeps the MCP servers that a user has set up.
    :ivar own: directories with sessions and logs, and nothing that another program, or the agent itself in a later
        session, loads or starts.
    :ivar own_files: such files, for a directory that has others beside them.
    :ivar settings: directories where it reads settings, and may want to write.
    :ivar commands: first arguments that have it do something else than work: it gets neither tools nor gateway then.
    :ivar alone: what the user is told of these; empty: nothing.
    :ivar unique: key of its settings below which no server may have the name of ours; empty: each may.
    :ivar check: refuses settings that cannot be added to, by raising InvalidRequest.
    :ivar in_band: whether it gets actions inside its LLM traffic, by a key of its own.
    :ivar claim: what its sessions are called; empty: its name.
    """

    name: str
    register: Callable[[AgentSettings, McpServer, Providers, str], Registration]
    route: Callable[[AgentSettings, GatewayAccess], Registration]
    draws: Callable[[tuple[str, ...]], bool]
    sources: tuple[LayerReader, ...]
    own: tuple[Location, ...]
    settings: tuple[Location, ...]
    own_files: tuple[Location, ...] = ()
    commands: frozenset[str] = frozenset()
    alone: str = ""
    unique: str = ""
    check: Callable[[AgentSettings], object] = lambda _settings: None
    servers: tuple[ServerSource, ...] = ()
    in_band: bool = False
    claim: str = ""

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Return whether the agent uses the whole terminal with these arguments, so that no line may be printed there.

        The agent's commands never do.
        """
        return not self.commands.intersection(arguments[:1]) and self.draws(arguments)

    def wait_seconds(self, arguments: tuple[str, ...], wanted: int | None) -> int:
        """Return how many seconds a tool call of the agent waits for a decision.

        :param wanted: the seconds that the user chose, or None.
        """
        usual = ATTENDED_WAIT_SECONDS if self.full_screen(arguments) else UNATTENDED_WAIT_SECONDS
        return usual if wanted is None else min(wanted, UNATTENDED_WAIT_SECONDS)

    def prepare(self, invocation: Invocation) -> Register:
        """Read and check the user's settings for a launch, and return the function that registers the tool server.

        Nothing is opened or started.

        :raises InvalidRequest: a setting cannot be extended without losing the user's own value.
        """
        if self.commands.intersection(invocation.arguments[:1]):
            note = f"aileron: {self.name} {invocation.arguments[0]} runs outside a session: {self.alone}"
            alone = Registration(notes=(note,) if self.alone else ())
            return lambda _server, _gateway, _directory: alone
        settings = read_settings(self.sources, invocation)
        self.check(settings)
        self._refuse_namesake(settings)
        return partial(self._register, settings)

    def _register(
        self, settings: AgentSettings, server: McpServer, gateway: GatewayAccess | None, directory: str
    ) -> Registration:
        routes = Registration() if gateway is None else self.route(settings, gateway)
        ours = self.register(settings, server, routes.providers, directory)
        return Registration(
            variables={**ours.variables, **routes.variables},
            notes=(*ours.notes, *routes.notes),
            arguments=(*ours.arguments, *routes.arguments),
            files=ours.files,
        )

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the directories that the agent may write in a sandbox besides the project."""
        return tuple(str(path) for each in self.own if (path := each.find(environment)))

    def own_paths(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the files that the agent may write in a sandbox besides its directories and the project."""
        return tuple(str(path) for each in self.own_files if (path := each.find(environment)))

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the directories of the agent's settings. A sandbox discards what the agent writes there."""
        return tuple(str(path) for each in self.settings if (path := each.find(environment)))

    def _refuse_namesake(self, settings: AgentSettings) -> None:
        """Refuse a server of our name: of the two the agent would use the user's, or a mixture.

        :raises InvalidRequest: there is one.
        """
        for place, _ in settings.values(self.unique, SERVER_NAME) if self.unique else ():
            raise InvalidRequest(
                f"{visible(place)} already has a server named {SERVER_NAME} in {self.unique}, the name that a launch "
                "uses. Remove it there, or rename it."
            )
