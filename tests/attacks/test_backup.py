"""A thief with a copy of the home, as a backup keeps it, and time."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

from tests.attacks.case import AttackTestCase
from tests.extent import is_all
from tests.functional import canary
from tests.functional.home import Home
from tests.functional.operated import GATED, PASSPHRASE, UNGATED

_KNOWN = ("password1234!", "aileron-aileron", "Blaue Wiese 47 Kuchen Tur", PASSPHRASE.lower(), PASSPHRASE + " ")
_LEAST = {"iterations": 3, "memory_kib": 64 * 1024, "lanes": 4}


class BackupTests(AttackTestCase):
    """The home of a user who works, copied while the daemon runs."""

    async def stolen(self) -> Path:
        """The copy; an action ran and another waits, so that everything has been used."""
        await self.furnish()
        self.given = await self.session()
        self.operators = await self.operator_token()
        await self.run_action(self.given, UNGATED, wait=20)
        await self.run_action(self.given, GATED)
        return Path(shutil.copytree(self.home.aileron, self.home.root / "stolen", copy_function=_if_there))

    async def test_no_secret(self) -> None:
        """No key, passphrase or token that opens anything stands in it, in any usual form."""
        copy = await self.stolen()
        words = (self.workspace.token, PASSPHRASE, self.operators, self.given.token, self.given.gateway_key)
        self.assertEqual([found for word in words for found in canary.in_files(copy, word)], [])

    async def test_nothing_opens(self) -> None:
        """A daemon that the thief starts over it is locked; guesses do not open it, and a softened copy not at all."""
        copy = await self.stolen()
        home = Home(self.home.root / "thief")
        for directory in (home.root, home.user, home.project, home.temporary):
            directory.mkdir()
        shutil.copytree(copy, home.aileron)
        for guess in _KNOWN if is_all() else _KNOWN[-2:]:
            self.assertEqual(await self.unlocked(home, guess), 1, guess)
        path = home.aileron / "secrets.json"
        vault = json.loads(path.read_text())
        for softer in ({"memory_kib": 8}, {"iterations": 1}, {"memory_kib": _LEAST["memory_kib"] // 2}, {"lanes": 0}):
            path.write_text(json.dumps({**vault, "kdf": {**vault["kdf"], **softer}}))
            self.assertEqual(await self.unlocked(home, PASSPHRASE), 1, softer)
        path.write_text(json.dumps(vault))
        self.assertEqual(await self.unlocked(home, PASSPHRASE), 0, "the copy does not open at all: this shows nothing")
        self._expect(await self.command_line.run(("daemon", "stop"), home.environment(), {}), 0)

    async def unlocked(self, home: Home, passphrase: str) -> int | None:
        """How an attempt ends."""
        fed = {"--passphrase-fd": passphrase}
        return (await self.command_line.run(("vault", "unlock"), home.environment(), fed, self.confine)).exit_code

    async def test_what_a_guess_costs(self) -> None:
        """The file asks for as much memory and as many passes for each guess as is written of it."""
        kdf = json.loads((await self.stolen() / "secrets.json").read_text())["kdf"]
        self.assertEqual((kdf["algorithm"], {name: kdf[name] for name in _LEAST}), ("argon2id", _LEAST))
        self.assertGreaterEqual(len(kdf["salt"]), 20)


def _if_there(one: str, other: str) -> None:
    """Copy what the daemon has not renamed meanwhile."""
    with contextlib.suppress(FileNotFoundError):
        shutil.copy2(one, other)
