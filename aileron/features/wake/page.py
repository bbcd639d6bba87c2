"""The part of a session's page that lists when its agent was woken, and by which outcome."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.audit import Event
from aileron.model.queries import AuditQuery
from aileron.model.sessions import Session
from aileron.web.blocks import Part, link
from aileron.web.parts import Visit
from aileron.web.texts import moment, segment

MOST_DRAWN = 5


async def draw_for_session(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw a line for each of the latest times that the agent was woken. Draw nothing if there are none.

    :raises StoreUnavailable: if the audit log cannot be read.
    """
    found = await deps.audit.list(AuditQuery(type="wake.sent", session_id=subject.id, limit=MOST_DRAWN))
    return [_draw(each.event) for each in found.items]


def _draw(event: Event) -> Tag:
    how = "Resumed" if event.payload.get("how") == "resumed" else "Woken"
    run = link(f"/runs/{segment(event.run_id or '')}", visible(event.action or "a run"))
    return tags.p(f"{how} at ", moment(event.at), " by the outcome of ", run, **{"class": "quiet"})
