"""What waits, as a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer

from aileron.values import Approval, Page, Run, RunQuery, RunState, Session, visible
from aileron.web._parts import PageParts, Visit, template
from aileron.web._texts import agent, countdown, moment, summary

MOST_LISTED = 200


class ApprovalList(Element):
    """Approvals, oldest first.

    :param waiting: how many there are, listed or not.
    :param approved: runs that can still be taken back.
    :param sessions: of those that ask, by id.
    """

    loader = template("approvals.xml")

    def __init__(
        self, found: Page[Approval], waiting: int, sessions: Mapping[str, Session], approved: Sequence[Run] = ()
    ) -> None:
        super().__init__()
        self._approvals = found.items
        self._waiting = max(waiting, len(found.items))
        self._sessions = sessions
        self._approved = approved

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How many there are, to be said aloud."""
        return tag(**{"data-title": "Aileron", "data-said": f"Waiting for you: {self._waiting or 'nothing'}"})

    @renderer
    def empty(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A sentence where nothing waits."""
        return "" if self._approvals else tag

    @renderer
    def items(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One line each."""
        for approval in self._approvals:
            run = approval.run
            session = self._sessions.get(run.session_id or "")
            yield tag.clone().fillSlots(
                href=f"/approvals/{visible(run.id)}",
                action=visible(run.action),
                summary=summary(approval),
                asked_by=agent(session) if run.session_id else "you",
                asked_at=moment(approval.requested_at),
                stale="changed since it was asked" if approval.stale else "",
            )

    @renderer
    def not_begun(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """What is approved and has not begun, where there is anything."""
        return tag if self._approved else ""

    @renderer
    def waiting(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """One line each."""
        for run in self._approved:
            at, left, undo = countdown(run)
            href, action = f"/approvals/{visible(run.id)}", visible(run.action)
            yield tag.clone().fillSlots(href=href, action=action, at=at, left=left, undo=undo)

    @renderer
    def more(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """How many are not listed."""
        unlisted = self._waiting - len(self._approvals)
        return tag.fillSlots(count=str(unlisted)) if unlisted > 0 else ""


async def draw_list(parts: PageParts, visit: Visit) -> ApprovalList:
    """What waits now."""
    query = RunQuery(states=(RunState.PENDING,), limit=MOST_LISTED, oldest_first=True)
    found = await parts.runner.approvals(query)
    asking = {approval.run.session_id for approval in found.items if approval.run.session_id}
    sessions = [await parts.sessions.get(session_id) for session_id in sorted(asking)]
    waiting = await parts.runner.pending(None)
    approved = await parts.runner.runs(RunQuery(states=(RunState.APPROVED,), limit=MOST_LISTED, oldest_first=True))
    held = [run for run in approved.items if run.start_after is not None]
    return ApprovalList(found, waiting, {session.id: session for session in sessions if session}, held)
