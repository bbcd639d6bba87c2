"""The route table: which requests the gateway takes, to whom they go, and how others are shown it."""

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
# What else both APIs have below /v1: without a prefix nobody could say for good whose it is.
_ELSEWHERE = re.compile(
    rb"/v1/(?:assistants|audio|batches|containers|conversations|evals|files|fine_tuning|images|messages/batches|"
    rb"moderations|realtime|threads|uploads|vector_stores|videos)(?:/.*)?"
).fullmatch
_RESPONSES = b"/responses"
_ASK_CHATGPT = frozenset((_RESPONSES,))


class RelayTo(NamedTuple):
    """The way of a request.

    :ivar path: where to, at the provider; before it comes what the provider's C{base_url} says.
    :ivar sound: whether the path can be read in one way only.
    :ivar inference: whether a model is asked, so that its answer tells tokens and a key may be put in.
    :ivar refusal: status of our own refusals on this route: one that its clients show at once.
    :ivar upgrade: whether to answer 426: the client tries a WebSocket first, and then goes on without.
    :ivar prefixed: whether to answer 404: it is relayed below the provider's prefix alone.
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
    """The parts of a request's head that decide where it goes.

    :ivar path: without a query, and without what ties it to a session.
    :ivar upgrade: whether it asks for another protocol.
    :ivar anthropic: whether it speaks as Anthropic's clients do.
    """

    method: bytes
    path: bytes
    upgrade: bool
    anthropic: bool


Handler = Callable[..., RelayTo]
Declare = Callable[..., Callable[[Handler], Handler]]
"""Klein's own C{route}, which is typed for handlers that render."""


def routes(settings: GatewaySettings) -> Klein:
    """Every route of the gateway.  A handler decides from the head alone."""
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
    """Any path and any method to one provider, below its prefix; what asks a model there does so here too."""
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
    """Return the status of a refusal: codex, whose path this is, shows 400 at once, not 403."""
    return 400 if path.endswith(_RESPONSES) else 403


class RouteTable:
    """Asks the Klein application that declares the routes, and remembers what it said."""

    def __init__(self, app: Klein, providers: Iterable[Provider]) -> None:
        self._routes = RelayRoutes(app)
        named = {provider.name: provider for provider in providers}
        self._openai, self._anthropic = named["openai"], named["anthropic"]
        self._remembered = lru_cache(_MOST_REMEMBERED)(self._decide)

    def decide(self, head: RequestHead, path: bytes) -> RelayTo | None:
        """Decide what becomes of a request; L{None}: it is not the gateway's.

        :param path: without a query, and without what ties it to a session.
        """
        if path.startswith(b"//"):  # which would be found as if it began with one
            return None
        fields = head.fields
        anthropic = b"anthropic-version" in fields or b"x-api-key" in fields
        asking = Asking(head.method, path, b"upgrade" in fields, anthropic)
        short = len(path) + len(head.method) < _LONGEST_REMEMBERED  # what is remembered is as long as its sender likes
        return self._remembered(asking) if short else self._decide(asking)

    def _decide(self, asking: Asking) -> RelayTo | None:
        to: RelayTo | None = self._routes.ask(asking.method, asking.path, asking)
        if to is None and _ELSEWHERE(asking.path):
            anthropic = asking.anthropic or asking.path.startswith(b"/v1/messages/")
            return RelayTo(self._anthropic if anthropic else self._openai, asking.path, prefixed=True)
        return to


def published(settings: GatewaySettings) -> tuple[RelayedPath, ...]:
    """Every path that the gateway takes from the agent site, with its methods and where it leads."""
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
