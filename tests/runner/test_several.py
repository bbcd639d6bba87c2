"""Two daemons on one database and one vault: each takes into account what the other does; effects begin once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import cycle

from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.model.authority import LoopLimits, Pause
from aileron.model.connectors import Outcome
from aileron.model.errors import (
    ApprovalDenied,
    AuthorityChanged,
    Conflict,
    LimitExceeded,
    Paused,
    Stopping,
    StoreUnavailable,
)
from aileron.model.faults import Fault
from aileron.model.queries import RunQuery
from aileron.model.runs import Call, Run, RunState, Transition
from aileron.runner import Runner
from aileron.runner.pauses import PAUSED_ROW
from aileron.testing import RunsProxy

from .kit import AGENT, OPERATOR, manifest, step
from .test_decisions import DecidedCase
from .test_inverse import BACK, UNDO
from .test_rate_limits import FULL

_REFUSED = Outcome(fault=Fault("external_api_error", "No.", "external"), sent=True)
_SILENT = Outcome(fault=Fault("network_error", "Nobody answers.", "external"), sent=True, classified=False)


class SeveralCase(DecidedCase):
    """A second daemon beside the first."""

    shared = True

    def setUp(self) -> None:
        super().setUp()
        self.one = self.runner
        self.two = self.started()

    def started(self) -> Runner:
        runner = self.build()
        self.sync(runner.start())
        return runner

    def begun(self) -> tuple[Run, Deferred[Outcome]]:
        """A run whose effect the first daemon has begun, and its answer."""
        answer = self.unanswered()
        run = self.submit("open")
        self.assertIs(self.state(run), RunState.EXECUTING)
        return run, answer

    def overtake(self, act: Callable[[], Awaitable[object]]) -> None:
        """Have this done once just before the second daemon stores a request, when it has looked at what there is."""
        acts = [act]

        class Overtaken(RunsProxy):
            async def receive(proxy, *args: object) -> object:
                while acts:
                    await acts.pop()()
                return await proxy.original.receive(*args)

        self.two = self.build(runs=Overtaken(self.store.runs))
        self.sync(self.two.start())

    def types_of(self, run: Run) -> list[str]:
        found = self.sql("SELECT type FROM audit_events WHERE run_id = ? ORDER BY seq", run.id)
        return [str(type_) for (type_,) in found]


class StartTests(SeveralCase):
    def test_others(self) -> None:
        """A daemon that starts leaves alone what another is doing: an effect, a request, an approved run."""
        run, answer = self.begun()
        pending = self.submit("gated")
        self.started()
        self.assertEqual([self.state(each) for each in (run, pending)], [RunState.EXECUTING, RunState.PENDING])
        answer.callback(Outcome(output={"ok": True}))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_taken(self) -> None:
        """What a daemon that is gone had not begun, another begins, in its time; two that take it begin it once."""
        self.offer("held", step("post"), expires="undo_seconds = 60")
        run = self.submit("held")
        self.approve(run)
        self.sync(self.one.stop(1.0))
        for each in (self.two, self.started(), self.two):
            self.sync(each.take_over([self.now(run)]))
        self.clock.advance(59)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.clock.advance(1)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_changed_meanwhile(self) -> None:
        """A daemon that starts while another changes the vault reads it again before it takes it for an older one."""
        vault, revision = self.control.revision()
        self.sync(self.store.watermarks.put(f"vault {vault}", f"{revision + 1} 0"))
        trusted, refreshed = self.trust.trusted(), list[bool]()

        def refresh() -> None:
            refreshed.append(True)
            self.control.outdate("another", utc(self.clock.seconds()), *head)  # as the other daemon wrote it

        self.submit("gated")
        found = self.sync(self.store.audit.head())
        assert found is not None
        head: tuple[int, str] = found
        self.patch(self, "refresh_vault", refresh)
        self.started()
        self.assertEqual((len(refreshed), self.trust.trusted()), (1, trusted))
        self.assertEqual(self.sql("SELECT count(*) FROM audit_events WHERE type = 'tamper.detected'"), [(0,)])

    def test_expires(self) -> None:
        """A request of a daemon that is gone expires at the one that took it."""
        self.offer("brief", step("post"), expires='expires_after = "1h"')
        run = self.submit("brief")
        self.sync(self.one.stop(1.0))
        self.sync(self.two.take_over([self.now(run)]))
        self.clock.advance(3600)
        self.assertIs(self.state(run), RunState.EXPIRED)


class LateTests(SeveralCase):
    """The first daemon was silent, so the other took its run; then the first goes on."""

    def late(self, outcome: Outcome) -> Run:
        run, answer = self.begun()
        self.sync(self.two.take_over([self.now(run)]))
        self.assertIs(self.state(run), RunState.UNKNOWN)
        answer.callback(outcome)
        self.assertNotIn("tamper.detected", self.types_of(run))
        self.assertEqual(self.types_of(run)[-1], "execution.late_answer")
        return self.now(run)

    def test_completed(self) -> None:
        """That it succeeded is told as what came late, and the run is completed with its result."""
        run = self.late(Outcome(output={"ok": True}))
        self.assertIs(run.state, RunState.COMPLETED)
        self.assertEqual(run.result, {"output": {"ok": True}, "steps": {"only": {"ok": True}}})

    def test_failed(self) -> None:
        """So is that the service refused it."""
        run = self.late(_REFUSED)
        self.assertIs(run.state, RunState.FAILED)
        assert run.fault is not None
        self.assertEqual(run.fault.message, "No.")

    def test_doubt(self) -> None:
        """If nobody knows, it stays unknown."""
        self.assertIs(self.late(_SILENT).state, RunState.UNKNOWN)

    def test_settled_meanwhile(self) -> None:
        """If the operator has settled it, that stays, and what came late is on record."""
        run, answer = self.begun()
        self.sync(self.two.take_over([self.now(run)]))
        self.sync(self.two.reconciliation.settle(run.id, False, "looked", OPERATOR))
        answer.callback(Outcome(output={"ok": True}))
        self.assertIs(self.state(run), RunState.FAILED)
        self.assertEqual(self.types_of(run)[-1], "execution.late_answer")

    def test_not_sent(self) -> None:
        """A daemon that stood still after it had begun, for longer than its lease, sends nothing: the run fails."""
        self.may_send = False
        run = self.submit("open")
        self.assertIs(self.state(run), RunState.FAILED)
        self.assertEqual((self.fault(run).kind, len(self.connector.sendings)), ("store_unavailable", 0))

    def test_own(self) -> None:
        """A daemon does not take a run that it is carrying out itself."""
        run, answer = self.begun()
        self.sync(self.one.take_over([self.now(run)]))
        self.assertIs(self.state(run), RunState.EXECUTING)
        answer.callback(Outcome(output={"ok": True}))
        self.assertIs(self.state(run), RunState.COMPLETED)


class HeardTests(SeveralCase):
    def test_waiter(self) -> None:
        """Who waits at one daemon is told what another has done with the run."""
        run = self.submit("gated")
        waiting = self.later(self.one.submission.wait(run.id, 60))
        self.runner = self.two
        self.approve(run)
        self.assertNoResult(waiting)
        self.sync(self.one.load_recorded(frozenset({"execution.succeeded"}), frozenset({"another"})))
        self.assertNoResult(waiting)
        self.sync(self.one.load_recorded(frozenset({"execution.succeeded"}), frozenset({run.id})))
        self.assertIs(self.successResultOf(waiting).state, RunState.COMPLETED)

    def test_denied(self) -> None:
        """What was denied on one daemon is refused on the other, until the denial is lifted on either."""
        run = self.submit("gated")
        self.approve(run, approved=False)
        self.sync(self.two.load_recorded(frozenset({"approval.denied"}), frozenset({run.id})))
        self.runner = self.two
        self.fails(self.two.submission.submit(self.call("gated")), ApprovalDenied)
        self.sync(self.one.limits.forgive(run.id, OPERATOR))
        self.sync(self.two.load_recorded(None, None))
        self.submit("gated")

    def test_again(self) -> None:
        """A call that is refused because the operator changed something elsewhere is planned anew, once."""
        refusals = [AuthorityChanged("changed"), AuthorityChanged("changed"), AuthorityChanged("changed")]

        class Refusing(RunsProxy):
            async def receive(self, *args: object) -> object:
                if refusals:
                    raise refusals.pop()
                return await self.original.receive(*args)

        self.runner = self.build(runs=Refusing(self.store.runs))
        self.sync(self.runner.start())
        self.fails(self.runner.submission.submit(self.call("open")), AuthorityChanged)
        self.submit("open")
        self.assertEqual((len(refusals), len(self.connector.sendings)), (0, 1))

    def test_begins_again(self) -> None:
        """An approved run that may not begin because of that is planned anew at once, and later after some tries."""
        refusals = [AuthorityChanged("changed") for _ in range(6)]

        class Refusing(RunsProxy):
            async def apply(self, *transitions: Transition) -> Run:
                if refusals and transitions[0].end is RunState.EXECUTING:
                    raise refusals.pop()
                return await self.original.apply(*transitions)  # type: ignore[no-any-return]

        self.runner = self.build(runs=Refusing(self.store.runs))
        self.sync(self.runner.start())
        run = self.submit()
        self.approve(run)
        self.assertEqual((len(refusals), self.state(run)), (2, RunState.APPROVED))
        self.clock.advance(1)
        self.assertEqual((len(refusals), self.state(run)), (1, RunState.APPROVED))
        self.clock.advance(1)
        self.clock.advance(1)
        self.assertEqual((len(self.connector.sendings), self.state(run)), (1, RunState.COMPLETED))


class RateTests(SeveralCase):
    """The service told the first daemon to send nothing for a hundred seconds."""

    def setUp(self) -> None:
        super().setUp()
        self.connector.script.append(FULL)
        run = self.submit("gated")
        self.approve(run)
        self.assertIs(self.state(run), RunState.FAILED)
        self.connector.sendings.clear()
        self.runner = self.two

    def pass_seconds(self, seconds: float) -> None:
        """Let the database's clock go on."""
        self.sql("UPDATE rate_limits SET until = until - ?", seconds)

    def test_elsewhere(self) -> None:
        """The second daemon puts a run off as long, and begins it then."""
        run = self.submit("gated", {"text": "second"})
        self.approve(run)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.APPROVED, []))
        self.assertIn("run.scheduled", self.types_of(run))
        self.pass_seconds(101)
        self.clock.advance(101)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 1))

    def test_ungated(self) -> None:
        """A call without an approval is not sent at the second daemon either, if its time is shorter."""
        run = self.submit("open")
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.FAILED, []))
        self.assertIn("rate limit", self.fault(run).message)

    def test_over(self) -> None:
        """Once it is over by the database's clock, it does not apply."""
        self.pass_seconds(101)
        self.assertIs(self.state(self.submit("open")), RunState.COMPLETED)


