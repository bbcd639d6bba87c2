"""All web pages by path."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

from twisted.web.template import Flattenable

from aileron.api import Dependencies
from aileron.features import FeatureSet
from aileron.model.errors import NotFound

from ._actions_page import draw_action, draw_actions
from ._audit_page import draw_audit, draw_record
from ._connectors_page import draw_connector, draw_connectors
from ._editor_page import draw_dry_run, draw_edit, draw_new, draw_try
from ._grants_page import draw_grants
from ._history_page import draw_history
from ._home_page import draw_home
from ._run_page import draw_request, draw_run
from ._runs_page import draw_runs
from ._sessions_page import draw_session, draw_sessions
from ._settings_page import draw_passkeys, draw_settings
from ._trust_page import draw_trust
from .approvals.page import draw_inbox
from .parts import Drawing, Visit

Draw: TypeAlias = Callable[..., Coroutine[Any, Any, Flattenable | Drawing]]
"""A coroutine function that accepts L{Dependencies}, a L{Visit} and the path's parameters, and returns the page."""

PAGES: Mapping[str, Draw] = {
    "/home": draw_home,
    "/approvals": draw_inbox,
    "/approvals/<run_id>": draw_request,
    "/runs": draw_runs,
    "/runs/<run_id>": draw_run,
    "/sessions": draw_sessions,
    "/sessions/<session_id>": draw_session,
    "/audit": draw_audit,
    "/audit/<audit_id>": draw_record,
    "/history": draw_history,
    "/actions": draw_actions,
    "/actions/_new": draw_new,
    "/actions/<name>": draw_action,
    "/actions/<name>/edit": draw_edit,
    "/actions/<name>/try": draw_try,
    "/connectors": draw_connectors,
    "/connectors/<path:fqn>": draw_connector,
    "/grants": draw_grants,
    "/trust": draw_trust,
    "/settings": draw_settings,
    "/settings/passkeys": draw_passkeys,
}
"""The core's pages by path. Each path serves the shell, whose script fetches the page."""


async def _draw_nothing(deps: Dependencies, visit: Visit, rest: str) -> Flattenable:
    features = deps.features.features
    off = sorted({features.find_switched_off(name) for name in features.off})
    told = f" These features are off in config.yaml: {', '.join(off)}." if off else ""
    raise NotFound(f"Page not found.{told}")


def fragments(features: FeatureSet, shows: Callable[[str], bool] = lambda _: True) -> Mapping[str, Draw]:
    """Return the functions that draw the content of pages, by route. Each is served only to logged-in browsers.

    :param shows: returns whether a page is shown, by its path.
    """
    drawn = {path: draw for path, draw in {**PAGES, **features.pages()}.items() if shows(path)}
    return {**{f"/fragments{path}": draw for path, draw in drawn.items()}, "/fragments/<path:rest>": _draw_nothing}


POSTED: Mapping[str, Draw] = {"/fragments/actions/<name>/try": draw_dry_run}
"""Fragments drawn from a posted body. They change nothing."""


def shown(features: FeatureSet) -> tuple[str, ...]:
    """Return the paths of all pages, of the core and of the features."""
    return ("/", *PAGES, *features.pages(), "/confirm")
