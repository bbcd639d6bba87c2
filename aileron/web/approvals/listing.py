"""The inbox: pending approvals in two groups. Short requests can be selected and decided in the list.

A session with too many requests is one entry.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

from attrs import evolve, frozen
from twisted.web.template import Flattenable, Tag, tags

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
    group_identical,
    host_of,
    list_arguments,
    list_labels,
    review_requests,
)
from aileron.web._runs_page import describe_arguments
from aileron.web.blocks import Part
from aileron.web.parts import Fragment, Visit, template, titled
from aileron.web.texts import COLOURS, agent, countdown, moment

from .decision import FLOOD, deny_all
from .reading import reading
from .review import account

_ROW, _ROWS, _LIST, _FLOOD = map(
    template, ("approval_row.xml", "approval_rows.xml", "approvals.xml", "approval_flood.xml")
)
_MOST_CHARACTERS = 160
_MOST_LINES = 10
_SHOWN_OF_TITLE = 34
"""The number of characters of a title that a row has room for."""

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
    """One row of the inbox: a pending request, and others that ask for the same.

    :ivar session: the requesting session, or None if it is not stored.
    :ivar others: the identical requests that the row represents too, of any session. The row shows the oldest request.
    :ivar snoozed_until: until when it is folded away, or None.
    """

    review: RequestReview
    session: Session | None = None
    others: tuple[Listed, ...] = ()
    snoozed_until: datetime | None = None

    @property
    def approval(self) -> Approval:
        """Return the approval of the request that the row shows."""
        return self.review.approval

    @property
    def members(self) -> tuple[Listed, ...]:
        """Return the requests that the row represents, the oldest first."""
        return (self, *self.others)

    @property
    def asked_by(self) -> str:
        """Return the name of the agent that made the request, or C{You}, and its owner. The text is safe to display."""
        run = self.approval.run
        name = agent(self.session) if run.session_id else "You"
        return name if run.owner is None else f"{name} for {visible(run.owner.name)}"

    @property
    def agents(self) -> str:
        """Return the agents of all requests of the row."""
        return ", ".join(dict.fromkeys(each.asked_by for each in self.members))

    @property
    def is_grave(self) -> bool:
        """Return True if one of the requests has a red warning, so that each is decided on its own page."""
        return any(
            warning.severity is WarningSeverity.HIGH for each in self.members for warning in each.review.warnings
        )

    def describe_members(self) -> str:
        """Return words that say how often, and by which sessions, the request of the row was made."""
        many = len(self.members)
        return f"{many} identical requests: {', '.join(map(_name_requester, self.members))}"

    def lines(self) -> list[Line]:
        """Return every argument, every line of the preview, and the target of each request."""
        review = self.approval.review
        given = [_line(each.label, each.value) for each in list_arguments(self.approval)]
        shown = [_line(each.label, each.value) for each in review.shown_preview.fields]
        leaving = [Line(_leaving(step), step.request is not None) for step in review.steps]
        return [*given, *shown, *leaving]

    def is_whole(self, lines: Sequence[Line]) -> bool:
        """Return True if the row shows everything about the request, so that the operator can decide from the list.

        :param lines: the lines of the row: see L{lines}.
        """
        approval, preview = self.approval, self.approval.review.preview
        if self.is_grave:
            return False
        if approval.stale or approval.changes or edits(approval.run) or not approval.review.steps:
            return False
        if preview is not None and not _is_whole(preview):
            return False
        return len(lines) <= _MOST_LINES and all(line.whole for line in lines)


def colour(review: RequestReview) -> str:
    """Return the colour of the most severe warning about this request, or an empty text if there is none.

    Warnings that apply to every call of the action are ignored.
    """
    found = {each.severity for each in review.warnings if not each.standing}
    return next((name for severity, name in COLOURS.items() if severity in found and name != "grey"), "")


def _row(listed: Listed, chosen: str) -> Fragment:
    """Draw one pending approval, or several identical ones.

    The checkbox contains the digest of each, so that only what the row shows is decided.

    :param chosen: the ID of the run that is shown beside the list.
    """
    approval, run, lines = listed.approval, listed.approval.run, listed.lines()
    hosts = ", ".join(dict.fromkeys(filter(None, map(host_of, approval.review.steps))))
    ids, digests = draw_members(listed)
    sessions = " session:".join(each.approval.run.session_id or "" for each in listed.members)
    whole = listed.is_whole(lines)
    if listed.others:
        lines = [Line(listed.describe_members()), *lines]
    about: dict[str, Flattenable] = {
        "id": visible(run.id),
        "members": ids,
        "digest": digests,
        "tick": f"tick-{ids}-{digests}",
        "tickable": "yes" if whole else "no",
        "href": f"/approvals/{visible(run.id)}",
        "current": "true" if chosen in {each.approval.run.id for each in listed.members} else "false",
        "severity": colour(listed.review),
        "found": visible(f"agent:{listed.agents} action:{run.action} host:{hosts} session:{sessions}"),
        "title": listed.review.title,
        "about": visible(" · ".join(filter(None, (approval.progress, _describe(listed.review))))),
        "asked_by": listed.agents,
        "asked_at": moment(listed.snoozed_until or approval.requested_at),
    }
    return Fragment(
        _ROW,
        root=about,
        lines=lambda tag: [tag.clone()(line.text) for line in lines],
        chips=lambda tag: tag(_draw_labels(listed)),
    )


def draw_members(listed: Listed) -> tuple[str, str]:
    """Return the IDs and the digests of the requests of a row for the script, each separated by commas."""
    approvals = [each.approval for each in listed.members]
    return ",".join(visible(each.run.id) for each in approvals), ",".join(visible(each.digest) for each in approvals)


def _name_requester(listed: Listed) -> str:
    session_id = listed.approval.run.session_id
    return listed.asked_by if session_id is None else f"{listed.asked_by} (session {visible(session_id)})"


def _draw_labels(listed: Listed) -> list[Tag]:
    """Draw the labels of each severity as one chip. The elements are the same for every request."""
    labels = {label for each in listed.members for label in list_labels(each.review.warnings)}
    found = [(each, kind) for each, kind in _LABELS.items() if each in labels]
    if listed.others:
        covered = set(_list_covered(listed))
        found = [each for each in found if each[0] not in covered]
        many = len(listed.members)
        found.append((f"{many} identical requests", COLOURS[WARNINGS["twin"].severity]))
    return [
        tags.span(" · ".join(each for each, kind in found if kind == name), **{"class": f"chip {name}"})
        for name in COLOURS.values()
    ]


def _list_covered(listed: Listed) -> Iterator[str]:
    """Yield the labels of the warnings about identical calls, if all these calls are in the row.

    The row then shows them, so that the labels can be left out.
    """
    ids, earlier = {each.approval.run.id for each in listed.members}, [each.review.before for each in listed.members]
    if all(run.id in ids for before in earlier for run in before.twins):
        yield WARNINGS["twin"].label
    if all(run.id in ids for before in earlier for run in before.repeats):
        yield WARNINGS["repeated"].label


def _describe(review: RequestReview) -> str:
    """Return the beginnings of the arguments that the row does not show in its title, or else the action's name."""
    run, shown = review.approval.run, review.title[:_SHOWN_OF_TITLE]
    rest = {name: value for name, value in run.arguments.items() if not _is_in(value, shown)}
    return describe_arguments(rest) or run.action


