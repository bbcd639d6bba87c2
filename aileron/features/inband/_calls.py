"""Runs the calls of one turn, each by itself, and puts on record what was hidden: its shape, never its content.

A client's library that lost its connection sends a request again by itself.  The model then calls mostly the same, and
that must be the same run.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, compact, utc
from aileron.model.audit import Actor, Event
from aileron.model.interfaces.services import IAgentTools
from aileron.model.interfaces.store import IAudit, IInBandMemories
from aileron.model.sessions import Session

from ._turns import CallResult, ModelCall, OfferedTool, Turn

AGAIN_SECONDS = 1800.0
"""For how long a request that is sent again is taken for the first; the SDKs give one up after 600 seconds."""

_MOST_REQUESTS = 4096
_KEY_REMOVED = "The request's body held the session's in-band key. It was removed."
_LABEL = re.compile(rb"\r\nidempotency-key: *([^\r]+)", re.IGNORECASE).search
_COUNTED = re.compile(rb"\r\nx-stainless-retry-count: *[1-9]", re.IGNORECASE).search
_FIRST = re.compile(rb"\r\nx-stainless-retry-count: *0 *(?:\r|\Z)", re.IGNORECASE).search


@frozen
class RequestIdentity:
    """A request of a session's, as it is known when its client sends it again.

    :ivar id: of the first that was sent.
    :ivar digest: of what is sent again.
    """

    id: str
    digest: bytes


@define
class RequestIds:
    """The identifiers of requests that came of late; one that its client sends again has that of the first.

    Those of which calls were made are in the store as well: a restart forgets the others.

    :ivar fresh: makes ULIDs.
    """

    _fresh: Callable[[], str]
    _clock: IReactorTime
    _store: IInBandMemories
    _known: OrderedDict[bytes, tuple[str, float]] = field(factory=OrderedDict, init=False)

    async def find(self, session_id: str, lines: bytes, digest: bytes) -> RequestIdentity:
        """Return the identity of a session's request.

        A request that its client says to send for the first time takes the place of an earlier one with the same body,
        in the store as well: what is sent again after a restart is the later one.

        :param lines: of its head, among them those by which an SDK says that it sends it again.
        :param digest: of its body.
        :raises StoreUnavailable: it cannot be told whether the request was sent before, or cannot be stored.
        """
        label = found[1] if (found := _LABEL(lines)) else b""
        digest = hashlib.sha256(b"%b\n%b\n" % (session_id.encode(), label) + digest).digest()
        is_again, before = bool(label or _COUNTED(lines)), ""
        if is_again or _FIRST(lines):
            stored = None
            if digest not in self._known:
                stored = await self._store.find_request(session_id, digest, AGAIN_SECONDS)
            before = self._find_known(digest) or stored or ""  # it may have been sent once more meanwhile
        request_id = (before if is_again else "") or self._fresh()
        if before and not is_again:
            await self._store.keep_request(session_id, digest, request_id)
        self._known[digest] = request_id, self._clock.seconds()
        self._known.move_to_end(digest)
        if len(self._known) > _MOST_REQUESTS:
            self._known.popitem(last=False)
        return RequestIdentity(request_id, digest)

    async def keep(self, session_id: str, request: RequestIdentity) -> None:
        """Store a request whose first call is about to be made; durable when this returns.

        :raises StoreUnavailable: it is not stored.
        """
        await self._store.keep_request(session_id, request.digest, request.id)

    def _find_known(self, digest: bytes) -> str:
        request_id, seen = self._known.get(digest, ("", 0.0))
        return request_id if self._clock.seconds() - seen < AGAIN_SECONDS else ""


@frozen
class SessionCalls:
    """The calls of one client's request.

    :ivar key: the session's in-band key.
    :ivar request: another one in each request, so that no call of another has the same idempotency key.
    :ivar requests: stores the request before its first call.
    :ivar about: what is told with each turn on record.
    :ivar ids: fresh ULIDs.
    :ivar notes: warnings about the request's body.
    :ivar unknown_warnings: returns those of a session's warnings that are not on record yet.
    """

    tools: IAgentTools
    audit: IAudit
    clock: IReactorTime
    ids: Callable[[], str]
    session: Session
    key: str = field(repr=False)
    request: RequestIdentity
    requests: RequestIds
    about: Mapping[str, JSON]
    unknown_warnings: Callable[[str, Iterable[str]], list[str]]
    _asked: Counter[str] = field(factory=Counter, init=False, repr=False)
    _stored: list[RequestIdentity] = field(factory=list, init=False, repr=False)
    notes: list[str] = field(factory=list, init=False)

    def mask_key(self, body: bytes) -> bytes:
        """Return a request's body without the session's in-band key, which programs find in their environment.

        As long a text takes its place, the same each time: what the provider has cached of a history stays of use.
        """
        key = self.key.encode("ascii")
        if key not in body:
            return body
        self.notes.append(_KEY_REMOVED)
        return body.replace(key, b"x" * len(key))

    async def offered(self) -> list[OfferedTool]:
        """Return what the model is offered."""
        found = await self.tools.offered(self.key)
        return [OfferedTool(each.name, each.description, each.input_schema) for each in found]

    async def run(self, turn: Turn, number: int, wait_seconds: float) -> list[CallResult]:
        """Run the calls of a turn, all at once, and put it on record.  Cancelling ends the wait, never a run.

        Before the first call the request is stored: if the daemon ends then, the client's next try is the same request.

        :param number: of the turn, within the request.
        :raises StoreUnavailable: the request cannot be stored.  Nothing was run.
        """
        if not self._stored:
            await self.requests.keep(self.session.id, self.request)
            self._stored.append(self.request)
        shapes: list[dict[str, JSON]] = [{"tool": call.name, "outcome": "left"} for call in turn.calls]
        pairs = zip(turn.calls, shapes, strict=True)
        asked = [Deferred.fromCoroutine(self._run(call, shape, wait_seconds)) for call, shape in pairs]
        try:
            return await gatherResults(asked, consumeErrors=True)
        except FirstError as error:
            error.subFailure.raiseException()
        finally:
            await self._record_turn(turn, number, shapes)

    async def refuse(self, turn: Turn, number: int, why: str) -> list[CallResult]:
        """Run none of a turn's calls, put that on record, and return why for each."""
        await self._record_turn(turn, number, [{"tool": call.name, "outcome": "limit"} for call in turn.calls])
        return [CallResult(call.id, why, is_error=True) for call in turn.calls]

    async def warn(self, warnings: Iterable[str]) -> None:
        """Put those warnings on record that are not there yet."""
        if unknown := self.unknown_warnings(self.session.id, warnings):
            await self.record("in_band.warned", {**self.about, "warnings": [*unknown]})

    async def record(self, kind: str, payload: Mapping[str, JSON]) -> None:
        """Put something on record."""
        actor = Actor("agent", self.session.id)
        event = Event(self.ids(), kind, utc(self.clock.seconds()), actor, payload, session_id=self.session.id)
        await self.audit.append(event)

    async def _record_turn(self, turn: Turn, number: int, shapes: Sequence[JSON]) -> None:
        about = {**self.about, "turn": number, "mixed": turn.mixed, "calls": [*shapes]}
        if turn.completion:
            about["completion"] = turn.completion
        await self.record("in_band.turn", about)

    async def _run(self, call: ModelCall, shape: dict[str, JSON], wait_seconds: float) -> CallResult:
        said = compact([self.session.id, self.request.id, call.name, call.arguments])
        shape["input_bytes"] = len(compact(call.arguments))
        if call.problem:
            result, outcome = CallResult(call.id, call.problem, is_error=True), "invalid"
        else:
            # Neither its place nor its id, which the provider gives anew: of equal calls each is one of its own.
            self._asked[said] += 1
            key = hashlib.sha256(f"{said} {self._asked[said]}".encode()).hexdigest()
            answer = await self.tools.call(self.key, call.name, call.arguments, key, wait_seconds)
            result = CallResult(call.id, answer.text, answer.is_error)
            if answer.run_id:
                shape["run"] = answer.run_id
            outcome = "pending" if answer.pending is not None else "error" if answer.is_error else "answered"
        shape |= {"output_bytes": len(result.text.encode("utf-8", "replace")), "outcome": outcome}
        return result
