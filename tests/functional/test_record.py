"""The record of a real daemon: verified, exported, anchored and pruned, and looked at after an intruder came by."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from aileron.base.json import JSON
from aileron.testing import example_event, unopened_store
from tests.functional.operated import UNGATED, OperatedTestCase, kinds
from tests.functional.process import Finished
from tests.functional.reactor import Patience


class RecordTests(OperatedTestCase):
    """With a daemon that has done something."""

    async def verify(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What the command finds, without a passphrase."""
        found: dict[str, Any] = json.loads(
            (await self.command("audit", "verify", *arguments, "--json", code=code)).stdout
        )
        return found

    def alter(self, *statements: str) -> None:
        """Change the database behind everybody's back."""
        with closing(sqlite3.connect(self.state.database, timeout=30)) as connection:
            for statement in statements:
                connection.execute(statement)
            connection.commit()

    async def test_verified_and_exported(self) -> None:
        """It verifies while the daemon runs, by the key that the status shows, and so do an export and its anchor."""
        await self.furnish()
        session = await self.session()
        self.assertEqual((await self.run_action(session, UNGATED)).status, 200)
        anchor = self.home.project / "anchor.ndjson"
        await self.set_config(f"audit:\n  anchor: {{file: {anchor}}}\n")
        key = (await self.status())["record"]["key"]
        self.assertTrue((await self.verify("--public-key", key))["compared"])
        exported = self.home.project / "record.ndjson"
        exported.write_text((await self.command("audit", "export")).stdout)
        found = await self.verify(str(exported), "--public-key", key, "--anchor", str(anchor))
        self.assertEqual((found["sound"], found["anchored"] > 0), (True, True))
        exported.write_text(exported.read_text().replace("session.started", "session.stopped", 1))
        self.assertEqual((await self.verify(str(exported), code=1))["broken"]["kind"], "altered")
        succeeded = [record for record in await self.audit() if record["type"] == "execution.succeeded"]
        (attempt,) = succeeded[0]["payload"]["attempts"]
        self.assertEqual(
            (attempt["state"], attempt["status"], attempt["output"]["bytes"] > 2), ("succeeded", 200, True)
        )

    async def test_touched_while_locked(self) -> None:
        """Who alters the record while the vault is locked is found at the unlock, by name of the record."""
        await self.furnish()
        await self.operator("vault", "lock")
        await self.session()
        await self.command("daemon", "stop")
        await self.command("daemon", "start", "--locked")
        await self.session()
        await self.command("daemon", "stop")
        last = (await self.verify())["last"]
        self.alter(
            "DROP TRIGGER audit_events_last",
            f"DELETE FROM audit_macs WHERE seq = {last}",
            f"DELETE FROM audit_payloads WHERE seq = {last}",
            f"DELETE FROM audit_events WHERE seq = {last}",
        )
        self.assertTrue((await self.verify())["sound"])
        unlocked: Finished = await self.operator("vault", "unlock")
        self.assertIn("Signs of tampering", unlocked.stderr)
        self.assertIn("Signs of tampering", (await self.command("status")).stderr)
        (found,) = [record for record in await self.audit() if record["type"] == "tamper.detected"]
        self.assertIn("are gone", found["payload"]["found"][0])

    async def test_pruned(self) -> None:
        """Contents that are older than the configuration keeps are gone after a start, and the record says so."""
        await self.operator("vault", "init")
        self.state.config.write_text("audit: {keep_payloads_days: 2}\n")
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        await self._put_old_record()
        await self.unlock()
        patience, records = Patience(self.reactor, 30), await self.audit()
        while "audit.pruned" not in kinds(records):  # it is done soon after the start
            self.assertFalse(patience.is_over, records)
            records = await self.audit()
        pruned = records[kinds(records).index("audit.pruned")]
        self.assertEqual(
            (pruned["payload"]["up_to"], [record["pruned"] for record in records[:4]]), (3, [True] * 3 + [False])
        )
        self.assertEqual((await self.verify())["pruned"], 3)
        await self.command("daemon", "stop")
        self.assertFalse(b"canary-of-last-week" in self.state.database.read_bytes())

    async def _put_old_record(self) -> None:
        """A database in the place of the home's own, in which something happened last week."""
        for name in ("", "-wal", "-shm"):
            self.state.database.with_name(self.state.database.name + name).unlink(missing_ok=True)
        store = unopened_store(self.state.database)
        await store.open()
        at = datetime.now(UTC) - timedelta(days=7)
        payload: dict[str, JSON] = {"text": "canary-of-last-week"}
        await store.audit.append(*(example_event(f"old.{number}", payload=payload, at=at) for number in range(3)))
        await store.close()
        self.state.database.chmod(0o600)
