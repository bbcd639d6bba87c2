"""Another passphrase, and another vault, with a daemon that runs."""

from collections.abc import Mapping

from tests.functional.operated import PASSPHRASE, UNGATED, OperatedTestCase
from tests.functional.process import Finished

_NEW = "Rote Halde 58 Torte Brunnen"


class PassphraseTests(OperatedTestCase):
    """``aileron vault passphrase``."""

    async def test_changed(self) -> None:
        """The old passphrase opens nothing any more; what was bound and trusted is as before, and agents stay."""
        await self.furnish()
        session = await self.session()
        both = {"--passphrase-fd": PASSPHRASE, "--new-passphrase-fd": _NEW}
        await self._fed(both, "vault", "passphrase")
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        ran = await self.run_action(session, UNGATED, wait=30)
        self.assertEqual((ran.status, len(self.workspace.messages)), (200, 1), ran.body)
        await self.operator("resume", code=1)
        await self._fed({"--passphrase-fd": _NEW}, "resume")
        self.assertIn("slack", (await self.command("credential", "list")).stdout)

    async def _fed(self, fed: Mapping[str, str], *arguments: str) -> Finished:
        return self._expect(await self.command_line.run(arguments, self.home.environment(), fed, self.confine), 0)
