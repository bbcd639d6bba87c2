"""A key that stands in the path of each request: in what leaves, and in nothing that is shown, recorded or written."""

import json
import re

from tests.functional import canary
from tests.functional.operated import GATED, UNGATED, OperatedTestCase


class KeyInPathTests(OperatedTestCase):
    """A service like Telegram's, whose token is part of the address."""

    def write_connector(self) -> None:
        """Have the connector put the key in front of the path."""
        super().write_connector()
        path = self.state.connectors / "slack.toml"
        placed = re.sub(r"(?m)^header = .*\nformat = .*$", 'path = "/bot{key}"', path.read_text())
        path.write_text(placed)

    async def test_nowhere(self) -> None:
        """The service gets it; review, record, errors, log, database and vault do not show it."""
        await self._furnish_slowly()
        token, session = self.workspace.token, await self.session()
        shown = [(await self.run_action(session, UNGATED, wait=30)).text]
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        review = await self.operator("approval", "show", asked)
        self.assertIn("/bot(the credential", review.stdout)
        self.assertIn(f"{self.service.url}/api/chat.postMessage", review.stdout)
        finished = await self.approve(asked, code=1)
        await self.service.stop()
        gone = await self.run_action(session, UNGATED, wait=30)
        self.assertEqual(gone.body["error"]["class"], "network_error")
        shown += [gone.text, review.stdout + review.stderr, finished.stdout + finished.stderr]
        shown += [json.dumps(await self.audit()), (await self.operator("runs", "show", asked, "--json")).stdout]
        self.assertEqual({each.path for each in self.workspace.requests}, {f"/bot{token}/api/chat.postMessage"})
        self.assertFalse(any("authorization" in each.headers for each in self.workspace.requests))
        for text in shown:
            self.assertEqual(list(canary.in_bytes("shown", text.encode(), token)), [])
        self.assertEqual(canary.in_files(self.home.aileron, token), [])
