"""A route, declared once: its path, who may call it, what it takes and what it answers.

The same declaration guards and validates requests, is routed by Klein, and becomes the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from attrs import field, frozen
from twisted.internet.interfaces import IAddress

from aileron.base.json import JSON, from_timestamp
from aileron.model.errors import InvalidRequest

from .dependencies import Dependencies
from .faults import Answer, Streamed
from .guard import NONE, Caller, Who
from .shapes.problems import Shape

Schema: TypeAlias = Mapping[str, JSON]

EMPTY: Schema = {"type": "object", "properties": {}, "additionalProperties": False}


@frozen
class Received:
    """A request without its path and credential.

    :ivar body: reads it; not before the caller is known.
    :ivar prefer: the values of the field C{Prefer}.
    :ivar host: C{name:port} that the caller used.
    :ivar ends: of the connection: the caller's, then ours; L{None}: there is none.
    :ivar keep_place: keeps the connection's place while the site is flooded, for the owner that it is told.
    """

    query: Mapping[bytes, Sequence[bytes]] = field(repr=False)
    body: Callable[[], bytes] = field(repr=False)
    prefer: Sequence[bytes]
    host: str = ""
    ends: tuple[IAddress, IAddress] | None = None
    keep_place: Callable[[str], None] = lambda _: None


@frozen
class RequestContext:
    """One request as a route meets it: its caller proven, its body and query of the declared shape.

    :ivar wait_seconds: of C{Prefer: wait=N}, or L{None}.
    :ivar began_at: by the clock, in seconds.
    :ivar received: the request itself.
    """

    caller: Caller
    body: Mapping[str, JSON]
    query: Mapping[str, JSON]
    wait_seconds: float | None
    began_at: float
    received: Received

    def text(self, name: str) -> str | None:
        """Return a text of the body or the query, or L{None}."""
        value = self.body.get(name, self.query.get(name))
        return None if value is None else str(value)

    def moment(self, name: str) -> datetime | None:
        """Return a moment of the body or the query, or L{None}.

        :raises InvalidRequest: there is no such moment.
        """
        text = self.text(name)
        return None if text is None else read_moment(text, f"/{name}")

    def number(self, name: str, default: float) -> float:
        """Return a number of the query."""
        value = self.query.get(name)
        return float(value) if isinstance(value, (int, float)) else default


def read_moment(text: str, pointer: str) -> datetime:
    """Return the moment that a text of a request says.

    :param pointer: where the text stands.
    :raises InvalidRequest: there is no such moment.
    """
    try:
        return from_timestamp(text.upper())
    except (ValueError, OverflowError):
        raise InvalidRequest.listing("There is no such moment.", (pointer, "is no date and time")) from None


Route: TypeAlias = Callable[..., Awaitable[Answer | Streamed]]
"""C{async def route(context: RequestContext, deps: Dependencies, **path) -> Answer}."""


@frozen
class Endpoint:
    """One method of one path.

    :ivar path: in werkzeug's syntax.
    :ivar agents: who may call it on the agent site; nobody: it is not there.
    :ivar operators: the same of the operator site.
    :ivar answers: schema of the body by status, successes only.
    :ivar known: asked, where the body is bad, whether what the path names is there at all, which counts first.
    """

    method: str
    path: str
    route: Route
    summary: str
    agents: Who
    operators: Who
    body: Shape
    query: Shape
    answers: Mapping[int, Schema]
    known: Callable[..., None] | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return self.route.__name__


@frozen
class EndpointTable:
    """Some endpoints, collected as they are declared."""

    endpoints: list[Endpoint] = field(factory=list)

    def route(
        self,
        method: str,
        path: str,
        *,
        agents: Who = NONE,
        operators: Who = NONE,
        body: Schema = EMPTY,
        query: Schema = EMPTY,
        answers: Mapping[int, Schema],
        known: Callable[..., None] | None = None,
    ) -> Callable[[Route], Route]:
        """Declare the decorated coroutine function as a route; the first line of its docstring is its summary."""

        def declare(route: Route) -> Route:
            summary = (route.__doc__ or "").partition("\n")[0].strip()
            endpoint = Endpoint(
                method, path, route, summary, agents, operators, Shape(body), Shape(query), answers, known
            )
            self.endpoints.append(endpoint)
            return route

        return declare


__all__ = ["EMPTY", "Dependencies", "Endpoint", "EndpointTable", "RequestContext", "Route", "Schema"]
