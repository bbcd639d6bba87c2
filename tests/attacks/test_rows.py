"""Rows of the database, written by a process of the same user: none of them decides anything."""

import json
from collections.abc import Mapping
from typing import Any

from aileron.client import item_of
from tests.attacks.case import AttackTestCase
from tests.functional.operated import GATED, PASSPHRASE, SHIP, UNGATED, AgentSession, kinds
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
_OF_ANOTHER = """
    UPDATE approvals SET (approved, decided_at, decided_by, not_after, decision_mark) =
        (SELECT approved, decided_at, decided_by, not_after, decision_mark FROM approvals WHERE run_id = ?)
    WHERE run_id = ?
"""
_BY_A_GRANT = """
    UPDATE approvals SET approved = 1, decided_at = requested_at, not_after = '2999-01-01T00:00:00.000000Z',
        decided_by = 'grant:' || ?, grant_id = ?, decision_mark = zeroblob(40) WHERE run_id = ?
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


class RowsTests(RowsTestCase):
    """Several runs, and an attacker who writes a row of each."""

    async def test_decisions(self) -> None:
        """No row says that the operator decided: each run is asked anew, and nothing leaves.

        A run is called approved by nobody, by the mark of another, by a grant, after a denial, and once more after it
        was done; of the last the record tells here, and where that is hidden the vault does
        (C{StillTests.test_once_unrecorded}).
        """
        await self.furnish()
        session = await self.session()
        nobody, another, granted, denied = [
            await self.asked(session, each) for each in ("nobody", "another", "granted", "denied")
        ]
        done, allowing = await self.asked(session, "done"), await self.asked(session, "allowing")
        await self.approve(done)
        await self.approve(allowing, "--grant", "--uses", "5")
        await self.posted(2)
        (grant,) = (await self.told("grant", "list"))["items"]
        await self.operator("approval", "deny", denied, "--reason", "no")
        await self.kill_daemon()
        await self.sql(_FORGED, nobody)
        await self.sql(_OF_ANOTHER, done, another)
        await self.sql(_BY_A_GRANT, grant["id"], grant["id"], granted)
        await self.sql("UPDATE approvals SET approved = 1 WHERE run_id = ?", denied)
        forged = (nobody, another, granted, denied, done)
        for run_id in forged:
            await self.sql(_APPROVED, run_id)
        await self.taken_up()
        for run_id in forged:
            await self.assert_asked_anew(run_id, sent=2)

    async def test_contents(self) -> None:
        """What the operator decides about is not what was put into the row since; a gated run is not called ungated."""
        await self.furnish()
        session = await self.session()
        words, ungated, other = [await self.asked(session, each) for each in ("words", "ungated", "other")]
        shown = {each["id"]: each for each in await self.waiting(3)}
        await self.sql("UPDATE runs SET arguments = replace(arguments, 'words', 'secret') WHERE id = ?", words)
        url = f"{self.home.discovery()['operator_url']}/v1/action-approvals/{words}/decide"
        decision = {"approved": True, "digest": shown[words]["digest"]}
        login = await self.command_line.log_in_signing(self.state, PASSPHRASE)
        assert login.key is not None
        signed = login.key.sign([item_of(words, decision)], self.reactor.seconds())
        refused = await self.web.ask("POST", url, login.token, {**decision, "signed": signed})
        self.assertEqual((refused.status, refused.body["error"]["class"]), (409, "approval_stale"), refused.body)
        await self.kill_daemon()
        await self.sql("UPDATE runs SET gated = 0, state = 'approved' WHERE id = ?", ungated)
        await self.sql("UPDATE runs SET action = ?, gated = 0, state = 'received' WHERE id = ?", UNGATED, other)
        await self.taken_up()
        self.assertEqual(self.workspace.requests, [])
        for run_id in (ungated, other):
            self.assertIn("tamper.detected", kinds(await self.audit("--run", run_id)))
