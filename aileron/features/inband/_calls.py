"""Runs the calls that a model made in one response, each independently, and records the turn without its content.

A client's library that lost its connection sends its request again. The model then usually makes equal calls, and these
must not start new runs.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, compact, utc
from aileron.model.audit import Actor, Event
from aileron.model.interfaces.services import IAgentTools
from aileron.model.interfaces.store import IAudit, IInBandMemories
from aileron.model.sessions import Session

from ._turns import CallResult, ModelCall, OfferedTool, Turn

AGAIN_SECONDS = 1800.0
"""The seconds for which a repeated request is treated as a retry. The SDKs time out after 600 seconds."""

_KEY_REMOVED = "The request's body held the session's in-band key. It was removed."
_LABEL = re.compile(rb"\r\nidempotency-key: *([^\r]+)", re.IGNORECASE).search
_COUNTED = re.compile(rb"\r\nx-stainless-retry-count: *[1-9]", re.IGNORECASE).search
_FIRST = re.compile(rb"\r\nx-stainless-retry-count: *0 *(?:\r|\Z)", re.IGNORECASE).search


@frozen
class RequestIdentity:
    """The identity of a session's request, by which a retry is recognized.

    :ivar id: the id of the first attempt, or a new one.
    :ivar digest: the digest of the part that a retry repeats.
    :ivar is_again: True for a retry. Its id may be that of an earlier attempt: see L{RequestIds.keep}.
    """

    id: str
    digest: bytes
    is_again: bool = False


@frozen
class RequestIds:
    """The identities of recent requests. A retry has the identity of its first attempt.

    They are in the database, because a retry may come after a restart, or to another daemon.

    :ivar fresh: returns a new ULID.
    """

    _fresh: Callable[[], str]
    _store: IInBandMemories

    async def find(self, session_id: str, lines: bytes, digest: bytes) -> RequestIdentity:
        """Return the identity of a session's request that has just come.

        A request that the client marks as a first attempt gets a new identity. Further retries of this body belong to
        the new request, also after a restart, even if an earlier request had an equal body.

        :param lines: the header lines of the request, in which an SDK marks a retry.
        :param digest: the digest of its body.
        :raises StoreUnavailable: if the database cannot be read or written.
        """
        label = found[1] if (found := _LABEL(lines)) else b""
        digest = hashlib.sha256(b"%b\n%b\n" % (session_id.encode(), label) + digest).digest()
        request = RequestIdentity(self._fresh(), digest, is_again=bool(label or _COUNTED(lines)))
        is_first = not request.is_again and _FIRST(lines) is not None
        if is_first and await self._store.find_request(session_id, digest, AGAIN_SECONDS) is not None:
            await self._store.keep_request(session_id, digest, request.id)
        return request

    async def keep(self, session_id: str, request: RequestIdentity) -> RequestIdentity:
        """Store a request durably before its first call is made, and return its identity.

        For a retry that is the identity of the attempt that was stored last, whichever daemon stored it.

        :raises StoreUnavailable: if the request could not be stored.
        """
        # guard of several daemons: a request that is sent again to another daemon makes no second run
        #    -> features.inband.test_retries.RetriesTests.test_sent_again_elsewhere, instead if False
        if request.is_again:
            claimed = await self._store.claim_request(session_id, request.digest, request.id, AGAIN_SECONDS)
            return evolve(request, id=claimed)
        await self._store.keep_request(session_id, request.digest, request.id)
        return request


@frozen
class SessionCalls:
    """The calls of one request of a client.

    :ivar ids: returns a new ULID.
    :ivar key: the session's in-band key.
    :ivar request: the identity of the request, which makes idempotency keys differ between requests.
    :ivar requests: stores the request before its first call.
    :ivar about: the data recorded with each turn.
    :ivar unknown_warnings: returns the warnings of a session that are not recorded yet.
    :ivar notes: warnings about the request's body.
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
        """Return a request's body with the session's in-band key masked. If it contained the key, note a warning.

        Programs find the key in their environment, so it may be in a prompt. The mask is constant and has the key's
        length, so the provider's prompt cache still works.
        """
        key = self.key.encode("ascii")
        if key not in body:
            return body
        self.notes.append(_KEY_REMOVED)
        return body.replace(key, b"x" * len(key))

    async def offered(self) -> list[OfferedTool]:
        """Return the tools to offer to the model.

        :raises Unauthorized: if the session has ended.
        """
        found = await self.tools.offered(self.key)
        return [OfferedTool(each.name, each.description, each.input_schema) for each in found]

    async def run(self, turn: Turn, number: int, wait_seconds: float) -> list[CallResult]:
        """Run the calls of a turn concurrently and record the turn. Cancelling ends the wait, never a run.

        The request is stored before its first call, so that a retry by the client is recognized after a restart too.

        :param number: the number of the turn within the request.
        :raises StoreUnavailable: if the request cannot be stored. Nothing was run.
        """
        if not self._stored:
            self._stored.append(await self.requests.keep(self.session.id, self.request))
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
        """Store the model's response without running its tool calls, and return C{why} as the result of each call."""
        await self._record_turn(turn, number, [{"tool": call.name, "outcome": "limit"} for call in turn.calls])
        return [CallResult(call.id, why, is_error=True) for call in turn.calls]

    async def warn(self, warnings: Iterable[str]) -> None:
        """Record those of C{warnings} that were not recorded in this session yet."""
        if unknown := self.unknown_warnings(self.session.id, warnings):
            await self.record("in_band.warned", {**self.about, "warnings": [*unknown]})

    async def record(self, kind: str, payload: Mapping[str, JSON]) -> None:
        """Record one event of the session.

        :raises StoreUnavailable: if it cannot be recorded.
        """
        actor = Actor("agent", self.session.id)
        event = Event(self.ids(), kind, utc(self.clock.seconds()), actor, payload, session_id=self.session.id)
        await self.audit.append(event)

    async def _record_turn(self, turn: Turn, number: int, shapes: Sequence[JSON]) -> None:
        about = {**self.about, "turn": number, "mixed": turn.mixed, "calls": [*shapes]}
        if turn.completion:
            about["completion"] = turn.completion
        await self.record("in_band.turn", about)

    async def _run(self, call: ModelCall, shape: dict[str, JSON], wait_seconds: float) -> CallResult:
        said = compact([self.session.id, self._stored[0].id, call.name, call.arguments])
        shape["input_bytes"] = len(compact(call.arguments))
        if call.problem:
            result, outcome = CallResult(call.id, call.problem, is_error=True), "invalid"
        else:
            # The key has neither the call's position nor its id, which differ in a retry. Equal calls are numbered.
            self._asked[said] += 1
            key = hashlib.sha256(f"{said} {self._asked[said]}".encode()).hexdigest()
            answer = await self.tools.call(self.key, call.name, call.arguments, key, wait_seconds)
            result = CallResult(call.id, answer.text, answer.is_error)
            if answer.run_id:
                shape["run"] = answer.run_id
            outcome = "pending" if answer.pending is not None else "error" if answer.is_error else "answered"
        shape |= {"output_bytes": len(result.text.encode("utf-8", "replace")), "outcome": outcome}
        return result
