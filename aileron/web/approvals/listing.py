"""The inbox: pending approvals in two groups. A flooding session is one entry; what is short can be selected."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from attrs import evolve, frozen
from twisted.web.template import Flattenable, tags

from aileron.api import Dependencies
from aileron.base.json import JSON, plain
from aileron.base.text import visible
from aileron.model.queries import MOST_PAGE_BYTES, RunQuery
from aileron.model.reviews import PreviewStatus, ReviewedPreview, ReviewedStep
from aileron.model.runs import Approval, Run, RunState
from aileron.model.sessions import Session
from aileron.review import (
    WARNINGS,
    InboxGroup,
    RequestReview,
    WarningSeverity,
    edits,
    host_of,
    is_twin,
    list_arguments,
    list_labels,
    review_requests,
)
from aileron.web.blocks import Part
from aileron.web.parts import Drawing, Fragment, Visit, template, titled
from aileron.web.texts import COLOURS, agent, countdown, moment

from .decision import FLOOD, deny_all
from .reading import reading
from .review import account

_ROW, _ROWS, _LIST, _FLOOD = map(
    template, ("approval_row.xml", "approval_rows.xml", "approvals.xml", "approval_flood.xml")
)
_MOST_CHARACTERS = 160
_MOST_LINES = 10
_LABELS = {
    kind.label: COLOURS[kind.severity]
    for severity in COLOURS
    for kind in WARNINGS.values()
    if kind.severity is severity and not kind.standing
}
"""The labels of warnings that rows show, the most severe first, each with its colour."""


@frozen
class Line:
    """One fact about a request, with its label.

    :ivar whole: whether it is shown in full, without hidden or misleading characters.
    """

    text: str
    whole: bool = True


@frozen
class Listed:
    """The parts of a row.

    :ivar session: the requesting session, or None if it is not stored.
    :ivar count: how many identical requests of the session the row represents. The row shows the oldest.
    :ivar snoozed_until: until when it is folded away, or None.
    """

    review: RequestReview
    session: Session | None = None
    count: int = 1
    snoozed_until: datetime | None = None

    @property
    def approval(self) -> Approval:
        """Return the approval of the row."""
        return self.review.approval

    def lines(self) -> list[Line]:
        """Return every argument, every line of the preview, and the target of each request."""
        review = self.approval.review
        given = [_line(each.label, each.value) for each in list_arguments(self.approval)]
        shown = [_line(each.label, each.value) for each in review.shown_preview.fields]
        leaving = [Line(_leaving(step), step.request is not None) for step in review.steps]
        return [*given, *shown, *leaving]

    @property
    def whole(self) -> bool:
        """Return True if the row shows everything about the request, so that the operator can decide from the list."""
        approval, preview, lines = self.approval, self.approval.review.preview, self.lines()
        if any(each.severity is WarningSeverity.HIGH for each in self.review.warnings):
            return False
        if self.count > 1 or approval.stale or approval.changes or edits(approval.run) or not approval.review.steps:
            return False
        if preview is not None and not _is_whole(preview):
            return False
        return len(lines) <= _MOST_LINES and all(line.whole for line in lines)


def colour(review: RequestReview) -> str:
    """Return the colour of the most severe warning that does not hold at every call of the action, or an empty text."""
    found = {each.severity for each in review.warnings if not each.standing}
    return next((name for severity, name in COLOURS.items() if severity in found and name != "grey"), "")


def _row(listed: Listed, chosen: str) -> Fragment:
    """Draw one pending approval. Its checkbox carries the digest of exactly what is shown when it is selected.

    :param chosen: the ID of the run that is shown beside the list.
    """
    approval, run = listed.approval, listed.approval.run
    hosts = ", ".join(dict.fromkeys(filter(None, map(host_of, approval.review.steps))))
    asked_by = agent(listed.session) if run.session_id else "You"
    about: dict[str, Flattenable] = {
        "id": visible(run.id),
        "digest": visible(approval.digest),
        "tick": f"tick-{visible(run.id)}-{visible(approval.digest)}",
        "tickable": "yes" if listed.whole and not _is_irreversible(listed.review) else "no",
        "href": f"/approvals/{visible(run.id)}",
        "current": "true" if run.id == chosen else "false",
        "severity": colour(listed.review),
        "found": visible(f"agent:{asked_by} action:{run.action} host:{hosts} session:{run.session_id or ''}"),
        "title": listed.review.title,
        "about": visible(run.action),
        "asked_by": asked_by,
        "asked_at": moment(listed.snoozed_until or approval.requested_at),
    }
    labels = list_labels(listed.review.warnings)
    chips = [(each if each in labels else "", kind) for each, kind in _LABELS.items()]
    if listed.count > 1:
        chips.append((f"{listed.count} identical requests", "amber"))
    return Fragment(
        _ROW,
        root=about,
        lines=lambda tag: [tag.clone()(line.text) for line in listed.lines()],
        chips=lambda tag: tag([tags.span(words, **{"class": f"chip {kind}"}) for words, kind in chips]),
    )


def _is_irreversible(review: RequestReview) -> bool:
    return any(each.id == "irreversible" for each in review.warnings)


def _line(label: str, value: JSON) -> Line:
    """Return a labelled value. A long value is cut and marked as cut."""
    words = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if len(words) > _MOST_CHARACTERS:
        return Line(f"{visible(label)}: {visible(words[:_MOST_CHARACTERS])}… (open to see all)", whole=False)
    return Line(visible(f"{label}: {words}"), "\n" not in words and reading(value).harmless)


def _is_whole(preview: ReviewedPreview) -> bool:
    cut = any(each.cut is not None for each in preview.shown.fields)
    return preview.shown.status is PreviewStatus.SHOWN and preview.lacking is None and not cut


def _leaving(step: ReviewedStep) -> str:
    return f"→ {visible(step.operation)} at {visible(host_of(step))}, {visible(account(step.binding))}"


MOST_LISTED = 50
"""The most approvals drawn at once. Each costs a millisecond in the daemon and another in the browser."""
_MOST_APPROVED = 100


@frozen
class Flood:
    """A session with too many pending requests.

    :ivar waiting: how many of its requests are pending, listed or not.
    """

    session_id: str
    waiting: int
    listed: Sequence[Listed]


@frozen
class Inbox:
    """The pending approvals beside a request.

    :ivar count: how many approvals are pending, listed or not.
    :ivar listed: the approvals of sessions that do not flood, oldest first.
    :ivar approved: approved runs that can still be cancelled.
    :ivar cursor: where the next page begins, or None at the end.
    :ivar added: parts that features add.
    """

    count: int
    listed: Sequence[Listed]
    floods: Sequence[Flood]
    approved: Sequence[Run]
    cursor: str | None
    added: Sequence[Part]

    def group(self, group: InboxGroup) -> list[Listed]:
        """Return the rows of a group."""
        return [each for each in self.listed if each.review.group is group and each.snoozed_until is None]

    @property
    def snoozed(self) -> list[Listed]:
        """The rows that are folded away until a time, the one that comes back first at the top."""
        found = [(each.snoozed_until, each) for each in self.listed if each.snoozed_until is not None]
        return [each for _, each in sorted(found, key=lambda pair: pair[0])]

    @property
    def order(self) -> list[str]:
        """The IDs of the listed runs, in the order of the rows."""
        groups = (*self.group(InboxGroup.LOOK_CLOSELY), *self.group(InboxGroup.ROUTINE))
        rows = (*groups, *(each for flood in self.floods for each in flood.listed))
        return [each.approval.run.id for each in rows]


def draw_rows(inbox: Inbox, chosen: str = "") -> Fragment:
    """Draw the pending approvals in their groups, as the column beside a request.

    :param chosen: the ID of the run that is shown beside them.
    """
    any_listed = bool(inbox.listed or inbox.floods)
    cursor = inbox.cursor
    return Fragment(
        _ROWS,
        head=any_listed,
        heading=not chosen,
        empty=not any_listed and not inbox.added,
        added=lambda tag: tag(*inbox.added),
        closely=_draw_group(inbox.group(InboxGroup.LOOK_CLOSELY), chosen),
        routine=_draw_group(inbox.group(InboxGroup.ROUTINE), chosen),
        floods=lambda tag: [_flood(each, chosen) for each in inbox.floods],
        snoozed=_draw_group(inbox.snoozed, chosen),
        batch=any_listed,
        not_begun=bool(inbox.approved),
        waiting=list(map(_not_begun, inbox.approved)),
        more=False if cursor is None else {"href": f"/approvals?cursor={quote(cursor, safe='')}"},
    )


def _draw_group(listed: Sequence[Listed], chosen: str) -> bool | dict[str, Flattenable]:
    if not listed:
        return False
    return {"count": str(len(listed)), "rows": [_row(each, chosen) for each in listed]}


def _page(inbox: Inbox) -> Fragment:
    return Fragment(
        _LIST,
        root=titled("Aileron", f"Pending approvals: {inbox.count or 'none'}"),
        rows=draw_rows(inbox),
        hint=bool(inbox.order),
    )


def _not_begun(run: Run) -> dict[str, Flattenable]:
    at, left, undo = countdown(run)
    return {
        "href": f"/approvals/{visible(run.id)}",
        "action": visible(run.action),
        "at": at,
        "left": left,
        "undo": undo,
    }


def _flood(flood: Flood, chosen: str) -> Fragment:
    """Draw a flooding session with one button that ends it."""
    about: dict[str, Flattenable] = {
        "agent": agent(flood.listed[0].session),
        "count": str(flood.waiting),
        "session": visible(flood.session_id),
        "deny": deny_all(flood.session_id, flood.waiting),
    }
    return Fragment(_FLOOD, root=about, rows=lambda tag: [_row(each, chosen) for each in flood.listed])


async def draw_list(deps: Dependencies, visit: Visit) -> Drawing:
    """Draw the pending approvals.

    :raises InvalidRequest: the cursor is not from this list.
    """
    inbox = await read_inbox(deps, visit)
    return Drawing(lambda: _page(inbox))


async def read_inbox(deps: Dependencies, visit: Visit) -> Inbox:
    """Read a page of pending approvals.

    :raises InvalidRequest: the cursor is not from this list.
    """
    pending = RunQuery(states=(RunState.PENDING,), limit=MOST_LISTED, oldest_first=True, most_bytes=MOST_PAGE_BYTES)
    query = evolve(pending, cursor=visit.query.get("cursor"))
    found = await deps.decisions.approvals(query, only_read=visit.only_reads)
    sessions = await _sessions(deps, [approval.run.session_id for approval in found.items])
    reviews = await review_requests(deps.decisions, deps.submission.offering().offers, found.items)
    snoozes = await deps.snoozes.all()
    listed = [
        Listed(each, sessions.get(each.approval.run.session_id or ""), snoozed_until=snoozes.get(each.approval.run.id))
        for each in reviews
    ]
    floods = await _floods(deps, listed)
    listed = list(_group_twins(listed))
    flooding = {flood.session_id for flood in floods}
    calm = [each for each in listed if each.approval.run.session_id not in flooding]
    approved = await deps.submission.runs(
        RunQuery(states=(RunState.APPROVED,), limit=_MOST_APPROVED, oldest_first=True)
    )
    held = [run for run in approved.items if run.start_after is not None]
    added = [part for draw in deps.features.features.slots("approvals") for part in await draw(deps, visit, None)]
    return Inbox(await deps.pending(), calm, floods, held, found.cursor, added)


def _group_twins(listed: Sequence[Listed]) -> Iterator[Listed]:
    """Yield one row for all identical requests of a session: the oldest, with their number."""
    groups: dict[tuple[str | None, str], list[list[Listed]]] = defaultdict(list)
    for each in listed:
        run = each.approval.run
        known = groups[run.session_id, run.action]
        group = next((found for found in known if is_twin(found[0].approval.run, run)), None)
        if group is None:
            known.append([each])
        else:
            group.append(each)
    counts = {found[0].approval.run.id: len(found) for known in groups.values() for found in known}
    yield from (evolve(each, count=counts[each.approval.run.id]) for each in listed if each.approval.run.id in counts)


async def _sessions(deps: Dependencies, asking: Sequence[str | None]) -> Mapping[str, Session]:
    found = [await deps.sessions.get(session_id) for session_id in dict.fromkeys(filter(None, asking))]
    return {session.id: session for session in found if session is not None}


async def _floods(deps: Dependencies, listed: Sequence[Listed]) -> list[Flood]:
    """Find the sessions with more pending requests than L{FLOOD}."""
    by_session: dict[str, list[Listed]] = defaultdict(list)
    for each in listed:
        if each.approval.run.session_id is not None:
            by_session[each.approval.run.session_id].append(each)
    counted = [Flood(session, await deps.decisions.pending(session), rows) for session, rows in by_session.items()]
    return [flood for flood in counted if flood.waiting > FLOOD]
