"""Yesterday's files, put back by a process of the same user: nothing is done twice, and it is seen."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from tests.attacks.case import AttackTestCase
from tests.functional.operated import GATED, SHIP, UNGATED, AgentSession, kinds

_DATABASE = ("aileron.db", "aileron.db-wal", "aileron.db-shm")


class RollbackCase(AttackTestCase):
    """An attacker that keeps copies."""

    def copied(self, *names: str) -> Path:
        """A copy of files of the home, made now; the daemon is down."""
        directory = Path(self.mktemp())
        directory.mkdir()
        for name in names:
            if (self.state.root / name).exists():
                shutil.copy2(self.state.root / name, directory)
        return directory

    def put_back(self, copies: Path, *names: str) -> None:
        """Let the files say what the copies say; what was not copied goes."""
        for name in names:
            (self.state.root / name).unlink(missing_ok=True)
            if (copies / name).exists():
                shutil.copy2(copies / name, self.state.root)

    async def approved_and_done(self) -> str:
        """A gated run whose effect has happened once."""
        run_id = str((await self.run_action(await self.session(), GATED)).body["run_id"])
        await self.approve(run_id)
        await self.posted(1)
        return run_id

    async def assert_told(self) -> None:
        """The record says that something was put back."""
        self.assertIn("tamper.detected", kinds(await self.audit()))


class DatabaseTests(RollbackCase):
    """An older database under the present vault."""

    async def test_nothing_twice(self) -> None:
        """A run that the older database calls approved is asked anew, not done again."""
        await self.furnish()
        run_id = await self.approved_and_done()
        await self.command("daemon", "stop")
        database = self.state.database.name
        self.assertEqual(database, _DATABASE[0])
        await self.older_than_the_effect(run_id)
        await self.unlock()
        await self.pause(2)
        self.assertEqual(len(self.workspace.requests), 1)
        await self.assert_told()
        (waits,) = await self.waiting()
        self.assertEqual(waits["id"], run_id)

    async def older_than_the_effect(self, run_id: str) -> None:
        """What a copy from between approval and effect would say: made by cutting the newer rows off."""
        source = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
for trigger in ("audit_events_stay", "audit_events_last"):
    connection.execute(f"DROP TRIGGER {trigger}")
(cut,) = connection.execute(
    "SELECT seq FROM audit_events WHERE type = 'approval.approved' AND run_id = ?", [sys.argv[2]]).fetchone()
for table in ("audit_payloads", "audit_events"):
    connection.execute(f"DELETE FROM {table} WHERE seq > ?", [cut])
for table in ("run_steps", "run_attempts"):
    connection.execute(f"DELETE FROM {table} WHERE run_id = ?", [sys.argv[2]])
connection.execute("UPDATE runs SET state = 'approved', result = NULL, audit_id = NULL WHERE id = ?", [sys.argv[2]])
connection.execute("UPDATE watermarks SET value = '0 0' WHERE name LIKE 'vault %'")
connection.commit()
print(json.dumps(cut))
"""
        self.assertGreater(await self.attack(source, str(self.state.database), run_id), 1)

    async def test_a_copy(self) -> None:
        """A whole older database is noticed, and what it held is not believed."""
        await self.furnish()
        await self.command("daemon", "stop")
        copies = self.copied(*_DATABASE)
        await self.unlock()
        await self.approved_and_done()
        await self.command("daemon", "stop")
        self.put_back(copies, *_DATABASE)
        await self.unlock()
        await self.assert_told()
        self.assertEqual(len(self.workspace.requests), 1)


class VaultTests(RollbackCase):
    """An older vault under the present database."""

    async def test_no_trust(self) -> None:
        """Nothing that an older vault trusts is offered, and the uses of a grant are not had back by it."""
        await self.furnish()
        session = await self.session()
        await self.approve(str((await self.run_action(session, GATED)).body["run_id"]), "--grant", "--uses", "1")
        await self.posted(1)
        copies = self.copied("secrets.json")
        self.assertEqual((await self.run_action(session, GATED)).status, 200)
        await self.operator("action", "distrust", UNGATED)
        await self.command("daemon", "stop")
        self.put_back(copies, "secrets.json")
        await self.unlock()
        for name in (UNGATED, GATED):
            reply = await self.run_action(session, name)
            self.assertEqual(reply.status, 404, reply.body)
        self.assertEqual((await self.told("grant", "list"))["items"], [])
        await self.assert_told()
        self.assertEqual(len(self.workspace.requests), 2)

    async def test_while_it_runs(self) -> None:
        """An older vault that is put in while the daemon runs opens nothing."""
        await self.furnish()
        session = await self.session()
        copies = self.copied("secrets.json")
        await self.approved_and_done()
        older = (copies / "secrets.json").read_bytes()
        while self.state.secrets.read_bytes() != older:  # the daemon may have been about to write it
            self.put_back(copies, "secrets.json")
            await self.pause(1.5)
        await self.refused(session)

    async def refused(self, session: AgentSession) -> None:
        """No call does anything any more."""
        reply = await self.run_action(session, UNGATED, SHIP, wait=10)
        self.assertNotEqual(reply.status, 200)
        self.assertEqual(len(self.workspace.requests), 1)


