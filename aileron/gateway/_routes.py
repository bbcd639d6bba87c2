"""The route table: which requests the gateway takes, to whom they go, and how others are shown it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from attrs import frozen
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, Rule

from aileron.http1 import RequestHead
from aileron.values import CHATGPT, Dialect, GatewaySettings, Provider, RelayedPath

from ._admission import is_sound

_MOST_REMEMBERED = 1024
_LONGEST_REMEMBERED = 256

_RESPONSES = b"/responses"
_WEB_SOCKET = b"/v1/responses"
_ASK_CHATGPT = frozenset((_RESPONSES,))
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
_NAMED = (
    ("/v1/embeddings", ("POST",), ("openai",)),
    ("/v1/completions", ("POST",), ("openai",)),
    ("/v1/chat/completions", ("POST",), ("openai",)),
    ("/v1/responses", ("GET", "POST"), ("openai",)),
    ("/v1/messages/count_tokens", ("POST",), ("anthropic",)),
    ("/v1/messages", ("POST",), ("anthropic",)),
    ("/v1/models/<path:rest>", ("GET", "HEAD"), ("openai", "anthropic")),
    ("/v1/models", ("GET", "HEAD"), ("openai", "anthropic")),
    ("/", ("HEAD",), ("anthropic",)),
    ("/api/<path:rest>", None, ("anthropic",)),  # of Claude Code's
)
"""Paths without a prefix: their methods (L{None}: all), and whose they are; the second, if the client speaks so."""


class RelayTo(NamedTuple):
    """The way of a request.

    :ivar path: where to, at the provider; before it comes what the provider's C{base_url} says.
    :ivar sound: whether the path can be read in one way only.
    :ivar inference: whether a model is asked, so that its answer tells tokens and a key may be put in.
    :ivar refusal: status of our own refusals on this route: one that its clients show at once.
    :ivar upgrade: whether to answer 426: the client tries a WebSocket first, and then goes on without.
    """

    provider: Provider
    path: bytes
    sound: bool = True
    inference: bool = False
    refusal: int = 403
    upgrade: bool = False

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


@frozen(eq=False)
class _Providers:
    """The providers of a rule: the first, or the last where the client speaks as Anthropic's do.

    :ivar prefix_length: of the path, which the provider does not see.
    """

    each: tuple[Provider, ...]
    prefix_length: int = 0

    def decide(self, asking: Asking) -> RelayTo:
        """Decide from the head alone."""
        provider, path = self.each[-1 if asking.anthropic else 0], asking.path[self.prefix_length :]
        asks = _ASK_CHATGPT if provider.name == CHATGPT.name else _ASK_A_MODEL
        return RelayTo(
            provider,
            path,
            is_sound(path, encoded_slashes=not self.prefix_length),
            inference=asking.method == b"POST" and path in asks,
            refusal=400 if path.endswith(_RESPONSES) else 403,  # codex, whose path this is, shows 400 at once, not 403
            upgrade=asking.upgrade and asking.path == _WEB_SOCKET,
        )


def _rules(settings: GatewaySettings) -> Iterator[Rule]:
    """Make every rule of the gateway: named paths, and any path and method to one provider, below its prefix."""
    named = {provider.name: provider for provider in settings.providers}
    for path, methods, names in _NAMED:
        yield Rule(path, methods=methods, endpoint=_Providers(tuple(named[name] for name in names)))
    for provider in settings.providers:
        for rest in ("/", "/<path:rest>"):
            yield Rule(provider.prefix + rest, endpoint=_Providers((provider,), len(provider.prefix)))


class RouteTable:
    """Asks the router, and remembers what it said."""

    def __init__(self, settings: GatewaySettings) -> None:
        # What was sent is what goes on, or nothing does.
        self._adapter = Map(tuple(_rules(settings)), merge_slashes=False).bind("localhost")
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
        try:
            found: _Providers = self._adapter.match(asking.path.decode("ascii"), asking.method.decode("ascii"))[0]
        except HTTPException:  # not found, another method, a redirect: not ours
            return None
        return found.decide(asking)


def published(settings: GatewaySettings) -> tuple[RelayedPath, ...]:
    """Every path that the gateway takes from the agent site, with its methods and where it leads."""
    return tuple(
        path
        for rule in _rules(settings)
        for path in RelayedPath.each(rule.rule, rule.methods, tuple(each.name for each in rule.endpoint.each))
    )
