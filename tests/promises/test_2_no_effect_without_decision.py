"""2. No gated action runs without a decision by the operator."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from attrs import evolve

from aileron.features.profiles.running import ProfileFilter
from aileron.features.profiles.values import ActionProfile, ProfileSettings
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Paused,
    VaultLocked,
)
from aileron.model.runs import Decision
from aileron.model.sessions import ActionSelection, Session
from aileron.model.trust import TrustKind
from aileron.testing import example_session
from tests.api.case import ApiCase
from tests.runner.kit import manifest, step

from .case import OPERATOR, PromiseCase

_COPIED = "digest, approved, decided_at, decided_by, not_before, not_after, decision_mark"


class NoDecisionTests(PromiseCase):
    """Nobody has decided."""

    def test_waits(self) -> None:
        """A gated call waits, whatever time passes and however often the daemon starts."""
        run = self.submit()
        self.clock.advance(1e6)
        self.restart()
        self.runner.check_changes()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_denied(self) -> None:
        """What was denied is not done, in this life or another."""
        run = self.submit()
        self.approve(run, approved=False)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("denied", 0))

    def test_expired(self) -> None:
        """What has expired cannot be approved any more, were its alarm never to ring."""
        self.offer("gated", step("post"), expires='expires_after = "1h"')
        run = self.submit()
        yes = self.yes(run)
        self.runner._recovery._requests.stop()
        self.clock.advance(3601)
        self.fails(self.runner.decisions.decide(run.id, yes), Conflict)
        self.assertEqual(self.sent, 0)

    def test_expires(self) -> None:
        """An approval that is limited ends when its time is over."""
        self.offer("gated", step("post"), expires='expires_after = "1h"')
        run = self.submit()
        self.clock.advance(3601)
        self.assertEqual((self.state(run), self.sent), ("expired", 0))

    def test_withdrawn(self) -> None:
        """Whoever asked may take it back, once, with a reason; no decision that comes later does it."""
        run = self.submit()
        yes = self.yes(run)
        taken = self.sync(self.runner.submission.withdraw(run.id, OPERATOR, "changed my mind"))
        self.assertEqual((taken.state, taken.reason), ("cancelled", "changed my mind"))
        self.fails(self.runner.submission.withdraw(run.id, OPERATOR, None), Conflict)
        self.fails(self.runner.decisions.decide(run.id, yes), Conflict)
        self.assertEqual(self.sent, 0)

    def test_untrusted(self) -> None:
        """An action file that the operator has not read offers nothing, be it new, another, or without its gate."""
        self.write("fresh", manifest("fresh", step("post"), gated=False), trusted=False)
        self.write("open", manifest("open", step("post"), gated=False, body="Other."), trusted=False)
        self.write("gated", manifest("gated", step("post"), gated=False), trusted=False)
        self.runner.check_changes()
        for name in ("fresh", "open", "gated"):
            self.fails(self.runner.submission.submit(self.call(name)), NotFound)
        self.assertEqual(self.sent, 0)

    def test_untrusted_connector(self) -> None:
        """Nothing runs through a connector that the operator does not trust."""
        self.sync(self.runner.trust.distrust(TrustKind.CONNECTOR, self.connector.description.name, OPERATOR))
        self.fails(self.runner.submission.submit(self.call("open")), AileronError)
        self.assertEqual(self.sent, 0)

    def test_locked(self) -> None:
        """While the vault is locked nothing begins that was approved before; that it waits is on record."""
        run = self.approved_and_locked()
        self.assertEqual(self.events(run)[-1], "run.awaiting_vault")
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("awaiting_vault", 0))

    def test_locked_call(self) -> None:
        """While the vault is locked nothing begins, though nobody need be asked."""
        self.vault.lock()
        self.fails(self.runner.submission.submit(self.call("open")), VaultLocked)
        self.assertEqual(self.sent, 0)

    def test_nobody_decides_while_locked(self) -> None:
        """While the vault is locked a gated call is taken, and can be neither approved nor denied."""
        self.vault.lock()
        run = self.submit()
        yes = self.yes(run)
        for decision in (yes, evolve(yes, approved=False)):
            self.fails(self.runner.decisions.decide(run.id, decision), VaultLocked)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_switched_off(self) -> None:
        """What is switched off cannot be called, and what waits of it cannot be approved."""
        run = self.submit()
        self.sync(self.runner.trust.set_enabled("gated", False, OPERATOR))
        self.fails(self.runner.submission.submit(self.call("gated", {"text": "other"})), Conflict)
        shown = self.shown(run)
        self.fails(self.runner.decisions.decide(run.id, Decision(True, shown.digest, OPERATOR.id)), ApprovalStale)
        self.assertEqual(self.sent, 0)

    def test_paused(self) -> None:
        """While everything is paused no call gets in, gated or not, an agent's or the operator's, and none is kept."""
        self.sync(self.runner.limits.pause(None, "look at this", OPERATOR))
        for name, session in (("open", "session-1"), ("gated", "session-1"), ("open", None)):
            refused = self.fails(self.runner.submission.submit(self.call(name, session=session)), Paused)
            self.assertEqual((refused.status, "look at this" in refused.message), (503, True))
        self.assertEqual((self.sql("SELECT count(*) FROM runs"), self.sent), ([(0,)], 0))

    def test_paused_run(self) -> None:
        """What was approved does not begin while everything is paused, in this life or another."""
        run = self.held()
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("approved", 0))


class WrittenRowsTests(PromiseCase):
    """The agent writes into the database; it cannot make the mark of a decision."""

    def test_state(self) -> None:
        """A state that was written is no decision."""
        run = self.submit()
        for state in ("approved", "awaiting_vault", "awaiting_credential"):
            self.set_state(run, state)
            self.restart()
            self.assertEqual((self.state(run), self.sent), ("pending_approval", 0), state)

    def test_begun(self) -> None:
        """A run that was called executing is in doubt: it is not done."""
        run = self.submit()
        self.set_state(run, "executing")
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("unknown", 0))

    def test_gate(self) -> None:
        """A run that was asked about and then called ungated is given up, and that is on record as tampering."""
        for state in ("received", "approved", "awaiting_vault", "awaiting_credential"):
            run = self.submit()
            self.sql("UPDATE runs SET gated = 0, state = ? WHERE id = ?", state, run.id)
            self.restart()
            self.assertEqual((self.state(run), self.sent), ("cancelled", 0))
            self.assertEqual(self.events(run)[-2:], ["tamper.detected", "run.cancelled"])

    def test_forged_whole(self) -> None:
        """A yes that was written has no sound mark, though a record that was written too may tell of it."""
        said = "approved = 1, decided_at = requested_at, decided_by = 'me', not_after = '2099-01-01T00:00:00.000000Z'"
        for mark in (None, b"", b"\0" * 32, b"\0" * 40, self.control.sign({})):
            for recorded in (False, True):
                run = self.submit()
                shown = self.shown(run).digest
                self.set_state(run)
                self.sql(f"UPDATE approvals SET {said}, decision_mark = ? WHERE run_id = ?", mark, run.id)
                if recorded:
                    self.forge_record(run, shown)
                self.restart()
                self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_copied(self) -> None:
        """The decision for one run decides nothing about another of the same call, whatever is written beside it."""
        other = self.submit()
        decided = self.held()
        self.set_state(other)
        self.set_state(decided, "cancelled")
        self.sql(
            f"UPDATE approvals SET ({_COPIED}) = (SELECT {_COPIED} FROM approvals WHERE run_id = ?) WHERE run_id = ?",
            decided.id,
            other.id,
        )
        self.sql("UPDATE runs SET effect_key = ? WHERE id = ?", decided.effect_key, other.id)
        self.forge_record(other, self.shown(decided).digest)
        self.restart()
        self.assertEqual((self.state(other), self.sent), ("pending_approval", 0))

    def test_denial_turned(self) -> None:
        """A denial is not turned into an approval."""
        run = self.submit()
        self.approve(run, approved=False)
        self.set_state(run)
        self.sql("UPDATE approvals SET approved = 1 WHERE run_id = ?", run.id)
        self.forge_record(run, self.shown(run).digest)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_unrecorded(self) -> None:
        """A decision of which the record does not tell is asked for once more."""
        run = self.held()
        self.hide("approval.approved")
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_given_way(self) -> None:
        """A decision that was taken back before it began does not come back with its row."""
        run = self.held()
        self.sync(self.runner.submission.withdraw(run.id, OPERATOR, None))
        self.set_state(run)
        self.hide("run.cancelled")
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_written_while_it_begins(self) -> None:
        """What is written between the last look and the moment it begins is seen inside the transaction."""
        run = self.held()
        forget = "UPDATE approvals SET decision_mark = NULL WHERE run_id = ?"
        self.when("before runs.apply executing", lambda: self.sql(forget, run.id))
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))


class AgentTests(ApiCase):
    """What an agent's credentials open."""

    def test_decides_nothing(self) -> None:
        """An agent's session cannot decide, whichever site it asks, nor read what the operator reads."""
        token, body = self.agent_token(), {"approved": True, "digest": "sha256:00"}
        path = f"/v1/action-approvals/{self.fresh_id()}"
        self.assertEqual(self.agents.ask("POST", f"{path}/decide", token, body).status, 404)
        self.assertEqual(self.agents.ask("POST", f"{path}/decide", self.operator_token(), body).status, 404)
        for mine in (token, None, "ail_o_guessed"):
            self.assertEqual(self.operator.ask("POST", f"{path}/decide", mine, body).status, 401)
            self.assertEqual(self.operator.ask("GET", path, mine).status, 401)

    def test_trusts_nothing(self) -> None:
        """Nor can it trust a file, or bind a credential."""
        token = self.agent_token()
        item = {"kind": "action", "name": "fresh", "digest": "sha256:00"}
        for site, status in ((self.agents, 404), (self.operator, 401)):
            self.assertEqual(site.ask("POST", "/v1/trust", token, {"items": [item]}).status, status)


