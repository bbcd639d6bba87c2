"""C{doc/run-at-login.md}, played with a C{systemctl} and its neighbours that note what they are asked."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import PASSPHRASE


class RunAtLoginTests(PageTestCase):
    """A user of systemd."""

    page = "run-at-login.md"

    @seldom
    async def test_played(self) -> None:
        """The unit is written and enabled, with the file of the passphrase the second time."""
        await self.operator("vault", "init")
        systemctl, loginctl, journalctl = map(self.put_recorder, ("systemctl", "loginctl", "journalctl"))
        unit = self.home.user / ".config" / "systemd" / "user" / "aileron.service"
        await self.play(Play("aileron daemon install"))
        self.assertIn('"daemon" "run" "--locked"\n', unit.read_text())
        secret = self.home.user / "aileron-passphrase"
        secret.write_text(PASSPHRASE)
        secret.chmod(0o600)
        await self.play(Play("aileron daemon install --passphrase-file ~/aileron-passphrase"))
        self.assertIn(f'"--passphrase-file" "{secret}"\n', unit.read_text())
        self.assertEqual(systemctl(), 2 * ["--user daemon-reload", "--user enable --now aileron.service"])
        await self.play(
            Play("loginctl enable-linger"),
            Play("systemctl --user status aileron"),
            Play("journalctl --user -u aileron"),
        )
        self.assertEqual((systemctl()[4:], loginctl()), (["--user status aileron"], ["enable-linger"]))
        self.assertEqual(journalctl(), ["--user -u aileron"])
