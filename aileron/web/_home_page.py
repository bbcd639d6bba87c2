"""The home page: pending approvals, active runs, the outcomes of the last day, problems, and the next setup steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from attrs import evolve, frozen
from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.audit import Event
from aileron.model.queries import AuditQuery, Page, RunQuery
from aileron.model.runs import NOT_BEGUN, Run, RunState
from aileron.model.sessions import Session
from aileron.model.trust import TrustItem, TrustState

from ._credentials_part import read_credentials
from ._runs_page import state_chip
from .blocks import Attention, Part, command_line, heading, link, page, part, quiet
from .event_names import OUTCOMES
from .parts import Visit
from .texts import STATES, agent, count, find_address, moment, name_run

FEW = 5
MOST_COUNTED = 1000
_DAY = timedelta(days=1)
_MOVING = (RunState.EXECUTING, *NOT_BEGUN)
_AGREED = (*_MOVING, RunState.COMPLETED, RunState.UNKNOWN)
_FOUND_OUT = ("run.settled", "execution.reconciled", "execution.late_answer")
_UNTRUSTED = "untrusted"


@frozen
class Outcomes:
    """The numbers of runs that ended since a given time, by outcome.

    :ivar whole: whether all runs were counted, or only the newest.
    """

    counts: Mapping[RunState, int]
    whole: bool = True


@frozen
class SetupStep:
    """A setup step on the way from an empty home to the first approved call, with its command or page."""

    words: str
    done: bool
    command: str = ""
    link: str = ""
    path: str = ""


@frozen
class Overview:
    """The data of the home page.

    :ivar pending: how many decisions are pending, without those that are snoozed.
    :ivar oldest: the runs that have been pending longest, without those that are snoozed, each with its session if
        it is still stored.
    :ivar sessions: how many agent sessions are active.
    :ivar steps: the setup steps; empty once a call was approved.
    """

    pending: int
    oldest: Sequence[tuple[Run, Session | None]]
    running: Page[Run]
    sessions: int
    outcomes: Outcomes
    problems: Sequence[Attention]
    steps: Sequence[SetupStep]


async def read_overview(deps: Dependencies, visit: Visit) -> Overview:
    """Collect the current data of the home page from the daemon's services."""
    oldest = await _find_oldest(deps)
    asking = {each: await deps.sessions.get(each) for each in {run.session_id for run in oldest} if each is not None}
    return Overview(
        pending=await deps.count_waiting(),
        oldest=[(run, asking.get(run.session_id or "")) for run in oldest],
        running=await deps.submission.runs(_query(*_MOVING)),
        sessions=len((await deps.sessions.list(True, MOST_COUNTED, None)).items),
        outcomes=await _count_outcomes(deps, deps.now() - _DAY),
        problems=await _find_problems(deps, visit),
        steps=await _read_steps(deps),
    )


async def _find_oldest(deps: Dependencies) -> Sequence[Run]:
    """Find the runs that have been pending longest, without those that are snoozed."""
    snoozes = await deps.snoozes.all()
    query = evolve(_query(RunState.PENDING), limit=FEW + len(snoozes))
    found = (await deps.submission.runs(query)).items
    return [run for run in found if run.id not in snoozes][:FEW]


def _query(*states: RunState) -> RunQuery:
    return RunQuery(states=states, limit=FEW, oldest_first=True)


async def _count_outcomes(deps: Dependencies, since: datetime) -> Outcomes:
    """Count the runs that ended, each once, by its last recorded outcome."""
    found = await deps.audit.list(AuditQuery(since=since, types=(*OUTCOMES, *_FOUND_OUT), limit=MOST_COUNTED))
    latest: dict[str | None, RunState | None] = {}
    for record in found.items:  # newest first
        latest.setdefault(record.event.run_id, _read_end(record.event))
    return Outcomes(Counter(filter(None, latest.values())), found.cursor is None)


def _read_end(event: Event) -> RunState | None:
    if event.type not in _FOUND_OUT:
        return OUTCOMES.get(event.type)
    happened = event.payload.get("happened")
    if not isinstance(happened, bool) or event.payload.get("last") is False:  # a later step was not started
        return RunState.UNKNOWN
    return RunState.COMPLETED if happened else RunState.FAILED


async def _find_problems(deps: Dependencies, visit: Visit) -> list[Attention]:
    """Return the problems that need the operator, the most serious first.

    :raises VaultLocked: if there is no vault, or it was never unlocked in this process.
    """
    unknown = await deps.submission.runs(_query(RunState.UNKNOWN))
    warned = [each for each in await read_credentials(deps) if each.problem]
    problems = [*_find_alarms(deps)]
    open_ = [run for run in unknown.items if run.superseded_by is None]
    if open_:
        more = "More than " if unknown.cursor is not None else ""
        words = f"{more}{count(len(open_), 'run has', 'runs have')} an unknown outcome."
        problems.append(Attention(words, "Record what happened", "/runs?state=unknown"))
    problems += _find_files(deps, await deps.trust.trust_items())
    if warned:
        words = f"{count(len(warned), 'credential needs', 'credentials need')} your attention."
        problems.append(Attention(words, "Show connectors", "/connectors"))
    for find in deps.features.features.slots("home"):
        problems += await find(deps, visit, None)
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
    """Find files that have no effect: untrusted files and files with errors."""
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