class LoopTests(SeveralCase):
    """Equal calls at three daemons."""

    def setUp(self) -> None:
        super().setUp()
        self.loops = LoopLimits(same_calls=4, same_calls_of_all=6, writes_an_hour=None)
        self.daemons = cycle([self.started() for _ in range(3)])

    def call_once(self, session: str = "session-1") -> None:
        """A call at the next daemon."""
        self.sync(next(self.daemons).submission.submit(self.call("open", session=session)))

    def stopped(self, session: str = "session-1") -> str:
        error = self.fails(next(self.daemons).submission.submit(self.call("open", session=session)), LimitExceeded)
        return str(error)

    def test_session(self) -> None:
        """A session is stopped at all daemons after as many equal calls as at one, and that is on record once."""
        for _ in range(4):
            self.call_once()
        for _ in range(4):
            self.assertIn("more than 4 times", self.stopped())
        self.assertEqual(len(self.recorded("session.broken")), 1)
        self.call_once("session-2")

    def test_action(self) -> None:
        """So is an action after too many of all sessions."""
        for number in range(6):
            self.call_once(f"session-{number % 2}")
        self.assertIn("by all sessions", self.stopped("session-3"))

    def test_forgiven(self) -> None:
        """A denial that is lifted at one daemon lifts the stop at all."""
        denied = self.submit("gated")
        self.approve(denied, approved=False)
        for _ in range(4):
            self.call_once()
        self.stopped()
        self.sql("DELETE FROM call_counts")
        self.stopped()
        self.sync(self.runner.limits.forgive(denied.id, OPERATOR))
        for _ in range(3):
            self.call_once()

    def test_paused(self) -> None:
        """A call that a pause refuses does not count."""
        self.sync(self.one.limits.pause(None, None, OPERATOR))
        self.sync(self.two.load_recorded(None, None))
        self.daemons = cycle([self.one, self.two])
        for _ in range(6):
            self.fails(next(self.daemons).submission.submit(self.call("open")), Paused)
        self.assertEqual(self.sql("SELECT count(*) FROM call_counts"), [(0,)])

    def test_again(self) -> None:
        """A call that is planned anew counts once."""
        refusals = [AuthorityChanged("changed")]

        class Refusing(RunsProxy):
            async def receive(self, *args: object) -> object:
                if refusals:
                    raise refusals.pop()
                return await self.original.receive(*args)

        runner = self.build(runs=Refusing(self.store.runs))
        self.sync(runner.start())
        self.sync(runner.submission.submit(self.call("open")))
        self.assertEqual((refusals, self.sql("SELECT count(*) FROM call_counts")), ([], [(1,)]))


