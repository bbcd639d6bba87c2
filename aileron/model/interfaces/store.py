"""The database: runs, sessions, the record, and what else it remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from zope.interface import Interface

from aileron.model.audit import Event, Record
from aileron.model.authority import PendingLimits
from aileron.model.queries import AuditQuery, DailyWait, Page, RunQuery
from aileron.model.runs import Approval, AttemptRow, Charge, Progress, Run, StepRow, Transition
from aileron.model.sessions import Session, SessionEnding, SessionTally
from aileron.model.vault import BindingFlag


class IRuns(Interface):
    """Rows that change only by compare-and-set, in one transaction with the events that record it.

    Every method that writes returns after the commit and raises L{StoreUnavailable} if nothing was stored.
    Cancelling a waiting caller never undoes what was written.
    """

    async def receive(run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        """Insert C{run} (state C{received}) and apply C{transitions} to it, in order, in one transaction.

        :return: the run as it now stands and C{True}; or, where this session and action have used the idempotency key
            in the last 7 days, the run of then and C{False}: nothing was written.  (Keys of runs without a session are
            one space.)
        :raises Conflict: that run had other arguments or another manifest.
        :raises LimitExceeded: a transition to C{pending_approval} would pass C{limits}; nothing was written.
        """

    async def find_by_key(session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        """Find the run that used this key in the last 7 days, or L{None}."""

    async def apply(*transitions: Transition) -> Run:
        """Apply C{transitions} of one run, in order, all or none.

        An C{ask} in a transition replaces the approval's digest, review, times and staleness and forgets its decision;
        a C{decision} is kept beside them.  C{verify} is called with the run (and its approval, if it has one) as
        read in the transaction.

        :return: the run as it now stands.
        :raises StateConflict: the run was not in C{start}; it carries the present run.  Nothing was written.
        :raises LimitExceeded: one of its C{charges} is full; nothing was written.
        :raises NotFound: there is no such run.
        """

    async def progress(progress: Progress) -> None:
        """Keep what happened inside an C{executing} run.

        :raises StateConflict: the run is not C{executing}.
        """

    async def get(run_id: str) -> Run | None:
        """Return the run, or L{None}."""

    async def approval(run_id: str) -> Approval | None:
        """Return the approval of a gated run, or L{None}."""

    async def list(query: RunQuery) -> Page[Run]:
        """List runs.

        :raises InvalidRequest: a cursor that this list did not give.
        """

    async def approvals(query: RunQuery) -> Page[Approval]:
        """Approvals, oldest first; C{query.gated} is ignored."""

    async def repeats(run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """List the runs of other sessions that ask, or asked before an edit, for the same as C{run}.

        Only a run that is not settled, whose outcome is unknown, or that completed after C{since} is listed; of the
        completed ones the newest thousands of the home are searched.  The newest come first, and those that wait for
        approval after all others.
        """

    async def twins(run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """List the other runs of C{run}'s session that ask, or asked before an edit, for the same; oldest first.

        Only a run that is not settled, whose outcome is unknown, or that completed after C{since} is listed, as by
        L{repeats}.  A run without a session has none.
        """

    async def denials(since: datetime) -> tuple[Approval, ...]:
        """List the newest thousand that were denied after C{since}, oldest first."""

    async def unshown() -> tuple[str, ...]:
        """List the ids of runs that wait for a decision and have a preview that is not C{shown}, oldest first."""

    async def unfinished() -> tuple[Run, ...]:
        """Every run that is not settled, oldest first: what a starting daemon takes up."""

    async def steps(run_id: str) -> tuple[StepRow, ...]:
        """List steps that ended, in order."""

    async def attempts(run_id: str) -> tuple[AttemptRow, ...]:
        """List attempts, in order."""

    async def room(charges: Sequence[Charge]) -> None:
        """Pass only where a transition with these C{charges} could be applied now; nothing is counted.

        :raises LimitExceeded: one of them is full.
        """

    async def most_used(limit: int) -> tuple[str, ...]:
        """List the actions completed most often among the newest two thousand such runs, by how often and name."""

    async def count(query: RunQuery) -> int:
        """Count the runs that match; C{limit} and C{cursor} are ignored."""


class ISessions(Interface):
    """Sessions and the digests of their tokens and gateway keys, which themselves are kept nowhere.

    They survive restarts.
    """

    async def open(
        session: Session,
        token_digest: bytes,
        gateway_digest: bytes,
        events: Sequence[Event],
        in_band_digest: bytes | None = None,
    ) -> None:
        """Keep a new session and the events that record it, in one transaction.

        Of very many the oldest that are at work no more are forgotten.

        :param token_digest: SHA-256 of the agent token.
        :param gateway_digest: SHA-256 of the gateway key.
        :param in_band_digest: SHA-256 of the in-band key, if it has one.
        :raises LimitExceeded: 64 sessions are live (one without a request for 10 minutes does not count), or 100 were
            opened within a minute.
        :raises StoreUnavailable: nothing was kept.
        """

    async def by_token(token_digest: bytes) -> Session | None:
        """Return the session of a token (live or ended), or L{None}.

        Answers from memory where it can; notes the time as C{seen_at}.
        """

    async def by_gateway_key(gateway_digest: bytes) -> Session | None:
        """Return the session of a gateway key (live or ended), or L{None}; the digest of a token is none.

        Answers from memory where it can; notes the time as C{seen_at}.
        """

    async def by_in_band_key(in_band_digest: bytes) -> Session | None:
        """Return the session of an in-band key (live or ended), or L{None}; no other key is one.

        Answers from memory where it can; notes the time as C{seen_at}.
        """

    def known_gateway_key(gateway_digest: bytes) -> Session | None:
        """Return the live session that L{by_gateway_key} would answer, if that is in memory; L{None}: it must be asked.

        Costs microseconds.  Notes the time too, but the session that is returned may tell an earlier one.
        """

    async def end(
        session_id: str, exit_code: int | None, events: Sequence[Event], ending: SessionEnding | None = None
    ) -> Session:
        """End it.  Ending it again changes and records nothing and returns it as it ended.

        :param ending: why, where neither it nor the operator does.

        :raises NotFound: there is no such session.
        """

    async def get(session_id: str) -> Session | None:
        """One session, or L{None}."""

    async def tally(session_id: str) -> SessionTally:
        """Tell what became of what it asked for.

        All nought of a session that asked for nothing, or that there is not.
        """

    async def list(live_only: bool, limit: int, cursor: str | None, without_ended: str | None = None) -> Page[Session]:
        """Sessions, newest first.

        :param without_ended: leave out the sessions of this agent that have ended.
        :raises InvalidRequest: a cursor that this list did not give.
        """


class IInBandMemories(Interface):
    """The state of in-band mode that outlasts a restart, for as long as its session lives.

    Parts of replies that it hid from its clients are kept for a week: calls of actions with their results, which runs
    hold as well, and what a model wrote between them.  Identifiers of requests are kept for an hour.
    """

    async def keep(session_id: str, keys: Sequence[str], content: str) -> None:
        """Keep one; of one session's and of all the oldest go where they are too many or too long.

        :param keys: by which it is found.
        :raises StoreUnavailable: it is not kept.
        """

    async def find(session_id: str, keys: Sequence[str]) -> Sequence[tuple[tuple[str, ...], str]]:
        """Return the keys and the content of the session's that have any of C{keys}, oldest first, each once.

        :raises StoreUnavailable: it cannot be told.
        """

    async def keep_request(session_id: str, digest: bytes, request_id: str) -> None:
        """Store the identifier of a session's request, durable when this returns; cancelling ends the wait alone.

        :param digest: of 32 bytes, of what the client sends again.  An earlier request that has it is replaced.
        :raises StoreUnavailable: it is not kept.
        """

    async def find_request(session_id: str, digest: bytes, within_seconds: float) -> str | None:
        """Return the identifier of a session's request, or L{None} if none with this digest was stored so lately.

        :param within_seconds: an hour at most.
        :raises StoreUnavailable: it cannot be told.
        """


class IAudit(Interface):
    """An append-only, hash-chained record.

    What changes a run is recorded with the change, by L{IRuns}; this is for the rest.
    """

    async def append(*events: Event) -> None:
        """Keep C{events}, in order, in one transaction; durable when it returns.

        What it records has happened: cancelling ends the wait, and never takes them back.

        :raises StoreUnavailable: nothing of it was kept.
        """

    async def head() -> tuple[int, str] | None:
        """Sequence and hash of the newest record, or L{None}."""

    async def at(sequence: int) -> str | None:
        """Return the hash of the record of that number, or L{None}: there is none."""

    async def get(audit_id: str) -> Record | None:
        """One record, or L{None}."""

    async def news(sequence: int, seconds: float) -> tuple[Record, ...]:
        """Wait for records after that one, oldest first, at most 256; after C{seconds}, none.

        Many may wait.  Cancelling ends the wait.
        """

    async def count_daily(since: datetime, types: Sequence[str]) -> Sequence[tuple[date, str, int]]:
        """Count the records of these types since then, by the day in UTC and by type; the oldest day first."""

    async def time_daily(since: datetime, begin: str, ends: Sequence[str]) -> Sequence[DailyWait]:
        """Measure how long runs waited for a person, by the day in UTC on which the wait ended; the oldest day first.

        Days without any are left out.  Where the clock was set back meanwhile, the wait counts as no time at all.

        :param begin: the type of record whose first in a run begins the wait.
        :param ends: the types that end it, where a person caused the record.
        """

    async def list(query: AuditQuery) -> Page[Record]:
        """List records, newest first.

        :raises InvalidRequest: a cursor that this list did not give.
        """


class IWatermarks(Interface):
    """Short texts by name: how far something had come that could be put back behind our back."""

    async def all() -> dict[str, str]:
        """Every one that was put."""

    async def put(name: str, value: str) -> None:
        """Keep C{value}, in the place of an earlier one; durable when it returns.

        :raises StoreUnavailable: it was not kept.
        """


class IBindingFlags(Interface):
    """Flags of bindings; L{IRuns} raises those of runs, with the events that say why."""

    async def all() -> Mapping[str, BindingFlag]:
        """Return the flags by the binding's name.  One of an earlier revision says nothing of the present one."""

    async def put(flag: BindingFlag, events: Sequence[Event]) -> None:
        """Raise a flag that no run did, and keep the events that say why, in one transaction.

        The first flag of a revision stays.  Cancelling ends the wait, and never takes it back.

        :raises StoreUnavailable: nothing of it was kept.
        """
