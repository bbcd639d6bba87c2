"""The route table, which maps requests to providers, and the list of the gateway's paths for the API document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, cast

from klein import Klein
from werkzeug.routing import Rule

from aileron.api.routing import Routes
from aileron.base.http1 import RelayRoutes, RequestHead
from aileron.model.features import RelayedPath

from ._admission import is_sound
from .values import ANTHROPIC, CHATGPT, Dialect, GatewaySettings, Provider

_MOST_REMEMBERED = 1024
_LONGEST_REMEMBERED = 256


_ASK_A_MODEL = frozenset(
    b"/v1/" + rest
    for rest in (
        b"chat/completions",
        b"completions",
        b"embeddings",
        b"messages",
        b"messages/count_tokens",
        b"responses",
    )
)
# Other paths that both APIs have below /v1: without a prefix the provider is ambiguous.
_ELSEWHERE = re.compile(
    rb"/v1/(?:assistants|audio|batches|containers|conversations|evals|files|fine_tuning|images|messages/batches|"
    rb"moderations|realtime|threads|uploads|vector_stores|videos)(?:/.*)?"
).fullmatch
_RESPONSES = b"/responses"
_COUNT_TOKENS = b"/v1/messages/count_tokens"
_OF_CLAUDE_CODE = b"/api/"  # such as its telemetry
_READING = frozenset((b"GET", b"HEAD", b"OPTIONS", b"DELETE"))
_ASK_CHATGPT = frozenset((_RESPONSES,))


class RelayTo(NamedTuple):
    """The destination of a request.

    :ivar path: the path at the provider, below the path of its C{base_url}.
    :ivar sound: whether the path has exactly one reading.
    :ivar inference: whether the request calls a model, so that its response has token counts and a key may be injected.
    :ivar spends: whether the request may cost something, so that limits on spending hold for it.
    :ivar refusal: the status with which the gateway itself refuses requests. Clients of this route show it at once,
        without retries.
    :ivar upgrade: whether to answer 426: the client tries a WebSocket first, and falls back to HTTP.
    :ivar prefixed: whether to answer 404: the path is relayed below the provider's prefix only.
    """

    provider: Provider
    path: bytes
    sound: bool = True
    inference: bool = False
    refusal: int = 403
    upgrade: bool = False
    prefixed: bool = False
    spends: bool = False

    @property
    def dialect(self) -> Dialect:
        """The dialect in which the client expects errors."""
        return self.provider.dialect


class Asking(NamedTuple):
    """The parts of a request's head that decide its destination.

    :ivar path: the path without query and gateway key.
    :ivar upgrade: whether the request asks for another protocol.
    :ivar anthropic: whether the request has the header fields of Anthropic's clients.
    """

    method: bytes
    path: bytes
    upgrade: bool
    anthropic: bool


Handler = Callable[..., RelayTo]
Declare = Callable[..., Callable[[Handler], Handler]]
"""The type of Klein's C{route}. Klein's own type is for handlers that render."""


def routes(settings: GatewaySettings) -> Klein:
    """Return the application with every route of the gateway. A handler returns the destination of a request's head."""
    app = Routes()
    route = cast(Declare, app.route)
    named = {provider.name: provider for provider in settings.providers}
    openai, anthropic = named["openai"], named["anthropic"]

    @route("/v1/chat/completions", methods=["POST"], endpoint="chat_completions")
    @route("/v1/completions", methods=["POST"], endpoint="completions")
    @route("/v1/embeddings", methods=["POST"], endpoint="embeddings")
    def ask_openai(asking: Asking) -> RelayTo:
        return RelayTo(openai, asking.path, inference=True)

    @route("/v1/responses", methods=["GET", "POST"])
    def responses(asking: Asking) -> RelayTo:
        asks = asking.method == b"POST"
        return RelayTo(openai, asking.path, inference=asks, refusal=_refusal(asking.path), upgrade=asking.upgrade)

    @route("/v1/messages", methods=["POST"], endpoint="messages")
    @route("/v1/messages/count_tokens", methods=["POST"], endpoint="count_tokens")
    def ask_anthropic(asking: Asking) -> RelayTo:
        return RelayTo(anthropic, asking.path, inference=True)

    @route("/v1/models", methods=["GET", "HEAD"], endpoint="models")
    @route("/v1/models/<path:rest>", methods=["GET", "HEAD"], endpoint="model")
    def models(asking: Asking, rest: str = "") -> RelayTo:
        return RelayTo(anthropic if asking.anthropic else openai, asking.path, is_sound(asking.path))

    @route("/api/<path:rest>", endpoint="api")
    @route("/", methods=["HEAD"], endpoint="root")
    def claude_code(asking: Asking, rest: str = "") -> RelayTo:
        return RelayTo(anthropic, asking.path, is_sound(asking.path))

    for provider in settings.providers:
        _route_all(app, provider)
    return app


