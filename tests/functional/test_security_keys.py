"""A vault that a security key unlocks, by the installed commands at a terminal; the security key is of software.

The commands are those of the installed package. Only the list of what is plugged in is replaced, in a program of this
test: nothing that the package has, or reads from its environment, replaces it.
"""

import json
import shlex
import sys
from pathlib import Path

import attrs

from tests.functional.operated import PASSPHRASE, OperatedTestCase
from tests.functional.process import Finished, Running

_PIN, _SEED = "canary-pin-4711", "5a" * 32
_PROGRAM = """\
import json, sys
sys.path.append({tests!r})
from attrs import evolve
from aileron.cli._main import run
from aileron.cli.context import real_context
from aileron.hardening import harden
from tests.features.key_sources import software_key

def plugged():
    harden()
    given = json.load(open({key!r}))
    finger = getattr(software_key, given.pop("finger"))
    return [software_key.SoftwareKey(seed=bytes.fromhex(given.pop("seed")), finger=finger, **given)]

sys.exit(run(sys.argv[1:], evolve(real_context(), security_keys=plugged)))
"""


class SecurityKeyTests(OperatedTestCase):
    """A person at a terminal, with a security key."""

    async def prepare(self, pin: str | None = _PIN) -> None:
        """Have a vault that is open, and a program of the commands that finds the security key."""
        await self.furnish()
        place = Path(self.mktemp()).absolute()
        place.mkdir()
        self.key, self.program, self.token = place / "key.json", place / "with_key.py", place / "token"
        tests = str(Path(__file__).parents[2])
        self.program.write_text(_PROGRAM.format(tests=tests, key=str(self.key)))
        self.plug(pin=pin)
        self.shown: list[str] = []

    def plug(self, seed: str = _SEED, finger: str = "touch", pin: str | None = _PIN) -> None:
        """Plug in a security key."""
        self.key.write_text(json.dumps({"seed": seed, "finger": finger, "pin": pin}))

    def with_key(self, *words: str) -> Running:
        """Start a command at a terminal."""
        command = self.home.on_terminal("aileron")
        line = f"exec {shlex.join((sys.executable, str(self.program), *words))} 4>{shlex.quote(str(self.token))}"
        return self.start(attrs.evolve(command, arguments=("/bin/sh", "-c", line)))

    async def finished(self, running: Running, code: int = 0) -> Finished:
        """What came of it."""
        ended = await running.finish(60)
        self.shown.append(ended.stdout)
        return self._expect(ended, code)

    async def add_key(self, pin: str | None = _PIN) -> Finished:
        """Add the security key."""
        running = self.with_key("vault", "key-source", "add", "blue", "--security-key")
        await running.expect("Passphrase of the vault")
        running.send(PASSPHRASE)
        if pin is not None:
            await running.expect("PIN of the security key, to add it to the vault")
            running.send(pin)
        await running.expect("once more to add it")
        return await self.finished(running)

    async def vault_state(self) -> str:
        """The vault's state."""
        return str(json.loads((await self.command("vault", "status", "--json")).stdout)["state"])

    async def test_unlocked(self) -> None:
        """The PIN and a touch unlock the vault: to unlock, to start the daemon, and to log in; the PIN is nowhere."""
        await self.prepare()
        self.assertNotIn("has no PIN", (await self.add_key()).stdout)
        for words in (
            ("vault", "unlock"),
            ("daemon", "start"),
            ("operator", "login", "--unlock", "--token-fd", "4"),  # what `aileron open` starts
        ):
            await self.kill_daemon()
            running = self.with_key(*words)
            await running.expect("PIN of the security key, to unlock the vault")
            running.send(_PIN)
            await running.expect("Touch the security key to unlock the vault")
            await self.finished(running)
            self.assertEqual(await self.vault_state(), "unlocked")
        self.assertTrue(self.token.read_text().strip())
        (record,) = await self.audit("--type", "vault.key_source_added")
        self.assertEqual((record["payload"]["kind"], record["payload"]["name"]), ("security_key", "blue"))
        kept = [each.read_bytes() for each in self.home.aileron.rglob("*") if each.is_file()]
        self.assertNotIn(_PIN.encode(), b"".join(kept))
        self.assertNotIn(_PIN, "".join(self.shown))

    async def test_otherwise(self) -> None:
        """Another key, Enter and Ctrl-C unlock nothing; the passphrase does each time."""
        await self.prepare(pin=None)
        self.assertIn("has no PIN", (await self.add_key(pin=None)).stdout)
        self.plug(seed="a5" * 32, pin=None)
        await self.kill_daemon()
        running = self.with_key("vault", "unlock")
        await running.expect("not one that unlocks")
        await self._by_passphrase(running)
        await self.kill_daemon()
        self.plug(finger="wait_for_cancel", pin=None)
        running = self.with_key("vault", "unlock")
        await running.expect("Press Enter to type the passphrase instead")
        running.press("\n")
        await self._by_passphrase(running)
        await self.kill_daemon()
        running = self.with_key("vault", "unlock")
        await running.expect("Touch the security key")
        ended = await running.interrupt()
        self.assertEqual((ended.exit_code, ended.stdout.count("Traceback")), (130, 0))

    async def test_removed(self) -> None:
        """A removed key is not asked for any more."""
        await self.prepare()
        await self.add_key()
        (source,) = (await self.told("vault", "key-source", "list"))["items"]
        self.assertEqual(set(source), {"id", "kind", "name", "public_key", "made_at"})
        await self.operator("vault", "key-source", "remove", source["id"])
        await self.kill_daemon()
        running = self.with_key("vault", "unlock")
        await self._by_passphrase(running)
        self.assertNotIn("ecurity key", running.output)

    async def _by_passphrase(self, running: Running) -> None:
        await running.expect("Passphrase of the vault")
        running.send(PASSPHRASE)
        await self.finished(running)
        self.assertEqual(await self.vault_state(), "unlocked")
