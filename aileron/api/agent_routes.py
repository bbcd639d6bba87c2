"""The agent site's routes for calls in this process, and the limit on the bytes of bodies in progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeAlias
from urllib.parse import quote

from attrs import evolve, field, frozen
from twisted.web.iweb import IRequest
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map
from zope.interface import implementer

from aileron.base.trace_context import TraceParent
from aileron.model.errors import AileronError, InternalError, LimitExceeded
from aileron.model.interfaces.services import IAgentRoutes

from .channels.channel import MAX_HEAD_BYTES, head_too_long
from .channels.checks import MAX_BODY_BYTES, RequestRefused, too_long
from .channels.request_log import RequestNotes, log_request
from .dependencies import Dependencies
from .endpoint import Endpoint, Received
from .faults import Streamed, describe_failure, http_failure
from .guard import Caller, Who, agent_caller, in_band_caller
from .serving import not_routed, respond
from .tokens import token_digest

SiteHandler: TypeAlias = Callable[[IRequest, Dependencies], Awaitable[bytes]]
"""Handles a request for a path of the agent site outside the API, and returns the last part of the body."""

MOST_BODIES_BYTES = 64 * 1024 * 1024
"""The most bytes of bodies in progress. Above it, only agents below their own share may send more."""


@frozen
class HeldBodies:
    """Counts, for each agent, the bytes of the request bodies that the daemon is processing now, and limits them."""

    _held: Counter[bytes] = field(factory=Counter, init=False, repr=False)

    @contextmanager
    def hold(self, token: str, size: int) -> Iterator[None]:
        """Count the bytes of a body within the context.

        :raises LimitExceeded: if the bodies of all agents exceed the limit, and those of this agent exceed its share.
        """
        agent = token_digest(token)
        held = self._held[agent] + size
        share = MOST_BODIES_BYTES // len(self._held.keys() | {agent})
        if size and sum(self._held.values()) + size > MOST_BODIES_BYTES and held > share:
            raise LimitExceeded("Too much is asked at once. Ask again when some of it is answered.", {"retry_after": 1})
        self._held[agent] = held
        try:
            yield
        finally:
            self._held[agent] -= size
            if not self._held[agent]:
                del self._held[agent]


_TAKEN = Who.AGENT | Who.ANYONE


@implementer(IAgentRoutes)
@frozen
class AgentRoutes:
    """The endpoints of the agent site that an agent may call.

    Requests have the same size limits as on the site's channels.

    :ivar endpoints: the endpoints by name, each with the callers that it allows.
    :ivar urls: the site's router.
    :ivar identify: finds the agent by its token, or for L{in_band} by its in-band key.
    """

    endpoints: Mapping[str, tuple[Endpoint, Who]]
    urls: Map
    deps: Dependencies
    identify: Callable[[str, Dependencies], Awaitable[Caller]] = agent_caller
    _bodies: HeldBodies = field(factory=HeldBodies, init=False, repr=False)

    def in_band(self) -> AgentRoutes:
        """Return the same routes for in-band mode, in which an agent is identified by its in-band key.

        In this mode the agent's tool calls travel inside its conversation with the model.
        """
        return evolve(self, identify=in_band_caller)

    async def ask(
        self,
        token: str,
        method: str,
        path: Sequence[str],
        *,
        query: Mapping[str, str],
        body: bytes,
        prefer_seconds: float | None,
        parent: TraceParent | None = None,
    ) -> tuple[int, bytes]:
        """Call the route of a method and a path, and return the status and body of its answer.

        Every error becomes an answer, also an unknown route, an invalid token and a request that is too large. So does
        an answer that can only be streamed over HTTP.

        :param path: the segments of the path.
        :param prefer_seconds: how many seconds to wait for a result, or None.
        :param parent: the caller's C{traceparent}, or None.
        """
        received = Received(
            query={name.encode(): [value.encode()] for name, value in query.items()},
            body=lambda: body,
            prefer=() if prefer_seconds is None else (b"wait=%d" % prefer_seconds,),
            notes=RequestNotes(self.deps.ids(), parent=parent),
        )
        began_at = self.deps.now()
        try:
            _check_size(path, body)
            name, arguments = self.urls.bind("").match("/" + "/".join(path), method)
            endpoint, allowed = self.endpoints[name]
            received.notes.route = name
            with self._bodies.hold(token, len(body)):
                identify = partial(self.identify, token, self.deps)
                answer = await respond(endpoint, self.deps, arguments, received, allowed & _TAKEN, identify)
        except RequestRefused as refusal:
            answer = http_failure(refusal.status, refusal.message)
        except (HTTPException, KeyError) as error:
            answer = not_routed(error)
        except AileronError as error:
            answer = describe_failure(error)
        if isinstance(answer, Streamed):
            answer = describe_failure(InternalError("This is answered over HTTP only."))
        log_request(received.notes, method.encode("ascii"), answer.status, (self.deps.now() - began_at).total_seconds())
        return answer.status, answer.body


def _check_size(path: Sequence[str], body: bytes) -> None:
    """Refuse a request that is too large for the site's channels.

    :raises RequestRefused: if the path or the body is too long, with 413 or 431.
    """
    if sum(map(len, map(quote, path))) > MAX_HEAD_BYTES:
        raise head_too_long(MAX_HEAD_BYTES)
    if len(body) > MAX_BODY_BYTES:
        raise too_long()
