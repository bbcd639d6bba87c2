"""What waits, as a list: what floods stands by itself, what is short can be ticked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from attrs import evolve, frozen
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer

from aileron.values import MOST_PAGE_BYTES, Run, RunQuery, RunState, Session, visible
from aileron.web._parts import Drawing, PageParts, Visit, template
from aileron.web._texts import agent, countdown

from .flood import FLOOD, deny_all
from .row import Listed, Row

MOST_LISTED = 100


@frozen
class Flood:
    """A session that asks too much at once.

    :ivar waiting: how many requests of it wait, listed here or not.
    """

    session_id: str
    waiting: int
    listed: Sequence[Listed]


@frozen
class Waiting:
    """What the list is made of.

    :ivar count: how many wait, listed or not.
    :ivar listed: those of sessions that do not flood, oldest first.
    :ivar cursor: where the next page begins.
    :ivar approved: runs that can still be taken back.
    """

    count: int
    listed: Sequence[Listed]
    floods: Sequence[Flood] = ()
    cursor: str | None = None
    approved: Sequence[Run] = ()

    @property
    def any_listed(self) -> bool:
        """Whether there is anything to decide here."""
        return bool(self.listed or self.floods)


class ApprovalList(Element):
    """Approvals, oldest first."""

    loader = template("approvals.xml")

    def __init__(self, waiting: Waiting) -> None:
        super().__init__()
        self._waiting = waiting

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How many there are, to be said aloud."""
        return tag(**{"data-title": "Aileron", "data-said": f"Waiting for you: {self._waiting.count or 'nothing'}"})

    @renderer
    def empty(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where nothing waits."""
        return "" if self._waiting.any_listed else tag

    @renderer
    def items(self, request: IRequest | None, tag: Tag) -> Iterator[Row]:
        """One row each."""
        yield from map(Row, self._waiting.listed)

    @renderer
    def floods(self, request: IRequest | None, tag: Tag) -> Iterator[FloodSection]:
        """One section each."""
        yield from map(FloodSection, self._waiting.floods)

    @renderer
    def batch(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """The button for what is ticked, where there is anything to tick."""
        return tag if self._waiting.any_listed else ""

    @renderer
    def not_begun(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What is approved and has not begun, where there is anything."""
        return tag if self._waiting.approved else ""

    @renderer
    def waiting(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One line each."""
        for run in self._waiting.approved:
            at, left, undo = countdown(run)
            href, action = f"/approvals/{visible(run.id)}", visible(run.action)
            yield tag.clone().fillSlots(href=href, action=action, at=at, left=left, undo=undo)

    @renderer
    def more(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A link to those that are not listed."""
        cursor = self._waiting.cursor
        return "" if cursor is None else tag.fillSlots(href=f"/approvals?cursor={quote(cursor, safe='')}")


class FloodSection(Element):
    """One session that floods, with one button that ends it."""

    loader = template("approval_flood.xml")

    def __init__(self, flood: Flood) -> None:
        super().__init__()
        self._flood = flood

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """Who it is, and how much."""
        flood = self._flood
        return tag.fillSlots(
            agent=agent(flood.listed[0].session),
            count=str(flood.waiting),
            session=visible(flood.session_id),
            deny=deny_all(flood.session_id, flood.waiting),
        )

    @renderer
    def rows(self, request: IRequest | None, tag: Tag) -> Iterator[Row]:
        """One row each."""
        yield from map(Row, self._flood.listed)


async def draw_list(parts: PageParts, visit: Visit) -> Drawing:
    """What waits now.

    :raises InvalidRequest: a cursor that this list did not give.
    """
    pending = RunQuery(states=(RunState.PENDING,), limit=MOST_LISTED, oldest_first=True, most_bytes=MOST_PAGE_BYTES)
    found = await parts.decisions.approvals(evolve(pending, cursor=visit.query.get("cursor")))
    before = await parts.decisions.precedents(found.items)
    sessions = await _sessions(parts, [approval.run.session_id for approval in found.items])
    listed = [
        Listed(approval, precedents, sessions.get(approval.run.session_id or ""))
        for approval, precedents in zip(found.items, before, strict=True)
    ]
    floods = await _floods(parts, listed)
    flooding = {flood.session_id for flood in floods}
    calm = [each for each in listed if each.approval.run.session_id not in flooding]
    approved = await parts.submission.runs(RunQuery(states=(RunState.APPROVED,), limit=MOST_LISTED, oldest_first=True))
    held = [run for run in approved.items if run.start_after is not None]
    waiting = Waiting(await parts.decisions.pending(None), calm, floods, found.cursor, held)
    return Drawing(lambda: ApprovalList(waiting))


async def _sessions(parts: PageParts, asking: Sequence[str | None]) -> Mapping[str, Session]:
    found = [await parts.sessions.get(session_id) for session_id in dict.fromkeys(filter(None, asking))]
    return {session.id: session for session in found if session is not None}


async def _floods(parts: PageParts, listed: Sequence[Listed]) -> list[Flood]:
    """The sessions of which more wait than anybody reads."""
    by_session: dict[str, list[Listed]] = defaultdict(list)
    for each in listed:
        if each.approval.run.session_id is not None:
            by_session[each.approval.run.session_id].append(each)
    counted = [Flood(session, await parts.decisions.pending(session), rows) for session, rows in by_session.items()]
    return [flood for flood in counted if flood.waiting > FLOOD]
