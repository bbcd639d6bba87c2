"""The LLM gateway: where it relays to, what it may tell of that, and what it counted since the daemon's start."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from attrs import field, frozen

from aileron.base.addresses import read_origin
from aileron.model.usage import Usage
from aileron.model.vault import Scope

GATEWAY = "gateway://"
"""Before a provider's name: what a credential is bound to that the gateway puts in."""


_ANTHROPIC_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class Dialect(StrEnum):
    """Whose API a provider speaks: the shape of its errors, and where its key stands in a request."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"

    def describe_error(self, message: str, status: int, code: str | None = None) -> dict[str, Any]:
        """Describe an error as providers do whose API this is.

        :param status: of HTTP.
        :param code: for programs, where the API has one.
        """
        if self is Dialect.OPENAI:
            kind = "server_error" if status >= 500 else "invalid_request_error"
            return {"error": {"message": message, "type": kind, "param": None, "code": code}}
        kind = _ANTHROPIC_ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}


_PLACES = {Dialect.OPENAI: ("authorization", "Bearer {key}"), Dialect.ANTHROPIC: ("x-api-key", "{key}")}
"""In which header a provider looks for its key, and how it stands there."""


class UpstreamSource(StrEnum):
    """The source that says where a provider is."""

    DEFAULT = "default"
    CONFIG = "config"
    ENVIRONMENT = "environment"


@frozen
class Provider:
    """An LLM provider, or whatever speaks like one.

    :ivar base_url: scheme, host, port if it is not the scheme's, and a path without a slash at its end, which is put
        before every path that goes there.
    :ivar prefix: where the gateway serves it whole, such as C{/openai}.
    :ivar credential: name of the binding whose key takes the place of the agent's; L{None}: the agent's own goes there.
    :ivar source: who said C{base_url}.
    :ivar of_features: values of the keys that other features have in its settings, by key.
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
        """Return where a credential that is bound to it goes, as things are."""
        return Scope((read_origin(self.base_url).host_and_port,), self.base_url, *_PLACES[self.dialect])


OPENAI = Provider("openai", "https://api.openai.com", "/openai")
ANTHROPIC = Provider("anthropic", "https://api.anthropic.com", "/anthropic", Dialect.ANTHROPIC)
CHATGPT = Provider("chatgpt", "https://chatgpt.com/backend-api/codex", "/chatgpt")
"""Where a ChatGPT login counts; its paths have no C{/v1}."""

BUILT_IN_PROVIDERS = (OPENAI, ANTHROPIC, CHATGPT)

BASE_URL_VARIABLES: Mapping[str, str] = {
    OPENAI.name: "AILERON_OPENAI_BASE_URL",
    ANTHROPIC.name: "AILERON_ANTHROPIC_BASE_URL",
    CHATGPT.name: "AILERON_CHATGPT_BASE_URL",
}
"""By the provider's name, the variable of the environment that says where it is."""

PROXY_VARIABLES = ("https_proxy", "http_proxy", "all_proxy", "no_proxy")
"""What of the environment names HTTP proxies; each may be written in upper case too."""


@frozen
class GatewaySettings:
    """The operator's settings of the gateway.

    :ivar providers: by distinct names and prefixes; the L{BUILT_IN_PROVIDERS} are always among them.
    :ivar silence_seconds: how long a peer that owes something may say nothing.
    :ivar max_body_bytes: of a request; L{None}: whatever the provider takes.
    :ivar ca_certificates: PEM, trusted beside the system's roots.
    :ivar accounting: whether answers are read for the tokens that they cost.
    :ivar audit: whether the shape of each completion is recorded in the audit log.
    :ivar of_features: values of the keys that other features have in this section, by key.
    :ivar environment: what of the environment names HTTP proxies, by lower-case name (C{https_proxy}, C{no_proxy} …).
    """

    providers: tuple[Provider, ...] = BUILT_IN_PROVIDERS
    silence_seconds: float = 600.0
    max_body_bytes: int | None = None
    ca_certificates: str = ""
    accounting: bool = True
    audit: bool = False
    of_features: Mapping[str, Any] = field(factory=dict)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def bound_by(self, fqn: str) -> Provider | None:
        """Return the provider that C{gateway://<name>} binds a credential to; L{None}: there is none."""
        return next((each for each in self.providers if each.fqn == fqn), None)


class Ending(StrEnum):
    """The ways in which an exchange with a provider ends.

    C{COMPLETE}: the answer came whole. C{REFUSED}: we answered in the provider's place, and nothing was sent.
    C{UNREACHABLE}: there was no upstream, or no answer of it. C{CUT}: the upstream left in the midst of its answer.
    C{CLIENT_LEFT}: the agent did. C{SILENT}: somebody owed something for too long.
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

    :ivar bounds: in seconds, rising; a wait is counted at the first bound that it does not exceed.
    :ivar counts: of each bound, and last of those beyond them all.
    :ivar seconds: all of them together.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    seconds: float = 0.0


NO_WAITS = Histogram((), (0,))


@frozen
class Traffic:
    """Exchanges of one provider.

    :ivar begun: how many, those under way included.
    :ivar answers: how many ended with an answer of which class: C{2xx} …; C{none} where none came.
    :ivar endings: how many ended how.
    :ivar sent_bytes: of requests' bodies.
    :ivar received_bytes: of answers' bodies, framing included.
    :ivar usage: what was told of tokens.
    :ivar told: answers that told their tokens.
    :ivar untold: answers that did not, or in a way that is not read.
    :ivar first_byte: from a request's head to its answer's, both at our door.
    :ivar added: of that, what passed between a head's arrival here and its leaving, there and back.
    :ivar whole: from a request's head to the end of the exchange.
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
        """The number that have begun and not ended."""
        return self.begun - sum(self.endings.values())


@frozen
class GatewayTotals:
    """The counts of all exchanges.

    :ivar providers: by name; those that were called.
    """

    providers: Mapping[str, Traffic] = field(factory=dict)


class ToolKind(StrEnum):
    """The kinds of tools by which a provider acts, or fetches and sends data, on its own.

    C{OTHER}: of a type that this version does not know.  C{UNREADABLE} is none: the request could not be read.
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

    :ivar host: of a remote MCP server; empty: it has none, or one that is not to be told.
    """

    kind: ToolKind
    host: str = ""

    def __str__(self) -> str:
        """Return the kind, and the host if there is one."""
        return f"{self.kind.value} at {self.host}" if self.host else self.kind.value


@frozen
class ToolCount:
    """The number of requests that asked for one tool.

    :ivar session_id: L{None}: in no session.
    :ivar refused: whether these requests were refused.
    """

    provider: str
    session_id: str | None
    tool: ProviderTool
    refused: bool
    requests: int