class PauseTests(SeveralCase):
    def hear(self, runner: Runner) -> None:
        self.sync(runner.load_recorded(frozenset({"pause.begun"}), frozenset()))

    def test_elsewhere(self) -> None:
        """A pause at one daemon holds at the other once that has read it, and so does its end."""
        self.sync(self.one.limits.pause(None, "now", OPERATOR))
        self.hear(self.two)
        self.assertEqual([each.reason for each in self.two.limits.pauses()], ["now"])
        self.fails(self.two.submission.submit(self.call()), Paused)
        waiting = self.later(self.one.limits._effects.wait_unpaused(None, 60))
        self.sync(self.two.limits.resume(None, OPERATOR))
        self.hear(self.one)
        self.assertTrue(self.successResultOf(waiting))
        self.assertEqual((self.one.limits.pauses(), self.two.limits.pauses()), ((), ()))

    def test_known(self) -> None:
        """The row that an effect is compared with is the one that this daemon wrote or read last."""
        self.assertEqual(self.two.known_pauses(), (PAUSED_ROW, None))
        self.sync(self.one.limits.pause(None, "now", OPERATOR))
        ((row,),) = self.sql("SELECT value FROM watermarks WHERE name = ?", PAUSED_ROW)
        self.assertEqual(self.one.known_pauses(), (PAUSED_ROW, row))
        self.assertEqual(self.two.known_pauses(), (PAUSED_ROW, None))
        self.hear(self.two)
        self.assertEqual(self.two.known_pauses(), (PAUSED_ROW, row))

    def test_both(self) -> None:
        """Two pauses that begin at two daemons, neither of which knows the other's, are both kept."""
        self.sync(self.one.limits.pause("session-1", None, OPERATOR))
        self.sync(self.two.limits.pause("session-2", None, OPERATOR))
        self.hear(self.one)
        for each in (self.one, self.two):
            self.assertEqual({pause.session_id for pause in each.limits.pauses()}, {"session-1", "session-2"})
        self.assertEqual(len(self.operator_limits.pauses()), 2)

    def test_at_once(self) -> None:
        """A row that another daemon writes between the reading and the writing of it is read again."""
        pauses = self.one.limits._pauses
        swap, meanwhile = pauses._watermarks.swap, [Pause(self.one.limits._runs.now(), "x", "other", "session-9")]

        class Overtaken:
            def __getattr__(_, name: str) -> object:
                return getattr(self.store.watermarks, name)

            async def swap(_, *args: str) -> bool:
                if meanwhile:
                    await self.two.limits.pause(meanwhile.pop().session_id, None, OPERATOR)
                return await swap(*args)

        self.patch(pauses, "_watermarks", Overtaken())
        self.sync(self.one.limits.pause("session-1", None, OPERATOR))
        self.assertEqual({each.session_id for each in self.one.limits.pauses()}, {"session-1", "session-9"})
        self.hear(self.two)
        self.assertEqual({each.session_id for each in self.two.limits.pauses()}, {"session-1", "session-9"})

    def test_resumed_meanwhile(self) -> None:
        """What is withdrawn at one daemon while the other requests its approval again does not end the resumption."""
        self.offer("held", step("post"), expires="undo_seconds = 60")
        runs = [self.submit("held", {"text": text}) for text in ("a", "b")]
        for run in runs:
            self.approve(run)
        meanwhile = [runs[0].id]

        class Overtaken(RunsProxy):
            async def apply(proxy, *transitions: Transition) -> Run:
                if transitions[0].run_id in meanwhile:
                    await self.one.submission.withdraw(meanwhile.pop(), OPERATOR, None)
                return await proxy.original.apply(*transitions)  # type: ignore[no-any-return]

        self.two = self.build(runs=Overtaken(self.store.runs))
        self.sync(self.two.start())
        self.sync(self.two.limits.pause(None, "now", OPERATOR))
        asked = self.sync(self.two.limits.resume(None, OPERATOR))
        self.assertEqual([run.id for run in asked], [runs[1].id])
        self.assertEqual([self.state(run) for run in runs], [RunState.CANCELLED, RunState.PENDING])
        self.assertEqual(self.two.limits.pauses(), ())

    def test_own_session(self) -> None:
        """An agent's pause of its own session holds at both."""
        self.sync(self.one.limits.pause("session-1", None, AGENT))
        self.hear(self.two)
        self.assertEqual([each.session_id for each in self.two.limits.pauses()], ["session-1"])


