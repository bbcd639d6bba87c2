"""The straight way leads where Klein would, and ends a request as Klein would."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from klein import Klein
from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.test.requesthelper import DummyRequest
from werkzeug.exceptions import HTTPException
from werkzeug.routing import RequestRedirect

from aileron.api._sites import agent_routes, operator_routes
from aileron.api._straight import Handler, Straight, finish

_ROUTES = [*agent_routes().endpoints, *operator_routes().endpoints]
_WORDS = sorted({part for each, _ in _ROUTES for part in each.path.split("/") if part.isalpha()})
_PARTS = st.one_of(st.sampled_from(_WORDS), st.sampled_from(["a-b", "x.y", "..", "1", "", "%41", "é", "~"]))
_PATHS = st.one_of(
    st.sampled_from([each.path for each, _ in _ROUTES]).map(lambda path: path.replace("<", "").replace(">", "")),
    st.lists(_PARTS, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts)),
    st.lists(_PARTS, min_size=1, max_size=3).map(lambda parts: "/v1/" + "/".join(parts)),
)


def _request() -> Any:
    return DummyRequest([b"v1"])


def _handler(name: str) -> Handler:
    def handle(request: object, **path: str) -> Deferred[bytes]:
        return succeed(name.encode())

    return handle


class FoundTests(SynchronousTestCase):
    """Which endpoint a path leads to."""

    def setUp(self) -> None:
        """The tables of both sites, in both kinds of router."""
        self.sites = []
        for routes in (agent_routes(), operator_routes()):
            handlers = {endpoint.name: _handler(endpoint.name) for endpoint, _ in routes.endpoints}
            app = Klein()
            for endpoint, _ in routes.endpoints:
                app.route(endpoint.path, methods=[endpoint.method], endpoint=endpoint.name)(handlers[endpoint.name])
            straight = Straight.to((endpoint, handlers[endpoint.name]) for endpoint, _ in routes.endpoints)
            self.sites.append((straight, app.url_map.bind("localhost"), handlers))

    @settings(deadline=None, max_examples=300)
    @given(st.sampled_from(["GET", "POST", "DELETE", "PUT", "HEAD"]), _PATHS)
    def test_as_klein(self, method: str, path: str) -> None:
        """What is found is what Klein finds, with the same names; what is not found is left to it."""
        for straight, mapper, handlers in self.sites:
            found = straight.find(method.encode(), path.encode())
            if found is None:
                continue
            try:
                name, named = mapper.match(path, method)
            except (HTTPException, RequestRedirect):
                self.fail(f"Klein finds nothing at {method} {path}")
            self.assertEqual(found, (handlers[name], named))

    def test_plain_ones(self) -> None:
        """Every endpoint whose names stand for one part of the path is found."""
        for routes, (straight, _, handlers) in zip((agent_routes(), operator_routes()), self.sites, strict=True):
            for endpoint, _ in routes.endpoints:
                path = endpoint.path.replace("<", "").replace(">", "")
                found = straight.find(endpoint.method.encode(), path.encode())
                wanted = None if ":" in path else handlers[endpoint.name]
                self.assertIs(found and found[0], wanted, endpoint.path)


class FinishTests(SynchronousTestCase):
    """The end of a request."""

    def setUp(self) -> None:
        """A request that is under way."""
        self.request = _request()
        self.cancelled = 0
        self.handling: Deferred[bytes] = Deferred(lambda _: setattr(self, "cancelled", self.cancelled + 1))
        finish(self.request, self.handling)

    def test_answered(self) -> None:
        """The body is written and the answer ended, once it is there."""
        self.assertEqual((self.request.written, self.request.finished), ([], 0))
        self.handling.callback(b"body")
        self.assertEqual((self.request.written, self.request.finished, self.cancelled), ([b"body"], 1, 0))

    def test_left(self) -> None:
        """Who leaves cancels it, and gets nothing more."""
        self.request.processingFailed(Failure(ConnectionDone()))
        self.assertEqual((self.request.written, self.request.finished, self.cancelled), ([], 0, 1))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_left_and_failed(self) -> None:
        """What fails for another reason after its client left is logged."""
        handling: Deferred[bytes] = Deferred(lambda deferred: deferred.errback(ValueError("late")))
        request = _request()
        finish(request, handling)
        request.processingFailed(Failure(ConnectionDone()))
        self.assertEqual((request.written, len(self.flushLoggedErrors(ValueError))), ([], 1))

    def test_stopping(self) -> None:
        """What is cancelled while its client waits is answered: the daemon is stopping."""
        request = _request()
        finish(request, fail(CancelledError()))
        self.assertEqual((request.responseCode, request.finished), (500, 1))
        self.assertIn(b"stopping", b"".join(request.written))
