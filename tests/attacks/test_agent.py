"""The agent as a process of the user's: it runs the user's commands, signals the daemon, and writes rows."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

from twisted.internet.defer import Deferred

from aileron.home.lock import running_pid
from tests.attacks.test_rows import RowsTestCase
from tests.extent import is_all
from tests.functional.operated import CONNECTOR, GATED, UNGATED, AgentSession, kinds

# Runs each command with nothing on standard input and no terminal, several at a time; how each ended, and what it said.
_RUN = """
import concurrent.futures, json, subprocess, sys
def ended(words):
    nothing = subprocess.DEVNULL
    words = [*json.loads(sys.argv[1]), *words]
    done = subprocess.run(words, stdin=nothing, capture_output=True, text=True, timeout=100)
    return [done.returncode, done.stdout + done.stderr]
with concurrent.futures.ThreadPoolExecutor(3) as several:
    print(json.dumps(list(several.map(ended, json.loads(sys.argv[2])))))
"""
# Sends a process one signal; whether it could.
_SIGNAL = """
import json, os, sys
os.kill(int(sys.argv[1]), int(sys.argv[2]))
print(json.dumps("sent"))
"""
# Copies a database.
_BACKUP = """
import json, sqlite3, sys
sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))
print(json.dumps("copied"))
"""
# Changes the record, as somebody does who can write each of its rows and knows how they are sealed.
_DEEDS = """
import json, sqlite3, sys
from contextlib import closing
from aileron.audit import payload_digest, seal
from aileron.base.json import from_timestamp
from aileron.model.audit import Actor, ChainLink, Event

path, kept, *deeds = sys.argv[1:]
TABLES = ("audit_events", "audit_payloads", "audit_macs", "audit_checkpoints")
connection = sqlite3.connect(path, timeout=20, isolation_level=None)
connection.row_factory = sqlite3.Row
sql = connection.execute
sql("PRAGMA foreign_keys=OFF")
sql("BEGIN IMMEDIATE")
for table in ("audit_events", "audit_checkpoints"):
    for ending in ("stay", "last"):
        sql(f"DROP TRIGGER IF EXISTS {table}_{ending}")

def one(query, *values):
    return sql(query, values).fetchone()[0]

def put(table, row):
    sql(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))

def keep():
    with closing(sqlite3.connect(kept)) as other, other:
        for table in TABLES:
            rows = [tuple(row) for row in sql(f"SELECT * FROM {table}")]
            names = [row[1] for row in sql(f"PRAGMA table_info({table})")]
            other.execute(f"DROP TABLE IF EXISTS {table}")
            other.execute(f"CREATE TABLE {table} ({', '.join(names)})")
            other.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(names))})", rows)

