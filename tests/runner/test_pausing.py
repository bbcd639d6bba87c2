"""Nothing begins while it is paused, and only the operator lifts that."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from aileron.errors import LimitExceeded, Paused, StoreUnavailable, VaultLocked
from aileron.runner import Runner
from aileron.runner.pauses import MOST_SESSIONS, PAUSED_ROW
from aileron.values import Actor, Decision, Fault, Halt, Outcome, Pause, Run, RunState, VaultState, to_json

from .kit import AGENT, OPERATOR, step
from .test_decisions import DecidedCase

_TROUBLE = Outcome(fault=Fault("network_error", "Nobody answers.", "external", True), sent=False)


class PausedCase(DecidedCase):
    """A home that can be paused."""

    def setUp(self) -> None:
        """One action more, which can be taken back for a minute."""
        super().setUp()
        self.offer("held", step("post"), expires="undo_seconds = 60")

    def pause(self, session: str | None = None, reason: str | None = None) -> Halt:
        """Pause, as the operator does."""
        return self.sync(self.runner.limits.pause(session, reason, OPERATOR))

    def resume(self, session: str | None = None) -> tuple[str, ...]:
        """Resume; the runs that were asked anew."""
        return tuple(run.id for run in self.sync(self.runner.limits.resume(session, OPERATOR)))

    def new_life(self, state: VaultState = VaultState.UNLOCKED) -> Runner:
        """Stop the daemon, and start it with the vault in this state."""
        self.sync(self.runner.stop(1.0))
        self.unlock_anew(state)
        return self.restart()

    def set_row(self, value: str | None) -> None:
        """Write what another process might into the row, while the daemon is down."""
        self.sync(self.runner.stop(1.0))
        if value is None:
            self.sql("DELETE FROM watermarks WHERE name = ?", PAUSED_ROW)
        else:
            self.sql("UPDATE watermarks SET value = ? WHERE name = ?", value, PAUSED_ROW)

    def types(self) -> list[str]:
        """What is on record of pauses."""
        found = self.sql("SELECT type FROM audit_events WHERE type LIKE 'pause.%' ORDER BY seq")
        return [str(type_) for (type_,) in found]


class PauseTests(PausedCase):
    """What a pause keeps from happening."""

    def test_calls(self) -> None:
        """New calls, gated or not, of agents and of the operator, are refused, and none is kept."""
        self.pause(reason="look at this")
        for action, session in (("gated", "session-1"), ("open", "session-1"), ("open", None)):
            refused = self.fails(self.runner.submission.submit(self.call(action, session=session)), Paused)
            self.assertEqual((refused.status, "look at this" in refused.message), (503, True))
        self.assertEqual((self.sql("SELECT count(*) FROM runs"), self.connector.sendings), ([(0,)], []))

    def test_decisions(self) -> None:
        """Approving is refused; denying and taking back go on."""
        approved, denied, withdrawn = (self.submit("gated", {"text": text}) for text in ("one", "two", "three"))
        self.pause()
        shown = self.shown(approved)
        decision = Decision(True, shown.digest, OPERATOR.id)
        self.fails(self.runner.decisions.decide(approved.id, decision), Paused)
        self.approve(denied, approved=False)
        self.sync(self.runner.submission.withdraw(withdrawn.id, AGENT, None))
        states = [self.state(run) for run in (approved, denied, withdrawn)]
        self.assertEqual(states, [RunState.PENDING, RunState.DENIED, RunState.CANCELLED])

    def test_on_record(self) -> None:
        """A pause and its end are on record once each, however often they are asked for."""
        self.pause()
        self.pause()
        self.resume()
        self.resume()
        self.assertEqual(self.types(), ["pause.begun", "pause.ended"])
        self.assertEqual((self.runner.limits.pauses(), self.brakes.pauses()), ((), ()))

    def test_twice(self) -> None:
        """The first pause stands when another comes."""
        first = self.pause(reason="first").pause
        self.assertEqual(self.pause(reason="second").pause, first)

    def test_under_way(self) -> None:
        """What has begun goes on, and is told."""
        answer = self.unanswered()
        run = self.submit("open")
        self.assertEqual([each.id for each in self.pause().under_way], [run.id])
        answer.callback(Outcome(output={"ok": True}))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_idempotent(self) -> None:
        """A repeated call is told of its run, paused or not."""
        run = self.submit(key="k")
        self.pause()
        self.assertEqual(self.submit(key="k").id, run.id)

    def test_told(self) -> None:
        """The refusal tells since when and by whom."""
        pause: Pause = self.pause().pause
        refused = self.fails(self.runner.submission.submit(self.call()), Paused)
        self.assertEqual(refused.details, {**to_json(pause), "retry_after": 60})


class ResumeTests(PausedCase):
    """What happens when it is lifted."""

    def test_one_by_one(self) -> None:
        """What was approved and had not begun is asked anew, and begins when it is approved once more."""
        one, two, never = (self.submit("held", {"text": text}) for text in ("one", "two", "never asked"))
        self.approve(one)
        self.approve(two)
        self.pause()
        self.assertEqual(self.resume(), (one.id, two.id))
        self.clock.advance(1000)
        shown = self.shown(one)
        self.assertIn("approve it once more to release it", shown.stale or "")
        states = [self.state(run) for run in (one, two, never)]
        self.assertEqual((states, self.connector.sendings), ([RunState.PENDING] * 3, []))
        self.approve(two)
        self.clock.advance(60)
        self.assertEqual([self.state(run) for run in (one, two)], [RunState.PENDING, RunState.COMPLETED])

    def test_old_decision(self) -> None:
        """The decision of before the pause, put back into the row, releases nothing."""
        run = self.submit("held")
        self.approve(run)
        columns = ("digest", "approved", "decided_at", "decided_by", "not_before", "not_after", "decision_mark")
        kept = self.sql(f"SELECT {', '.join(columns)} FROM approvals WHERE run_id = ?", run.id)[0]
        self.pause()
        self.resume()
        self.sync(self.runner.stop(1.0))
        self.sql(f"UPDATE approvals SET {' = ?, '.join(columns)} = ? WHERE run_id = ?", *kept, run.id)
        self.set_state(run)
        self.restart()
        self.clock.advance(100)
        self.assertEqual((self.state(run), self.connector.sendings), (RunState.PENDING, []))

    def test_waiting_for_the_vault(self) -> None:
        """Nor does what waited for the vault begin by itself."""
        run = self.approved_and_locked()
        self.restart()
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        self.pause()
        self.new_life()
        self.assertEqual(self.resume(), (run.id,))
        self.assertEqual(self.connector.sendings, [])

    def test_locked(self) -> None:
        """While the vault is locked nothing is lifted."""
        self.pause()
        self.vault.lock()
        self.fails(self.runner.limits.resume(None, OPERATOR), VaultLocked)
        self.assertEqual(len(self.runner.limits.pauses()), 1)

    def test_disk(self) -> None:
        """Where that cannot be written it stays paused, in this life and the next."""
        self.pause()
        self.brakes.full = True
        self.fails(self.runner.limits.resume(None, OPERATOR), StoreUnavailable)
        self.fails(self.runner.submission.submit(self.call()), Paused)
        self.brakes.full = False
        self.new_life()
        self.fails(self.runner.submission.submit(self.call()), Paused)


class SessionTests(PausedCase):
    """An agent pauses its own session."""

    def test_alone(self) -> None:
        """Its calls are refused and its approved runs wait; another's go on."""
        mine, other = self.submit("held"), self.submit("held", session="session-2")
        self.approve(mine)
        self.approve(other)
        self.sync(self.runner.limits.pause("session-1", None, AGENT))
        self.fails(self.runner.submission.submit(self.call("open")), Paused)
        self.clock.advance(61)
        states = [self.state(run) for run in (mine, other)]
        self.assertEqual(states, [RunState.APPROVED, RunState.COMPLETED])
        self.assertIs(self.now(self.submit("open", session="session-2")).state, RunState.COMPLETED)
        self.assertEqual(self.resume("session-1"), (mine.id,))

    def test_both(self) -> None:
        """Where everything is resumed, a session that is paused for itself stays so, and so do its runs."""
        mine, other = self.submit("held"), self.submit("held", session="session-2")
        self.approve(mine)
        self.approve(other)
        self.sync(self.runner.limits.pause("session-1", None, AGENT))
        self.pause()
        self.assertEqual(self.resume(), (other.id,))
        self.clock.advance(100)
        self.assertIs(self.state(mine), RunState.APPROVED)
        self.fails(self.runner.submission.submit(self.call("open")), Paused)
        self.assertEqual(self.resume("session-1"), (mine.id,))
        self.assertIs(self.now(self.submit("open")).state, RunState.COMPLETED)

    def pause_own(self, session: str) -> None:
        """Pause a session, as its agent does."""
        self.sync(self.runner.limits.pause(session, None, Actor("agent", session)))

    def test_bounded(self) -> None:
        """Very many sessions that pause themselves push no other pause out, and keep the operator from none."""
        self.pause("session-1")
        for number in range(MOST_SESSIONS):
            self.pause_own(f"agent-{number}")
        refused = self.fails(self.runner.limits.pause("one-more", None, Actor("agent", "one-more")), LimitExceeded)
        self.assertIn("ask your user", refused.message)
        self.pause_own("agent-3")  # which is paused already
        self.pause("session-2")
        kept = [pause.session_id for pause in self.runner.limits.pauses()]
        self.assertEqual((len(kept), kept[0], kept[-1]), (MOST_SESSIONS + 2, "session-1", "session-2"))
        self.fails(self.runner.submission.submit(self.call()), Paused)

    def test_operator_over_agent(self) -> None:
        """What the operator pauses after the agent did is the operator's, whatever the agent does then."""
        self.pause_own("session-0")
        self.pause("session-0", "look at this")
        self.pause_own("session-0")
        self.assertEqual([pause.reason for pause in self.runner.limits.pauses()], ["look at this"])
        self.assertEqual(self.types().count("pause.begun"), 2)