class AgainTests(SeveralCase):
    """A run of unknown outcome that two daemons are asked to run again."""

    def meanwhile(self, act: Callable[[], Awaitable[object]]) -> Run:
        """Have the second daemon run a run again, and something else be done after it has looked at the run."""
        self.connector.script.append(_SILENT)
        self.parent = parent = self.submit("open")
        self.overtake(act)
        self.assertIs(self.state(parent), RunState.UNKNOWN)
        self.fails(self.two.reconciliation.run_again(parent.id, "", OPERATOR), Conflict)
        return parent

    def test_both(self) -> None:
        """The other daemon repeats it meanwhile: there is one run that repeats it."""
        parent = self.meanwhile(lambda: self.one.reconciliation.run_again(self.parent.id, "", OPERATOR))
        children = self.sync(self.one.submission.runs(RunQuery(parent_id=parent.id))).items
        self.assertEqual([self.now(parent).repeated_by], [child.id for child in children])
        self.assertEqual(self.types_of(parent).count("run.run_again"), 1)

    def test_settled(self) -> None:
        """It is settled at the other daemon meanwhile: no run repeats it."""
        parent = self.meanwhile(lambda: self.one.reconciliation.settle(self.parent.id, True, "", OPERATOR))
        self.assertEqual(self.sync(self.one.submission.runs(RunQuery(parent_id=parent.id))).items, ())
        self.assertIs(self.state(parent), RunState.COMPLETED)


