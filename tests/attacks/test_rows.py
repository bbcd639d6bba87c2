"""Rows of the database, written by a process of the same user: none of them decides anything."""

import json
from collections.abc import Mapping
from typing import Any

from tests.attacks.case import AttackTestCase
from tests.functional.operated import GATED, SHIP, UNGATED, AgentSession, kinds
from tests.functional.reactor import Patience

# Runs statements in the daemon's database, each with its values; how many rows each touched.
_SQL = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=20)
touched = [connection.execute(statement, values).rowcount for statement, values in json.loads(sys.argv[2])]
connection.commit()
connection.execute("PRAGMA wal_checkpoint")
print(json.dumps(touched))
"""
_FORGED = """
    UPDATE approvals SET approved = 1, decided_at = requested_at, decided_by = 'operator',
        not_after = '2999-01-01T00:00:00.000000Z', decision_mark = zeroblob(40) WHERE run_id = ?
"""
_APPROVED = "UPDATE runs SET state = 'approved' WHERE id = ?"


class RowsTestCase(AttackTestCase):
    """An attacker with the database open."""

    async def sql(self, statement: str, *values: Any) -> None:
        """Let the attacker change one row, with the daemon running or not."""
        said = await self.attack(_SQL, str(self.state.database), json.dumps([[statement, values]]))
        self.assertEqual(said, [1])

    async def asked(self, session: AgentSession, summary: str = SHIP["summary"]) -> str:
        """A gated call that waits."""
        reply = await self.run_action(session, GATED, {**SHIP, "summary": summary})
        return str(reply.body["approval_id"])

    async def taken_up(self) -> None:
        """Another life of the daemon takes up what lies there."""
        await self.unlock()
        await self.pause(2)

    async def assert_asked_anew(self, run_id: str, sent: int = 0) -> None:
        """A run waits for the operator, nothing of it left, and the record says what was found."""
        patience = Patience(self.reactor, 30)
        while (found := await self._shown(run_id))["status"] != "pending_approval":
            self.assertFalse(patience.is_over, found)
        self.assertEqual(len(self.workspace.requests), sent)
        self.assertIn("tamper.detected", kinds(await self.audit("--run", run_id)))

    async def _shown(self, run_id: str) -> Mapping[str, Any]:
        found = await self.told("runs", "show", run_id)
        run: Mapping[str, Any] = found.get("run", found)
        return run


class DecisionTests(RowsTestCase):
    """Rows that say that the operator decided."""

    async def test_approved_by_nobody(self) -> None:
        """A run that a row calls approved is asked anew."""
        await self.furnish()
        run_id = await self.asked(await self.session())
        await self.kill_daemon()
        await self.sql(_FORGED, run_id)
        await self.sql(_APPROVED, run_id)
        await self.taken_up()
        await self.assert_asked_anew(run_id)

    async def test_the_mark_of_another(self) -> None:
        """A true mark under another run's row is no decision about this one."""
        await self.furnish()
        session = await self.session()
        done, waits = await self.asked(session, "one"), await self.asked(session, "two")
        await self.approve(done)
        await self.posted(1)
        await self.kill_daemon()
        await self.sql(
            "UPDATE approvals SET (approved, decided_at, decided_by, not_after, decision_mark) = "
            "(SELECT approved, decided_at, decided_by, not_after, decision_mark FROM approvals WHERE run_id = ?) "
            "WHERE run_id = ?",
            done,
            waits,
        )
        await self.sql(_APPROVED, waits)
        await self.taken_up()
        await self.assert_asked_anew(waits, sent=1)

    async def test_done_and_set_back(self) -> None:
        """A run that was done does not run again when its row says approved, its own true decision beside it.

        The record tells of it here.  Where that is hidden the vault does: C{StillTests.test_once_unrecorded}.
        """
        await self.furnish()
        run_id = await self.asked(await self.session())
        await self.approve(run_id)
        await self.posted(1)
        await self.kill_daemon()
        await self.sql(_APPROVED, run_id)
        await self.taken_up()
        await self.assert_asked_anew(run_id, sent=1)

    async def test_denied_and_set_to_approved(self) -> None:
        """A denial does not become an approval."""
        await self.furnish()
        run_id = await self.asked(await self.session())
        await self.operator("approval", "deny", run_id, "--reason", "no")
        await self.kill_daemon()
        await self.sql("UPDATE approvals SET approved = 1 WHERE run_id = ?", run_id)
        await self.sql(_APPROVED, run_id)
        await self.taken_up()
        await self.assert_asked_anew(run_id)


class ContentTests(RowsTestCase):
    """Rows that say what the operator decided about."""

    async def test_other_arguments(self) -> None:
        """Who approves what was shown does not approve the words that were put into the row since."""
        await self.furnish()
        run_id = await self.asked(await self.session())
        (shown,) = await self.waiting()
        await self.sql("UPDATE runs SET arguments = replace(arguments, 'parser', 'secret') WHERE id = ?", run_id)
        url = f"{self.home.discovery()['operator_url']}/v1/action-approvals/{run_id}/decide"
        decision = {"approved": True, "digest": shown["digest"]}
        refused = await self.web.ask("POST", url, await self.operator_token(), decision)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (409, "approval_stale"), refused.body)
        self.assertEqual(self.workspace.requests, [])

    async def test_ungated(self) -> None:
        """A gated run that a row calls ungated is not done."""
        await self.furnish()
        run_id = await self.asked(await self.session())
        await self.kill_daemon()
        await self.sql("UPDATE runs SET gated = 0, state = 'approved' WHERE id = ?", run_id)
        await self.taken_up()
        self.assertEqual(self.workspace.requests, [])
        self.assertIn("tamper.detected", kinds(await self.audit("--run", run_id)))

    async def test_another_action(self) -> None:
        """A waiting run that is given the name of an ungated action is not done."""
        await self.furnish()
        run_id = await self.asked(await self.session())
        await self.kill_daemon()
        await self.sql("UPDATE runs SET action = ?, gated = 0, state = 'received' WHERE id = ?", UNGATED, run_id)
        await self.taken_up()
        self.assertEqual(self.workspace.requests, [])
        self.assertIn("tamper.detected", kinds(await self.audit("--run", run_id)))