class DurableTests(PausedCase):
    """A pause outlives the daemon, and what another program does to its row."""

    def assert_paused(self) -> None:
        """Assert that nothing begins."""
        self.fails(self.runner.submission.submit(self.call()), Paused)

    def test_restart(self) -> None:
        """It is paused in the next life, with reason and time."""
        pause = self.pause(reason="look at this").pause
        self.new_life()
        self.assertEqual(self.runner.limits.pauses(), (pause,))
        self.assert_paused()

    def test_row_gone(self) -> None:
        """A row that is deleted, emptied or spoilt resumes nothing."""
        for value in (None, "[]", "[{}]", "nonsense", '[{"since": 1}]', "{}"):
            self.pause()
            self.set_row(value)
            self.restart()
            self.assert_paused()

    def test_row_spoilt_alone(self) -> None:
        """A row that cannot be read pauses everything by itself."""
        self.set_row(None)
        self.sql("INSERT INTO watermarks VALUES (?, 'nonsense')", PAUSED_ROW)
        self.restart()
        self.assert_paused()

    def test_while_locked(self) -> None:
        """What is paused while the vault is locked is kept in the row, and in the vault when that opens."""
        self.new_life(VaultState.LOCKED)
        pause = self.pause().pause
        self.assertEqual(self.brakes.pauses(), ())
        self.new_life(VaultState.LOCKED)
        self.assertEqual(self.runner.limits.pauses(), (pause,))
        self.new_life()
        self.assertEqual((self.runner.limits.pauses(), self.brakes.pauses()), ((pause,), (pause,)))

    def test_vault_full(self) -> None:
        """What the vault could not be told it is told as soon as it can be."""
        self.brakes.full = True
        self.pause()
        self.assertEqual(self.brakes.pauses(), ())
        self.brakes.full = False
        self.runner.look()
        self.assertEqual(len(self.brakes.pauses()), 1)


