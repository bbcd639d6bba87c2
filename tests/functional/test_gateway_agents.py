"""The real OpenCode, launched: the main job, its traffic to its model through the gateway."""

import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any

from aileron.features.launch.agents.opencode import AGENT
from aileron.features.launch.layers import read_settings
from aileron.features.launch.registration import Invocation
from tests.functional import canary, opencode, tree
from tests.functional.case import FunctionalTestCase
from tests.functional.operated import CONNECTOR, GATED, SHIP, kinds
from tests.functional.process import Command
from tests.functional.script import Call, Say, Turn
from tests.functional.test_canary import CanaryTestCase

STORY = ["approval.requested", "approval.approved", "execution.started", "execution.succeeded"]
GPT = "gpt-5.1"
KEY = "sk-canary-7c0d11e94b"
NOWHERE = "http://127.0.0.1:9"
NOTE = {"channel": "#general", "summary": "Lunch."}
WRONG = {"channel": 5, "sumary": "oops"}
_OWN_SERVER = """
from mcp.server import MCPServer

server = MCPServer("own")

@server.tool()
def ship_update(channel: str, summary: str) -> str:
    return f"mine, for {channel}"

server.run()
"""
"""A tool server of the user's own, with a tool of the same name as ours."""


class ThroughTheGatewayTests(CanaryTestCase):
    """An agent whose providers are the daemon's."""

    async def test_main_job(self) -> None:
        """An approved call leaves once, with a key that the agent never sees; the model is told, and all is on record.

        The provider sees the user's own key and nothing of ours, and the user's proxy sees nothing. Wrong arguments are
        named one by one, an ungated action runs at once, and the user's own tool server is there. The session's key of
        the gateway and the user's own of the model are in the agent's environment alone.
        """
        own, ours = Call("mine_ship_update", SHIP), Call("aileron_ship_update", SHIP)
        turns: list[Turn] = [Call("aileron_ship_update", WRONG), Call("_post_note", NOTE), own, ours, Say("all done")]
        llm = self.llm({GPT: turns})
        self.use_upstream(llm)
        await self.furnish()
        path = self.configure_agent(
            f"openai/{GPT}", mine=opencode.stdio_server([sys.executable, "-c", _OWN_SERVER], {})
        )
        before = path.read_bytes()
        agent = self.launch(OPENAI_API_KEY=KEY, HTTP_PROXY=NOWHERE, http_proxy=NOWHERE, NO_PROXY="example.com")
        (approval,) = await self.waiting()
        self.assertEqual((len(self.workspace.requests), approval["run"]["arguments"]), (1, SHIP))
        self.search_processes(agent.pid)
        await self.approve(approval["id"])
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        self.assertIn("through the gateway: openai", finished.stderr)
        self.assertEqual(path.read_bytes(), before)
        self.said["agent"] = finished.stdout + finished.stderr
        self.said["model"] = "".join(json.dumps(dict(each.body)) for each in llm.script.received)
        self.assert_nowhere()
        self.assert_told(*llm.script.received[-1].tool_results)
        await self.assert_recorded(approval)
        first, *_, last = llm.script.received
        self.assertEqual((first.headers["host"], first.path), (llm.url.removeprefix("http://"), "/v1/responses"))
        self.assertEqual(last.headers["authorization"], f"Bearer {KEY}")
        for each in llm.script.received:
            self.assertNotIn("ail_", json.dumps([each.path, dict(each.headers)]))
            self.assertNotIn("ail_g_", json.dumps(each.body))
        session = await self.told("sessions", "show", approval["run"]["session_id"])
        self.assertEqual(session["gateway"]["requests"], len(turns))
        self.assertEqual([each["state"] for each in (await self.told("runs", "list"))["items"]], ["completed"] * 2)

    def search_processes(self, launcher: int) -> None:
        """No process of the agent's, nor the daemon, shows a secret; what passes by is where it may be."""
        members = list(tree.descendants(launcher))
        self.assertGreaterEqual(len(members), 2)
        self.assert_not_in_processes(launcher, self.daemon_pid())
        for member in members:
            with contextlib.suppress(FileNotFoundError):  # it may end at any time
                self.assert_not_in_processes(member.pid)
        self.note_passing_keys(launcher, members)

    def note_passing_keys(self, launcher: int, members: list[tree.Member]) -> None:
        """Take the gateway key from where it may be, and see that neither is where it may not be."""
        (agent,) = [member for member in members if member.program == "opencode"]
        given = json.loads(agent.environment["OPENCODE_CONFIG_CONTENT"])["provider"]["openai"]["options"]
        self.passing = [given["headers"]["X-Aileron-Gateway-Key"], KEY]
        self.assertTrue(self.passing[0].startswith("ail_g_"))
        arguments = json.dumps([member.arguments for member in members])
        for key in self.passing:
            self.assertNotIn(key, arguments)
            self.assertEqual(canary.in_process(self.daemon_pid(), key), [])
        self.assertEqual(canary.in_process(launcher, self.passing[0]), [])

    def assert_told(self, wrong: str, note: str, mine: str, shipped: str) -> None:
        """What the model was told of each call; two requests with the key left, a message each."""
        for named in ("- channel:", "- summary:", "- sumary:", "invalid_request"):
            self.assertIn(named, wrong)
        self.assertIn("mine, for #engineering", mine)
        for request, sent in zip(self.workspace.requests, (NOTE, SHIP), strict=True):
            self.assertEqual(request.headers["authorization"], f"Bearer {self.workspace.token}")
            self.assertEqual((request.body["channel"], request.body["text"]), (sent["channel"], sent["summary"]))
        messages = [{"ts": message.ts, "channel": message.channel} for message in self.workspace.messages]
        self.assertEqual([json.loads(result) for result in (note, shipped)], messages)

    async def assert_recorded(self, approval: Mapping[str, Any]) -> None:
        """The run's story in order, who decided, and a session that has ended with the agent's exit code."""
        record = await self.audit()
        run = [each for each in record if each["run_id"] == approval["id"]]
        self.assertEqual(kinds(run), STORY)
        self.assertEqual([each["actor"]["type"] for each in run][:2], ["agent", "human"])
        self.assertEqual({each["action"] for each in run}, {GATED})
        self.assertEqual({each["connector"] for each in run if each["type"].startswith("execution")}, {CONNECTOR})
        (ended,) = [each for each in record if each["type"] == "session.ended"]
        self.assertEqual(ended["session_id"], approval["run"]["session_id"])
        self.assertEqual(ended["payload"]["exit_code"], 0)


