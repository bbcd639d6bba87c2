"""Tests of applications whose routes are only matched."""

from __future__ import annotations

from typing import Any

from klein import Klein
from twisted.trial.unittest import SynchronousTestCase
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect, rules

from aileron.api.routing import Routes

_ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("/v1/runs", {"methods": ["GET"], "endpoint": "runs"}),
    ("/v1/runs/<run_id>", {"methods": ["POST"], "endpoint": "run"}),
    ("/v1/slashed/", {"endpoint": "slashed"}),
    ("/v1/loose/", {"endpoint": "loose", "strict_slashes": False}),
    ("/v1/as//sent", {"endpoint": "sent", "merge_slashes": False}),
    ("/<any(openai, anthropic):provider>/<path:rest>", {"endpoint": "relayed"}),
)
_PATHS = (
    *("/v1/runs", "/v1/runs/", "/v1/runs/01A", "/v1//runs", "/v1/slashed", "/v1/slashed/", "/v1/loose"),
    *("/v1/as//sent", "/v1/as/sent", "/openai/v1/models", "/openai//v1", "/mistral/v1", "/", ""),
)


def _add(app: Klein) -> None:
    for path, options in _ROUTES:
        app.route(path, **options)(lambda *_, **__: b"")


def _found(app: Klein, path: str, method: str) -> object:
    try:
        return app.url_map.bind("localhost").match(path, method)
    except RequestRedirect as redirect:
        return redirect.new_url
    except HTTPException as error:
        return type(error)


class RoutesTests(SynchronousTestCase):
    """L{Routes} is Klein without what builds URLs."""

    def test_matches_as_klein_does(self) -> None:
        """Every path leads where it leads in a Klein application."""
        ours, kleins = Routes(), Klein()
        for app in (ours, kleins):
            _add(app)
        for path in _PATHS:
            for method in ("GET", "POST", "DELETE"):
                self.assertEqual(_found(ours, path, method), _found(kleins, path, method), (path, method))
        self.assertEqual(*([str(each) for each in app.url_map.iter_rules()] for app in (ours, kleins)))

    def test_builds_nothing(self) -> None:
        """No function that builds a URL is compiled, and none can be called."""
        walked: list[object] = []
        self.patch(rules, "_prefix_names", lambda *given: walked.append(given))
        app = Routes()
        _add(app)
        self.assertEqual(walked, [])
        with self.assertRaises(NotImplementedError):
            app.url_map.bind("localhost").build("run", {"run_id": "01A"}, "POST")
