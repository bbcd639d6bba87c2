"""The daemon's part: ended runs become spans, and a collector's token is read from a file of the operator's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.posting import PostAnswer
from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.tracing.export import SpanExporter
from aileron.features.tracing.running import RunFollower, RunningTracing, _read_headers
from aileron.features.tracing.settings import TracingSettings
from aileron.model.authority import PendingLimits
from aileron.model.errors import InvalidRequest
from aileron.model.runs import RunState
from aileron.model.traces import RequestedRun
from aileron.testing import example_ask, example_event, example_run, example_transition, memory_store

_LIMITS = PendingLimits(100, 100)


class FollowerTests(SynchronousTestCase):
    """Runs over a real store."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_760_000_000.0)
        self.store = memory_store(self, self.clock)
        self.bodies: list[bytes] = []
        self.leads = True
        self.exporter = SpanExporter(self.post, {}, self.clock)
        self.follower = RunFollower(self.store.audit, self.store.runs, self.exporter, self.clock, lambda: self.leads)
        self.running = RunningTracing(self.exporter, self.follower, self.clock)
        self.successResultOf(Deferred.fromCoroutine(self.follower.begin()))
        following = Deferred.fromCoroutine(self.follower.follow())
        following.addErrback(lambda failure: failure.trap(CancelledError))
        self.addCleanup(following.cancel)

    async def post(self, body: bytes) -> PostAnswer:
        """Take a body."""
        self.bodies.append(body)
        return PostAnswer(200, None, b"")

    def run_once(self, run_id: str) -> None:
        """A run is requested, denied and over."""
        run = example_run(run_id)
        pending = example_transition(run, RunState.PENDING, "approval.requested", ask=example_ask())
        received = self.store.runs.receive(run, [pending], _LIMITS)
        run = self.successResultOf(Deferred.fromCoroutine(received))[0]
        event = example_event("approval.denied", run.id)
        denied = example_transition(run, RunState.DENIED, events=(event,), audit_id=event.id)
        self.successResultOf(Deferred.fromCoroutine(self.store.runs.apply(denied)))

    def sent(self) -> str:
        """What was sent by now, with what waited until now."""
        self.successResultOf(Deferred.fromCoroutine(self.exporter.flush()))
        return b"".join(self.bodies).decode()

    def test_ended(self) -> None:
        """A run that ends is sent, by one of several daemons only."""
        self.run_once("run-1")
        self.assertIn('"run-1"', self.sent())
        self.leads = False
        self.run_once("run-2")
        self.assertNotIn('"run-2"', self.sent())

    def test_requested(self) -> None:
        """The request that led to a run is sent by the daemon that got it."""
        self.leads = False
        self.running.run_requested(RequestedRun("run-3", "ship-update", None, "r", self.clock.seconds(), None))
        self.assertIn('"run-3"', self.sent())

    def test_stopped(self) -> None:
        """What waits at the end is sent once more, for a short time."""
        self.run_once("run-1")
        self.successResultOf(self.running.stop())
        self.assertEqual(len(self.bodies), 1)
        self.exporter.add(())
        never: Deferred[PostAnswer] = Deferred()
        self.exporter._post = lambda _: never
        self.run_once("run-4")
        self.running.run_requested(RequestedRun("run-4", "x", None, "r", 0.0, None))
        stopping = self.running.stop()
        self.assertNoResult(stopping)
        self.clock.advance(2.1)
        self.successResultOf(stopping)


class SettingsTests(SynchronousTestCase):
    """The keys of config.yaml."""

    def read(self, text: str) -> Mapping[str, object]:
        """The features' settings."""
        return read_config(text, FeatureSet()).of_features

    def test_keys(self) -> None:
        """An endpoint is https, or at this machine; a user or a query is refused."""
        found = self.read("tracing:\n  endpoint: https://c.example.org/v1/traces\n  service_name: team\n")["tracing"]
        self.assertEqual(found, TracingSettings("https://c.example.org/v1/traces", "team"))
        for bad in ("ftp://c.example.org", "http://c.example.org/", "https://u:p@c.example.org", "https://c.org/?a=b"):
            self.assertRaises(NotConfig, self.read, f"tracing:\n  endpoint: {bad}\n")
        self.assertRaises(NotConfig, self.read, "tracing:\n  service_name: 'a b'\n")

    def test_token(self) -> None:
        """The token comes from a file; without a usable one there is an error and no header."""
        path = Path(self.mktemp()).absolute()
        self.assertEqual(_read_headers(TracingSettings()), {})
        self.assertRaises(InvalidRequest, _read_headers, TracingSettings(token_file=path))
        path.touch(0o600)
        self.assertRaises(InvalidRequest, _read_headers, TracingSettings(token_file=path))
        path.write_text("abc\n")
        self.assertEqual(_read_headers(TracingSettings(token_file=path)), {"Authorization": "Bearer abc"})
