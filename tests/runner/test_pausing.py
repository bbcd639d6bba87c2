"""Nothing begins while it is paused, and only the operator lifts that."""

from __future__ import annotations

from typing import Any

from aileron.base.converter import to_json
from aileron.model.audit import Actor
from aileron.model.authority import Halt, Pause
from aileron.model.connectors import Outcome
from aileron.model.errors import LimitExceeded, Paused, StoreUnavailable, VaultLocked
from aileron.model.faults import Fault
from aileron.model.runs import RunState
from aileron.model.vault import VaultState
from aileron.runner import Runner
from aileron.runner.pauses import MOST_SESSIONS, PAUSED_ROW

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

    def test_once(self) -> None:
        """A pause and its end are on record once each, however often they are asked for: the first one stands.

        A call that is refused for it is told since when, and by whom.
        """
        pause: Pause = self.pause(reason="first").pause
        self.assertEqual(self.pause(reason="second").pause, pause)
        refused = self.fails(self.runner.submission.submit(self.call()), Paused)
        self.assertEqual(refused.details, {**to_json(pause), "retry_after": 60})
        self.resume()
        self.resume()
        self.assertEqual(self.types(), ["pause.begun", "pause.ended"])
        self.assertEqual((self.runner.limits.pauses(), self.operator_limits.pauses()), ((), ()))

    def test_under_way(self) -> None:
        """What has begun goes on, and is told; approving is refused; denying and taking back go on."""
        answer = self.unanswered()
        run = self.submit("open")
        approved, denied, withdrawn = (self.submit("gated", {"text": text}) for text in ("one", "two", "three"))
        self.assertEqual([each.id for each in self.pause().under_way], [run.id])
        self.fails(self.runner.decisions.decide(approved.id, self.yes(approved)), Paused)
        self.approve(denied, approved=False)
        self.sync(self.runner.submission.withdraw(withdrawn.id, AGENT, None))
        answer.callback(Outcome(output={"ok": True}))
        states = [self.state(each) for each in (run, approved, denied, withdrawn)]
        self.assertEqual(states, [RunState.COMPLETED, RunState.PENDING, RunState.DENIED, RunState.CANCELLED])


class _Away:
    """A table of a database that cannot be reached."""

    def __init__(self, table: Any) -> None:
        self._table, self.away = table, True

    def __getattr__(self, name: str) -> Any:
        return self._refuse if self.away else getattr(self._table, name)

    async def _refuse(self, *_: object) -> None:
        raise StoreUnavailable("The database is not available.")


class AwayTests(PausedCase):
    """A pause needs no database."""

    def test_away(self) -> None:
        """While the database cannot be reached, a pause holds, says what is not known, and survives in the vault."""
        self.unanswered()
        run = self.submit("open")
        pauses, runs = self.runner.limits._pauses, self.runner.limits._runs
        watermarks, table = _Away(pauses._watermarks), _Away(runs.table)
        self.patch(pauses, "_watermarks", watermarks)
        self.patch(runs, "table", table)
        halt = self.pause(reason="now")
        self.assertEqual((halt.under_way, halt.listed, halt.saved), ((), False, True))
        self.fails(self.runner.submission.submit(self.call()), Paused)
        self.assertEqual([each.reason for each in self.operator_limits.pauses()], ["now"])
        watermarks.away = table.away = False
        self.runner.check_changes()
        halt = self.pause()
        self.assertEqual(([each.id for each in halt.under_way], halt.listed), ([run.id], True))
        self.assertEqual(self.types(), ["pause.begun"])


class _FullDisk:
    """A table of a database that takes no write until there is room again."""

    def __init__(self, table: Any) -> None:
        self._table, self.full = table, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    async def put(self, name: str, value: str) -> None:
        """Write, if there is room."""
        if self.full:
            raise StoreUnavailable("The disk is full.")
        await self._table.put(name, value)


