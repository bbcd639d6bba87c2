"""The declaration of a route: its path, its callers, its input and its answers.

From the declaration, requests are authorized and validated, Klein routes are made, and the OpenAPI document is built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from attrs import field, frozen
from twisted.internet.interfaces import IAddress

from aileron.base.json import JSON, from_timestamp
from aileron.model.errors import InvalidRequest

from .channels.request_log import RequestNotes
from .dependencies import Dependencies
from .faults import Answer, Streamed
from .guard import NONE, Caller, Who
from .shapes.problems import Shape

Schema: TypeAlias = Mapping[str, JSON]

EMPTY: Schema = {"type": "object", "properties": {}, "additionalProperties": False}


@frozen
class Received:
    """A request without its path and credential.

    :ivar body: a function that reads the body. Call it only once the caller is known.
    :ivar prefer: the values of the field C{Prefer}.
    :ivar host: the C{name:port} that the caller used.
    :ivar ends: the addresses of the connection, the caller's first, or None for calls in this process.
    :ivar keep_place: keeps the connection's place while the site is flooded, for an owner.
    :ivar notes: the facts about the request for the log.
    """

    query: Mapping[bytes, Sequence[bytes]] = field(repr=False)
    body: Callable[[], bytes] = field(repr=False)
    prefer: Sequence[bytes]
    host: str = ""
    ends: tuple[IAddress, IAddress] | None = None
    keep_place: Callable[[str], None] = lambda _: None
    notes: RequestNotes = field(factory=RequestNotes)


@frozen
class RequestContext:
    """A request as a route sees it: with a known caller and with a validated body and query.

    :ivar wait_seconds: the seconds of C{Prefer: wait=N}, or None.
    :ivar began_at: the start of the request, in seconds of the clock.
    :ivar received: the request itself.
    """

    caller: Caller
    body: Mapping[str, JSON]
    query: Mapping[str, JSON]
    wait_seconds: float | None
    began_at: float
    received: Received

    def text(self, name: str) -> str | None:
        """Return a text of the body, or else of the query, or None if neither has it."""
        value = self.body.get(name, self.query.get(name))
        return None if value is None else str(value)

    def moment(self, name: str) -> datetime | None:
        """Return a date-time of the body, or else of the query, or None if neither has it.

        :raises InvalidRequest: if the text is not a valid date-time.
        """
        text = self.text(name)
        return None if text is None else read_moment(text, f"/{name}")

    def number(self, name: str, default: float) -> float:
        """Return a number of the query, or C{default} if the query has none."""
        value = self.query.get(name)
        return float(value) if isinstance(value, (int, float)) else default


def read_moment(text: str, pointer: str) -> datetime:
    """Parse a date-time in a request.

    :param pointer: the pointer of the text, for the error.
    :raises InvalidRequest: if the text is not a valid date-time.
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

    :ivar path: the path in werkzeug's syntax.
    :ivar agents: the kinds of callers allowed on the agent site. If there are none, that site lacks the endpoint.
    :ivar operators: the kinds of callers allowed on the operator site.
    :ivar answers: the schema of the body by status, for successes only.
    :ivar known: called if the body is not valid. Raises C{NotFound} if the object that the path names does not exist,
        so that this error is reported first. None to report the errors of the body.
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
        """The name of the operation: that of the route's function."""
        return self.route.__name__


@frozen
class EndpointTable:
    """A table of endpoints. Functions are added by its decorator L{route}."""

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
        """Return a decorator that declares a coroutine function as a route.

        The first line of its docstring is the summary.
        """

        def declare(route: Route) -> Route:
            summary = (route.__doc__ or "").partition("\n")[0].strip()
            endpoint = Endpoint(
                method, path, route, summary, agents, operators, Shape(body), Shape(query), answers, known
            )
            self.endpoints.append(endpoint)
            return route

        return declare


__all__ = ["EMPTY", "Dependencies", "Endpoint", "EndpointTable", "RequestContext", "Route", "Schema"]
