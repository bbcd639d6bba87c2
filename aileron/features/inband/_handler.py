"""The routes of in-band mode: the requests that it handles instead of the agent site."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.api.routing import Routes
from aileron.base.http1 import RelayClient, RelayHandler, RelayRoutes, RequestHead, Route, parse_request
from aileron.base.json import compact, digest_of_bytes
from aileron.model.features import RelayedPath
from aileron.model.interfaces.services import IAgentTools
from aileron.model.interfaces.store import IAudit, IInBandMemories, ISessions
from aileron.model.sessions import Session, derive_gateway_key

from ._calls import RequestIds, SessionCalls
from ._conversation import ReplyLoop
from ._exchange import BodyBudget, InBandExchange
from ._reading import LongReading
from ._reply import ClientReply
from ._upstream import ProviderRequest
from .protocols import ChatRequest, ClientRequest, MessagesRequest, ResponsesRequest

_PREFIX = b"/inband"
_KEY_FIELD = b"x-aileron-gateway-key"
_OTHER = "other"
_IN_BAND = re.compile(rb"(?:/s/([^/]+))?(/inband/.*)", re.DOTALL).fullmatch
_EXPECTS = re.compile(rb"\r\nexpect: *100-continue *(?=\r\n|$)", re.IGNORECASE).search
_WAIT = re.compile(rb"\r\nprefer: *wait=([0-9]{1,4})(?=\r\n|$)", re.IGNORECASE).search
_MOST_REMEMBERED = 1024
_MOST_RECORDED, _MOST_RECORDED_CHARACTERS = 64, 512

_PROTOCOLS: Mapping[str, tuple[str, type[ClientRequest]]] = {
    "openai.chat": ("/inband/openai/v1/chat/completions", ChatRequest),
    "openai.responses": ("/inband/openai/v1/responses", ResponsesRequest),
    "anthropic.messages": ("/inband/anthropic/v1/messages", MessagesRequest),
}


def _routes() -> Routes:
    """Return all routes of in-band mode. Their handlers return the name of the protocol."""
    app = Routes()
    route: Any = app.route  # typed for handlers that render
    for name, (path, _) in _PROTOCOLS.items():
        route(path, methods=["POST"], endpoint=name)(lambda _head, name=name: name)
    route("/inband/<any(openai, anthropic):provider>/<path:rest>", endpoint=_OTHER)(lambda _head, **_: _OTHER)
    return app


def published() -> tuple[RelayedPath, ...]:
    """Return every path that in-band mode serves, with its methods and providers."""
    paths: list[RelayedPath] = []
    for rule in _routes().url_map.iter_rules():
        path = rule.rule.replace("<any(openai, anthropic):provider>", "<provider>")
        providers = ("openai", "anthropic") if rule.endpoint == _OTHER else (rule.endpoint.partition(".")[0],)
        paths += RelayedPath.each(path, rule.methods, providers)
    return tuple(paths)


@frozen
class InBandParts:
    """The collaborators of in-band mode.

    :ivar tools: the tools of agents' sessions.
    :ivar ids: returns a new ULID.
    :ivar most_turns: the most turns of a reply in which the model may call actions.
    :ivar in_thread: calls a function in another thread.
    """

    sessions: ISessions
    tools: IAgentTools
    memories: IInBandMemories
    audit: IAudit
    clock: IReactorTime
    ids: Callable[[], str]
    most_turns: int
    in_thread: Callable[..., Awaitable[Any]]


@frozen
class InBandRoute:
    """The route of one client's requests whose heads differ only in the length of the body.

    It implements L{aileron.base.http1.Route}.

    :ivar name: the name of the protocol.
    :ivar key: the in-band key in the requests, valid or not.
    :ivar wait_seconds: the wait that the client requests, or None.
    :ivar asks: True if the client waits for C{100 Continue} before it sends a body.
    :ivar keep: True if the client may send another request.
    """

    handler: InBandHandler
    client: RelayClient
    name: str
    key: str = field(repr=False)
    provider: ProviderRequest
    wait_seconds: float | None
    asks: bool
    keep: bool

    def exchange(self, length: int) -> InBandExchange:
        return InBandExchange(
            client=self.client,
            length=length,
            asks=self.asks,
            reply=ClientReply(self.client, keep=self.keep),
            error=_PROTOCOLS[self.name][1].error,
            converse=self._converse,
            budget=self.handler.budget,
            clock=self.handler.parts.clock,
        )

    def _converse(self, exchange: InBandExchange) -> Coroutine[Deferred[Any], Any, None]:
        conversation = ReplyLoop(
            protocol=_PROTOCOLS[self.name][1],
            provider=self.provider,
            identify=partial(self._identify, exchange),
            reading=self.handler.reading,
            memories=self.handler.parts.memories,
            clock=self.handler.parts.clock,
            wait_seconds=self.wait_seconds,
            most_turns=self.handler.parts.most_turns,
        )
        return conversation.run(exchange)

    async def _identify(self, exchange: InBandExchange) -> Callable[[InBandExchange], Awaitable[SessionCalls]] | None:
        parts = self.handler.parts
        digest = hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).digest()
        session = await parts.sessions.by_in_band_key(digest)
        if session is None or not session.live:
            return None
        exchange.belong_to(session.id)
        return partial(self._begin, session)

    async def _begin(self, session: Session, exchange: InBandExchange) -> SessionCalls:
        parts = self.handler.parts
        return SessionCalls(
            parts.tools,
            parts.audit,
            parts.clock,
            parts.ids,
            session=session,
            key=self.key,
            request=await self.handler.requests.find(session.id, self.provider.lines, exchange.digest),
            requests=self.handler.requests,
            about={"protocol": self.name},
            unknown_warnings=self.handler.unknown_warnings,
        )


@define(eq=False)
class InBandHandler:
    """The handler of in-band requests. It passes some of them to the gateway unchanged.

    It implements L{aileron.base.http1.RelayHandler}.
    """

    gateway: RelayHandler
    parts: InBandParts
    budget: BodyBudget = field(factory=BodyBudget, init=False)
    requests: RequestIds = field(init=False)
    reading: LongReading = field(init=False)
    _warned: OrderedDict[str, None] = field(factory=OrderedDict, init=False)
    _table: RelayRoutes = field(factory=lambda: RelayRoutes(_routes()), init=False)

    def __attrs_post_init__(self) -> None:
        self.requests = RequestIds(self.parts.ids, self.parts.memories)
        self.reading = LongReading(self.parts.in_thread)

    def unknown_warnings(self, session_id: str, warnings: Iterable[str]) -> list[str]:
        """Return those of C{warnings} that were not returned for the session before, shortened for the audit log.

        A client sends its tools with every request, and chooses their names. So warnings may be long and many, and only
        their digests are stored.
        """
        unknown = {digest_of_bytes(compact([session_id, each]).encode("ascii")): each for each in warnings}
        unknown = {digest: each for digest, each in unknown.items() if digest not in self._warned}
        self._warned |= dict.fromkeys(unknown)
        while len(self._warned) > _MOST_REMEMBERED:
            self._warned.popitem(last=False)
        recorded = [_cut(each) for each in islice(unknown.values(), _MOST_RECORDED)]
        more = len(unknown) - len(recorded)
        return [*recorded, f"{more} more warnings are not recorded."] if more else recorded

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        path, mark, query = head.target.partition(b"?")
        found = _IN_BAND(path) if _PREFIX in path else None
        name = None if found is None else self._table.ask(head.method, found[2], head)
        if found is None or name is None:
            return None
        key = (found[1] or head.fields.get(_KEY_FIELD, b"")).decode("latin-1")
        gateway_key = derive_gateway_key(key).encode("ascii")
        target = b"".join((b"/s/", gateway_key, found[2].removeprefix(_PREFIX), mark, query))
        if name == _OTHER:  # forward to the gateway, which uses the key in the target before keys in headers
            onward = b"".join((head.method, b" ", target, b" HTTP/1.1", head.lines, b"\r\n\r\n"))
            return self.gateway.route(parse_request(onward), client)
        wait = _WAIT(head.lines)
        return InBandRoute(
            handler=self,
            client=client,
            name=name,
            key=key,
            provider=ProviderRequest(self.gateway, target, head.lines),
            wait_seconds=None if wait is None else float(wait[1]),
            asks=head.minor > 0 and _EXPECTS(head.lines) is not None,
            keep=b"close" not in head.fields.get(b"connection", b"").lower(),
        )


def _cut(warning: str) -> str:
    """Return the warning, shortened with an ellipsis if it is too long."""
    return warning if len(warning) <= _MOST_RECORDED_CHARACTERS else warning[:_MOST_RECORDED_CHARACTERS] + "…"
