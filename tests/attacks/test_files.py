"""Files of the home, written by a process of the same user: none of them decides anything by lying there."""

import json
from collections.abc import Mapping
from typing import Any

from tests.attacks.case import AttackTestCase
from tests.functional.operated import CONNECTOR, GATED, SHIP, UNGATED, AgentSession

# Writes each file that it is told about; a file of another name, or in the place of one that is there.
_WRITE = """
import json, os, sys
for path, text in json.loads(sys.argv[1]).items():
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o600)
print(json.dumps("written"))
"""


class FilesCase(AttackTestCase):
    """An attacker that writes into the home, and an agent that then calls."""

    async def write(self, **texts: str) -> None:
        """Let the attacker write files, by their path in the home with ``__`` for each slash."""
        files = {str(self.home.aileron / name.replace("__", "/")): text for name, text in texts.items()}
        self.assertEqual(await self.attack(_WRITE, json.dumps(files)), "written")
        await self.pause(1.5)  # the daemon looks twice a second

    def action(self, name: str) -> str:
        """What the file of an action says."""
        return (self.state.actions / f"{name}.md").read_text()

    async def offered(self, session: AgentSession) -> Mapping[str, Any]:
        """What the daemon offers an agent."""
        url = f"{self.home.discovery()['url']}/v1/actions"
        return (await self.web.ask("GET", url, session.token)).body

    async def assert_inert(self, session: AgentSession, name: str, said: str) -> None:
        """An action is not offered, said to be untrusted, and not to be called."""
        offering = await self.offered(session)
        self.assertNotIn(name, [each["name"] for each in offering["items"]])
        untrusted = [each["message"] for each in offering["load_errors"] if each["kind"] == "untrusted"]
        self.assertTrue(any(said in message for message in untrusted), offering["load_errors"])
        reply = await self.run_action(session, name)
        self.assertEqual(reply.status, 404, reply.body)
        self.assertEqual(self.workspace.requests, [])


class ActionFileTests(FilesCase):
    """Action files."""

    async def test_untrusted(self) -> None:
        """What was changed or added is neither offered nor done, and what waited is not what was shown any more.

        The trusted bytes are enough to have an action back; another file of its name does not get its trust. Of trust
        that was tried by a file the record says nothing.
        """
        await self.furnish()
        session, trusted = await self.session(), self.action(UNGATED)
        waits = (await self.run_action(session, GATED)).body["approval_id"]
        written = {
            f"actions__{GATED}.md": self.action(GATED).replace("required = true", "required = false"),
            f"actions__{UNGATED}.md": trusted + " ",
            "actions__evil.md": trusted.replace(UNGATED, "evil"),
        }
        await self.write(**written)
        for name, said in ((GATED, "changed"), (UNGATED, "changed"), ("evil", "new")):
            await self.assert_inert(session, name, said)
        self.assertIn("changed since it was trusted", (await self.approve(waits, code=1)).stderr)
        await self.write(**{f"actions__{UNGATED}.md": trusted})
        self.assertEqual((await self.run_action(session, UNGATED, wait=20)).status, 200)
        await self.write(**{"actions__aaa.md": trusted.replace('text = "', 'text = "evil ')})
        self.assertNotEqual((await self.run_action(session, UNGATED)).status, 200)
        self.assertEqual(len(self.workspace.requests), 1)
        given = [each for each in await self.audit() if each["type"] == "trust.given"]
        self.assertTrue(given)
        self.assertNotIn("evil", json.dumps(given))


class ConnectorFileTests(FilesCase):
    """Connector files."""

    async def test_another_host(self) -> None:
        """A connector that was pointed elsewhere gets nothing to send; trusted anew, it gets no key for there."""
        await self.furnish()
        session = await self.session()
        thief = self.slack()
        text = (self.state.connectors / "slack.toml").read_text()
        moved = text.replace(self.service.url.split("//")[1], thief.url.split("//")[1])
        self.assertNotEqual(moved, text)
        await self.write(**{"connectors__slack.toml": moved})
        await self.assert_inert(session, UNGATED, CONNECTOR)
        await self.operator("connector", "trust", CONNECTOR, "--yes")
        reply = await self.run_action(session, UNGATED, wait=20)
        self.assertEqual((reply.status, reply.body["error"]["class"]), (412, "binding_failed"), reply.body)
        self.assertEqual(thief.workspace.requests, [])


class ConfigurationTests(FilesCase):
    """The configuration."""

    async def test_ignored(self) -> None:
        """What nobody trusted in it is not obeyed by the next life of the daemon, which says so."""
        await self.furnish()
        await self.command("daemon", "stop")
        await self.attack(_WRITE, json.dumps({str(self.state.config): "pending:\n  per_session: 1\n  per_action: 1\n"}))
        await self.unlock()
        session = await self.session()
        for number in range(3):
            asked = await self.run_action(session, GATED, {**SHIP, "summary": f"number {number}"})
            self.assertEqual(asked.status, 202, asked.body)
        errors = (await self.offered(session))["load_errors"]
        self.assertIn("config.yaml", json.dumps(errors))
