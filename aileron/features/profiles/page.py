"""The part of a session's page that shows which actions the session may use."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.web.template import tags

from aileron.api import Dependencies
from aileron.model.sessions import Session
from aileron.web.blocks import Part, link, quiet, table
from aileron.web.parts import Visit

_COLUMNS = ("Action", "May use")


async def draw_for_session(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw every action with whether the session may use it, or nothing if the session may use all."""
    if not subject.restricted:
        return ()
    offering = deps.submission.offering()
    allowed = deps.filters.narrow(subject, offering).offers
    rows = [(link(f"/actions/{name}", name), "Yes" if name in allowed else "No") for name in sorted(offering.offers)]
    return [
        tags.h2("Actions that it may use"),
        quiet(f"{len(allowed)} of {len(rows)} actions. ", _explain(subject)),
        table("Actions that it may use", _COLUMNS, rows, "There are no actions."),
    ]


def _explain(session: Session) -> str:
    parts = [f"Profile: {session.profile}."] if session.profile else []
    if session.selection is not None:
        parts.append("Restricted further by .aileron.toml of the project.")
    return " ".join(parts)