def _is_in(value: JSON, text: str) -> bool:
    return isinstance(value, (str, int)) and len(str(value)) <= len(text) and str(value) in text


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


def draw_identical(approval: Approval, listed: Listed | None) -> Tag | str:
    """Draw the identical requests of a row, with the box that has one decision apply to all of them.

    If there is a red warning there is no box: each request has to be read and decided on its own page.

    :param approval: the shown request. If the row has another version of it, there is no box either.
    :param listed: the row of the shown request, or None if it is not listed.
    """
    if listed is None or not listed.others:
        return ""
    # guard of signing: the row has the version that the page shows
    #    -> web.test_approval_list.RowTests.test_identical_changed
    if not any(each.approval.digest == approval.digest for each in listed.members):
        return ""
    many = len(listed.members)
    who = [part for each in listed.members for part in (", ", *_link_requester(each))][1:]
    if listed.is_grave:
        return tags.p(
            f"{many} identical requests, from ",
            *who,
            ". Decide each on its own page, because of the red warning.",
            **{"class": "quiet"},
        )
    ids, digests = draw_members(listed)
    box = tags.input(
        type="checkbox",
        id=f"all-{ids}-{digests}",
        autocomplete="off",
        **{"data-id": ids, "data-digest": digests, "data-key": "t"},
    )
    label = tags.label(box, f" Decide all {many} identical requests ", tags.kbd("t", **{"aria-hidden": "true"}))
    return tags.p(label, " from ", *who, **{"class": "quiet identical"})