class RaceTests(PausedCase):
    """A pause that was answered is followed by nothing that begins."""

    def race(self, moment: int, begin: Callable[[], Deferred[object]]) -> None:
        """Pause at the C{moment}th step of the database while something would begin."""
        self.pool.hold()
        began = begin()
        began.addErrback(lambda failure: failure.trap(Paused))
        paused: Deferred[Halt] | None = None
        at_answer: list[int] = []
        for now in range(30):
            if now == moment:
                paused = self.later(self.runner.limits.pause(None, None, OPERATOR))
                paused.addCallback(self._answered, at_answer)
            if self.pool.todo:
                self.pool.step()
        self.pool.release()
        assert paused is not None
        self.successResultOf(paused)
        self.assertEqual(at_answer, [self.begun()])

    def _answered(self, halt: Halt, at_answer: list[int]) -> Halt:
        at_answer.append(self.begun())
        return halt

    def begun(self) -> int:
        """How many runs began, by the record."""
        found = self.sql("SELECT count(*) FROM audit_events WHERE type = 'execution.started'")
        return int(str(found[0][0]))

    def test_ungated(self) -> None:
        """At whatever moment it comes, no ungated run begins after its answer."""
        for moment in range(8):
            call = self.call("open")
            self.race(moment, lambda call=call: self.later(self.runner.submission.submit(call)))  # type: ignore[misc,arg-type]
            self.resume()

    def test_gated(self) -> None:
        """Nor a gated one that was just approved."""
        for moment in range(14):
            run = self.submit("gated", {"text": f"number {moment} of many others"})
            shown = self.shown(run)
            self.race(moment, lambda run=run, shown=shown: self.deciding(run, shown.digest))  # type: ignore[misc]
            if self.state(run) is not RunState.COMPLETED:
                self.assertIn(self.state(run), (RunState.PENDING, RunState.APPROVED))
            self.resume()

    def deciding(self, run: Run, digest: str) -> Deferred[object]:
        """Approve, without waiting."""
        return self.later(self.runner.decisions.decide(run.id, Decision(True, digest, OPERATOR.id)))


