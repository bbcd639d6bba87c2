"""All pages of the operator's, by path."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from twisted.web.template import Flattenable

from aileron.errors import NotFound

from ._parts import Drawing, PageParts, Visit
from .approvals.listing import draw_list
from .approvals.page import draw_approval
from .records.audit import draw_audit, draw_record
from .records.runs import draw_run, draw_runs
from .records.sessions import draw_session, draw_sessions
from .setup.actions import draw_action, draw_actions
from .setup.connectors import draw_connectors
from .setup.grants import draw_grants
from .setup.passkeys import draw_passkeys
from .setup.settings import draw_settings
from .setup.trust import draw_trust
from .traffic.gateway import draw_gateway

Draw: TypeAlias = Callable[..., Coroutine[Any, Any, Flattenable | Drawing]]
"""A coroutine function of L{PageParts}, a L{Visit} and what the path names, to what is shown."""

PAGES: Mapping[str, Draw] = {
    "/approvals": draw_list,
    "/approvals/<run_id>": draw_approval,
    "/runs": draw_runs,
    "/runs/<run_id>": draw_run,
    "/sessions": draw_sessions,
    "/sessions/<session_id>": draw_session,
    "/audit": draw_audit,
    "/audit/<audit_id>": draw_record,
    "/actions": draw_actions,
    "/actions/<name>": draw_action,
    "/connectors": draw_connectors,
    "/grants": draw_grants,
    "/trust": draw_trust,
    "/gateway": draw_gateway,
    "/settings": draw_settings,
    "/settings/passkeys": draw_passkeys,
}
"""What each path shows.  All of them are the shell, whose script fetches it."""


async def _draw_nothing(parts: PageParts, visit: Visit, rest: str) -> Flattenable:
    raise NotFound("There is nothing here.")


FRAGMENTS: Mapping[str, Draw] = {
    **{f"/fragments{path}": draw for path, draw in PAGES.items()},
    "/fragments/<path:rest>": _draw_nothing,
}
"""Everything that shows data, by route.  None is reached but through the guard."""

SHOWN = ("/", *PAGES, "/confirm")
"""The paths of pages."""
