"""One action, run for one call; and what becomes of it when the call is cancelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonUnreachable
from aileron.mcp._definitions import read_definitions
from aileron.mcp._texts import Pending, ToolResult
from aileron.mcp._tools import CallOptions
from aileron.mcp.waiting.running import MOST, ActionRunner, Attempts, Withdrawals
from tests.mcp.case import DaemonCase, action, fault

URL = "http://127.0.0.1:9/approvals/R"
WAITS = {"status": "pending_approval", "run_id": "R", "approval_id": "R", "review_url": URL, "message": "Wait."}
DONE = {"run_id": "R", "audit_id": "A", "result": {"output": "ok", "steps": {}}}
LATE = CallOptions("K", 45)
EARLY = evolve(LATE, early=True)


class RunningCase(DaemonCase):
    """A daemon that answers as a test says."""

    def setUp(self) -> None:
        super().setUp()
        self.withdrawals = Withdrawals(self.daemon)
        self.running = ActionRunner(self.daemon, self.clock, self.withdrawals)

    def run_it(self, options: CallOptions, **more: Any) -> Deferred[ToolResult]:
        """Run an action that is gated unless said otherwise."""
        [definition] = read_definitions([action(**{"gated": True, **more})])
        return Deferred.fromCoroutine(self.running.run(definition, {}, options))

    def withdraw(self) -> Deferred[None]:
        """The client cancelled it."""
        return Deferred.fromCoroutine(self.withdrawals.withdraw("K"))

    @property
    def waits(self) -> list[str | None]:
        """How long each request to run would wait."""
        return [asked.headers.get("prefer") for asked in self.site.asked if asked.path.endswith("/run")]


class EarlyTests(RunningCase):
    """A client that can show a person where to decide."""

    def test_early(self) -> None:
        """It hears at once that a person is waited for, and where; and calls again as the same run."""
        first = self.run_it(EARLY)
        self.site.answer(202, WAITS)
        self.assertEqual(self.successResultOf(first).pending, Pending("R", "Ship update", URL))
        second = self.run_it(LATE)
        self.site.answer(200, DONE)
        self.assertEqual(self.successResultOf(second), ToolResult("ok"))
        self.assertEqual({asked.body["idempotency_key"] for asked in self.site.asked}, {"K"})
        self.assertEqual(self.waits, ["wait=0", "wait=45"])

    def test_granted(self) -> None:
        """What a grant allows is not shown to anyone: it is waited for as any other."""
        calling = self.run_it(EARLY)
        self.site.answer(202, {"status": "running", "run_id": "R"})
        self.site.answer(200, DONE)
        self.assertEqual(self.successResultOf(calling), ToolResult("ok"))

    def test_refused_at_once(self) -> None:
        """A refusal is the answer, and is not asked for twice."""
        calling = self.run_it(EARLY)
        self.site.answer(403, fault("approval_denied"))
        self.assertTrue(self.successResultOf(calling).is_error)
        self.assertEqual(len(self.waits), 1)

    def test_one_request(self) -> None:
        """An action that asks nobody, and a client that shows nothing, cost one request."""
        for options, gated in [(EARLY, False), (LATE, True), (LATE, False)]:
            before = len(self.site.asked)
            calling = self.run_it(options, gated=gated)
            self.site.answer(200, DONE)
            self.successResultOf(calling)
            self.assertEqual(len(self.site.asked) - before, 1)


class StoppingTests(RunningCase):
    """A daemon that stops, while another one answers at the same address."""

    def test_refused(self) -> None:
        """A call that it refuses is made again as the same run, and goes on at the other."""
        calling = self.run_it(LATE)
        self.site.answer(503, fault("store_unavailable", stopping=True))
        self.clock.advance(1)
        self.site.answer(200, DONE)
        self.assertEqual(self.successResultOf(calling), ToolResult("ok"))
        self.assertEqual({asked.body["idempotency_key"] for asked in self.site.asked}, {"K"})

    def test_left(self) -> None:
        """A wait that it ends goes on at the other, for the rest of its time."""
        calling = self.run_it(LATE)
        self.site.answer(202, {**WAITS, "retry_after": 0})
        self.clock.advance(1)
        self.site.answer(200, DONE)
        self.assertEqual(self.successResultOf(calling), ToolResult("ok"))
        self.assertEqual(self.waits, ["wait=45", "wait=44"])

    def test_bounded(self) -> None:
        """If no other one answers, the call ends soon, with what is known."""
        refused, left = self.run_it(LATE), self.run_it(evolve(LATE, key="L"))
        for _ in range(5):
            self.site.answer(503, fault("store_unavailable", stopping=True))
            self.site.answer(202, {**WAITS, "retry_after": 0})
            self.clock.advance(2)
        self.assertTrue(self.successResultOf(refused).is_error)
        self.assertEqual(self.successResultOf(left).pending, Pending("R", "Ship update", URL))


class WithdrawnTests(RunningCase):
    """A call that its client cancels."""

    def cancel(self, calling: Deferred[ToolResult]) -> None:
        """As the SDK does."""
        calling.cancel()
        self.failureResultOf(calling, CancelledError)
        self.site.agent.flush()

    @property
    def asked_to_withdraw(self) -> int:
        """How often."""
        return sum(asked.path.endswith("/R/withdraw") for asked in self.site.asked)

    def test_taken_back(self) -> None:
        """Where the action says so, the run is taken back, and a reason is given; a decision that came first stands."""
        for status, body in [(200, {"status": "cancelled", "run_id": "R"}), (409, fault("conflict"))]:
            calling = self.run_it(LATE, on_cancel="withdraw")
            self.site.answer(202, WAITS)
            self.cancel(calling)
            withdrawing = self.withdraw()
            self.assertEqual(self.site.asked[-1].path, "/v1/action-approvals/R/withdraw")
            self.assertIn("cancelled", self.site.asked[-1].body["reason"])
            self.site.answer(status, body)
            self.successResultOf(withdrawing)

    def test_before_its_answer(self) -> None:
        """Cancelled while it is not known which run it is, it is taken back as soon as it is."""
        calling = self.run_it(LATE, on_cancel="withdraw")
        self.cancel(calling)
        withdrawing = self.withdraw()
        self.assertNoResult(withdrawing)
        self.site.answer(202, WAITS)
        self.assertEqual(self.asked_to_withdraw, 1)
        self.site.answer(200, {"status": "cancelled", "run_id": "R"})
        self.successResultOf(withdrawing)

    def test_kept(self) -> None:
        """Otherwise only the wait ends."""
        for result in ({}, {"on_cancel": "keep"}, {"on_cancel": "?"}):
            calling = self.run_it(LATE, **result)
            self.cancel(calling)
            self.successResultOf(self.withdraw())
        self.assertEqual(self.asked_to_withdraw, 0)

    def test_answered(self) -> None:
        """What was answered is not taken back any more, whether it succeeded, failed or waits."""
        for status, body in [(200, DONE), (403, fault("approval_denied"))]:
            calling = self.run_it(LATE, on_cancel="withdraw")
            self.site.answer(status, body)
            self.successResultOf(calling)
            self.successResultOf(self.withdraw())
        calling = self.run_it(LATE, on_cancel="withdraw")
        self.site.answer(202, WAITS)
        self.site.answer(202, WAITS)
        self.successResultOf(calling)
        self.successResultOf(self.withdraw())
        self.assertEqual(self.asked_to_withdraw, 0)

    def test_nothing_to_take_back(self) -> None:
        """Where the first request brought a result, a refusal or nothing, there is nothing to take back."""
        endings: list[Callable[[], None]] = [
            lambda: self.site.answer(200, DONE),
            lambda: self.site.answer(403, fault("approval_denied")),
            self.site.hang_up,
        ]
        for finish in endings:
            calling = self.run_it(evolve(LATE, wait_seconds=0), on_cancel="withdraw")
            self.cancel(calling)
            withdrawing = self.withdraw()
            finish()
            for _ in range(20):
                if self.site.waiting:
                    self.site.hang_up()
                self.clock.advance(0.2)
            self.successResultOf(withdrawing)
        self.assertEqual(self.asked_to_withdraw, 0)

    def test_bounded(self) -> None:
        """Cancelled calls of which nobody hears again are forgotten, the oldest first; at the end, all are."""
        for number in range(MOST + 3):
            calling = self.run_it(CallOptions(f"K{number}", 45), on_cancel="withdraw")
            self.cancel(calling)
        self.assertEqual(self.site.waiting, MOST)
        self.withdrawals.stop()
        self.withdrawals.stop()
        self.site.agent.flush()
        self.assertEqual(self.site.waiting, 0)


class AttemptsTests(SynchronousTestCase):
    """A call that goes on through the daemon's restart."""

    def test_somebody_else(self) -> None:
        """Who is not the daemon is not asked again, but a call that may have arrived is held on to, and told so."""
        cut_off = DaemonUnreachable("cut off", sent=True)
        somebody_else = DaemonUnreachable("somebody else", misdirected=True)
        for lost, ends in (
            ([somebody_else], (False, True)),
            ([cut_off, *[somebody_else] * 2], None),
            ([cut_off, *[somebody_else] * 100], (True, True)),
        ):
            clock, left = Clock(), iter(lost)

            async def ask(_left: float, left: Iterator[DaemonUnreachable] = left) -> str:
                for error in left:
                    raise error
                return "done"

            answering = Deferred.fromCoroutine(Attempts(clock, 60).answer(ask))
            if ends != (False, True):
                self.assertNoResult(answering)
            clock.pump([1] * 70)
            if ends is None:
                self.assertEqual(self.successResultOf(answering), "done")
            else:
                error = self.failureResultOf(answering, DaemonUnreachable).value
                self.assertEqual((error.sent, error.misdirected), ends)
