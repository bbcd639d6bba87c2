"""Klein applications that match requests to routes but cannot build URLs, which saves start-up time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from klein import Klein
from twisted.web.iweb import IRequest
from werkzeug.routing import Map, Rule, RuleFactory

from .channels.request import MemoryRequest


class Routes(Klein):
    """A Klein application that matches requests, and builds no URLs.

    Werkzeug compiles two functions for each route that build its URL, with C{ast}. They took a third of the time that
    the daemon needs from its imports until it listens, and nothing called them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._url_map = _Map()

    def execute_endpoint(self, endpoint: str, request: IRequest, *args: Any, **kwargs: Any) -> Any:
        """Call the handler of a route, and note the name of the route for the log."""
        if isinstance(request, MemoryRequest):
            request.notes.route = endpoint
        return super().execute_endpoint(endpoint, request, *args, **kwargs)


class _Map(Map):
    def add(self, rulefactory: RuleFactory) -> None:
        super().add(_Matched(rulefactory))


class _Matched(RuleFactory):
    """The rules of another rule factory, changed so that they match requests but build no URLs."""

    def __init__(self, factory: RuleFactory) -> None:
        self._factory = factory

    def get_rules(self, map: Map) -> Iterator[Rule]:  # noqa: A002 - the name that werkzeug gives it
        for rule in self._factory.get_rules(map):
            # An empty copy leaves out both.
            kept: dict[str, Any] = {"merge_slashes": rule.merge_slashes, "websocket": rule.websocket}
            yield _Rule(rule.rule, **rule.get_empty_kwargs(), **kept)


class _Rule(Rule):
    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        """Return a function that raises L{NotImplementedError}, because no URL of a route is ever built."""
        return _build_nothing


def _build_nothing(*_: object, **__: object) -> NoReturn:
    raise NotImplementedError("routes are only matched")