def undo():
    with closing(sqlite3.connect(kept)) as other:
        for table in TABLES:
            sql(f"DELETE FROM {table}")
            for row in other.execute(f"SELECT * FROM {table}"):
                sql(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

def resealed(since, until):
    previous = one("SELECT hash FROM audit_events WHERE seq = ?", since - 1)
    for row in sql("SELECT * FROM audit_events WHERE seq BETWEEN ? AND ? ORDER BY seq", (since, until)).fetchall():
        actor, names = Actor(row["actor_type"], row["actor_id"]), ("run_id", "session_id", "action", "connector")
        about = (*(row[name] for name in names), row["failure_class"])
        event = Event(row["id"], row["type"], from_timestamp(row["at"]), actor, {}, *about)
        sealed = seal(previous, ChainLink(row["seq"], event, row["payload_digest"]))
        sql("UPDATE audit_events SET prev_hash = ?, hash = ? WHERE seq = ?", (previous, sealed, row["seq"]))
        previous = sealed

def forged(sequence):
    row = dict(sql("SELECT * FROM audit_events WHERE seq = ?", (last,)).fetchone())
    row.update(seq=sequence, id=row["id"] + "x", type="approval.approved", actor_type="human", actor_id="operator")
    row["payload_digest"] = payload_digest("salt", "{}")
    put("audit_events", row)
    put("audit_payloads", {"seq": sequence, "salt": "salt", "payload": "{}"})

def moved(sequence, to):
    for table in ("audit_events", "audit_payloads"):
        sql(f"UPDATE {table} SET seq = ? WHERE seq = ?", (to, sequence))

def removed(condition):
    for table in ("audit_events", "audit_payloads", "audit_macs"):
        sql(f"DELETE FROM {table} WHERE {condition}")

if "keep" in deeds:
    keep()
if "undo" in deeds:
    undo()
last, signed = one("SELECT max(seq) FROM audit_events"), one("SELECT max(seq) FROM audit_checkpoints")
middle, deed = signed // 2, deeds[-1]
assert deed in ("keep", "undo") or 3 < middle < signed < last - 1, (middle, signed, last)
if deed in ("keep", "undo"):
    pass
elif deed == "insert":
    for sequence in range(last, middle - 1, -1):
        moved(sequence, sequence + 1)
    forged(middle)
    resealed(middle, middle)
elif deed == "insert at the end":
    forged(last + 1)
elif deed == "delete":
    removed(f"seq = {middle}")
elif deed == "update":
    sql("UPDATE audit_events SET type = 'approval.denied' WHERE seq = ?", (middle,))
elif deed == "update the newest":
    sql("UPDATE audit_events SET action = 'another' WHERE seq = ?", (last,))
elif deed == "update contents":
    sql("UPDATE audit_payloads SET payload = '{}' WHERE seq = ?", (middle,))
elif deed == "delete contents":
    sql("DELETE FROM audit_payloads WHERE seq = ?", (middle,))
elif deed == "swap":
    for sequence, to in ((middle, -1), (middle + 1, middle), (-1, middle + 1)):
        moved(sequence, to)
elif deed == "swap and number anew":
    for sequence, to in ((middle, -1), (middle + 1, middle), (-1, middle + 1)):
        moved(sequence, to)
    resealed(middle, last)
elif deed == "rewrite what is signed":
    sql("UPDATE audit_events SET type = 'approval.denied' WHERE seq = ?", (middle,))
    resealed(middle, last)
elif deed == "cut what is signed":
    removed(f"seq >= {signed}")
elif deed == "append":
    forged(last + 1)
    resealed(last + 1, last + 1)
elif deed == "append no decision":
    forged(last + 1)
    sql("UPDATE audit_events SET type = 'run.cancelled' WHERE seq = ?", (last + 1,))
    resealed(last + 1, last + 1)
elif deed == "cut":
    removed(f"seq = {last}")
elif deed == "rewrite":
    sql("UPDATE audit_events SET type = 'approval.denied' WHERE seq = ?", (last,))
    resealed(last, last)
else:
    raise AssertionError(deed)
sql("COMMIT")
connection.close()
print(json.dumps(deed), flush=True)
"""
# Runs a program again and again, each time with the arguments that a line of a pipe brings.
_AGAIN = """
import json, sys
program, pipe = compile(sys.argv[1], "program", "exec"), open(sys.argv[2])
for line in pipe:
    sys.argv[1:] = json.loads(line)
    exec(program, {})
"""
_INSIDE = {
    "insert": "inserted",
    "insert at the end": "altered",
    "delete": "removed",
    "update": "altered",
    "update the newest": "altered",
    "delete contents": "removed",
    "update contents": "altered",
    "swap": "reordered",
    "swap and number anew": "rewritten",
    "rewrite what is signed": "rewritten",
    "cut what is signed": "truncated",
}
"""What is found of each, whether or not a daemon runs."""
_AT_THE_END = {"append": "decision", "append no decision": "inserted", "cut": "truncated", "rewrite": "rewritten"}
"""What is found while a daemon runs of what is done, with the right hashes, to records that are not signed yet.

An approval that is appended has no signature, which is found even if no daemon runs.
"""
_PAUSED = "DELETE FROM watermarks WHERE name = 'paused'"


class AgentCase(RowsTestCase):
    """A user whose agent asked for something that waits."""

    given: AgentSession
    run_id: str

    def setUp(self) -> Any:
        """Begin."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())

    async def begin(self) -> None:
        """Have it ask."""
        await self.furnish()
        self.given = await self.session()
        self.run_id = await self.asked(self.given)

    async def assert_waits(self) -> None:
        """It waits still, and nothing left."""
        (waits,) = await self.waiting()
        self.assertEqual((waits["id"], self.workspace.requests), (self.run_id, []))


class CommandTests(AgentCase):
    """The user's own commands, in the agent's hands."""

    timeout = 400

    async def test_every_deed(self) -> None:
        """Without the passphrase none of them decides, trusts, switches, binds, grants, limits or resumes."""
        await self.operator("action", "disable", UNGATED)
        await self.operator("pause", "--session", self.given.id)
        (self.state.actions / "evil.md").write_text("+++\n+++\n")
        before = await self.state_of_things()
        alone, others = self.deeds()
        ended = await self.attack(_RUN, json.dumps(self.forked("aileron")), json.dumps(alone), seconds=300)
        done = [words for words, (code, _) in zip(alone, ended, strict=True) if code == 0]
        done += [words for words in others if (await self.aileron(*words)).exit_code == 0]
        # What only asks is done, by which it is seen that the others were run; and what has nothing new to trust.
        nothing_new = [["connector", "trust", "local://me/slack", "--yes"], ["config", "trust", "--yes"]]
        self.assertEqual(done, [["version"], *nothing_new])
        self.assertEqual(await self.state_of_things(), before)
        await self.assert_waits()

    def deeds(self) -> tuple[list[list[str]], list[list[str]]]:
        """Every kind of command that changes what the agent may do: those that want a process, and the others."""
        alone = (
            f"approval approve {self.run_id} --yes",
            "resume",
            "vault passphrase",
            "operator login --token-fd 1",
            "operator revoke --all",
            "open",
            "version",
        )
        others = (
            f"approval approve {self.run_id} --yes --grant --uses 5",
            f"approval edit {self.run_id} --arg summary=x",
            f"runs settle {self.run_id} --happened",
            "action trust evil --yes",
            f"action enable {UNGATED}",
            f"connector trust {CONNECTOR} --yes",
            "config trust --yes",
            f"binding revoke {CONNECTOR}",
            f"cap set {GATED} --per-hour 1000",
            "cap remove",
            f"resume --session {self.given.id}",
            "vault init",
        )
        return [line.split() for line in alone], [line.split() for line in others]

    async def state_of_things(self) -> object:
        """What happened but for logins, what is bound, limited and allowed."""
        happened = [kind for kind in kinds(await self.audit()) if not kind.startswith("operator.")]
        shown = [await self.told(*words) for words in (("binding", "list"), ("cap", "list"), ("grant", "list"))]
        return [happened, *shown, (await self.status())["vault_state"]]


class SignalTests(AgentCase):
    """What a signal does to the daemon."""

    async def test_signals(self) -> None:
        """Stopped and let go on, it goes on; ended, it leaves what waits as it was, and nothing begins."""
        status = self.status_of(self.daemon())
        rights = [int(status[name], 16) for name in ("CapEff", "CapPrm", "CapBnd")]
        self.assertEqual(rights, [0] * 3, "a daemon of a user without a root's rights has some: this shows nothing")
        for number in (signal.SIGSTOP, signal.SIGCONT):
            await self.signal_daemon(number)
        await self.assert_waits()
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        for number in (signal.SIGTERM, signal.SIGUSR1):
            pid = self.daemon()
            await self.signal_daemon(number)
            while running_pid(self.state) == pid:
                await self.pause(0.1)
            await self.taken_up()
            await self.assert_waits()

    def daemon(self) -> int:
        """The daemon's process."""
        pid = running_pid(self.state)
        assert pid
        return pid

    async def signal_daemon(self, number: int) -> None:
        """Let the agent send it one."""
        self.assertEqual(await self.attack(_SIGNAL, str(self.daemon()), str(int(number))), "sent")


class PauseTests(RowsTestCase):
    """The operator's pause."""

    async def test_row(self) -> None:
        """Who deletes the row of a pause, with the daemon dead or alive, ends no pause: it lies in the vault."""
        await self.furnish()
        session = await self.session()
        await self.operator("pause")
        await self.sql(_PAUSED)
        self.assertEqual((await self.run_action(session, UNGATED)).body["error"]["class"], "paused")
        await self.kill_daemon()
        await self.attack_rows(_PAUSED)
        await self.taken_up()
        self.assertEqual((await self.run_action(await self.session(), UNGATED)).body["error"]["class"], "paused")
        self.assertEqual(self.workspace.requests, [])

    async def attack_rows(self, statement: str) -> None:
        """Change as many rows as there are."""
        source = (
            "import json, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); print(1)"
        )
        await self.attack(source, str(self.state.database), statement)


class RecordTests(AgentCase):
    """The record, in the hands of who can write each of its rows, and seal them as the daemon does."""

    timeout = 300

    async def begin(self) -> None:
        """Have it ask; and then agents come, when all that the user did is signed, so that the newest are not."""
        await super().begin()
        pipe = self.home.root / "deeds"
        os.mkfifo(pipe)
        self.orders = os.open(pipe, os.O_RDWR)
        self.addCleanup(os.close, self.orders)
        self.attacker = self.start(self.python(_AGAIN, _DEEDS, str(pipe)))
        await self.pause(3)
        for _ in range(2):
            await self.session()

    async def do(self, *deeds: str) -> None:
        """Have the attacker do one to the record, with C{undo} before it where another was done."""
        order = json.dumps([str(self.state.database), str(self.home.root / "before.db"), *deeds])
        os.write(self.orders, f"{order}\n".encode())
        await self.attacker.expect(f"{re.escape(json.dumps(deeds[-1]))}\n", 60)

    async def verify(self) -> str | None:
        """What kind of change is found first, if any is; the exit code must say so too."""
        ended = await self.aileron("audit", "verify", "--json")
        broken = json.loads(ended.stdout)["broken"]
        self.assertEqual(ended.exit_code, 0 if broken is None else 1, ended)
        return None if broken is None else str(broken["kind"])

    async def said(self) -> str:
        """What a person is told besides, of a record in which nothing is found."""
        return (await self.command("audit", "verify")).stderr

    async def found(self, *deeds: str) -> dict[str, str | None]:
        """What is found of each deed, done alone and undone; what is undone leaves nothing to be found."""
        found = {}
        await self.do("keep")
        for deed in deeds:
            await self.do("undo", deed)
            found[deed] = await self.verify()
        await self.do("undo")
        self.assertIsNone(await self.verify())
        return found

    async def test_while_it_runs(self) -> None:
        """With the daemon running, each kind of change is found, signed or not, and the daemon's own look finds it."""
        self.assertEqual(await self.found(*_INSIDE, *_AT_THE_END), {**_INSIDE, **_AT_THE_END})
        await self.assert_waits()

    async def test_hidden(self) -> None:
        """A daemon that somebody hides is asked all the same, or it is said first that nothing is confirmed."""
        await self.do("keep")
        discovery, lock = self.state.discovery, self.state.lock
        hidden = {path: path.with_name(f"{path.name}.hidden") for path in (discovery, lock)}
        for paths, replaced, codes in (
            ((lock,), False, (0, 1)),
            ((lock,), True, (0, 1)),
            ((discovery,), False, (69, 69)),
            ((discovery, lock), False, (69, 69)),
            ((discovery, lock), True, (69, 69)),
        ):
            for path in paths:
                path.rename(hidden[path])
            if replaced:
                lock.touch()
            found = [await self.first_line()]
            await self.do("cut")
            found.append(await self.first_line())
            await self.do("undo")
            self.assertEqual(tuple(code for code, _ in found), codes, (paths, replaced, found))
            self.assertEqual([line.startswith("Not confirmed:") for _, line in found], [code == 69 for code in codes])
            for path in paths:
                hidden[path].rename(path)
        self.assertIsNone(await self.verify())

    async def test_copied(self) -> None:
        """A daemon whose record somebody put a copy in the place of is known by its lock, and asked all the same."""
        copy = self.home.root / "copy.db"
        await self.attack(_BACKUP, str(self.state.database), str(copy))
        for ending in ("-wal", "-shm", ""):
            path = self.state.database.with_name(f"{self.state.database.name}{ending}")
            path.rename(path.with_name(f"hidden{ending}"))
        copy.rename(self.state.database)
        self.assertIn("The running daemon confirms it", (await self.command("audit", "verify")).stdout)
        await self.do("cut")
        self.assertEqual(await self.verify(), "truncated")

    async def first_line(self) -> tuple[int | None, str]:
        """How the look ends, and what a person reads first."""
        ended = await self.aileron("audit", "verify")
        return ended.exit_code, ended.stdout.partition("\n")[0]

    async def test_while_none_runs(self) -> None:
        """With the daemon killed, all is found but what is done to the records that are not signed; that is said.

        The look is the same whether or not a daemon runs: of what it finds by itself, a third is done here.
        """
        await self.kill_daemon()
        inside = {deed: _INSIDE[deed] for deed in list(_INSIDE)[:: 1 if is_all() else 3]}
        self.assertEqual(
            await self.found(*inside, *_AT_THE_END), {**inside, **dict.fromkeys(_AT_THE_END), "append": "decision"}
        )
        for deed in ("cut", "rewrite"):
            await self.do("undo", deed)
            self.assertIn("not signed yet. Changes there would not be detected.", await self.said(), deed)
