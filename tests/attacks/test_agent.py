"""The agent as a process of the user's: it runs the user's commands, signals the daemon, and writes rows."""

from __future__ import annotations

import json
import signal

from aileron.home import running_pid
from tests.attacks.test_rows import RowsTestCase
from tests.functional.home import installed
from tests.functional.operated import CONNECTOR, GATED, UNGATED, AgentSession, kinds

# Runs each command with nothing on standard input and no terminal, several at a time; how each ended, and what it said.
_RUN = """
import concurrent.futures, json, subprocess, sys
def ended(words):
    nothing = subprocess.DEVNULL
    done = subprocess.run([sys.argv[1], *words], stdin=nothing, capture_output=True, text=True, timeout=100)
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
_PAUSED = "DELETE FROM watermarks WHERE name = 'paused'"


class AgentCase(RowsTestCase):
    """A user whose agent asked for something that waits."""

    given: AgentSession
    run_id: str

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
        await self.begin()
        await self.operator("action", "disable", UNGATED)
        await self.operator("pause", "--session", self.given.id)
        (self.state.actions / "evil.md").write_text("+++\n+++\n")
        before = await self.state_of_things()
        attempts = self.deeds()
        ended = await self.attack(_RUN, installed("aileron"), json.dumps(attempts), seconds=300)
        done = [words for words, (code, _) in zip(attempts, ended, strict=True) if code == 0]
        self.assertEqual(done, [])
        self.assertEqual(await self.state_of_things(), before)
        await self.assert_waits()

    def deeds(self) -> list[list[str]]:
        """Every kind of command that changes what the agent may do."""
        lines = (
            f"approval approve {self.run_id} --yes",
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
            "resume",
            "vault passphrase",
            "vault init",
            "vault lock",
            "audit list",
            "operator login --token-fd 1",
            "operator revoke --all",
            "open",
        )
        return [line.split() for line in lines]

    async def state_of_things(self) -> object:
        """What happened but for logins, what is bound, limited and allowed."""
        happened = [kind for kind in kinds(await self.audit()) if not kind.startswith("operator.")]
        shown = [await self.told(*words) for words in (("binding", "list"), ("cap", "list"), ("grant", "list"))]
        return [happened, *shown, (await self.status())["vault_state"]]


class SignalTests(AgentCase):
    """What a signal does to the daemon."""

    async def test_signals(self) -> None:
        """Stopped and let go on, it goes on; ended, it leaves what waits as it was, and nothing begins."""
        await self.begin()
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


class PauseTests(AgentCase):
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
    """The record."""

    async def test_forged(self) -> None:
        """An event that somebody adds while the daemon runs is told of after the next true one, and does not verify."""
        await self.begin()
        source = """
import json, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=20)
connection.row_factory = sqlite3.Row
last = dict(connection.execute("SELECT * FROM audit_events ORDER BY seq DESC LIMIT 1").fetchone())
last["seq"] += 1
last.update({name: value + "x" for name, value in last.items() if name in ("id", "event_id")})
names = ", ".join(last)
connection.execute(f"INSERT INTO audit_events ({names}) VALUES ({', '.join('?' * len(last))})", list(last.values()))
connection.commit()
print(json.dumps(last["seq"]))
"""
        self.assertGreater(await self.attack(source, str(self.state.database)), 1)
        # The login that a look needs is the next record; what it brings to light is told beside it, not before.
        looks = [kinds(await self.audit()) for _ in range(2)]
        while "tamper.detected" not in looks[-1] and len(looks) < 8:
            looks.append(kinds(await self.audit()))
        self.assertIn("tamper.detected", looks[-1])
        self.assertNotEqual((await self.run_command(self.home.script("aileron", "audit", "verify"))).exit_code, 0)
        await self.assert_waits()
