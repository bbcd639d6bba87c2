"""Makes each write of a tool a run, holds its connection for a while, and hands recorded answers to repetitions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import JSON, utc
from aileron.base.waiting import uncancelled
from aileron.model.audit import Actor, Event
from aileron.model.errors import LimitExceeded, NotFound
from aileron.model.interfaces.runner import ISubmission
from aileron.model.runs import Call, Run
from aileron.model.sessions import Session
from aileron.model.tool_claims import KEPT, NewClaim, ToolClaim

from ._claims import ClaimStore, SessionClaims, load_claims, name_caller
from ._contents import ToolContents
from ._patience import limit_hold
from .values import ToolRequest

MOST_BYTES_OF_SESSION, MOST_BYTES = 8 * 1024 * 1024, 64 * 1024 * 1024
"""The most bytes of requests that wait, of one session and of all."""


_MOST_AGAIN = 8


class CallerIsOwed(Exception):
    """The error for a further write of a command that has not got the answer to an earlier one.

    Nothing was requested.
    """


@frozen
class Write:
    """A recognised write of a tool, which becomes a run.

    :ivar action: the action by which the session's tools use the service.
    :ivar inputs: the arguments of its run.
    :ivar form: the digest of its normal form.
    :ivar is_stored: whether the body is to be stored in a file, and its digest and size are further arguments.
    """

    session: Session
    request: ToolRequest
    action: str
    inputs: Mapping[str, JSON] = field(repr=False)
    form: str
    is_stored: bool = False


@frozen
class HeldRun:
    """The run of a tool's write, as it is when the tool gets its answer.

    :ivar repeated: whether the run is that of an earlier request.
    :ivar note_given: stores that the command got the answer, together with the event that records it.
    """

    run: Run
    repeated: bool
    note_given: Callable[[Event], Coroutine[Any, Any, None]] = field(repr=False)


@define(eq=False)
class _Held:
    """A connection of a tool that waits for a run.

    :ivar places: the connections that wait for the same run, once the run is known.
    :ivar gone: whether the connection no longer waits.
    """

    places: set[object] | None = None
    gone: bool = False

    def begin(self, places: set[object]) -> None:
        """Add the connection to those that wait for a run, unless the tool has closed it meanwhile."""
        if not self.gone:
            self.places = places
            places.add(self)

    def end(self) -> None:
        """Stop waiting: remove the connection from those that wait for its run."""
        self.gone = True
        if self.places is not None:
            self.places.discard(self)


@define(eq=False)
class Writes:
    """Requests a run for each write of a tool, and finds the run that a write repeats, for all sessions.

    :ivar submission: the runner's interface for new calls, which an agent's calls use too.
    :param life: a text that is unique to this process of the daemon.
    :ivar hold_seconds: how long a connection waits for its run, unless its tool gives up earlier.
    """

    submission: ISubmission
    _store: ClaimStore
    _contents: ToolContents
    _clock: IReactorTime
    _life: str
    hold_seconds: float
    _claims: dict[str, SessionClaims] = field(factory=dict, init=False)
    _locks: dict[str, DeferredLock] = field(factory=dict, init=False)

    async def hold(self, write: Write) -> HeldRun:
        """Find the run that a write repeats, or request a new one, and wait until it ends or the time is up.

        Cancelling ends only the wait.

        :return: the run as it is then. If it is not settled, the store notes that the command knows it.
        :raises CallerIsOwed: if the write is new, and its command has not got the answer to an earlier write yet.
        :raises LimitExceeded: if too many or too long requests wait. Nothing is stored.
        :raises AileronError: if the runner refuses the call. Nothing is stored.
        """
        held, caller = _Held(), name_caller(write.request, self._life)
        if write.request.spool is not None:
            write.request.spool.take()
        try:
            # guard of own tools: a run is created whole though its tool has gone
            #    -> features.own_tools.test_door.HoldTests.test_gone_early,
            #    instead assigning = Deferred.fromCoroutine(self._assign(write, caller, held))
            assigning = uncancelled(Deferred.fromCoroutine(self._assign(write, caller, held)))
            claims, run_id, repeated = await assigning
            run = await self._wait(run_id, limit_hold(write.request, self.hold_seconds))
        finally:
            held.end()
        if not run.state.settled:
            await claims.note_told(run_id, caller)

        return HeldRun(run, repeated, lambda event: claims.note_given(run_id, caller, event))

    def session_ended(self, session_id: str) -> None:
        """Remove the claims of a session that has ended from memory. The database keeps them for a later session.

        Idempotent.
        """
        self._claims.pop(session_id, None)
        self._locks.pop(session_id, None)

    async def _wait(self, run_id: str, seconds: float) -> Run:
        """Return a run when it is settled or the time is up: if a person approved its repetition, the newest one."""
        run = await self.submission.wait(run_id, seconds)
        for _ in range(_MOST_AGAIN):
            if run.superseded_by is None:
                break
            run = await self.submission.wait(run.superseded_by, seconds)
        return run

    async def _assign(self, write: Write, caller: str, held: _Held) -> tuple[SessionClaims, str, bool]:
        """Return the claims of the session, the id of the write's run, and whether an earlier request asked for it."""
        lock = self._locks.setdefault(write.session.id, DeferredLock())
        # guard of own tools: two requests are compared one after the other
        #    -> features.own_tools.test_door.RepetitionTests.test_at_once_slow,
        #    instead return await self._assign_alone(write, caller, held)
        try:
            return await lock.run(lambda: Deferred.fromCoroutine(self._assign_alone(write, caller, held)))
        finally:
            if write.request.spool is not None:
                write.request.spool.discard()

    async def _assign_alone(self, write: Write, caller: str, held: _Held) -> tuple[SessionClaims, str, bool]:
        claims = self._claims.get(write.session.id)
        if claims is None:
            claims = self._claims[write.session.id] = await load_claims(self._store, write.session.id)
        run_id = await self._find_repeated(claims, write.form, caller)
        if run_id is None:
            run_id = await claims.take_over(write.session, write.form, write.action)
        repeated = run_id is not None
        if run_id is None:
            # guard of own tools: what a tool cleans up is not sent while an answer is owed to it
            #    -> features.own_tools.test_door.OwedTests.test_clean_up
            if await self._is_owed(claims, caller):
                raise CallerIsOwed
            run_id = await self._request_run(claims, write)
        held.begin(claims.waiting.setdefault(run_id, set()))
        return claims, run_id, repeated

    async def _is_owed(self, claims: SessionClaims, caller: str) -> bool:
        """Return whether a caller knows that a run waits, and the run is not settled yet."""
        for run_id in claims.find_owed(caller):
            with suppress(NotFound):
                # guard of own tools: a program that stays can go on once its request is decided
                #    -> features.own_tools.test_door.OwedTests.test_decided
                if (await self.submission.run(run_id)).state.settled:
                    continue
                return True
        return False

    async def _find_repeated(self, claims: SessionClaims, form: str, caller: str) -> str | None:
        for run_id in claims.find_repeated(form, caller):
            try:
                run = await self.submission.run(run_id)
            except NotFound:
                claims.forget(run_id)
                continue
            if not _is_expired(run, utc(self._clock.seconds())):
                return run_id
            claims.forget(run_id)
        return None

    async def _request_run(self, claims: SessionClaims, write: Write) -> str:
        """Request a new run for a write, and return its id. The claim on its answer is stored with it."""
        session, new = write.session, NewClaim(write.form, _measure(write))
        await self._refuse_flood(session.id, new.size)
        spool, long, inputs = write.request.spool, write.request.long, write.inputs
        if write.is_stored:
            spool, long = await self._contents.spool(session.id, write.request.body)
            inputs = {**inputs, "content": long.digest, "size": long.size}
        if spool is None or long is None:
            run = await self._submit(write, inputs, new)
        else:
            try:
                run = await self._contents.submit(
                    session.id, spool, long.size, lambda: self._submit(write, inputs, new)
                )
            finally:
                spool.discard()
        claims.add(ToolClaim(run.id, session.id, new.form, new.size, run.received_at))
        return run.id

    async def _submit(self, write: Write, inputs: Mapping[str, JSON], new: NewClaim) -> Run:
        actor = Actor("agent", write.session.id)
        return await self.submission.submit(Call(write.action, inputs, actor, write.session, claim=new))

    async def _refuse_flood(self, session_id: str, size: int) -> None:
        """Refuse a request if the requests that wait would become too long altogether.

        :raises LimitExceeded: if they would.
        """
        found = await self._store.count_open()
        own, total = found.get(session_id, (0, 0))[1], sum(size for _, size in found.values())
        # guard of own tools: requests that wait do not fill the disk
        #    -> features.own_tools.test_door.FloodTests.test_bytes
        if own + size > MOST_BYTES_OF_SESSION or total + size > MOST_BYTES:
            raise LimitExceeded(
                "The requests of tools that wait for approval are too long together. Nothing was sent: decide those "
                "that wait first."
            )


def _is_expired(run: Run, now: datetime) -> bool:
    return run.state.settled and now - run.changed_at >= KEPT


def _measure(write: Write) -> int:
    """Return the bytes of a request in the database."""
    request = write.request
    sizes = (len(name) + len(value) for name, value in request.headers)
    return len(request.target) + sum(sizes) + (0 if write.is_stored else len(request.body))
