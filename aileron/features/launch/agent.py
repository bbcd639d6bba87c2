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
"""The name under which an agent registers Aileron's tool server."""

CALL_TIMEOUT_SECONDS = 3_600
"""How long an agent waits for one call. The agents' defaults are often shorter than an approval takes."""

UNATTENDED_WAIT_SECONDS = CALL_TIMEOUT_SECONDS - 15
"""How long a call waits for a decision if no person sits at the agent, and at most: less than the agent's own limit."""

ATTENDED_WAIT_SECONDS = 45
"""How long a call waits for a decision if a person sits at the agent. The agent then continues with other work."""


@frozen(kw_only=True)
class Agent:
    """The description of one kind of agent.

    :ivar name: the agent's name on the command line, its program on C{PATH}, and by default its name in sessions.
    :ivar register: returns the registration of the tool server, from the settings, the server, settings of providers to
        register with it, and the directory for files.
    :ivar route: returns the registration that sends the agent's LLM traffic through the gateway.
    :ivar draws: returns whether the agent draws on the whole terminal with these arguments.
    :ivar sources: the places of the agent's settings, in order of precedence.
    :ivar servers: the places of MCP servers that the user has set up for the agent.
    :ivar own: directories of sessions and logs that the agent may write in a sandbox. They must contain nothing that
        another program, or the agent in a later session, loads or starts.
    :ivar own_files: files of the same kind, in directories that contain other files too.
    :ivar settings: directories of settings, to which a sandboxed agent may write without lasting effect.
    :ivar commands: first arguments with which the agent gets neither tools nor gateway, such as a command C{login}.
    :ivar alone: the message about such a command; empty for none.
    :ivar unique: the key of the settings below which no server may have the name of Aileron's; empty for no such rule.
    :ivar check: raises InvalidRequest if the settings cannot be extended.
    :ivar in_band: whether the agent gets actions inside its LLM traffic, with a key of its own.
    :ivar claim: the agent's name in its sessions; empty for C{name}.
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
        """Return for how many seconds a tool call of the agent waits for a decision.

        :param wanted: the seconds that the user chose, or None.
        """
        usual = ATTENDED_WAIT_SECONDS if self.full_screen(arguments) else UNATTENDED_WAIT_SECONDS
        return usual if wanted is None else min(wanted, UNATTENDED_WAIT_SECONDS)

    def prepare(self, invocation: Invocation) -> Register:
        """Read and check the user's settings for a launch, and return the function that registers the tool server.

        Nothing is opened or started.

        :raises InvalidRequest: if a setting cannot be extended without losing the user's own value.
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
        """Check that no server of the user's has the name of Aileron's: the agent would use it, or a mixture of both.

        :raises InvalidRequest: if there is one.
        """
        for place, _ in settings.values(self.unique, SERVER_NAME) if self.unique else ():
            raise InvalidRequest(
                f"{visible(place)} already has a server named {SERVER_NAME} in {self.unique}, the name that a launch "
                "uses. Remove it there, or rename it."
            )