# Rewrites one entry of the vault's file that says what is trusted, or where a credential may go.
_REWRITE = """
import json, sys
path, part, number, key, value = sys.argv[1:]
with open(path) as file:
    vault = json.load(file)
entry = vault[part][int(number)]
for name in key.split(".")[:-1]:
    entry = entry[name]
assert key.split(".")[-1] in entry, entry.keys()
entry[key.split(".")[-1]] = json.loads(value)
with open(path, "w") as file:
    json.dump(vault, file)
print(json.dumps("written"))
"""


class RewrittenTests(RollbackCase):
    """A vault's file in which somebody writes."""

    async def test_refused(self) -> None:
        """The vault is refused whole, and nothing runs: a switch put on, a digest, a host, a limit raised.

        The command that unlocks refuses the file first.  That the daemon refuses it too, should it be altered between
        the two, is shown where it starts without that command: C{tests.vault.test_altered}.
        """
        await self.furnish()
        await self.add(self.action_file("off", gated=False))
        await self.operator("action", "disable", "off")
        await self.operator("cap", "set", UNGATED, "--per-hour", "1")
        session = await self.session()
        gated = self.state.actions / f"{GATED}.md"
        gated.write_text(gated.read_text().replace("required = true", "required = false"))
        digest = f'"sha256:{hashlib.sha256(gated.read_bytes()).hexdigest()}"'
        for name, part, number, key, value in (
            ("off", "trust", self.place("trust", "off"), "enabled", "true"),
            (GATED, "trust", self.place("trust", GATED), "digest", digest),
            (UNGATED, "caps", 0, "most", "1000000"),
            (UNGATED, "entries", 0, "scope.hosts", '["127.0.0.1:1"]'),
        ):
            sound = json.dumps(self.found(part, number, key))
            await self.rewrite(part, number, key, value)
            await self.assert_refused(session, name)
            await self.kill_daemon()
            self.assertIn("altered", (await self.operator("vault", "unlock", code=1)).stderr)
            await self.rewrite(part, number, key, sound)
            await self.unlock()
        self.assertEqual((await self.run_action(session, UNGATED, wait=20)).status, 200)

    def place(self, part: str, name: str) -> int:
        """Where an entry stands in the file."""
        entries = json.loads(self.state.secrets.read_text())[part]
        return [entry["name"] for entry in entries].index(name)

    async def rewrite(self, part: str, number: int, key: str, value: str) -> None:
        """Let the attacker do it, and again where the daemon replaced the file in the same moment."""
        while self.found(part, number, key) != json.loads(value):
            said = await self.attack(_REWRITE, str(self.state.secrets), part, str(number), key, value)
            self.assertEqual(said, "written")
            await self.pause(1.2)  # the daemon looks twice a second

    def found(self, part: str, number: int, key: str) -> object:
        """What stands in the file."""
        entry: Any = json.loads(self.state.secrets.read_text())[part][number]
        for name in key.split("."):
            entry = entry[name]
        return entry

    async def assert_refused(self, session: AgentSession, name: str) -> None:
        """It does not run, and nothing left."""
        reply = await self.run_action(session, name, wait=10)
        self.assertGreaterEqual(reply.status, 400, reply.body)
        self.assertEqual(self.workspace.requests, [])
        self.assertIn("Another program wrote the vault file", (await self.operator("doctor", code=1)).stdout)
        self.assertIn("The vault file was altered", (await self.operator("resume", code=1)).stderr)


class LostTests(RollbackCase):
    """A vault that is deleted, or made by somebody else."""

    async def test_deleted(self) -> None:
        """Without its file the vault is lost: nothing runs, and with the file back everything goes on."""
        await self.furnish()
        session = await self.session()
        copies = self.copied("secrets.json")
        self.state.secrets.unlink()
        await self.pause(1)
        self.assertEqual((await self.run_action(session, UNGATED)).status, 423)
        await self.kill_daemon()
        await self.command("daemon", "start")
        self.assertEqual((await self.status())["vault_state"], "lost")
        refused = await self.operator("vault", "init", code=1)
        self.assertIn("vault reset", refused.stderr)
        await self.command("daemon", "stop")
        self.put_back(copies, "secrets.json")
        await self.unlock()
        self.assertEqual((await self.run_action(session, UNGATED, wait=20)).status, 200)

    async def test_made_by_another(self) -> None:
        """Who makes a vault before the user does gets nothing of the user's: the user's passphrase does not open it."""
        fed = {"--passphrase-fd": "somebody else's long passphrase"}
        made = await self.command_line.run(("vault", "init"), self.home.environment(), fed, self.confine)
        self._expect(made, 0)
        await self.command("daemon", "stop")
        refused = await self.operator("vault", "unlock", code=1)
        self.assertIn("does not open", refused.stderr)
