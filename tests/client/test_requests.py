"""One request to the daemon."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.iweb import IAgent

from aileron.client import (
    AnswerNotUnderstood,
    Daemon,
    DaemonAnswer,
    DaemonClient,
    DaemonFault,
    DaemonUnreachable,
    OpenedSession,
)
from tests.scripted_site import RefusingAgent, ScriptedSite

ENVELOPE = {
    "error": {
        "class": "external_api_error",
        "message": "Slack answered channel_not_found",
        "retriable": False,
        "boundary": "external",
        "run_id": "R1",
        "audit_id": "A1",
        "details": {"status": 200},
    }
}


class ClientCase(SynchronousTestCase):
    """A client to a site in memory."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.site = ScriptedSite()

    def client(self, agent: IAgent | None = None, token: str | None = "ail_a_secret") -> DaemonClient:
        """A client that ends at the site, or wherever C{agent} leads."""
        return DaemonClient(agent or self.site.agent, "http://127.0.0.1:9/", token, self.clock)

    def ask(self, wait_seconds: float = 0) -> Deferred[DaemonAnswer]:
        """Ask for the status."""
        return Deferred.fromCoroutine(self.client().ask("GET", "v1", "status", wait_seconds=wait_seconds))


class RequestTests(ClientCase):
    """What leaves."""

    def test_bearer(self) -> None:
        """The token travels as bearer and nowhere else, shows in no repr, and where there is none nothing is sent."""
        for token, sent in (("ail_a_secret", "Bearer ail_a_secret"), (None, None)):
            self.site.answer(200, {})
            client = self.client(token=token)
            self.successResultOf(Deferred.fromCoroutine(client.ask("GET", "v1", "status")))
            asked = self.site.asked[-1]
            self.assertEqual(asked.headers.get("authorization"), sent)
            self.assertNotIn("ail_a_secret", asked.path + repr(client))

    def test_path_and_query_are_encoded(self) -> None:
        """Whatever a name holds stays one segment, what is not given is left out of the query, and a body is JSON."""
        self.site.answer(200, {})
        client = self.client()
        asking = client.ask("GET", "v1", "actions", "../x?y/z", query={"wait": 3, "generation": None, "q": "a b&c"})
        self.successResultOf(Deferred.fromCoroutine(asking))
        self.assertEqual(self.site.asked[0].path, "/v1/actions/..%2Fx%3Fy%2Fz?wait=3&q=a+b%26c")
        self.site.answer(200, {})
        self.successResultOf(Deferred.fromCoroutine(self.client().ask("POST", "v1", "sessions", body={"agent": "é"})))
        asked = self.site.asked[-1]
        self.assertEqual((asked.method, asked.body), ("POST", {"agent": "é"}))
        self.assertEqual(asked.headers["content-type"], "application/json")

    def test_malformed_address_or_token(self) -> None:
        """A mis-wired client dies when it is made, and its message repeats no token; a scheme may be in capitals."""
        for url, token in [("ftp://x", None), ("http://", None), ("http://u:p@x", None), ("http://x", "ail\r\nX: 1")]:
            with self.assertRaises(ValueError) as caught:
                DaemonClient(self.site.agent, url, token, self.clock)
            self.assertNotIn("X: 1", str(caught.exception))
        client = DaemonClient(self.site.agent, "HTTP://127.0.0.1:9/", None, self.clock)
        self.assertEqual(client.base_url, "http://127.0.0.1:9")


class AnswerTests(ClientCase):
    """What comes back."""

    def test_success(self) -> None:
        """A success is its status and its body, which may be empty; nothing comes before the daemon answers."""
        for status, body, read in (
            (202, {"status": "pending_approval"}, {"status": "pending_approval"}),
            (200, b"", {}),
        ):
            self.site.answer(status, body)
            self.assertEqual(self.successResultOf(self.ask()), DaemonAnswer(status, read))
        asking = self.ask(wait_seconds=30)
        self.clock.advance(29)
        self.assertNoResult(asking)
        self.site.answer(200, {"a": 1})
        self.assertEqual(self.successResultOf(asking).body, {"a": 1})

    def test_envelope(self) -> None:
        """The error envelope becomes an exception that carries all of it."""
        self.site.answer(502, ENVELOPE)
        caught = self.failureResultOf(self.ask(), DaemonFault).value
        self.assertEqual((caught.status, caught.run_id, caught.audit_id), (502, "R1", "A1"))
        self.assertEqual(caught.fault.kind, "external_api_error")
        self.assertEqual(caught.fault.details, {"status": 200})
        self.assertEqual(str(caught), "Slack answered channel_not_found")

    def test_not_a_daemon(self) -> None:
        """Whatever else answers is not taken for the daemon; what stands before one may have sent the request on."""
        for status, body in [(200, b"<html>"), (404, {}), (500, [1]), (302, {}), (400, {"error": "x"}), (200, [])]:
            self.site.answer(status, body)
            self.assertEqual(self.failureResultOf(self.ask(), AnswerNotUnderstood).value.status, status)
        for status in (502, 503, 504):
            for body in (b"<html>", b"", {"error": "upstream"}):
                self.site.answer(status, body)
                self.assertTrue(self.failureResultOf(self.ask(), DaemonUnreachable).value.sent)

    def test_too_long(self) -> None:
        """An endless answer is given up, and its connection with it."""
        self.patch(sys.modules["aileron.client._requests"], "MAX_BODY_BYTES", 100)
        asking = self.ask()
        self.site.begin(200, b"[" + b"1," * 100)
        self.failureResultOf(asking, AnswerNotUnderstood)
        self.site.agent.flush()
        self.assertEqual(self.site.waiting, 0)

    @settings(deadline=None, max_examples=40)
    @given(st.integers(200, 599), st.binary(max_size=60))
    def test_wild(self, status: int, content: bytes) -> None:
        """No answer makes anything but a result or one of our exceptions."""
        site = ScriptedSite()
        site.answer(status, content)
        client = DaemonClient(site.agent, "http://127.0.0.1:9", None, self.clock)
        results: list[object] = []
        Deferred.fromCoroutine(client.ask("GET", "x")).addBoth(results.append)
        found = getattr(results[0], "value", results[0])
        self.assertIsInstance(found, (DaemonAnswer, AnswerNotUnderstood, DaemonFault, DaemonUnreachable))