def _route_all(app: Klein, provider: Provider) -> None:
    """Route every path and method below a provider's prefix. Model calls are recognized here too."""
    route = cast(Declare, app.route)
    prefix = len(provider.prefix)
    asks = _ASK_CHATGPT if provider.name == CHATGPT.name else _ASK_A_MODEL

    @route(f"{provider.prefix}/<path:rest>", endpoint=f"whole {provider.name}")
    @route(f"{provider.prefix}/", endpoint=f"root of {provider.name}")
    def relay_all(asking: Asking, rest: str = "") -> RelayTo:
        onward = asking.path[prefix:]
        inference = asking.method == b"POST" and onward in asks
        return RelayTo(provider, onward, is_sound(onward, encoded_slashes=False), inference, _refusal(onward))


def _refusal(path: bytes) -> int:
    """Return the status of refusals: 400 on the path of codex, which shows it at once, else 403."""
    return 400 if path.endswith(_RESPONSES) else 403


def _spends(method: bytes, to: RelayTo) -> bool:
    """Return whether a request may cost something: all but those that read or are known to be free."""
    free = to.provider.name == ANTHROPIC.name and (to.path == _COUNT_TOKENS or to.path.startswith(_OF_CLAUDE_CODE))
    return method not in _READING and not free


class RouteTable:
    """Decides to which provider a request goes, by asking a Klein application, and caches the decisions."""

    def __init__(self, app: Klein, providers: Iterable[Provider]) -> None:
        self._routes = RelayRoutes(app)
        named = {provider.name: provider for provider in providers}
        self._openai, self._anthropic = named["openai"], named["anthropic"]
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._decide)

    def decide(self, head: RequestHead, path: bytes) -> RelayTo | None:
        """Return the destination of a request, or None if the gateway does not serve it.

        :param path: the path without query and gateway key.
        """
        if path.startswith(b"//"):  # which werkzeug would read as one slash
            return None
        fields = head.fields
        anthropic = b"anthropic-version" in fields or b"x-api-key" in fields
        asking = Asking(head.method, path, b"upgrade" in fields, anthropic)
        short = len(path) + len(head.method) < _LONGEST_REMEMBERED  # bounds the memory of the cache
        return self._remembered(asking) if short else self._decide(asking)

    def _decide(self, asking: Asking) -> RelayTo | None:
        to: RelayTo | None = self._routes.ask(asking.method, asking.path, asking)
        if to is not None:
            to = to._replace(spends=_spends(asking.method, to))
        if to is None and _ELSEWHERE(asking.path):
            anthropic = asking.anthropic or asking.path.startswith(b"/v1/messages/")
            return RelayTo(self._anthropic if anthropic else self._openai, asking.path, prefixed=True)
        return to


def published(settings: GatewaySettings) -> tuple[RelayedPath, ...]:
    """Return every path of the gateway on the agent site, with its methods and providers."""
    app = routes(settings)
    execute: Any = app.execute_endpoint  # typed for handlers that render

    def leads_to(rule: Rule, anthropic: bool) -> str:
        asking = Asking(b"POST", rule.rule.encode("ascii"), False, anthropic)
        to: RelayTo = execute(rule.endpoint, asking, **dict.fromkeys(rule.arguments, ""))
        return to.provider.name

    return tuple(
        path
        for rule in app.url_map.iter_rules()
        for path in RelayedPath.each(
            rule.rule, rule.methods, tuple(dict.fromkeys(leads_to(rule, each) for each in (False, True)))
        )
    )
