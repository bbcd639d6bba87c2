"""Records in the audit log what tools read, which requests were refused, and which answers of runs tools got."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, cast

from attrs import define, evolve, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import LimitExceeded
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery

from ._writes import HeldRun
from .values import ToolRequest

MOST_READS_A_MINUTE = 600
"""The most reads of one session within a minute. Each is recorded."""

MOST_REQUESTS_A_MINUTE = 1200
"""The most requests of one session within a minute that are looked at. Each 256 KiB of a body count as one more."""

MOST_REFUSALS_A_MINUTE = 60
"""The most refusals of one session that are recorded within a minute."""

_MOST_CHARACTERS = 1000
_WEIGHT = 256 * 1024
_MINUTE = 60.0
_log = Logger()


@define(eq=False)
class ToolRecorder:
    """Writes the audit events of tools' requests, and counts the reads.

    :param ids: returns a fresh ULID at each call.
    :ivar reads: the number of reads since the daemon started.
    """

    _audit: IAudit
    _clock: IReactorTime
    _ids: Callable[[], str]
    reads: int = field(default=0, init=False)
    _times: dict[tuple[str, str], deque[float]] = field(factory=dict, init=False)
    _writing: set[Deferred[Any]] = field(factory=set, init=False)

    async def record_opened(self, session_id: str, services: Iterable[str], hosts: Iterable[str]) -> None:
        """Record that services were opened for a session.

        :raises StoreUnavailable: if the audit log cannot be written.
        """
        payload: dict[str, JSON] = {"services": list(services), "hosts": sorted(hosts)}
        event = self._make_event("own_tools.opened", session_id, payload)
        await self._audit.append(evolve(event, actor=DAEMON))

    async def find_opened_hosts(self, session_id: str) -> frozenset[str]:
        """Return the hosts that were opened for a session in any process of the daemon.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        query = AuditQuery(type="own_tools.opened", session_id=session_id, limit=1)
        for record in (await self._audit.list(query)).items:
            return frozenset(cast("Sequence[str]", record.event.payload["hosts"]))
        return frozenset()

    def admit_request(self, request: ToolRequest) -> None:
        """Count a request before it is recognised, since this takes time for each.

        :raises LimitExceeded: if the session has sent too much within a minute.
        """
        # guard of own tools: a flood of requests does not keep the daemon busy
        #    -> features.own_tools.test_recorder.FloodTests.test_requests
        if not self._has_room("request", request.session_id, MOST_REQUESTS_A_MINUTE, 1 + len(request.body) // _WEIGHT):
            raise LimitExceeded("The tools of this session sent too many requests within a minute. Try again later.")

    def admit_read(self, session_id: str) -> None:
        """Count a read of a session.

        :raises LimitExceeded: if the session has read too often within a minute.
        """
        # guard of own tools: a flood of reads does not fill the audit log
        #    -> features.own_tools.test_recorder.FloodTests.test_reads
        if not self._has_room("read", session_id, MOST_READS_A_MINUTE):
            raise LimitExceeded(
                f"The tools of this session sent {MOST_READS_A_MINUTE} reads within a minute. Try again in a minute."
            )
        self.reads += 1

    async def record_read(self, request: ToolRequest, service: str, status: int | None, size: int | None) -> None:
        """Record a read: its method, target and status, and the bytes of the answer. No content is recorded.

        :param status: the status of the service's answer, or None if there was none.
        :param size: the length of the answer's body, or None if it is long and not known yet.
        :raises StoreUnavailable: if the audit log cannot be written.
        """
        await self._audit.append(
            self._event("own_tools.read", request, service=service, status=status, bytes=size, target=request.target)
        )

    def record_end(self, request: ToolRequest, size: int, is_cut: bool) -> None:
        """Record in the background that a long answer has ended, with the bytes that were passed on to the tool."""
        self._write(
            self._event("own_tools.read_ended", request, target=request.target, bytes=size, complete=not is_cut)
        )

    def record_refusal(self, request: ToolRequest, reason: str) -> None:
        """Record in the background that a request was refused. Its query is left out, as it may hold a credential."""
        if not self._has_room("refused", request.session_id, MOST_REFUSALS_A_MINUTE):
            return
        path = request.target.partition("?")[0]
        self._write(self._event("own_tools.refused", request, target=path, reason=reason))

    def record_unreadable(self, session_id: str, host: str, reason: str) -> None:
        """Record in the background that a request was refused because of its form, so that nothing of it is known."""
        if self._has_room("refused", session_id, MOST_REFUSALS_A_MINUTE):
            payload: dict[str, JSON] = {"host": host, "reason": reason}
            self._write(self._make_event("own_tools.refused", session_id, payload))

    def record_answer(self, request: ToolRequest, held: HeldRun) -> None:
        """Record in the background that a tool got the answer of a run, together with the note that it was given.

        If another session asked for the run, its id is recorded too.
        """
        run, repeated = held.run, held.repeated
        asked = {} if run.session_id in (None, request.session_id) else {"asked_in": run.session_id}
        event = self._event("own_tools.answered", request, target=request.target, repeated=repeated, **asked)
        event = evolve(event, run_id=run.id)
        self._record_later(event.type, held.note_given(event))

    def session_ended(self, session_id: str) -> None:
        """Delete the counts of a session that has ended. Idempotent."""
        for key in [each for each in self._times if each[1] == session_id]:
            del self._times[key]

    async def stop(self) -> None:
        """Wait until all events are recorded."""
        while self._writing:
            await next(iter(self._writing))

    def _has_room(self, what: str, session_id: str, most: int, count: int = 1) -> bool:
        now, times = self._clock.seconds(), self._times.setdefault((what, session_id), deque())
        while times and not now - _MINUTE < times[0] <= now:
            times.popleft()
        if len(times) + count > most:
            return False
        times.extend([now] * count)
        return True

    def _event(self, type_: str, request: ToolRequest, *, target: str, **more: JSON) -> Event:
        payload: dict[str, JSON] = {
            "host": request.host,
            "method": request.method,
            "target": target[:_MOST_CHARACTERS],
            "command": request.caller.summary,
            **more,
        }
        return self._make_event(type_, request.session_id, payload)

    def _make_event(self, type_: str, session_id: str, payload: dict[str, JSON]) -> Event:
        actor = Actor("agent", session_id)
        return Event(self._ids(), type_, utc(self._clock.seconds()), actor, payload, session_id=session_id)

    def _write(self, event: Event) -> None:
        self._record_later(event.type, self._audit.append(event))

    def _record_later(self, type_: str, work: Coroutine[Any, Any, None]) -> None:
        """Start writing an event, and keep the write until it ends. Its failure is logged."""
        writing = Deferred.fromCoroutine(work)
        self._writing.add(writing)
        writing.addErrback(lambda why: log_failure(_log, "recording {type}", why, type=type_))
        writing.addBoth(lambda _: self._writing.discard(writing))
