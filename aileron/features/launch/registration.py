"""The registration of an agent's tool server and gateway, and how the user asked for the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeAlias

from attrs import field, frozen

from aileron.base.json import JSON


@frozen
class Invocation:
    """The user's call of the agent.

    :ivar arguments: the agent's own, passed on as they are.
    :ivar environment: the launcher's, which the agent gets but for C{AILERON_*}.
    :ivar directory: where the agent works; absolute.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directory: str

    def option(self, *names: str) -> Iterator[str]:
        """Yield each value that the agent's arguments give for one option, in every notation of it.

        :param names: such as C{-p} and C{--profile}.
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
    """The tool server that the agent is to start: C{aileron-mcp}.

    :ivar command: its absolute path.
    :ivar environment: what it needs, the session's token among it.
    """

    command: str
    environment: Mapping[str, str] = field(repr=False)


@frozen
class Upstream:
    """A provider to which the daemon's gateway relays.

    :ivar base_url: without a slash, and without C{/v1}, at its end.
    :ivar injected: whether the gateway puts a key of its own in place of the agent's.
    :ivar prefix: where on the agent site it is served whole.
    """

    base_url: str
    injected: bool = False
    prefix: str = ""


@frozen
class GatewayAccess:
    """The gateway, as an agent reaches it.

    :ivar url: the daemon's site for agents.
    :ivar key: ties the traffic to the session, and is worth nothing elsewhere.
    :ivar upstreams: by the provider's name, as far as they are known.
    :ivar notes_tools: whether it notes the tools that providers run for this session.
    """

    url: str
    key: str = field(repr=False)
    upstreams: Mapping[str, Upstream] = field(factory=dict)
    notes_tools: bool = False

    @property
    def url_with_key(self) -> str:
        """The address for an agent that can send no header: the key stands in its path."""
        return f"{self.url}/s/{self.key}"

    def upstream(self, provider: str) -> Upstream:
        """Return the upstream of one provider; one without an address where none is known."""
        return self.upstreams.get(provider, Upstream(""))

    def is_own(self, provider: str, address: str, end: str = "") -> bool:
        """Tell whether an address is where the gateway is, for another launch too, or where it sends to a provider.

        :param end: what stands at the end of an address there.
        """
        bare = address.rstrip("/")
        known = (f"{self.url}{end}", f"{self.upstream(provider).base_url}{end}")
        return bare in known or bare.startswith(f"{self.url}/s/")


Providers: TypeAlias = Mapping[str, JSON]
"""Settings of an agent's providers, by their names."""


@frozen
class Registration:
    """The variables, arguments and files that make the agent use our tools, the gateway, or both.

    :ivar variables: for the agent's environment; they hold secrets.
    :ivar notes: what the user is to be told of it, a line each, without a secret.
    :ivar arguments: for the agent, put before the user's own; every user of the machine can read them: no secret.
    :ivar files: texts without a secret, by their names in the directory that C{Register} was told of.
    :ivar providers: those that go through the gateway, for an agent whose settings name them beside our tools.
    """

    variables: Mapping[str, str] = field(factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = field(factory=dict)
    providers: Providers = field(factory=dict, repr=False)


Register = Callable[[McpServer, GatewayAccess | None, str], Registration]
"""What makes the agent use the server, and the gateway unless its LLM traffic is to be left alone (L{None}).

The last is the directory in which C{Registration.files} will lie while the agent runs: absolute, and nobody else's.
"""