class FullDiskTests(PausedCase):
    """A pause needs no room on the disk."""

    def setUp(self) -> None:
        """The disk is full."""
        super().setUp()
        self.pauses = self.runner.limits._pauses
        self.disk = _FullDisk(self.pauses._watermarks)
        self.patch(self.pauses, "_watermarks", self.disk)

    def test_holds(self) -> None:
        """The pause holds and says that it is not saved; as soon as there is room it is, with its event, once.

        The vault, which would save it, is locked.
        """
        self.vault.lock()
        self.assertFalse(self.pause(reason="now").saved)
        self.fails(self.runner.submission.submit(self.call()), Paused)
        self.runner.check_changes()
        self.assertEqual(self.types(), [])
        self.disk.full = False
        self.runner.check_changes()
        self.runner.check_changes()
        self.assertEqual((self.types(), self.pauses.is_owing), (["pause.begun"], False))
        self.assertTrue(self.pause().saved)
        self.new_life()
        self.fails(self.runner.submission.submit(self.call()), Paused)

    def test_stays(self) -> None:
        """It cannot be lifted before its beginning is on record."""
        self.pause()
        self.fails(self.runner.limits.resume(None, OPERATOR), StoreUnavailable)
        self.fails(self.runner.submission.submit(self.call()), Paused)
        self.disk.full = False
        self.resume()
        self.assertEqual(self.types(), ["pause.begun", "pause.ended"])


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

    def test_waiting_for_the_vault(self) -> None:
        """Nor does what waited for the vault begin by itself."""
        run = self.approved_and_locked()
        self.restart()
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        self.pause()
        self.new_life()
        self.assertEqual((self.resume(), self.connector.sendings), ((run.id,), []))

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

    def test_not_lifted(self) -> None:
        """Where it is locked, or cannot be written, it stays paused, in this life and the next."""
        self.pause()
        self.operator_limits.full = True
        self.fails(self.runner.limits.resume(None, OPERATOR), StoreUnavailable)
        self.vault.lock()
        self.fails(self.runner.limits.resume(None, OPERATOR), VaultLocked)
        self.fails(self.runner.submission.submit(self.call()), Paused)
        self.operator_limits.full = False
        self.new_life()
        self.fails(self.runner.submission.submit(self.call()), Paused)


class SessionTests(PausedCase):
    """An agent pauses its own session."""

    def test_alone(self) -> None:
        """Its calls are refused and its approved runs wait; another's go on.

        Where everything is resumed it stays paused, and so do its runs.
        """
        mine, other = self.submit("held"), self.submit("held", session="session-2")
        self.approve(mine)
        self.approve(other)
        self.pause_own("session-1")
        self.assertIs(self.now(self.submit("open", session="session-2")).state, RunState.COMPLETED)
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

    def test_row_gone(self) -> None:
        """A row that is deleted, emptied or spoilt resumes nothing; one that cannot be read pauses by itself."""
        pause = self.pause(reason="look at this").pause
        self.new_life()
        self.assertEqual(self.runner.limits.pauses(), (pause,))
        for value in (None, "[]", "[{}]", "nonsense", '[{"since": 1}]', "{}"):
            self.pause()
            self.set_row(value)
            self.restart()
            self.fails(self.runner.submission.submit(self.call()), Paused)
        self.resume()
        self.set_row(None)
        self.sql("INSERT INTO watermarks VALUES (?, 'nonsense')", PAUSED_ROW)
        self.restart()
        self.fails(self.runner.submission.submit(self.call()), Paused)

    def test_told_later(self) -> None:
        """What is paused while the vault is locked, or full, is kept in the row, and in the vault when it can be."""
        self.new_life(VaultState.LOCKED)
        pause = self.pause().pause
        self.assertEqual(self.operator_limits.pauses(), ())
        self.new_life(VaultState.LOCKED)
        self.assertEqual(self.runner.limits.pauses(), (pause,))
        self.operator_limits.full = True
        self.new_life()
        self.assertEqual((self.runner.limits.pauses(), self.operator_limits.pauses()), ((pause,), ()))
        self.operator_limits.full = False
        self.runner.check_changes()
        self.assertEqual(self.operator_limits.pauses(), (pause,))


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