async def is_set_up(deps: Dependencies) -> bool:
    """Return True once a call was approved: setup is then complete."""
    return bool((await deps.submission.runs(RunQuery(states=_AGREED, gated=True, limit=1))).items)


async def _read_steps(deps: Dependencies) -> Sequence[SetupStep]:
    """Return the setup steps with their progress, or none once setup is complete."""
    if await is_set_up(deps):
        return ()
    sessions = await deps.sessions.list(False, 1, None)
    return (
        SetupStep("Create the vault", True, "aileron vault init"),  # no page is shown without a vault
        SetupStep(
            "Trust a connector, or use a built-in one", bool(deps.connectors.descriptions()), "", "Trust", "/trust"
        ),
        SetupStep("Add a credential", bool(deps.bindings.list()), "", "Connectors", "/connectors"),
        SetupStep(
            "Add an action and trust it",
            bool(deps.submission.offering().offers),
            next(iter(deps.features.features.next_steps("empty")), "aileron action add FILE"),
            "Review files",
            "/trust",
        ),
        SetupStep(
            "Start an agent",
            bool(sessions.items),
            next(iter(deps.features.features.next_steps("first")), "aileron mcp config CLIENT"),
        ),
        SetupStep("Approve its first call", False, "", "Open the inbox", "/approvals"),
    )


_COUNTED = (RunState.COMPLETED, RunState.FAILED, RunState.DENIED, RunState.UNKNOWN)


async def draw_home(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the home page."""
    found = await read_overview(deps, visit)
    problems = f" Problems: {len(found.problems)}" if found.problems else ""
    return page(
        "Home",
        f"Pending approvals: {found.pending or 'none'}.{problems}",
        heading("Home"),
        part("problems", _problems(found.problems)),
        part("steps", _setup(found.steps)),
        tags.div(
            _pending(found)(**{"data-part": "pending"}),
            _running(found.running, found.sessions)(**{"data-part": "running"}),
            **{"class": "home-cards"},
        ),
        _outcomes(found.outcomes)(**{"data-part": "outcomes"}),
    )


def _card(title: Part, *children: Part, kind: str = "") -> Tag:
    return tags.section(tags.h2(title), *children, **{"class": f"home-card {kind}".strip()})


def _list(rows: Iterable[Tag]) -> Tag:
    return tags.ul(*rows, **{"class": "home-list"})


def _problems(problems: Sequence[Attention]) -> Part:
    if not problems:
        return ""
    rows = (tags.li(visible(each.words), " ", link(each.path, each.link) if each.path else "") for each in problems)
    return _card("Needs attention", _list(rows), kind="home-trouble")


def _setup(steps: Sequence[SetupStep]) -> Part:
    if not steps:
        return ""
    done = sum(each.done for each in steps)
    title = tags.span("Get started ", tags.small(f"{done} of {len(steps)} done", **{"class": "quiet"}))
    return _card(title, tags.ol(*map(_step, steps), **{"class": "home-steps"}))


def _step(step: SetupStep) -> Tag:
    if step.done:
        return tags.li(tags.span("Done: ", **{"class": "unseen"}), step.words, **{"class": "done"})
    way = command_line(step.command) if step.command else ""
    leads = tags.p(link(step.path, step.link)) if step.path else ""
    return tags.li(step.words, way, leads)


def _pending(found: Overview) -> Tag:
    title = count(found.pending, "pending approval", "pending approvals") if found.pending else "Pending approvals"
    if not found.pending:
        return _card(title, quiet("Nothing is waiting for you."), tags.p(link("/approvals", "Open the inbox")))
    rest = link("/approvals", "Review all") if found.pending > FEW else link("/approvals", "Review")
    return _card(title, _list(_waiting(*each) for each in found.oldest), tags.p(rest))


def _waiting(run: Run, session: Session | None) -> Tag:
    asks = "you" if run.session_id is None else agent(session)
    return tags.li(
        link(f"/approvals/{run.id}", name_run(run)),
        tags.small("Requested by ", asks, ", ", moment(run.received_at), **{"class": "quiet"}),
    )


def _running(running: Page[Run], sessions: int) -> Tag:
    rows = [
        tags.li(link(find_address(run), name_run(run)), tags.small(state_chip(run.state), " ", moment(run.changed_at)))
        for run in running.items
    ]
    more = [tags.p(link("/runs", "All activity"))] if running.cursor is not None else []
    active = count(sessions, "active session", "active sessions") + ("" if sessions < MOST_COUNTED else " or more")
    agents = link("/sessions?live=yes", active) if sessions else "No active sessions"
    return _card("Running now", _list(rows) if rows else quiet("Nothing is running."), *more, quiet(agents))


def _outcomes(outcomes: Outcomes) -> Tag:
    tiles = (
        tags.a(
            tags.strong(f"{outcomes.counts.get(state, 0):,}"),
            tags.span(STATES[state]),
            href=f"/runs?state={state.value}",
            **{"class": f"home-count {state.value}" if outcomes.counts.get(state) else "home-count"},
        )
        for state in _COUNTED
    )
    some = "" if outcomes.whole else f" Only the newest {MOST_COUNTED:,} are counted."
    counts = tags.div(*tiles, **{"class": "home-counts"})
    return _card("Last 24 hours", counts, tags.p(link("/history", "Show history"), some))
