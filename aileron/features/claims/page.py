"""The part of a session's page that lists what its agent says it did although no run did it."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.web.template import tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.model.sessions import Session
from aileron.web.blocks import Part
from aileron.web.parts import Visit

from .running import RunningClaimCheck


async def draw_for_session(deps: Dependencies, visit: Visit, subject: Session) -> Sequence[Part]:
    """Draw a line for each claim of the session's agent for which there is no run. Draw nothing if there are none.

    :raises StoreUnavailable: if the runs cannot be read.
    """
    running = deps.features.find(RunningClaimCheck)
    claims = () if running is None else await running.list_claims(subject.id)
    return [tags.p(visible(each.describe()), role="status", **{"class": "stale"}) for each in claims]
