"""A vault that a credential of systemd unlocks at the start, through kills of the daemon; a double encrypts."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.functional.operated import OperatedTestCase
from tests.functional.process import Finished

_DOUBLE = """\
#!/bin/sh
for output; do :; done
umask 277
cat > "$output"
[ -z "$KILL_FIRST" ] || kill -9 "$KILL_FIRST"
"""
"""It writes what it is given in place of an encrypted file, then kills a process if it is told to."""


class KeySourceTests(OperatedTestCase):
    """A home, and what stands for systemd."""

    async def prepare(self) -> None:
        """Have a vault that is open, and the double on the path."""
        await self.furnish()
        self.place = Path(self.mktemp()).absolute()
        self.place.mkdir()
        double = self.place / "systemd-creds"
        double.write_text(_DOUBLE)
        double.chmod(0o755)
        self.credential = self.place / "aileron-vault"

    def around(self, **more: str) -> Mapping[str, str]:
        """The environment with the double."""
        return {"PATH": f"{self.place}:{self.home.environment()['PATH']}", **more}

    async def add_source(self, code: int = 0, **more: str) -> Finished:
        """Add a source."""
        words = ("vault", "key-source", "add", "server", "--output", str(self.credential))
        return self._expect(await self.operator_within(self.around(**more), *words), code)

    async def start_alone(self) -> str:
        """Start the daemon as a unit with the credential does, without a passphrase; the vault's state."""
        environment = self.home.environment(CREDENTIALS_DIRECTORY=str(self.place))
        started = await self.command_line.run(("daemon", "start"), environment, {}, self.confine)
        self.assertEqual(started.exit_code, 0, started.stderr)
        self.note = started.stderr
        return str(json.loads((await self.command("vault", "status", "--json")).stdout)["state"])

    async def test_unlocked(self) -> None:
        """After a kill the credential unlocks the vault, also after another passphrase; a removed source does not."""
        await self.prepare()
        await self.add_source()
        self.assertEqual(self.credential.stat().st_mode & 0o777, 0o400)
        await self.kill_daemon()
        self.assertEqual(await self.start_alone(), "unlocked")
        records = [each["type"] for each in await self.audit("--type", "vault.key_source_added")]
        self.assertEqual(records, ["vault.key_source_added"])
        (source,) = (await self.told("vault", "key-source", "list"))["items"]
        await self.operator("vault", "key-source", "remove", source["id"])
        await self.kill_daemon()
        self.assertEqual(await self.start_alone(), "locked")
        await self.unlock()

    async def test_killed_in_between(self) -> None:
        """A daemon that is killed after the credential was written has no source: the file opens nothing."""
        await self.prepare()
        before = self.state_file().read_bytes()
        failed = await self.add_source(code=1, KILL_FIRST=str(self.home.discovery()["pid"]))
        self.assertIn("unlocks nothing", failed.stderr)
        self.assertEqual(self.state_file().read_bytes(), before)
        self.assertEqual(await self.start_alone(), "locked")
        await self.unlock()
        self.credential.unlink()
        await self.add_source()
        await self.kill_daemon()
        self.assertEqual(await self.start_alone(), "unlocked")

    async def test_open_to_others(self) -> None:
        """A credential that others can read unlocks nothing, and the person is told so."""
        await self.prepare()
        await self.add_source()
        await self.kill_daemon()
        self.credential.chmod(0o644)
        self.assertEqual(await self.start_alone(), "locked")
        self.assertIn("others can read or write it", self.note)

    def state_file(self) -> Path:
        """The vault's file."""
        return Path(self.home.environment()["AILERON_HOME"], "secrets.json")
