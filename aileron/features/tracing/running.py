"""The feature in the daemon: follows runs, and sends their spans."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron import __version__
from aileron.base.posting import post_and_read
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.home.private_files import read_private
from aileron.model.errors import Forbidden, InvalidRequest, StoreUnavailable
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.model.queries import AuditQuery
from aileron.model.traces import RequestedRun

from .export import SpanExporter
from .settings import TracingSettings
from .spans import ENDS, find_header, span_of_request, spans_of_run

_FLUSH_SECONDS, _WAIT_SECONDS, _PAUSE_SECONDS, _LAST_SECONDS = 2.0, 300.0, 5.0, 2.0
_MOST_EVENTS = 200
_log = Logger()


@define(eq=False)
class RunFollower:
    """Reads the audit log, and queues the spans of each run that ends.

    :param leads: returns whether this one of several daemons sends the spans of runs.
    """

    _audit: IAudit
    _runs: IRuns
    _exporter: SpanExporter
    _clock: IReactorTime
    _leads: Any
    _sequence: int = field(default=0, init=False)

    async def begin(self) -> None:
        """Set the place from which L{follow} reads: after the last event so far.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        head = await self._audit.head()
        self._sequence = 0 if head is None else head[0]

    async def follow(self) -> None:
        """Queue the spans of runs that end, until cancelled. Failures are logged."""
        while True:
            try:
                for record in await self._audit.news(self._sequence, _WAIT_SECONDS):
                    self._sequence = record.sequence
                    if record.event.type in ENDS and record.event.run_id is not None and self._leads():
                        await self._queue(record.event.run_id)
            except CancelledError:
                raise
            except StoreUnavailable as error:
                _log.warn("ended runs are not traced yet: {why}", why=error.message)
                await deferLater(self._clock, _PAUSE_SECONDS)
            except Exception:  # noqa: BLE001 - the loop must continue: otherwise no run would be traced any more
                _log.failure("tracing an ended run")
                await deferLater(self._clock, _PAUSE_SECONDS)

    async def _queue(self, run_id: str) -> None:
        run = await self._runs.get(run_id)
        if run is None:
            return
        page = await self._audit.list(AuditQuery(run_id=run_id, limit=_MOST_EVENTS))
        self._exporter.add(spans_of_run(run, [record.event for record in reversed(page.items)]))


@define(eq=False)
class RunningTracing(RunningFeature):
    """The feature in the daemon."""

    exporter: SpanExporter
    _follower: RunFollower
    _clock: IReactorTime
    _following: Deferred[None] | None = field(default=None, init=False)

    async def serve(self, sites: ListeningSites) -> None:
        self._following = Deferred.fromCoroutine(self._follower.follow())
        self._following.addErrback(lambda failure: failure.trap(CancelledError))

    def run_requested(self, requested: RequestedRun) -> None:
        self.exporter.add((span_of_request(requested, self._clock.seconds()),))

    def metrics(self) -> Iterator[Any]:
        return self.exporter.metrics()

    def stop(self) -> Deferred[None]:
        """Stop following runs, and try once more to send what waits, for a short time."""
        if self._following is not None:
            self._following.cancel()
        last = Deferred.fromCoroutine(self.exporter.flush()).addTimeout(_LAST_SECONDS, self._clock)
        return last.addErrback(lambda failure: None)


async def start_tracing(core: Core, settings: TracingSettings) -> RunningTracing | None:
    """Start to send the spans of runs that are requested or end from now on.

    If the file with the collector's token cannot be used, log that, and return None: nothing is traced.

    :raises StoreUnavailable: if the audit log cannot be read.
    """
    process, store = core.process, core.store
    resource = {"service.name": settings.service_name, "service.version": __version__}
    try:
        headers = _read_headers(settings)
    except (Forbidden, InvalidRequest) as error:
        _log.error("nothing is traced: {why}", why=error.message)
        return None
    send = partial(post_and_read, settings.endpoint or "", clock=process.reactor, headers=headers)
    exporter = SpanExporter(send, resource, process.reactor)
    follower = RunFollower(store.audit, store.runs, exporter, process.reactor, lambda: store.leads)
    await follower.begin()
    running = RunningTracing(exporter, follower, process.reactor)
    core.runner.traces.find = find_header
    process.life.at_end(running.stop)
    process.life.repeat(process.reactor, _FLUSH_SECONDS, exporter.flush)
    return running


def _read_headers(settings: TracingSettings) -> dict[str, str]:
    """Return the header with the token for the collector, or none if there is no file for it.

    :raises InvalidRequest: if the file does not exist, is too large, or has no token.
    :raises Forbidden: if the file is not a regular file of this user.
    """
    if settings.token_file is None:
        return {}
    data = read_private(settings.token_file)
    token = "" if data is None else data.decode("ascii", "replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidRequest("The file of tracing.token_file does not have exactly one token in it.")
    return {"Authorization": f"Bearer {token}"}
