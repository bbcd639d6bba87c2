"""Records the shape of each completion (a call of a language model, without contents) in the audit log.

The relay does not wait for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import utc
from aileron.features.gateway.interfaces import IMeter, RequestCharge
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IAudit

from ._body_sample import Allowance
from ._completion_shape import CompletionShape, ShapeReader
from .values import Ending

MOST_LONG = 32
"""The most responses and events longer than a few KiB that are held at once."""

MOST_UNRECORDED = 256
"""The most events that wait to be stored. While so many wait, further completions are not recorded."""

_is_completion = re.compile(rb"/(?:completions|responses|messages)(?:\?|\Z)").search

_log = Logger()


class CompletionRecorder:
    """Makes meters that record completions in the audit log. A completion is one call of a language model."""

    def __init__(self, audit: IAudit, clock: IReactorTime, ids: Callable[[], str]) -> None:
        """Create a recorder of completions, which writes to an audit log.

        :param ids: returns a new ULID.
        """
        self.allowance = Allowance(MOST_LONG)
        self._audit, self._clock, self._ids = audit, clock, ids
        self._waiting = 0

    def watch(self, meter: IMeter, path: bytes, provider: str, session_id: str | None) -> IMeter:
        """Return a meter that also records the exchange, or C{meter} itself if C{path} is not a completion's path."""
        if _is_completion(path) is None:
            return meter
        return CompletionMeter(meter, self, self._ids(), provider, session_id)

    def record(self, completion: CompletionMeter, shape: CompletionShape, ending: Ending, uploaded: int) -> None:
        """Record a completion that ended, without waiting for the store. If too many are waiting, only log an error."""
        if self._waiting >= MOST_UNRECORDED:
            _log.error("a completion was not recorded: too many are waiting to be stored")
            return
        usage, session_id = shape.usage, completion.session_id
        payload = {
            "completion": completion.completion,
            "provider": completion.provider,
            "model": shape.model,
            "status": completion.code or None,
            "ending": ending.value,
            "sent_bytes": uploaded,
            "received_bytes": completion.received,
            "tools": [*shape.tools],
            "calls": shape.calls,
            "call_ids": [*shape.call_ids],
            "stop_reason": shape.stop_reason,
            "input_tokens": None if usage is None else usage.input,
            "output_tokens": None if usage is None else usage.output,
            "cached_tokens": None if usage is None else usage.cached,
            "partial": shape.partial,
        }
        actor = DAEMON if session_id is None else Actor("agent", session_id)
        now = utc(self._clock.seconds())
        event = Event(self._ids(), "completion.recorded", now, actor, payload, session_id=session_id)
        self._waiting += 1
        Deferred.fromCoroutine(self._append(event)).addErrback(_note_lost)

    async def _append(self, event: Event) -> None:
        try:
            await self._audit.append(event)
        finally:
            self._waiting -= 1


@implementer(IMeter)
class CompletionMeter:
    """A meter that reads and records one completion, and passes each of its own calls on to another meter.

    :ivar completion: the id under which the completion is recorded.
    :ivar code: the response's status, or 0 if there is no response.
    :ivar received: bytes of the response's body, framing included.
    """

    code = received = 0
    _sent = False
    _reader: ShapeReader | None = None

    def __init__(
        self, meter: IMeter, recorder: CompletionRecorder, completion: str, provider: str, session_id: str | None
    ) -> None:
        self.completion, self.provider, self.session_id = completion, provider, session_id
        self._meter, self._recorder = meter, recorder

    @property
    def charge(self) -> RequestCharge | None:
        """The account to which the exchange is charged, or None if limits on spending do not apply."""
        return self._meter.charge

    @charge.setter
    def charge(self, charge: RequestCharge | None) -> None:
        self._meter.charge = charge

    def sent(self) -> None:
        self._sent = True
        self._meter.sent()

    def arrived(self) -> None:
        self._meter.arrived()

    def answered(self, code: int, head: bytes) -> None:
        self._meter.answered(code, head)
        self.code = code
        if code == 200:
            self._reader = ShapeReader(head, self._recorder.allowance)

    def passed(self, data: bytes) -> None:
        self._meter.passed(data)
        self.received += len(data)
        if self._reader is not None:
            self._reader.feed(data)

    def ended(self, ending: Ending, uploaded: int) -> None:
        self._meter.ended(ending, uploaded)
        reader, self._reader = self._reader, None
        shape = CompletionShape() if reader is None else reader.finish()
        if self._sent:
            self._recorder.record(self, shape, ending, uploaded)


def _note_lost(failure: Failure) -> None:
    log_failure(_log, "a completion could not be recorded", failure)