class ProfileTests(PromiseCase):
    """A session that is restricted to some of the actions."""

    def session_with(self, profile: str = "", selection: ActionSelection | None = None) -> Session:
        """A session of that profile and selection."""
        return evolve(example_session(), profile=profile, selection=selection)

    def apply(self, **profiles: ActionSelection) -> None:
        """Apply these profiles."""
        found = {name: ActionProfile(name, selection) for name, selection in profiles.items()}
        self.runner.submission.filters.add(ProfileFilter(ProfileSettings(found)))

    def refuse_call(self, session: Session, name: str) -> None:
        """Assert that the session's call of this action is refused, with nothing sent or stored."""
        self.fails(self.runner.submission.submit(evolve(self.call(name), session=session)), Forbidden)
        self.assertEqual((self.sent, self.sql_count("runs")), (0, 0))

    def sql_count(self, table: str) -> int:
        """How many rows a table has."""
        with sqlite3.connect(self.database) as database:
            (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()
        database.close()
        return int(count)

    def test_hidden(self) -> None:
        """An action outside of the profile is not listed, and cannot be called by its name; the others can."""
        self.apply(narrow=ActionSelection(allow=("op*",)))
        session = self.session_with("narrow")
        offering = self.runner.submission.offering()
        self.assertEqual(set(self.runner.submission.filters.narrow(session, offering).offers), {"open"})
        self.refuse_call(session, "gated")
        self.sync(self.runner.submission.submit(evolve(self.call("open"), session=session)))
        self.assertEqual(self.sent, 1)

    def test_project(self) -> None:
        """What a project allows takes from the profile, and adds nothing to it."""
        self.apply(narrow=ActionSelection(allow=("op*",)))
        self.refuse_call(self.session_with("narrow", ActionSelection(allow=("gated",))), "gated")
        self.refuse_call(self.session_with("narrow", ActionSelection(deny=("effect:write",))), "open")
        self.refuse_call(self.session_with("", ActionSelection(deny=("gated",))), "gated")

    def test_gone(self) -> None:
        """A session whose profile config.yaml does not have any more may use nothing."""
        self.apply(other=ActionSelection())
        self.refuse_call(self.session_with("narrow"), "open")
        self.fails_at_once(lambda: self.runner.submission.filters.open(self.session_with("narrow")))

    def test_off_call(self) -> None:
        """With profiles off, a session that was restricted before may use nothing."""
        self.refuse_call(self.session_with("narrow"), "open")
        self.refuse_call(self.session_with("", ActionSelection()), "open")

    def test_off_open(self) -> None:
        """With profiles off, no restricted session is opened."""
        self.fails_at_once(lambda: self.runner.submission.filters.open(self.session_with("narrow")))

    def fails_at_once(self, work: Callable[[], object]) -> None:
        """Assert that it is refused as an invalid request."""
        self.assertRaises(InvalidRequest, work)
