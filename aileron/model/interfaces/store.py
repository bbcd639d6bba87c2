"""Interfaces of the database: runs, sessions, the audit log, and other stored state."""

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
    """The stored runs. A row changes only if it is in the expected state, in one transaction with the events about it.

    Every method that writes returns after the commit and raises L{StoreUnavailable} if nothing was stored. Cancelling a
    waiting caller never undoes a write.
    """

    async def receive(run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        """Insert C{run} (state C{received}) and apply C{transitions} to it, in order, in one transaction.

        :return: the stored run and True. If this session and action have used the idempotency key in the last 7 days,
            the earlier run and False, and nothing is written. (Runs without a session share their keys.)
        :raises Conflict: if the earlier run had other arguments or another manifest.
        :raises LimitExceeded: if a transition to C{pending_approval} would exceed C{limits}. Nothing was written.
        :raises StoreUnavailable: if nothing was stored.
        """

    async def find_by_key(session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        """Return the run that used this key in the last 7 days, or None."""

    async def apply(*transitions: Transition) -> Run:
        """Apply C{transitions} of one run in order, all or none.

        An C{ask} in a transition replaces the approval's digest, review, times and staleness, and clears its decision.
        A C{decision} is stored with the approval.  C{verify} is called with the run (and its approval, if it has one)
        as read in the transaction.

        :return: the run afterwards.
        :raises StateConflict: if the run was not in C{start}. The error contains the present run. Nothing was written.
        :raises LimitExceeded: if the limit of one of the C{charges} is reached. Nothing was written.
        :raises NotFound: if there is no such run.
        :raises StoreUnavailable: if nothing was stored.
        """

    async def progress(progress: Progress) -> None:
        """Store the progress of an C{executing} run.

        :raises StateConflict: if the run is not C{executing}.
        :raises StoreUnavailable: if nothing was stored.
        """

    async def get(run_id: str) -> Run | None:
        """Return the run, or None."""

    async def approval(run_id: str) -> Approval | None:
        """Return the approval of a gated run, or None."""

    async def list(query: RunQuery) -> Page[Run]:
        """List runs.

        :raises InvalidRequest: if the cursor is not from this list.
        """

    async def approvals(query: RunQuery) -> Page[Approval]:
        """List approvals, oldest first. C{query.gated} is ignored."""

    async def repeats(run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """List other sessions' runs of the same action whose arguments, now or before an edit, are those of C{run}.

        Only runs that are not settled, whose outcome is unknown, or that completed after C{since} are listed. Of the
        completed runs, only the newest thousands are searched. The newest come first, and pending approvals come after
        all others.
        """

    async def twins(run: Run, since: datetime, limit: int) -> tuple[Run, ...]:
        """List the other runs of C{run}'s session with its action and arguments, now or before an edit, oldest first.

        Only runs that are not settled, whose outcome is unknown, or that completed after C{since} are listed, as by
        L{repeats}.  A run without a session has none.
        """

    async def denials(since: datetime) -> tuple[Approval, ...]:
        """List the newest thousand approvals that were denied after C{since}, oldest first."""

    async def unshown(after: int, most: int) -> tuple[tuple[str, ...], int | None]:
        """List the pending runs with a preview that is not C{shown} among the next C{most} pending ones, oldest first.

        :param after: 0, or the second result of the last call.
        :return: the ids, and where to look next, or None if there are no more pending runs.
        """

    async def unfinished() -> tuple[Run, ...]:
        """List every run that is not settled, oldest first. A starting daemon recovers them."""

    async def steps(run_id: str) -> tuple[StepRow, ...]:
        """List the completed steps, in order."""

    async def attempts(run_id: str) -> tuple[AttemptRow, ...]:
        """List attempts, in order."""

    async def room(charges: Sequence[Charge]) -> None:
        """Check that a transition with these C{charges} would not exceed a limit now. Nothing is counted.

        :raises LimitExceeded: if the limit of one of them is reached.
        """

    async def most_used(limit: int) -> tuple[str, ...]:
        """List the names of the most completed actions among the newest two thousand completed runs."""

    async def count(query: RunQuery) -> int:
        """Count the runs that match. C{limit} and C{cursor} are ignored."""


class ISessions(Interface):
    """The stored sessions, with digests of their tokens and keys. The tokens and keys themselves are stored nowhere.

    Sessions survive restarts.
    """

    async def open(
        session: Session,
        token_digest: bytes,
        gateway_digest: bytes,
        events: Sequence[Event],
        in_band_digest: bytes | None = None,
    ) -> None:
        """Store a new session and the events that record it, in one transaction.

        If there are too many sessions, the oldest ended ones are deleted.

        :param token_digest: SHA-256 of the agent token.
        :param gateway_digest: SHA-256 of the gateway key.
        :param in_band_digest: SHA-256 of the in-band key, or None.
        :raises LimitExceeded: if 64 sessions are live (without those that sent no request for 10 minutes), or 100 were
            opened within a minute.
        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """

    async def by_token(token_digest: bytes) -> Session | None:
        """Return the session of a token (live or ended), or None.

        Uses memory where possible, and updates C{seen_at}.
        """

    async def by_gateway_key(gateway_digest: bytes) -> Session | None:
        """Return the session of a gateway key (live or ended), or None. Tokens are not gateway keys.

        Uses memory where possible, and updates C{seen_at}.
        """

    async def by_in_band_key(in_band_digest: bytes) -> Session | None:
        """Return the session of an in-band key (live or ended), or None. Other keys are not in-band keys.

        Uses memory where possible, and updates C{seen_at}.
        """

    def known_gateway_key(gateway_digest: bytes) -> Session | None:
        """Return the live session of a gateway key if it is in memory. If None, call L{by_gateway_key}.

        Takes microseconds. Updates C{seen_at}, but the returned session may have an earlier time.
        """

    async def end(
        session_id: str, exit_code: int | None, events: Sequence[Event], ending: SessionEnding | None = None
    ) -> Session:
        """End the session. If it has already ended, change and record nothing, and return it as it ended.

        :param ending: the reason, if neither the session nor the operator ends it.

        :raises NotFound: if there is no such session.
        """

    async def get(session_id: str) -> Session | None:
        """Return one session, or None."""

    async def tally(session_id: str) -> SessionTally:
        """Return the counts of the session's calls.

        If the session made no calls or does not exist, all counts are 0.
        """

    async def list(live_only: bool, limit: int, cursor: str | None, without_ended: str | None = None) -> Page[Session]:
        """List sessions, newest first.

        :param without_ended: the agent whose ended sessions are left out, or None.
        :raises InvalidRequest: if the cursor is not from this list.
        """


class IInBandMemories(Interface):
    """The state of in-band mode that survives a restart, for the life of its session.

    Parts of replies hidden from clients are stored for a week: calls of actions with their results, which runs
    contain as well, and the model's text between them. Identifiers of requests are stored for an hour. All times are
    the database's.
    """

    async def keep(session_id: str, keys: Sequence[str], content: str) -> None:
        """Store one hidden part. If a session or all sessions have too many or too large ones, the oldest are deleted.

        :param keys: the keys by which the part is found.
        :raises StoreUnavailable: if the write failed.
        """

    async def find(session_id: str, keys: Sequence[str]) -> Sequence[tuple[tuple[str, ...], str]]:
        """Return keys and content of the session's hidden parts with any of C{keys}, oldest first, each once.

        :raises StoreUnavailable: if the database cannot be read.
        """

    async def keep_request(session_id: str, digest: bytes, request_id: str) -> None:
        """Store the identifier of a session's request durably. Cancelling ends only the wait.

        :param digest: a digest of 32 bytes of the parts that a retry repeats. An earlier request with this digest is
            replaced.
        :raises StoreUnavailable: if the write failed.
        """

    async def claim_request(session_id: str, digest: bytes, request_id: str, within_seconds: float) -> str:
        """Return the identifier of a session's request if one with this digest was stored recently.

        Otherwise store C{request_id}, and return it. Of several daemons that claim at once, all get the same one.

        :param within_seconds: the longest age, at most an hour. It begins again with each claim.
        :raises StoreUnavailable: if the write failed.
        """

    async def find_request(session_id: str, digest: bytes, within_seconds: float) -> str | None:
        """Return the identifier of a session's request, or None if none with this digest was stored recently.

        :param within_seconds: the longest age, at most an hour.
        :raises StoreUnavailable: if the database cannot be read.
        """


class IAudit(Interface):
    """The append-only, hash-chained audit log. L{IRuns} records changes of runs together with the change.

    This interface records all other events.
    """

    async def append(*events: Event) -> None:
        """Record C{events} in order, in one transaction, durably.

        The events have already happened: cancelling ends only the wait and never removes them.

        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """

    async def head() -> tuple[int, str] | None:
        """Return the sequence number and hash of the newest audit record, or None if there are no records."""

    async def at(sequence: int) -> str | None:
        """Return the hash of the audit record with this sequence number, or None if there is none."""

    async def get(audit_id: str) -> Record | None:
        """Return one record, or None."""

    async def news(sequence: int, seconds: float) -> tuple[Record, ...]:
        """Return at most 256 records after that sequence, oldest first, once there is at least one.

        If none arrives within C{seconds}, return an empty tuple. Many callers may wait. Cancelling ends the wait.
        """

    async def count_daily(since: datetime, types: Sequence[str]) -> Sequence[tuple[date, str, int]]:
        """Count the records of these types since C{since}, by day in UTC and type, the oldest day first.

        Each has the day, the type and the number.
        """

    async def time_daily(since: datetime, begin: str, ends: Sequence[str]) -> Sequence[DailyWait]:
        """Return how long runs waited for a person, by the day in UTC on which the wait ended, the oldest day first.

        Days without waits are left out. If the clock was set back during a wait, the wait counts as zero seconds.

        :param begin: the type of the record that starts the wait: the first of its type in the run.
        :param ends: the types of records that end the wait, if a person caused the record.
        """

    async def list(query: AuditQuery) -> Page[Record]:
        """List records, newest first.

        :raises InvalidRequest: if the cursor is not from this list.
        """


class IWatermarks(Interface):
    """Short texts by name that store how far the vault and the log had progressed, to detect restored old files."""

    async def all() -> dict[str, str]:
        """Return all stored texts, by name."""

    async def put(name: str, value: str) -> None:
        """Store C{value} durably, in place of an earlier value of C{name}.

        :raises StoreUnavailable: if the write failed.
        """

    async def swap(name: str, before: str | None, value: str) -> bool:
        """Store C{value} durably if the stored one is C{before}. Return whether it was stored.

        :param before: the value that C{value} replaces, or None if there must be none.
        :raises StoreUnavailable: if the write failed.
        """


class IBindingFlags(Interface):
    """Flags of bindings. L{IRuns} stores the flags that runs cause, with the events that explain the flags."""

    async def all() -> Mapping[str, BindingFlag]:
        """Return the flags by the binding's name. A flag of an earlier revision does not apply to the present one."""

    async def put(flag: BindingFlag, events: Sequence[Event]) -> None:
        """Store a warning about a binding that no run caused, and the audit events on it, in one transaction.

        If the same revision of the binding has a warning already, that one stays. Cancelling ends only the wait.

        :raises StoreUnavailable: if the write failed. Nothing was stored.
        """
