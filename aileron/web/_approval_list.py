"""What waits, as a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer

from aileron.values import Approval, Page, RunQuery, RunState, Session, visible

from ._parts import PageParts, template
from ._texts import agent, moment, summary

MOST_LISTED = 200


class ApprovalList(Element):
    """Approvals, oldest first.

    :param waiting: how many there are, listed or not.
    :param sessions: of those that ask, by id.
    """

    loader = template("approvals.xml")

    def __init__(self, found: Page[Approval], waiting: int, sessions: Mapping[str, Session]) -> None:
        super().__init__()
        self._approvals = found.items
        self._waiting = max(waiting, len(found.items))
        self._sessions = sessions

    @renderer
    def root(self, request: IRequest | None, tag: Tag) -> Tag:
        """How many there are, for the title and to be said aloud."""
        title = f"({self._waiting}) Aileron" if self._waiting else "Aileron"
        return tag(**{"data-title": title, "data-said": f"Waiting for you: {self._waiting or 'nothing'}"})

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
    def more(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """How many are not listed."""
        unlisted = self._waiting - len(self._approvals)
        return tag.fillSlots(count=str(unlisted)) if unlisted > 0 else ""


async def draw_list(parts: PageParts) -> ApprovalList:
    """What waits now."""
    query = RunQuery(states=(RunState.PENDING,), limit=MOST_LISTED, oldest_first=True)
    found = await parts.runner.approvals(query)
    asking = {approval.run.session_id for approval in found.items if approval.run.session_id}
    sessions = [await parts.sessions.get(session_id) for session_id in sorted(asking)]
    waiting = await parts.runner.pending(None)
    return ApprovalList(found, waiting, {session.id: session for session in sessions if session})
