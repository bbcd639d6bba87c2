"""Counts the tools that providers were asked to run, and records each in the audit log once per session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.json import utc
from aileron.features.gateway.values import ProviderTool, ToolCount
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.failures import log_failure
from aileron.model.interfaces.store import IAudit

MOST_SESSIONS = 1024
MOST_TOOLS = 64
"""The most tools that are counted separately for one session. Further tools are counted by kind, without hosts."""

_log = Logger()


class ToolNotes:
    """The counts of tools since the daemon's start, of the L{MOST_SESSIONS} sessions with the latest requests."""

    def __init__(self, audit: IAudit, clock: IReactorTime, ids: Callable[[], str]) -> None:
        """Start all counts at zero.

        :param ids: returns a new ULID.
        """
        self._audit, self._clock, self._ids = audit, clock, ids
        self._sessions: OrderedDict[str | None, dict[tuple[str, ProviderTool, bool], int]] = OrderedDict()

    def note(self, provider: str, session_id: str | None, tools: Iterable[ProviderTool], *, refused: bool) -> None:
        """Count the tools of one request. The first use of a tool in a session is recorded in the background."""
        counts = self._sessions.setdefault(session_id, {})
        self._sessions.move_to_end(session_id)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        for tool in tools:
            key = provider, tool, refused
            if key not in counts and len(counts) >= MOST_TOOLS:
                key = provider, evolve(tool, host=""), refused
            counts[key] = counts.get(key, 0) + 1
            if counts[key] == 1:
                Deferred.fromCoroutine(self._record(session_id, *key)).addErrback(_note_lost)

    def counts(self) -> tuple[ToolCount, ...]:
        """Return the counts by session, provider, tool and outcome."""
        return tuple(
            ToolCount(provider, session_id, tool, refused, count)
            for session_id, counts in self._sessions.items()
            for (provider, tool, refused), count in counts.items()
        )

    async def _record(self, session_id: str | None, provider: str, tool: ProviderTool, refused: bool) -> None:
        actor = DAEMON if session_id is None else Actor("agent", session_id)
        type_ = "tool.refused" if refused else "tool.noted"
        payload = {"provider": provider, "kind": tool.kind.value, "host": tool.host or None}
        now = utc(self._clock.seconds())
        await self._audit.append(Event(self._ids(), type_, now, actor, payload, session_id=session_id))


def _note_lost(failure: Failure) -> None:
    log_failure(_log, "a tool of a provider could not be recorded", failure)
