"""The values of the LLM gateway: its providers and settings, and its counts since the daemon's start."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from aileron.base.addresses import read_origin
from aileron.model.usage import Usage
from aileron.model.vault import Scope

GATEWAY = "gateway://"
"""The prefix of a provider's name in the target of a credential."""


_ANTHROPIC_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class Dialect(StrEnum):
    """The API that a provider speaks: the shape of its errors, and the header of its key."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    def describe_error(self, message: str, status: int, code: str | None = None) -> dict[str, Any]:
        """Return an error response's body in the shape of the dialect.

        :param status: the HTTP status.
        :param code: the error code for programs, sent if the API has a field for it.
        """
        if self is Dialect.OPENAI:
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}
        kind = _ANTHROPIC_ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


_PLACES = {Dialect.OPENAI: ("authorization", "Bearer {key}"), Dialect.ANTHROPIC: ("x-api-key", "{key}")}
"""The header of the provider's key, and its format."""


class UpstreamSource(StrEnum):
    """The source of a provider's address."""

    DEFAULT = "default"
    CONFIG = "config"
    ENVIRONMENT = "environment"


@frozen
class Provider:
    """An LLM provider, or another server with a provider's API.

    :ivar base_url: the URL that every request path is appended to, without a slash at its end. It includes the port
        unless it is the default.
    :ivar prefix: the gateway's path for all routes of the provider, such as C{/openai}.
    :ivar credential: the name of the binding whose key replaces the agent's key, or None if the agent's own key is
        sent.
    :ivar source: the setting that defines C{base_url}.
    :ivar of_features: the values of other features' keys in the provider's settings, by key.
    """

    name: str
    base_url: str
    prefix: str
    dialect: Dialect = Dialect.OPENAI
    credential: str | None = None
    source: UpstreamSource = UpstreamSource.DEFAULT
    of_features: Mapping[str, Any] = field(factory=dict)

    @property
    def fqn(self) -> str:
        """The name that a credential for this provider is bound to: C{gateway://openai}."""
        return GATEWAY + self.name

    def scope(self) -> Scope:
        """Return the scope of this provider's credential by the current settings: its host, base URL and header."""
        return Scope((read_origin(self.base_url).host_and_port,), self.base_url, *_PLACES[self.dialect])


OPENAI = Provider("openai", "https://api.openai.com", "/openai")
ANTHROPIC = Provider("anthropic", "https://api.anthropic.com", "/anthropic", Dialect.ANTHROPIC)
CHATGPT = Provider("chatgpt", "https://chatgpt.com/backend-api/codex", "/chatgpt")
"""The API for a ChatGPT login. Its paths have no C{/v1}."""

BUILT_IN_PROVIDERS = (OPENAI, ANTHROPIC, CHATGPT)

BASE_URL_VARIABLES: Mapping[str, str] = {
    OPENAI.name: "AILERON_OPENAI_BASE_URL",
    ANTHROPIC.name: "AILERON_ANTHROPIC_BASE_URL",
    CHATGPT.name: "AILERON_CHATGPT_BASE_URL",
}
"""The environment variable of each provider's address, by the provider's name."""

PROXY_VARIABLES = ("https_proxy", "http_proxy", "all_proxy", "no_proxy")
"""The environment variables of HTTP proxies. Each may be written in upper case too."""


@frozen
class GatewaySettings:
    """The operator's settings of the gateway.

    :ivar providers: the providers, with distinct names and prefixes. The L{BUILT_IN_PROVIDERS} are always included.
    :ivar silence_seconds: the longest time without progress of an exchange, in seconds.
    :ivar max_body_bytes: the largest body of a request, or None for no limit.
    :ivar ca_certificates: certificates in PEM, trusted in addition to the system's roots.
    :ivar accounting: whether responses are read for their token counts.
    :ivar audit: whether the shape of each completion is recorded in the audit log.
    :ivar of_features: the values of other features' keys in this section, by key.
    :ivar environment: the environment's HTTP proxies, by lower-case name (C{https_proxy}, C{no_proxy} …).
    """

    providers: tuple[Provider, ...] = BUILT_IN_PROVIDERS
    silence_seconds: float = 600.0
    max_body_bytes: int | None = None
    ca_certificates: str = ""
    accounting: bool = True
    audit: bool = False
    of_features: Mapping[str, Any] = field(factory=dict)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def find_setting(self, key: str, default: Any) -> Any:
        """Return the value of a key that another feature adds to the gateway's settings, or C{default} if not set."""
        return self.of_features.get(key, default)

    def bound_by(self, fqn: str) -> Provider | None:
        """Return the provider to which credentials with the target C{fqn} (C{gateway://<name>}) belong, or None."""
        return next((each for each in self.providers if each.fqn == fqn), None)