def _link_requester(listed: Listed) -> Iterator[Tag | str]:
    """Draw the name of a request's sender, as a link to the request."""
    run = listed.approval.run
    name = tags.bdi(listed.asked_by) if run.session_id is None else tags.bdi(_name_requester(listed))
    yield tags.a(name, href=f"/approvals/{visible(run.id)}")


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
    """One page of the pending approvals, for the list or the column beside a request.

    :ivar count: how many approvals are pending, listed or not.
    :ivar listed: the approvals of sessions that do not flood: first those of the person's own agents, oldest first.
    :ivar approved: approved runs that can still be cancelled.
    :ivar cursor: where the next page begins, or None at the end.
    :ivar snoozes: how many pending approvals are snoozed, listed or not.
    :ivar added: parts that features add.
    :ivar ending: parts that features add below the list.
    """

    count: int
    listed: Sequence[Listed]
    floods: Sequence[Flood]
    approved: Sequence[Run]
    cursor: str | None
    snoozes: int
    added: Sequence[Part]
    ending: Sequence[Part] = ()

    def group(self, group: InboxGroup) -> list[Listed]:
        """Return the inbox's rows of a group."""
        return [each for each in self.listed if each.review.group is group and each.snoozed_until is None]

    @property
    def snoozed(self) -> list[Listed]:
        """The snoozed rows. The row whose snooze ends first comes first."""
        found = [(each.snoozed_until, each) for each in self.listed if each.snoozed_until is not None]
        return [each for _, each in sorted(found, key=lambda pair: pair[0])]

    @property
    def order(self) -> list[str]:
        """The IDs of the listed runs, in the order of the rows."""
        groups = (*self.group(InboxGroup.LOOK_CLOSELY), *self.group(InboxGroup.ROUTINE))
        rows = (*groups, *(each for flood in self.floods for each in flood.listed))
        return [each.approval.run.id for each in rows]

    def find(self, run_id: str) -> Listed | None:
        """Return the row that represents a run, or None if it is not listed."""
        rows = (*self.listed, *(each for flood in self.floods for each in flood.listed))
        return next((row for row in rows if any(each.approval.run.id == run_id for each in row.members)), None)

    @property
    def total(self) -> int:
        """The number of rows. If there are more pages, the number of all pending requests that are not snoozed."""
        return len(self.order) if self.cursor is None else self.count - self.snoozes


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
        empty=not inbox.order and not inbox.added,
        added=lambda tag: tag(*inbox.added),
        closely=_draw_group(inbox.group(InboxGroup.LOOK_CLOSELY), chosen),
        routine=_draw_group(inbox.group(InboxGroup.ROUTINE), chosen),
        floods=lambda tag: [_flood(each, chosen) for each in inbox.floods],
        snoozed=_draw_group(inbox.snoozed, chosen),
        batch=any_listed,
        not_begun=bool(inbox.approved),
        waiting=list(map(_not_begun, inbox.approved)),
        more=False if cursor is None else {"href": f"/approvals?cursor={quote(cursor, safe='')}"},
        ending=lambda tag: tag() if chosen else tag(*inbox.ending),
    )


