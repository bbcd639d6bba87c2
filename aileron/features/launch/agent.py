"""The description of an agent: its settings, the files it may write, and the function that registers the tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from attrs import evolve, frozen

from aileron.base.text import visible
from aileron.model.errors import InvalidRequest

from .layers import AgentSettings, LayerReader, Location, read_settings
from .registration import (
    GatewayAccess,
    Invocation,
    McpServer,
    PromptAccess,
    Providers,
    Register,
    Registration,
    WakeAccess,
)
from .resuming import Resumption
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
    :ivar hook: returns a registration with the agent's hooks for permission prompts added, from the settings, the
        inbox, the registration and the directory for files. None if no launch can add such hooks.
    :ivar wake: returns a registration with what tells the idle agent outcomes added, from the settings, the address,
        the registration, and whether it waits for outcomes or only says which conversation it has. None if no launch
        can add that.
    :ivar resumption: how the agent is resumed after it has ended, or None if no launch can do that.
    :ivar asks_beside: whether the agent shows its own dialog while its hook waits.
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
    hook: Callable[[AgentSettings, PromptAccess, Registration, str], Registration] | None = None
    asks_beside: bool = False
    wake: Callable[[AgentSettings, WakeAccess, Registration, bool], Registration] | None = None
    resumption: Resumption | None = None

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Return whether the agent uses the whole terminal with these arguments, so that no line may be printed there.

        Commands such as C{login} never use the whole terminal.
        """
        return not self.commands.intersection(arguments[:1]) and self.draws(arguments)

    def wait_seconds(self, arguments: tuple[str, ...], wanted: int | None) -> int:
        """Return for how many seconds at most a tool call of the agent waits for a decision.

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
            return lambda server, gateway, directory, prompts=None, wake=None: alone
        settings = read_settings(self.sources, invocation)
        self.check(settings)
        self._refuse_namesake(settings)
        return partial(self._register, settings)

    def listed_prompts(self, arguments: tuple[str, ...], access: PromptAccess | None) -> PromptAccess | None:
        """Return the inbox for the agent's permission prompts, or None if no hook is added.

        Unless the user asks for more, prompts are listed only if the agent's own dialog stays open beside the inbox,
        and a person sits at the agent.
        """
        if access is None or self.hook is None:
            return None
        found = evolve(access, asks=access.asks or (self.asks_beside and self.full_screen(arguments)))
        return found if found.asks or found.checks else None

    def _register(
        self,
        settings: AgentSettings,
        server: McpServer,
        gateway: GatewayAccess | None,
        directory: str,
        prompts: PromptAccess | None = None,
        wake: WakeAccess | None = None,
    ) -> Registration:
        routes = Registration() if gateway is None else self.route(settings, gateway)
        ours = self.register(settings, server, routes.providers, directory)
        made = Registration(
            variables={**ours.variables, **routes.variables},
            notes=(*ours.notes, *routes.notes),
            arguments=(*ours.arguments, *routes.arguments),
            files=ours.files,
        )
        arguments = settings.invocation.arguments
        listed = self.listed_prompts(arguments, prompts)
        if listed is not None and self.hook is not None:
            made = self.hook(settings, listed, made, directory)
        waits = self.full_screen(arguments)
        if wake is not None and self.wake is not None and (waits or wake.resumes):
            made = self.wake(settings, wake, made, waits)
        return made

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