class UndoTests(SeveralCase):
    """A completed run that two daemons are asked to undo."""

    def completed(self) -> Run:
        self.write("open", manifest("open", step("post"), UNDO, gated=False))
        self.offer("take-back", BACK, gated=False)
        self.connector.script.append(Outcome({"ts": "17.4"}))
        return self.submit("open", {"text": "hello", "times": 2})

    def test_both(self) -> None:
        """The other daemon is asked meanwhile: there is one run that undoes it, until that one has done nothing."""
        run = self.completed()
        self.overtake(lambda: self.one.submission.undo(run.id, OPERATOR))
        undoing = self.sync(self.two.submission.undo(run.id, OPERATOR))
        self.assertEqual([undoing.id], [each.id for each in self.undoing(run)])
        self.approve(undoing, approved=False)
        again = self.sync(self.two.submission.undo(run.id, OPERATOR))
        self.assertEqual({undoing.id, again.id}, {each.id for each in self.undoing(run)})

    def test_ended_meanwhile(self) -> None:
        """What the other daemon was asked meanwhile was withdrawn as well: there is another run."""
        run = self.completed()

        async def act() -> None:
            undoing = await self.one.submission.undo(run.id, OPERATOR)
            await self.one.submission.withdraw(undoing.id, OPERATOR, None)

        self.overtake(act)
        again = self.sync(self.two.submission.undo(run.id, OPERATOR))
        self.assertIs(again.state, RunState.PENDING)
        self.assertEqual(len(self.undoing(run)), 2)

    def test_taken_key(self) -> None:
        """A call that undoes nothing and has the key of an undo is not taken for one, before or at the write."""
        run = self.completed()
        key = Call.mint_key(f"undo-{run.id}-0")
        call = Call("take-back", {"text": "17.4", "times": 2}, OPERATOR, idempotency_key=key)
        self.overtake(lambda: self.one.submission.submit(call))
        for _ in range(2):
            self.fails(self.two.submission.undo(run.id, OPERATOR), Conflict)
        self.assertEqual(list(self.undoing(run)), [])

    def undoing(self, run: Run) -> Sequence[Run]:
        """The runs that undo a run."""
        return self.sync(self.one.submission.runs(RunQuery(undoes=run.id))).items


