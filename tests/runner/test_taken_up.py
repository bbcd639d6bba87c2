"""Whatever waits is taken up by somebody, at whatever moment it began to wait."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.model.connectors import Outcome
from aileron.model.errors import StoreUnavailable
from aileron.model.faults import Fault
from aileron.model.interfaces.store import IRuns
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Run, RunState
from aileron.model.vault import VaultState
from aileron.testing import RunsProxy

from .kit import AGENT, OPERATOR, step
from .previewed import MAIL, PREVIEW, PreviewedCase
from .test_interrupted import TroubledCase

_TROUBLE = Outcome(fault=Fault("network_error", "Nobody answers.", "external", True), sent=False)


class _Lists(RunsProxy):
    """Lists runs, a page of C{most} at a time, after failing with each of C{failures}."""

    def __init__(self, runs: IRuns, most: int, failures: list[Exception]) -> None:
        super().__init__(runs)
        self._most, self._failures = most, failures

    async def list(self, query: RunQuery) -> Page[Run]:
        """See L{IRuns}."""
        if self._failures:
            raise self._failures.pop()
        page: Page[Run] = await self.original.list(evolve(query, limit=self._most))
        return page


class _SlowAnswers(RunsProxy):
    """Runs as they are; the first look at one is answered only when the test says so, by what stood there then."""

    def __init__(self, runs: IRuns) -> None:
        super().__init__(runs)
        self.answer, self._first = Deferred[None](), True

    async def get(self, run_id: str) -> Run | None:
        """See L{IRuns}."""
        found: Run | None = await self.original.get(run_id)
        slow, self._first = self._first, False
        if slow:
            await self.answer
        return found


class TroubledTests(TroubledCase):
    """What is to go further while somebody looks, while the vault is away, or while it is paused."""

    def test_approved_after_the_look(self) -> None:
        """It begins, though what that look read is older than its approval."""
        run = self.submit()
        slow = _SlowAnswers(self.store.runs)
        self.runner.submission._runs.table = slow
        self.runner.decisions._begin(run)
        self.approve(run)
        slow.answer.callback(None)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_open_again_before_it_is_written(self) -> None:
        """A run goes on that met a vault which was there again before its waiting was written."""
        self.runner.check_changes()
        run = self.submit()
        self.approve_up_to_the_start(run)
        self.vault._state = VaultState.LOST
        self.step_until_writing()
        self.vault._state = VaultState.UNLOCKED
        writing = self.pool.todo.popleft()
        self.runner.check_changes()
        while self.pool.todo:  # whoever reads is faster
            self.pool.step()
        self.pool.todo.append(writing)
        self.pool.release()
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_unreadable_at_that_look(self) -> None:
        """Where what waits cannot be read when the vault is there, a later look takes it up."""
        (run,) = self.waiting(1)
        self.runner.submission._runs.table = _Lists(self.store.runs, 1000, [StoreUnavailable("Not now.")])
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        self.runner.check_changes()
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_very_many(self) -> None:
        """All that waits is taken up, however many pages it fills."""
        runs = self.waiting(3)
        self.runner.submission._runs.table = _Lists(self.store.runs, 1, [])
        self.runner.check_changes()
        self.assertEqual([self.state(run) for run in runs], [RunState.COMPLETED] * 3)

    def waiting(self, number: int) -> list[Run]:
        """Runs that wait for the vault, which is there again by now."""
        self.runner.check_changes()
        runs = [self.submit("gated", {"text": f"number {each}"}) for each in range(number)]
        for run in runs:
            self.approve_up_to_the_start(run)
            self.vault._state = VaultState.LOST
            self.pool.release()
            self.vault._state = VaultState.UNLOCKED
            self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        return runs

    def test_not_sent(self) -> None:
        """A pause that comes while the next attempt is written down is answered, and then nothing more leaves."""
        self.connector.script.append(_TROUBLE)
        run = self.submit("open")
        self.pool.hold()
        self.clock.advance(1.0)
        pausing = self.later(self.runner.limits.pause(None, None, OPERATOR))
        self.pool.release()
        self.successResultOf(pausing)
        self.assertEqual(len(self.connector.sendings), 1)
        self.sync(self.runner.limits.resume(None, OPERATOR))
        self.assertEqual((len(self.connector.sendings), self.state(run)), (2, RunState.COMPLETED))

    def test_its_time_is_up(self) -> None:
        """Where that is not lifted in time the run ends as what was sent did; the other is known as not sent."""
        self.offer("again", step("put"), gated=False)
        self.connector.script.append(evolve(_TROUBLE, sent=True, classified=False))
        run = self.submit("again")
        self.pool.hold()
        self.clock.advance(1.0)
        pausing = self.later(self.runner.limits.pause(None, None, OPERATOR))
        self.pool.release()
        self.successResultOf(pausing)
        self.clock.pump([1.0] * int(timedelta(minutes=2).total_seconds()))
        ended = self.now(run)
        assert ended.fault is not None
        self.assertEqual((ended.state, ended.fault.kind), (RunState.UNKNOWN, "network_error"))
        _, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([(row.state, row.sent) for row in attempts], [("unknown", True), ("failed", False)])


class PreviewTests(PreviewedCase):
    """What is approved again, taken back or decided while previews are asked for."""

    def test_edited_meanwhile(self) -> None:
        """What begins is recorded as what was approved last, not as what it was when its preview was asked for."""
        self.offer("gated", step("post"), expires=PREVIEW.replace("${args.text}", "a mail"))
        run, late = self.between()
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.sync(self.runner.limits.resume(None, OPERATOR))
        self.sync(self.runner.decisions.edit(run.id, {"text": "edited"}, None, OPERATOR))
        self.approve(run)
        late.callback(Outcome(MAIL))
        self.clock.advance(5.0)
        self.assertIs(self.state(run), RunState.COMPLETED)
        (started,) = self.recorded("execution.started", run)
        self.assertEqual(started.payload["arguments"], {"text": "edited"})

    def test_not_fetched(self) -> None:
        """However many are made and taken back, no service is asked for more than had their turn before."""
        self.say_nothing()
        for number in range(30):
            run = self.submit("gated", {"text": f"number {number}"})
            self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        last = self.submit("gated", {"text": "the last"})
        self.assertEqual(self.looks(), 6)
        self.show()
        self.clock.advance(5.0)
        self.assertEqual(self.looks(), 7)
        self.assertEqual(self.preview(last)["status"], "shown")

    def test_operator_first(self) -> None:
        """What the operator decides meanwhile waits for none of them."""
        self.offer("held", step("post"), expires="undo_seconds = 60\n" + PREVIEW)
        begin = [self.submit("held", {"text": f"number {each}"}) for each in range(8)]
        for run in begin:
            self.approve(run)
        waits = self.submit()
        digest = self.shown(waits).digest
        self.say_nothing()
        self.clock.advance(60.0)
        self.show()
        self.assertIs(self.decide(waits, digest).run.state, RunState.APPROVED)
        self.clock.pump([5.0] * 4)
        self.assertNotIn(RunState.APPROVED, [self.state(run) for run in begin])