class RetryTests(PausedCase):
    """A run that was under way."""

    def test_no_further_attempt(self) -> None:
        """It is not tried again while it is paused, and goes on when that is lifted."""
        self.connector.script.append(_TROUBLE)
        self.connector.script.append(Outcome(output={"ok": True}))
        run = self.submit("open")
        self.pause()
        self.clock.advance(20)
        self.assertEqual(len(self.connector.sendings), 1)
        self.resume()
        self.assertEqual((len(self.connector.sendings), self.state(run)), (2, RunState.COMPLETED))

    def test_wall_clock(self) -> None:
        """Its time passes meanwhile; then it ends as what the last attempt was."""
        self.connector.script.append(_TROUBLE)
        run = self.submit("open")
        self.pause()
        self.clock.pump([1.0] * 61)
        ended = self.now(run)
        self.assertIs(ended.state, RunState.FAILED)
        assert ended.fault is not None
        self.assertEqual((ended.fault.kind, len(self.connector.sendings)), ("network_error", 1))

    def test_further_step(self) -> None:
        """No further step begins; what was done is told."""
        self.offer("two", step("look", "first"), step("post", "second"), gated=False)
        answer = self.unanswered()
        run = self.submit("two")
        self.pause()
        answer.callback(Outcome(output={"ok": True}))
        self.clock.pump([1.0] * 61)
        ended = self.now(run)
        assert ended.fault is not None
        self.assertEqual((ended.state, ended.fault.kind), (RunState.FAILED, "paused"))
        self.assertEqual(ended.fault.details["steps_done"], ["first"])