class ClockTests(SeveralCase):
    def setting(self) -> list[float]:
        """Build a daemon whose clock is set by these seconds before the database is told that a run begins."""
        seconds = [3600.0]

        class Setting(RunsProxy):
            async def receive(proxy, *args: object) -> object:
                self.clock.rightNow += seconds.pop() if seconds else 0.0
                return await proxy.original.receive(*args)

            async def apply(proxy, *transitions: Transition) -> Run:
                if seconds and transitions[0].end is RunState.EXECUTING:
                    self.clock.rightNow += seconds.pop()
                return await proxy.original.apply(*transitions)  # type: ignore[no-any-return]

        self.runner = self.build(runs=Setting(self.store.runs))
        self.sync(self.runner.start())
        return seconds

    def test_set(self) -> None:
        """What was planned before the clock was set by an hour is planned again before it begins."""
        run = self.submit()
        seconds = self.setting()
        self.approve(run)
        self.assertEqual((seconds, self.state(run), len(self.connector.sendings)), ([], RunState.APPROVED, 0))
        self.clock.advance(1)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.COMPLETED, 1))

    def test_ungated(self) -> None:
        """A call that nobody is asked about is refused, and leaves nothing."""
        self.setting()
        self.fails(self.runner.submission.submit(self.call("open")), StoreUnavailable)
        self.assertEqual(self.connector.sendings, [])
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(0,)])


class DrainTests(SeveralCase):
    """The first daemon stops, and the second goes on."""

    def setUp(self) -> None:
        super().setUp()
        self.left: list[tuple[str, ...]] = []

    async def hand_over(self, kept: Collection[str]) -> None:
        self.left.append(tuple(kept))

    def test_new_call(self) -> None:
        """It begins nothing new, gated or not, and says that the same call can be made again; nothing is stored."""
        self.sync(self.one.drain(1.0, self.hand_over))
        for name in ("open", "gated"):
            refused = self.failureResultOf(
                Deferred.fromCoroutine(self.one.submission.submit(self.call(name))), Stopping
            )
            self.assertEqual(refused.value.details["stopping"], True)
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(0,)])
        self.runner = self.two
        self.assertIs(self.state(self.submit("open")), RunState.COMPLETED)

    def test_finished(self) -> None:
        """What it has begun it ends, its caller hears of it, and nobody else gets it; a wait for a person ends."""
        run, answer = self.begun()
        pending = self.submit("gated")
        hears = Deferred.fromCoroutine(self.one.submission.wait(run.id, 60.0))
        waits = Deferred.fromCoroutine(self.one.submission.wait(pending.id, 60.0))
        drained = Deferred.fromCoroutine(self.one.drain(20.0, self.hand_over))
        self.assertIs(self.successResultOf(waits).state, RunState.PENDING)
        self.assertEqual(self.left, [(run.id,)])
        self.assertNoResult(drained)
        answer.callback(Outcome(output={"ok": True}))
        self.assertIs(self.successResultOf(hears).state, RunState.COMPLETED)
        self.successResultOf(drained)

    def test_too_long(self) -> None:
        """An effect that takes longer than it may is uncertain, as after any stop, and is not begun again."""
        run, _answer = self.begun()
        drained = Deferred.fromCoroutine(self.one.drain(20.0, self.hand_over))
        self.clock.advance(20.0)
        self.successResultOf(drained)
        self.assertIs(self.state(run), RunState.UNKNOWN)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_decided(self) -> None:
        """A decision that it still takes counts, and the other daemon begins what was approved, once."""
        run = self.submit("gated")
        self.sync(self.one.drain(1.0, self.hand_over))
        self.approve(run)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.sync(self.two.take_over([self.now(run)]))
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.connector.sendings), 1)