class NoAnswerTests(ClientCase):
    """What does not come back."""

    def test_refused(self) -> None:
        """A refused connection says so, and that nothing was sent."""
        asking = Deferred.fromCoroutine(self.client(RefusingAgent()).ask("GET", "v1", "status"))
        caught = self.failureResultOf(asking, DaemonUnreachable).value
        self.assertFalse(caught.sent)
        self.assertIn("http://127.0.0.1:9", str(caught))

    def test_cut_off(self) -> None:
        """A connection that is cut says that the request may have arrived, even with half an answer."""
        for begun in (None, b"{}"):
            asking = self.ask()
            if begun is not None:
                self.site.begin(200, begun)
                self.assertNoResult(asking)
            self.site.hang_up()
            self.assertTrue(self.failureResultOf(asking, DaemonUnreachable).value.sent)

    def test_deadline(self) -> None:
        """The deadline is the wait that was asked for and 15 s more, though an answer began; the connection ends."""
        for begun, wait in ((None, 30), (b"{", 0)):
            asking = self.ask(wait_seconds=wait)
            if begun is not None:
                self.site.begin(200, begun)
            self.clock.advance(wait + 14.9)
            self.assertNoResult(asking)
            self.clock.advance(0.2)
            self.assertTrue(self.failureResultOf(asking, DaemonUnreachable).value.sent)
            self.site.agent.flush()
            self.assertEqual(self.site.waiting, 0)

    def test_cancel(self) -> None:
        """Cancelling ends the connection and is no fault of the daemon."""
        asking = self.ask(wait_seconds=30)
        asking.cancel()
        self.failureResultOf(asking, CancelledError)
        self.site.agent.flush()
        self.assertEqual(self.site.waiting, 0)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class MethodTests(ClientCase):
    """Calls of the agent site that are more than their route."""

    def test_session(self) -> None:
        """A session is opened with what it claims, and its secrets are shown in no repr; a part of one is none."""
        daemon = Daemon(self.client())
        self.site.answer(201, {"id": "S", "token": "ail_a_x", "gateway_key": "gk", "started_at": "…"})
        opened = self.successResultOf(Deferred.fromCoroutine(daemon.open_session("opencode", "/w")))
        self.assertEqual(opened, OpenedSession("S", "ail_a_x", "gk"))
        self.assertEqual(self.site.asked[0].body, {"agent": "opencode", "working_dir": "/w"})
        self.assertNotIn("ail_a_x", repr(opened))
        self.assertNotIn("gk", repr(opened))
        self.site.answer(201, {"id": "S"})
        self.failureResultOf(Deferred.fromCoroutine(daemon.open_session("a", "/")), AnswerNotUnderstood)

    def test_run(self) -> None:
        """A run prefers the wait that is given; without one the deadline outlasts the daemon's default."""
        daemon = Daemon(self.client())
        self.site.answer(200, {})
        self.successResultOf(Deferred.fromCoroutine(daemon.run("x", {"n": 1}, "K", 45)))
        self.assertEqual(self.site.asked[-1].headers["prefer"], "wait=45")
        self.assertEqual(self.site.asked[-1].body, {"args": {"n": 1}, "idempotency_key": "K"})
        asking = Deferred.fromCoroutine(daemon.run("x", {}))
        self.assertNotIn("prefer", self.site.asked[-1].headers)
        self.assertEqual(self.site.asked[-1].body, {"args": {}})
        self.clock.advance(3600)
        self.assertNoResult(asking)
        self.site.answer(202, {})
        self.assertEqual(self.successResultOf(asking).status, 202)


class ImportTests(SynchronousTestCase):
    """What importing costs."""

    def test_light(self) -> None:
        """Importing the client loads neither a server nor a reactor."""
        code = (
            "import sys, aileron.client; sys.exit(any(n in sys.modules for n in ('klein', 'twisted.internet.reactor')))"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)
