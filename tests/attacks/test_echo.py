"""A service that sends back the key that it got, called by an agent that would like to have it."""

import json

from tests.attacks.case import AttackTestCase
from tests.functional import slack
from tests.functional.canary import in_files
from tests.functional.operated import GATED, UNGATED


class EchoTests(AttackTestCase):
    """What comes of the key on its way back."""

    async def test_asked_for(self) -> None:
        """No answer to the agent, no file, no record holds it; each echo is on record, and the binding is flagged."""
        await self.furnish()
        session, token = await self.session(), self.workspace.token
        self.workspace.next = [slack.echo(), slack.echo(applied=False)]
        said = [(await self.run_action(session, UNGATED, wait=20)).text for _ in range(2)]
        self.workspace.next = [slack.echo()]
        run_id = str((await self.run_action(session, GATED)).body["run_id"])
        await self.approve(run_id)
        said.append(json.dumps(await self.told("runs", "show", run_id)))
        self.assertEqual([token in text or token.encode().hex() in text for text in said], [False] * 3)
        self.assertEqual(len(self.workspace.requests), 3)
        self.assertEqual(in_files(self.home.aileron, token), [])
        echoed = [each for each in await self.audit() if each["type"] == "secret.echoed"]
        self.assertEqual(len(echoed), 3)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertIsNotNone(binding["flag"])
