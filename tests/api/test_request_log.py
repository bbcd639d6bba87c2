"""Each HTTP request has an id of ours, and one event in the log that repeats nothing that may be a secret."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from aileron.api import GuardedSite, SiteRules
from aileron.api.channels.request_log import NAMESPACE, RequestNotes, read_client_id
from aileron.base.trace_context import read_traceparent
from tests.api.case import ApiCase
from tests.api.test_channel import HOST, Line, head, status

_TRACE, _SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_PARENT = f"00-{_TRACE}-{_SPAN}-01"


class RequestCase(ApiCase):
    """The agent site behind its channel, and what is logged of its requests."""

    def setUp(self) -> None:
        super().setUp()
        self.open = self.open_session()
        rules, ids = SiteRules([HOST]), self.fresh_id
        self.site = GuardedSite(self.agent_side[0], rules, self.clock, ids=ids)
        self.line = Line(self.site)
        self.all: list[Any] = []
        observe: Any = self.all.append
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def requests(self) -> list[dict[str, Any]]:
        """What is logged of requests so far, as the fields of each."""
        return [dict(event) for event in self.all if event.get("log_namespace") == NAMESPACE]

    def say(self, target: str, *fields: str, body: bytes = b"", method: str = "GET") -> dict[str, Any]:
        """Send a request, and return what was logged of it. The answer names the same id."""
        if body:
            fields = (*fields, "Content-Type: application/json", f"Content-Length: {len(body)}")
        heard = self.line.say(head(*fields, target=target, method=method) + body)
        event = self.requests()[-1]
        self.assertIn(f"\r\nX-Request-Id: {event['request']}\r\n".encode(), heard.partition(b"\r\n\r\n")[0] + b"\r\n")
        self.assertEqual(event["status"], status(heard))
        return event


class LoggedTests(RequestCase):
    """The event of a request."""

    def test_route(self) -> None:
        """It has the name of the route, and nothing of the URL; each request has another id."""
        first = self.say("/v1/health", "Authorization: Bearer canary")
        second = self.say("/v1/runs/canary/elsewhere", "Authorization: Bearer canary")
        self.assertEqual((first["method"], first["route"], first["status"]), ("GET", "health", 200))
        self.assertEqual((second["route"], second["status"]), ("none", 404))
        self.assertNotEqual(first["request"], second["request"])
        self.assertNotIn("canary", str(self.requests()))

    def test_run(self) -> None:
        """The session and the run are named, also by a later request about a run."""
        token = self.open["token"]
        body = json.dumps({"args": {"text": "canary"}}).encode()
        fields = (f"Authorization: Bearer {token}", "Prefer: wait=0")
        event = self.say("/v1/actions/ship-update/run", *fields, body=body, method="POST")
        self.assertEqual((event["route"], event["status"]), ("run_action", 202))
        self.assertEqual(event["session"], self.open["id"])
        self.assertEqual(event["run"], "run-1")
        run_id = "01JZZZZZZZZZZZZZZZZZZZZZZZ"
        self.assertEqual(self.say(f"/v1/runs/{run_id}", fields[0])["run"], run_id)
        self.assertIsNone(self.say("/v1/runs/canary", fields[0])["run"])
        self.assertNotIn("canary", str(self.requests()))
        self.assertNotIn(token, str(self.requests()))

    def test_refused(self) -> None:
        """A request that is refused before its route has an id too, and no method if its head cannot be read."""
        heard = self.line.say(b"GET /secret-path\r\n\r\n")
        (event,) = self.requests()
        self.assertIn(f"\r\nX-Request-Id: {event['request']}\r\n".encode(), heard)
        self.assertEqual((event["method"], event["route"], event["status"]), ("other", "refused", 400))
        self.assertNotIn("secret-path", str(event))

    def test_disconnected(self) -> None:
        """A client that leaves while it waits is logged once, without a status."""
        body = b"{}"
        fields = (f"Authorization: Bearer {self.open['token']}", "Prefer: wait=60", "Content-Type: application/json")
        said = head(*fields, "Content-Length: 2", target="/v1/actions/ship-update/run", method="POST")
        self.assertEqual(self.line.say(said + body), b"")
        self.clock.advance(2.5)
        self.line.leave()
        (event,) = self.requests()
        self.assertEqual((event["route"], event["status"], event["seconds"]), ("run_action", None, 2.5))

    def test_foreign(self) -> None:
        """The client's own ids are logged as such, if they are well-formed; ours is never theirs."""
        event = self.say("/v1/health", "X-Request-Id: req-42", f"traceparent: {_PARENT}")
        self.assertEqual((event["client_request"], event["client_trace"]), ("req-42", _TRACE))
        self.assertNotEqual(event["request"], "req-42")
        event = self.say("/v1/health", f"X-Request-Id: {self.open['token']}", "traceparent: 00-x")
        self.assertEqual((event["client_request"], event["client_trace"]), (None, None))

    def test_in_process(self) -> None:
        """A request of the daemon's own MCP server is logged alike."""
        parent = read_traceparent([_PARENT.encode()])
        arguments: dict[str, Any] = {"query": {}, "body": b"", "prefer_seconds": None, "parent": parent}
        asked = self.routes.ask(self.open["token"], "GET", ["v1", "health"], **arguments)
        self.successResultOf(Deferred.fromCoroutine(asked))
        self.assertEqual([(each["route"], each["client_trace"]) for each in self.requests()], [("health", _TRACE)])


