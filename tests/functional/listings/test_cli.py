"""C{doc/cli.md}, played: a script asks, reads what it asked for, and approves exactly that."""

from __future__ import annotations

import json

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import PASSPHRASE


class CommandLineTests(PageTestCase):
    """A script that has the passphrase in a file."""

    page = "cli.md"

    @seldom
    async def test_played(self) -> None:
        """What was shown is approved by its digest, and done."""
        await self.furnish()
        (self.home.project / "passphrase").write_text(PASSPHRASE)
        asked = Play(
            'aileron action run ship-update --arg channel=#engineering --arg summary="It flies." --json', code=75
        )
        run_id = json.loads(await self.play(asked))["run_id"]
        await self.play(
            Play(
                'aileron approval show "$id" --json --passphrase-fd 3 3<passphrase >seen.json',
                environment={"id": run_id},
            ),
            Play(
                'aileron approve "$id" --yes --digest "$(jq -r .digest seen.json)" --passphrase-fd 3 3<passphrase',
                environment={"id": run_id},
                shows=["Approved and completed"],
            ),
        )
        self.assertEqual([each.text for each in self.workspace.messages], ["It flies."])