def _draw_group(listed: Sequence[Listed], chosen: str) -> bool | dict[str, Flattenable]:
    if not listed:
        return False
    return {"count": str(len(listed)), "rows": [_row(each, chosen) for each in listed]}


def draw_list(inbox: Inbox) -> Fragment:
    """Draw the pending approvals as a list on its own, without one of them shown beside it."""
    root = titled("Aileron", f"Pending approvals: {inbox.count or 'none'}")
    return Fragment(_LIST, root=root, rows=draw_rows(inbox))


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
    """Draw a session with too many pending requests, with one button that ends it."""
    about: dict[str, Flattenable] = {
        "agent": agent(flood.listed[0].session),
        "count": str(flood.waiting),
        "session": visible(flood.session_id),
        "deny": deny_all(flood.session_id, flood.waiting),
    }
    return Fragment(_FLOOD, root=about, rows=lambda tag: [_row(each, chosen) for each in flood.listed])


async def read_inbox(deps: Dependencies, visit: Visit) -> Inbox:
    """Read a page of pending approvals.

    :raises InvalidRequest: if the cursor is not from this list.
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
    flooding = {flood.session_id for flood in floods}
    calm = _join_identical([each for each in listed if each.approval.run.session_id not in flooding])
    approved = await deps.submission.runs(
        RunQuery(states=(RunState.APPROVED,), limit=_MOST_APPROVED, oldest_first=True)
    )
    held = [run for run in approved.items if run.start_after is not None]
    features = deps.features.features
    added, ending = [
        [part for draw in features.slots(name) for part in await draw(deps, visit, None)]
        for name in ("approvals", "approvals_end")
    ]
    calm.sort(key=lambda each: _is_of_another(each, visit))
    return Inbox(await deps.pending(), calm, floods, held, found.cursor, len(snoozes), added, ending)


def _is_of_another(listed: Listed, visit: Visit) -> bool:
    """Return whether a request belongs to another person than the one of this login. Theirs are listed last."""
    owner, login = listed.approval.run.owner, visit.operator.account
    return login is not None and (owner is None or owner.account != login.account)


def _join_identical(listed: Sequence[Listed]) -> list[Listed]:
    """Return one row for all identical requests: the oldest, with the others. Snoozed ones are joined separately."""
    by_id = {each.approval.run.id: each for each in listed}
    asleep = [each for each in listed if each.snoozed_until is not None]
    awake = [each for each in listed if each.snoozed_until is None]
    groups = [group for part in (asleep, awake) for group in group_identical([each.approval for each in part])]
    others = {first.run.id: tuple(by_id[each.run.id] for each in rest) for first, *rest in groups}
    return [evolve(each, others=others[key]) for key, each in by_id.items() if key in others]


async def _sessions(deps: Dependencies, asking: Sequence[str | None]) -> Mapping[str, Session]:
    found = [await deps.sessions.get(session_id) for session_id in dict.fromkeys(filter(None, asking))]
    return {session.id: session for session in found if session is not None}


async def _floods(deps: Dependencies, listed: Sequence[Listed]) -> list[Flood]:
    """Return the sessions with more pending requests than L{FLOOD}, each of which the inbox shows as one entry."""
    by_session: dict[str, list[Listed]] = defaultdict(list)
    for each in listed:
        if each.approval.run.session_id is not None:
            by_session[each.approval.run.session_id].append(each)
    counted = [Flood(session, await deps.decisions.pending(session), rows) for session, rows in by_session.items()]
    return [flood for flood in counted if flood.waiting > FLOOD]