class ForeignTests(SynchronousTestCase):
    """What clients send."""

    def test_client_ids(self) -> None:
        """One short plain value is taken, anything else is none."""
        for value in (b"a", b"0" * 64, b"1f4c-9.a_Z"):
            self.assertEqual(read_client_id([value]), value.decode())
        for bad in ([], [b"a", b"b"], [b""], [b"0" * 65], [b"a b"], [b"a\tb"], [b"\xff"], [b"ail_a_x"], [b"a\n"]):
            self.assertIsNone(read_client_id(bad), bad)

    def test_traceparent(self) -> None:
        """A valid value is taken, of a later version as well; zeros, capitals and repeated headers are not."""
        found = read_traceparent([_PARENT.encode()])
        assert found is not None
        self.assertEqual((found.trace_id, found.span_id, found.sampled), (_TRACE, _SPAN, True))
        self.assertIsNotNone(read_traceparent([f"01-{_TRACE}-{_SPAN}-00-more".encode()]))
        bad = (
            *(f"ff-{_TRACE}-{_SPAN}-01", f"00-{_TRACE}-{_SPAN}-01-more", f"00-{'0' * 32}-{_SPAN}-01"),
            *(f"00-{_TRACE}-{'0' * 16}-01", f"00-{_TRACE.upper()}-{_SPAN}-01", f"00-{_TRACE}-{_SPAN}", "", "\xb2"),
            f"01-{_TRACE}-{_SPAN}-01-{'x' * 300}",
        )
        for value in bad:
            self.assertIsNone(read_traceparent([value.encode("latin-1")]), value)
        self.assertIsNone(read_traceparent([_PARENT.encode()] * 2))

    @given(st.lists(st.binary(), max_size=2))
    def test_any(self, lines: list[bytes]) -> None:
        """Nothing that a client sends raises, and what is taken is plain."""
        found, parent = read_client_id(lines), read_traceparent(lines)
        self.assertTrue(found is None or (found.isascii() and found.isprintable() and len(found) <= 64))
        self.assertTrue(parent is None or int(parent.trace_id, 16))

    @given(st.text())
    def test_runs(self, text: str) -> None:
        """Only what has the form of a run's id is noted as one."""
        notes = RequestNotes()
        notes.note_run(text)
        self.assertTrue(notes.run_id is None or len(text) == 26)
