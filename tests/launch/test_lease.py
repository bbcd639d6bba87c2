"""A launcher stands behind its session."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import Daemon, DaemonClient, Lease
from aileron.client._agent_site import LEASE_PAUSE_SECONDS
from aileron.errors import NotFound, Unauthorized
from aileron.testing import ScriptedSite
from aileron.values import to_json

from .test_launch import LaunchCase


class LeaseTests(SynchronousTestCase):
    """Holding, by hand."""

    def setUp(self) -> None:
        self.site, self.clock, self.key, self.running = ScriptedSite(), Clock(), "ail_l_one", True
        self.holding = Deferred.fromCoroutine(Lease(self.daemon, self.clock).hold("S"))
        self.addCleanup(self.abandon)

    def abandon(self) -> None:
        """Let go."""
        self.holding.addErrback(lambda _: None)
        self.holding.cancel()

    def daemon(self) -> Daemon | None:
        """The daemon as it is now."""
        return (
            Daemon(DaemonClient(self.site.agent, "http://127.0.0.1:9", self.key, self.clock)) if self.running else None
        )

    def test_held(self) -> None:
        """The lease is asked for with the launch key, and stays asked for."""
        [asked] = self.site.asked
        self.assertEqual((asked.method, asked.path), ("GET", "/v1/sessions/S/lease"))
        self.assertEqual(asked.headers["authorization"], "Bearer ail_l_one")
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.clock.advance(10)
        self.assertEqual((len(self.site.asked), self.site.waiting), (1, 1))
        self.assertNoResult(self.holding)

    def test_restarted(self) -> None:
        """What is cut off is asked for again, with the key of the daemon that runs then; while none does, of none."""
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.site.hang_up()
        self.running = False
        self.clock.pump([LEASE_PAUSE_SECONDS] * 3)
        self.assertEqual(len(self.site.asked), 1)
        self.running, self.key = True, "ail_l_two"
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertEqual(self.site.asked[-1].headers["authorization"], "Bearer ail_l_two")
        self.site.answer(401, {"error": to_json(Unauthorized("Nobody knows this.").fault())})
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertEqual(len(self.site.asked), 3)

    def test_over(self) -> None:
        """Of a session that is no more nothing is held."""
        self.site.answer(404, {"error": to_json(NotFound("There is no such session.").fault())})
        self.clock.advance(LEASE_PAUSE_SECONDS)
        self.assertIsNone(self.successResultOf(self.holding))


class LaunchedTests(LaunchCase):
    """A whole launch."""

    def test_lease(self) -> None:
        """A session is opened with a lease, held while the agent runs, and let go; at its end it is summed up."""
        self.lease = Lease(
            lambda: Daemon(DaemonClient(self.site.agent, "http://d", "ail_l_new", self.machine)), self.machine
        )
        launching = self.running()
        self.assertEqual(self.site.asked[0].body["lease"], True)
        self.assertEqual(self.site.asked[1].path, "/v1/sessions/S/lease")
        self.site.begin(200, b"event: held\ndata: {}\n\n")
        self.machine.exit(0)
        self.assert_ended(0)
        self.site.answer(200, b"")  # the lease, whose request nobody waits for any more
        tally = {"calls": 3, "waiting": 1, "approvals": 1, "denials": 0, "effects": 1, "in_doubt": 0, "seconds": 61}
        traffic = {"requests": 1, "input_tokens": 7, "output_tokens": 8}
        self.site.answer(200, {"id": "S", "summary": tally, "gateway": traffic})
        self.assertEqual(self.successResultOf(launching), 0)
        self.assertEqual(
            self.said[-3:],
            [
                "aileron: session S ended after 1 min 1 s: 3 calls, 1 approved, 1 done, 1 waiting for you",
                "aileron: to its models: 1 request, 7 tokens in, 8 out",
                "aileron: what waits can still be decided: aileron approval list",
            ],
        )
