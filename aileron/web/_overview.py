"""The facts behind the home page: what waits and runs, outcomes of the last day, problems, and steps of the setup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from aileron.api import Dependencies
from aileron.values import (
    MOST_PAGE_BYTES,
    NOT_BEGUN,
    AuditQuery,
    Event,
    Page,
    Run,
    RunQuery,
    RunState,
    Session,
    TrustItem,
    TrustState,
)

from ._credentials_part import read_credentials
from ._event_names import OUTCOMES
from ._texts import count

FEW = 5
MOST_COUNTED = 1000
_DAY = timedelta(days=1)
_MOVING = (RunState.EXECUTING, *NOT_BEGUN)
_AGREED = (*_MOVING, RunState.COMPLETED, RunState.UNKNOWN)
_FOUND_OUT = ("run.settled", "execution.reconciled", "execution.late_answer")
_UNTRUSTED = "untrusted"


@frozen
class Outcomes:
    """The number of runs that ended since a moment, by how.

    :ivar whole: whether all were counted; else only the newest.
    """

    counts: Mapping[RunState, int]
    whole: bool = True


@frozen
class Attention:
    """Something that needs the operator, and the page where it is dealt with.

    :ivar path: empty: every page shows the button that does it.
    """

    words: str
    link: str = ""
    path: str = ""


@frozen
class SetupStep:
    """A step from a new home to the first approved call, with the command that does it, or the page."""

    words: str
    done: bool
    command: str = ""
    link: str = ""
    path: str = ""


@frozen
class Overview:
    """All that the home page shows.

    :ivar oldest: the pending runs that wait longest, each with its session, if that is known.
    :ivar sessions: how many agents' sessions are active.
    :ivar steps: empty once a call was approved.
    """

    pending: int
    oldest: Sequence[tuple[Run, Session | None]]
    running: Page[Run]
    sessions: int
    outcomes: Outcomes
    problems: Sequence[Attention]
    steps: Sequence[SetupStep]


async def read_overview(deps: Dependencies) -> Overview:
    """Ask the daemon's services for all of it, as it stands now."""
    oldest = (await deps.submission.runs(_query(RunState.PENDING))).items
    asking = {each: await deps.sessions.get(each) for each in {run.session_id for run in oldest} if each is not None}
    return Overview(
        pending=await deps.decisions.pending(None),
        oldest=[(run, asking.get(run.session_id or "")) for run in oldest],
        running=await deps.submission.runs(_query(*_MOVING)),
        sessions=len((await deps.sessions.list(True, MOST_COUNTED, None)).items),
        outcomes=await _count_outcomes(deps, deps.now() - _DAY),
        problems=await _find_problems(deps),
        steps=await _read_steps(deps),
    )


def _query(*states: RunState) -> RunQuery:
    return RunQuery(states=states, limit=FEW, oldest_first=True, most_bytes=MOST_PAGE_BYTES)


async def _count_outcomes(deps: Dependencies, since: datetime) -> Outcomes:
    """Count the runs that ended, each once, by what is on record last."""
    found = await deps.audit.list(AuditQuery(since=since, types=(*OUTCOMES, *_FOUND_OUT), limit=MOST_COUNTED))
    latest: dict[str | None, RunState | None] = {}
    for record in found.items:  # newest first
        latest.setdefault(record.event.run_id, _read_end(record.event))
    return Outcomes(Counter(filter(None, latest.values())), found.cursor is None)


def _read_end(event: Event) -> RunState | None:
    if event.type not in _FOUND_OUT:
        return OUTCOMES.get(event.type)
    happened = event.payload.get("happened")
    if not isinstance(happened, bool) or event.payload.get("last") is False:  # a later step was never begun
        return RunState.UNKNOWN
    return RunState.COMPLETED if happened else RunState.FAILED


async def _find_problems(deps: Dependencies) -> list[Attention]:
    """Find what needs the operator, the gravest first."""
    unknown = await deps.submission.runs(_query(RunState.UNKNOWN))
    warned = [each for each in await read_credentials(deps) if each.problem]
    problems = [*_find_alarms(deps)]
    if unknown.items:
        more = "More than " if unknown.cursor is not None else ""
        words = f"{more}{count(len(unknown.items), 'run has', 'runs have')} an unknown outcome."
        problems.append(Attention(words, "Record what happened", "/runs?state=unknown"))
    problems += _find_files(deps, await deps.trust.trust_items())
    if warned:
        words = f"{count(len(warned), 'credential needs', 'credentials need')} your attention."
        problems.append(Attention(words, "Show connectors", "/connectors"))
    channels = () if deps.notifier is None else deps.notifier.channels()
    failing = ", ".join(each.name for each in channels if each.problem is not None)
    if failing:
        problems.append(Attention(f"Notifications are failing: {failing}.", "Show channels", "/settings"))
    return problems


def _find_alarms(deps: Dependencies) -> Iterator[Attention]:
    if deps.signer.tampered:
        yield Attention("Signs of tampering were found.", "Show records", "/audit?type=tamper.detected")
    paused = [each.session_id for each in deps.limits.pauses()]
    if None in paused:
        yield Attention("Everything is paused. Nothing starts until you resume.")
    sessions = sum(each is not None for each in paused)
    if sessions:
        yield Attention(
            f"{count(sessions, 'session is', 'sessions are')} paused.", "Show sessions", "/sessions?live=yes"
        )


def _find_files(deps: Dependencies, items: Sequence[TrustItem]) -> Iterator[Attention]:
    """Find files that do nothing: changed or new ones that nobody trusts, and those with errors."""
    changed, new = (
        [each.candidate.path for each in items if each.state is state and each.candidate is not None]
        for state in (TrustState.CHANGED, TrustState.NEW)
    )
    if changed:
        it = "it" if len(changed) == 1 else "them"
        words = f"{count(len(changed), 'file', 'files')} changed since you trusted {it}"
        yield Attention(f"{words}. Not active until you trust {it} again.", "Review changes", "/trust")
    if new:
        it = "it" if len(new) == 1 else "them"
        words = f"{count(len(new), 'new file is', 'new files are')} not active until you trust {it}."
        yield Attention(words, "Review files", "/trust")
    asked = {*changed, *new}
    errors = deps.submission.offering().load_errors
    faulty = {each.file for each in errors if each.kind != _UNTRUSTED or each.file not in asked}
    if faulty:
        words = f"{count(len(faulty), 'file', 'files')} could not be loaded."
        yield Attention(words, "Show errors", "/actions")


async def _read_steps(deps: Dependencies) -> Sequence[SetupStep]:
    """Read how far a new user has come; nothing once a call was approved, for then whatever it needed was there."""
    if (await deps.submission.runs(RunQuery(states=_AGREED, gated=True, limit=1))).items:
        return ()
    sessions = await deps.sessions.list(False, 1, None)
    return (
        SetupStep("Create the vault", True, "aileron vault init"),  # no page shows without one
        SetupStep(
            "Trust a connector, or use a built-in one", bool(deps.connectors.descriptions()), "", "Trust", "/trust"
        ),
        SetupStep("Add a credential", bool(deps.bindings.list()), "", "Connectors", "/connectors"),
        SetupStep(
            "Add an action and trust it",
            bool(deps.submission.offering().offers),
            "aileron setup",
            "Review files",
            "/trust",
        ),
        SetupStep("Start an agent", bool(sessions.items), "aileron launch claude"),
        SetupStep("Approve its first call", False, "", "Pending approvals", "/approvals"),
    )
