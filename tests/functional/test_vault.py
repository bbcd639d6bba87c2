"""Another passphrase, and another vault, with a daemon that runs."""

import attrs

from tests.functional.operated import UNGATED, OperatedTestCase

_NEW = "Rote Halde 58 Torte Brunnen"
_NEW_DESCRIPTOR = 5


class PassphraseTests(OperatedTestCase):
    """``aileron vault passphrase``."""

    async def test_changed(self) -> None:
        """The old passphrase opens nothing any more; what was bound and trusted is as before, and agents stay."""
        await self.furnish()
        session = await self.session()
        command = self._as_operator("vault", "passphrase", "--new-passphrase-fd", str(_NEW_DESCRIPTOR))
        command = attrs.evolve(command, feeds={**command.feeds, _NEW_DESCRIPTOR: _NEW.encode()})
        self._expect(await self.run_command(command), 0)
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        ran = await self.run_action(session, UNGATED, wait=30)
        self.assertEqual((ran.status, len(self.workspace.messages)), (200, 1), ran.body)
        await self.operator("binding", "list", code=1)
        listed = self.home.with_passphrase(_NEW, "aileron", "binding", "list")
        self.assertIn("slack", self._expect(await self.run_command(listed), 0).stdout)
