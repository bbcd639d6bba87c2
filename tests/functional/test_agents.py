"""What a real agent gets of a launch, of wrong calls, and of another agent beside it."""

import json
from typing import Any

from twisted.internet.defer import Deferred, gatherResults

from tests.functional import opencode, tree
from tests.functional.home import Home
from tests.functional.operated import PASSPHRASE, SHIP, OperatedTestCase
from tests.functional.process import Finished
from tests.functional.script import Call, Say
from tests.functional.test_kit import toy
from tests.installed import seldom

NOTE = {"channel": "#general", "summary": "Lunch."}
WRONG = {"channel": 5, "sumary": "oops"}


class ConversationTests(OperatedTestCase):
    """One long conversation of one agent."""

    async def test_conversation(self) -> None:
        """Wrong arguments are named one by one, an ungated action runs at once, and the user's own server is there."""
        await self.furnish()
        llm = self.llm(
            [Call("aileron_ship_update", WRONG), Call("_post_note", NOTE), Call("mine_ship_update", SHIP), Say("well")]
        )
        own = {"mine": toy(mark="mine")["aileron"]}
        path = opencode.configure_user(self.home, opencode.configuration(llm.url, own))
        before = path.read_bytes()
        finished = await self.run_command(self.launched())
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["well"]))
        wrong, note, mine = llm.script.received[-1].tool_results
        for named in ("- channel:", "- summary:", "- sumary:", "invalid_request"):
            self.assertIn(named, wrong)
        self.assertEqual(json.loads(note)["channel"], "C0001")
        self.assertIn("mine: pending", mine)
        (request,) = self.workspace.requests
        self.assertEqual((request.body["channel"], request.body["text"]), ("#general", "Lunch."))
        self.assertEqual(path.read_bytes(), before)
        self.assertEqual([each["state"] for each in (await self.told("runs", "list"))["items"]], ["completed"])


class LaunchedTests(OperatedTestCase):
    """An agent that waits for a decision, looked at from outside."""

    async def test_surroundings(self) -> None:
        """Agent and tool server get the session's token and no other credential; SIGTERM ends all and the session."""
        await self.furnish()
        llm = self.llm([Call("_ship_update", SHIP)])
        opencode.configure_user(self.home, opencode.configuration(llm.url))
        agent = self.launch(MINE="kept", AILERON_URL="http://stale")
        (approval,) = await self.waiting()
        members = {member.program: member for member in tree.descendants(agent.pid)}
        self.assertEqual(set(members), {"opencode", "aileron-mcp"})
        self.assert_own_registration(members["opencode"])
        key = self.home.discovery()["launch_key"]
        for member in members.values():
            whole = json.dumps([member.arguments, dict(member.environment)])
            for secret in (PASSPHRASE, key, "ail_o_", "ail_l_", self.workspace.token):
                self.assertNotIn(secret, whole)
            self.assertNotIn("ail_a_", json.dumps(member.arguments))
            self.assertEqual(member.environment["MINE"], "kept")
        await agent.signal(seconds=15)
        self.assertEqual(list(tree.descendants(agent.pid)), [])
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assertEqual((await self.waiting())[0]["id"], approval["id"])

    def assert_own_registration(self, agent: tree.Member) -> None:
        """Nothing of ours stands in the agent's own environment but the registration."""
        ours = {name for name, text in agent.environment.items() if "ail_a_" in text or name.startswith("AILERON_")}
        self.assertEqual(ours, {"OPENCODE_CONFIG_CONTENT"})
        server = json.loads(agent.environment["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]
        said = {"URL", "TOKEN", "WAIT_SECONDS", "CLIENT", "ATTENDED"}
        self.assertEqual(set(server["environment"]), {f"AILERON_{name}" for name in said})
        self.assertEqual(server["environment"]["AILERON_URL"], self.home.discovery()["url"])

    async def test_passphrase_in_the_environment(self) -> None:
        """With the passphrase in the environment nothing is launched."""
        finished = await self.run_command(self.launched(AILERON_VAULT_PASSPHRASE=PASSPHRASE))
        self.assertEqual((finished.exit_code, finished.stdout), (1, ""))
        self.assertIn("AILERON_VAULT_PASSPHRASE", finished.stderr)
        self.assertNotIn(PASSPHRASE, finished.stderr)


class TwoAgentsTests(OperatedTestCase):
    """Two at once, each with its own model and home."""

    @seldom
    async def test_each_gets_its_own(self) -> None:
        """Decided in the other order and differently, each agent gets its own answer, in a session of its own."""
        await self.furnish()
        asked = {name: {"channel": f"#{name}", "summary": name} for name in ("general", "engineering")}
        llm = self.llm({name: [Call("_ship_update", asked[name]), Say(f"bye {name}")] for name in asked})
        homes = {"general": self.home, "engineering": Home.make()}
        self.addCleanup(homes["engineering"].remove)
        for name, home in homes.items():
            opencode.configure_user(home, opencode.configuration(llm.url, model=name))
        ends = [Deferred.fromCoroutine(self.launch(home=home).finish(120)) for home in homes.values()]
        waiting = {each["run"]["arguments"]["summary"]: each for each in await self.waiting(2, 90)}
        self.assertEqual(len({each["run"]["session_id"] for each in waiting.values()}), 2)
        await self.operator("approval", "deny", waiting["general"]["id"], "--reason", "no lunch")
        await self.approve(waiting["engineering"]["id"])
        finished: list[Finished] = await gatherResults(ends, consumeErrors=True)
        self.assertEqual([each.exit_code for each in finished], [0, 0])
        self.assertEqual([opencode.texts(each) for each in finished], [[f"bye {name}"] for name in homes])
        results: dict[str, Any] = {name: llm.script.of(name)[1].tool_results for name in homes}
        for part in ("no lunch", "approval_denied"):
            self.assertIn(part, results["general"][0])
        (denied,) = [each for each in await self.audit() if each["type"] == "approval.denied"]
        self.assertEqual(denied["payload"]["reason"], "no lunch")
        self.assertEqual(json.loads(results["engineering"][0])["channel"], "C0002")
        self.assertEqual([message.text for message in self.workspace.messages], ["engineering"])