class SettingsTests(FunctionalTestCase):
    """Where the real program looks for its settings."""

    async def test_same_places(self) -> None:
        """Wherever it finds something of a provider, we do."""
        home, deep = self.home.user, self.home.project / "repository" / "deep" / "down"
        (self.home.project / "repository" / ".git").mkdir(parents=True)
        extra, managed = self.home.root / "extra", self.home.root / "managed"
        above = [deep, deep.parent, self.home.project / "repository", self.home.project]
        directories = [*above, *(each / ".opencode" for each in (*above, home)), extra, managed]
        files = [home / ".config" / "opencode" / name for name in ("config.json", "opencode.json", "opencode.jsonc")]
        files += [directory / name for directory in directories for name in ("opencode.json", "opencode.jsonc")]
        files.append(self.home.root / "named.json")
        for number, path in enumerate(files):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(settings(f"file{number}"))
        named = {
            "OPENCODE_CONFIG": str(files[-1]),
            "OPENCODE_CONFIG_DIR": str(extra),
            "OPENCODE_TEST_MANAGED_CONFIG_DIR": str(managed),
            "OPENCODE_CONFIG_CONTENT": settings("content"),
        }
        environment = self.home.environment(**opencode.QUIET, **named)
        command = Command(arguments=(opencode.program(), "debug", "config"), environment=environment, directory=deep)
        theirs = set(json.loads((await self.run_command(command)).stdout)["provider"])
        ours = read_settings(AGENT.sources, Invocation((), environment, str(deep)))
        self.assertGreater(len(theirs), len(files) - 4)
        self.assertEqual(theirs - {name for _, providers in ours.values("provider") for name in providers}, set())


def settings(provider: str) -> str:
    """A configuration that names one provider."""
    return json.dumps({"$schema": "https://opencode.ai/config.json", "provider": {provider: {"options": {}}}})
