"""Home: what waits, what runs, the outcomes of the last day, what is wrong, and what a new user does next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.values import Page, Run, RunState, Session, visible

from ._blocks import Part, heading, link, page, quiet
from ._overview import FEW, MOST_COUNTED, Attention, Outcomes, Overview, SetupStep, read_overview
from ._parts import Visit
from ._runs_page import state_chip
from ._texts import STATES, agent, count, moment

_COUNTED = (RunState.COMPLETED, RunState.FAILED, RunState.DENIED, RunState.UNKNOWN)


async def draw_home(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the overview that a person begins with."""
    found = await read_overview(deps)
    problems = f" Problems: {len(found.problems)}" if found.problems else ""
    return page(
        "Home",
        f"Pending approvals: {found.pending or 'none'}.{problems}",
        heading("Home"),
        _problems(found.problems),
        _setup(found.steps),
        tags.div(_pending(found), _running(found.running, found.sessions), **{"class": "home-cards"}),
        _outcomes(found.outcomes),
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
    ways = [tags.code(step.command)] if step.command else []
    ways += [link(step.path, step.link)] if step.path else []
    return tags.li(step.words, *(tags.span(each, **{"class": "home-way"}) for each in ways))


def _pending(found: Overview) -> Tag:
    title = count(found.pending, "pending approval", "pending approvals") if found.pending else "Pending approvals"
    if not found.pending:
        return _card(title, quiet("Nothing is waiting for you."))
    rest = link("/approvals", "Review all") if found.pending > FEW else link("/approvals", "Review")
    return _card(title, _list(_waiting(*each) for each in found.oldest), tags.p(rest))


def _waiting(run: Run, session: Session | None) -> Tag:
    asks = "you" if run.session_id is None else agent(session)
    return tags.li(
        link(f"/approvals/{run.id}", run.action),
        tags.small("Requested by ", asks, ", ", moment(run.received_at), **{"class": "quiet"}),
    )


def _running(running: Page[Run], sessions: int) -> Tag:
    rows = [
        tags.li(link(f"/runs/{run.id}", run.action), tags.small(state_chip(run.state), " ", moment(run.changed_at)))
        for run in running.items
    ]
    more = [tags.p(link("/runs", "All runs"))] if running.cursor is not None else []
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
