"""The installed command proves a connector, with no daemon, no vault and no home of the user's."""

import json

from tests.features.proving.wrong import FILE, FIXTURES
from tests.functional.case import FunctionalTestCase


class ProveTests(FunctionalTestCase):
    """C{aileron connector prove}."""

    async def test_file(self) -> None:
        """For the author's CI: 0 and a card where all holds, 1 where not; nothing is made in the home."""
        file = self.home.project / "tracker.toml"
        file.with_suffix(".fixtures.toml").write_text(FIXTURES)
        for refused, code in (("[]", 0), ("[504]", 1)):
            file.write_text(FILE.replace('effect = "write"\nerror', f'effect = "write"\nrefused = {refused}\nerror'))
            arguments = ("prove", "--file", "tracker.toml", "--operation", "create", "--json")
            finished = await self.run_command(self.home.script("aileron", *arguments))
            self.assertEqual((finished.exit_code, finished.stderr), (code, ""), finished.stdout)
            told = json.loads(finished.stdout)
            (card,) = told["connectors"]
            self.assertEqual((told["holds"], card["operations"]), (code == 0, ["create"]))
            verdicts = {name: each["verdict"] for name, each in card["checks"].items()}
            expected = {**dict.fromkeys(("once", "truth", "secret", "reconcile"), "holds")}
            self.assertEqual(verdicts, expected if code == 0 else {**expected, "truth": "fails"})
        self.assertFalse(self.home.aileron.exists())