class Ending(StrEnum):
    """The ways in which an exchange with a provider ends.

    C{COMPLETE}: the response was relayed completely. C{REFUSED}: the gateway refused the request, and sent nothing.
    C{UNREACHABLE}: there was no connection, or no response. C{CUT}: the upstream closed during its response.
    C{CLIENT_LEFT}: the agent closed its connection. C{SILENT}: one side made no progress for too long.
    """

    COMPLETE = "complete"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    CUT = "cut"
    CLIENT_LEFT = "client_left"
    SILENT = "silent"


@frozen
class Histogram:
    """A histogram of waits.

    :ivar bounds: the bounds in seconds, ascending. A wait is counted at the first bound that it does not exceed.
    :ivar counts: the number of waits for each bound, and then the number of longer waits.
    :ivar seconds: the sum of all waits.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    seconds: float = 0.0


NO_WAITS = Histogram((), (0,))


@frozen
class Traffic:
    """The counts of one provider's exchanges.

    :ivar begun: the number of exchanges, including those under way.
    :ivar answers: the number that ended, by class of the response's status: C{2xx} …, or C{none} without a response.
    :ivar endings: the number that ended, by ending.
    :ivar sent_bytes: the bytes of requests' bodies.
    :ivar received_bytes: the bytes of responses' bodies, framing included.
    :ivar usage: the sum of the reported tokens.
    :ivar told: the number of responses that reported their tokens.
    :ivar untold: the number of responses without readable token counts.
    :ivar first_byte: the times from a request's head to its response's head, measured at the gateway.
    :ivar added: the parts of these times that the gateway added, on the way there and back.
    :ivar whole: the times from a request's head to the end of the exchange.
    """

    begun: int = 0
    answers: Mapping[str, int] = field(factory=dict)
    endings: Mapping[Ending, int] = field(factory=dict)
    sent_bytes: int = 0
    received_bytes: int = 0
    usage: Usage = field(factory=Usage)
    told: int = 0
    untold: int = 0
    first_byte: Histogram = NO_WAITS
    added: Histogram = NO_WAITS
    whole: Histogram = NO_WAITS

    @property
    def under_way(self) -> int:
        """The number of exchanges that have not ended."""
        return self.begun - sum(self.endings.values())


@frozen
class GatewayTotals:
    """The counts of all providers.

    :ivar providers: the counts by the provider's name, without providers that were not called.
    """

    providers: Mapping[str, Traffic] = field(factory=dict)


class ToolKind(StrEnum):
    """The kinds of tools by which a provider acts, or fetches and sends data, on its own.

    C{OTHER}: a type that this version does not know. C{UNREADABLE}: not a tool, but a request that could not be parsed.
    """

    REMOTE_MCP = "remote_mcp"
    WEB_SEARCH = "web_search"
    WEB_FETCH = "web_fetch"
    CODE_EXECUTION = "code_execution"
    COMPUTER_USE = "computer_use"
    FILE_SEARCH = "file_search"
    IMAGE_GENERATION = "image_generation"
    OTHER = "other"
    UNREADABLE = "unreadable"


@frozen
class ProviderTool:
    """A tool that a request asks its provider to run.

    :ivar host: the host of a remote MCP server, or empty if it has none or its host must not be shown.
    """

    kind: ToolKind
    host: str = ""

    def __str__(self) -> str:
        """Return the tool's kind as text, and its host if it has one."""
        return f"{self.kind.value} at {self.host}" if self.host else self.kind.value


@frozen
class ToolCount:
    """The number of requests that asked for one tool.

    :ivar session_id: the session of the requests, or None if they had none.
    :ivar refused: whether these requests were refused.
    """

    provider: str
    session_id: str | None
    tool: ProviderTool
    refused: bool
    requests: int
