"""The route table: which requests the gateway relays, to which provider, and how this is published."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple, cast

from klein import Klein
from werkzeug.routing import Rule

from aileron.base.http1 import RelayRoutes, RequestHead
from aileron.model.features import RelayedPath

from ._admission import is_sound
from .values import CHATGPT, Dialect, GatewaySettings, Provider

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
_ASK_CHATGPT = frozenset((_RESPONSES,))


class RelayTo(NamedTuple):
    """The destination of a request.

    :ivar path: at the provider, below the path of its C{base_url}.
    :ivar sound: whether the path has exactly one reading.
    :ivar inference: whether the request calls a model, so that its response has token counts and a key may be
        injected.
    :ivar refusal: status of our own refusals on this route, chosen so that its clients show them at once.
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

    @property
    def dialect(self) -> Dialect:
        """The dialect in which the client expects errors."""
        return self.provider.dialect


class Asking(NamedTuple):
    """The parts of a request's head that decide its destination.

    :ivar path: without a query, and without the key of its session.
    :ivar upgrade: whether it asks for another protocol.
    :ivar anthropic: whether it has the header fields of Anthropic's clients.
    """

    method: bytes
    path: bytes
    upgrade: bool
    anthropic: bool


Handler = Callable[..., RelayTo]
Declare = Callable[..., Callable[[Handler], Handler]]
"""Klein's own C{route}, which is typed for handlers that render."""


def routes(settings: GatewaySettings) -> Klein:
    """Declare every route of the gateway. A handler decides from the head alone."""
    app = Klein()
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
    """Route every path and method below a provider's prefix. Paths that call a model at the root do so here too."""
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
    """Return the status of a refusal. On codex's path it is 400, which codex shows at once, unlike 403."""
    return 400 if path.endswith(_RESPONSES) else 403


class RouteTable:
    """The cached decisions of the Klein application that declares the routes."""

    def __init__(self, app: Klein, providers: Iterable[Provider]) -> None:
        self._routes = RelayRoutes(app)
        named = {provider.name: provider for provider in providers}
        self._openai, self._anthropic = named["openai"], named["anthropic"]
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._decide)

    def decide(self, head: RequestHead, path: bytes) -> RelayTo | None:
        """Return the destination of a request, or None if it is not one of the gateway's.

        :param path: without a query, and without the key of its session.
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
