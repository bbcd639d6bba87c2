"""The registration of an agent's tool server and gateway, and the user's invocation of the agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Protocol, TypeAlias

from attrs import field, frozen

from aileron.base.json import JSON


@frozen
class Invocation:
    """The user's invocation of an agent.

    :ivar arguments: the agent's arguments, passed on unchanged.
    :ivar environment: the launcher's environment. The agent gets it without C{AILERON_*}.
    :ivar directory: the absolute path of the working directory.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directory: str

    def option(self, *names: str) -> Iterator[str]:
        """Yield each value of an option in the agent's arguments, in all notations: C{-p x}, C{-px}, C{--profile=x}.

        :param names: the option's names, such as C{-p} and C{--profile}.
        """
        for argument, following in zip_longest(self.arguments, self.arguments[1:], fillvalue=""):
            for name in names:
                if argument == name:
                    yield following
                elif name.startswith("--") and argument.startswith(f"{name}="):
                    yield argument.removeprefix(f"{name}=")
                elif not name.startswith("--") and argument.startswith(name):
                    yield argument.removeprefix(name).removeprefix("=")


@frozen
class McpServer:
    """The tool server that the agent starts: C{aileron-mcp}.

    :ivar command: the absolute path of the program.
    :ivar environment: the variables that the server needs, including the session's token.
    """

    command: str
    environment: Mapping[str, str] = field(repr=False)


@frozen
class Upstream:
    """A provider to which the daemon's gateway relays.

    :ivar base_url: the provider's base URL, without a final slash or C{/v1}.
    :ivar injected: whether the gateway replaces the agent's key with one from the vault.
    :ivar prefix: the path on the agent site below which the whole provider is served.
    """

    base_url: str
    injected: bool = False
    prefix: str = ""


@frozen
class GatewayAccess:
    """The gateway as seen by an agent.

    :ivar url: the URL of the agent site.
    :ivar key: the key that assigns traffic to the session. It is worthless elsewhere.
    :ivar upstreams: the known upstreams, by the provider's name.
    :ivar notes_tools: whether the gateway records the tools that providers run for this session.
    """

    url: str
    key: str = field(repr=False)
    upstreams: Mapping[str, Upstream] = field(factory=dict)
    notes_tools: bool = False

    @property
    def url_with_key(self) -> str:
        """The URL with the key in its path, for agents that cannot send a header."""
        return f"{self.url}/s/{self.key}"

    def upstream(self, provider: str) -> Upstream:
        """Return the upstream of a provider; one with an empty address if the provider is unknown."""
        return self.upstreams.get(provider, Upstream(""))

    def is_own(self, provider: str, address: str, end: str = "") -> bool:
        """Return whether an address is the gateway's (of this or another launch) or that of the provider's upstream.

        :param end: the path that the agent's setting has at the end of an address, such as C{/v1}.
        """
        bare = address.rstrip("/")
        known = (f"{self.url}{end}", f"{self.upstream(provider).base_url}{end}")
        return bare in known or bare.startswith(f"{self.url}/s/")


Providers: TypeAlias = Mapping[str, JSON]
"""The settings of an agent's providers, by name."""


@frozen
class Registration:
    """The variables, arguments and files that make the agent use Aileron's tools, the gateway, or both.

    :ivar variables: the variables for the agent's environment. They may contain secrets.
    :ivar notes: the messages for the user, one per line, without secrets.
    :ivar arguments: the arguments to put before the user's own. They must not contain secrets, as every user of the
        machine can read them.
    :ivar files: the texts of files by name, without secrets, for the directory passed to C{Register}.
    :ivar providers: the settings of providers that use the gateway, for agents that register them with the tools.
    """

    variables: Mapping[str, str] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(factory=dict)
    providers: Providers = field(factory=dict, repr=False)


@frozen
class PromptAccess:
    """The daemon's inbox for the agents' own permission prompts.

    :ivar url: the URL of the agent site.
    :ivar asks: whether the agent's permission prompts are listed in the inbox.
    :ivar checks: whether rules ask or deny, so that each call of the agent's tools is checked.
    """

    url: str
    asks: bool
    checks: bool = False


@frozen
class WakeAccess:
    """The settings by which an agent learns the outcomes of actions that were decided late.

    :ivar url: the URL of the agent site.
    :ivar resumes: whether an agent that has ended is resumed, for which its conversation must be known.
    """

    url: str
    resumes: bool = False


class Register(Protocol):
    """Registers the tool server, the gateway, the permission prompts and the waking with an agent."""

    def __call__(
        self,
        server: McpServer,
        gateway: GatewayAccess | None,
        directory: str,
        prompts: PromptAccess | None = None,
        wake: WakeAccess | None = None,
    ) -> Registration:
        """Return the registration of a server, and of everything else that is not None.

        :param directory: the absolute path of the private directory for C{Registration.files}.
        """
