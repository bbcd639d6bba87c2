"""The real OpenCode, launched: its LLM traffic passes through the gateway unless its user sends it elsewhere."""

import json

import attrs

from aileron.launch import Invocation
from aileron.launch.agents.opencode import AGENT
from aileron.launch.layers import read_settings
from tests.functional import opencode
from tests.functional.case import FunctionalTestCase
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.operated import SHIP
from tests.functional.process import Command
from tests.functional.script import Call, Received, Say
from tests.installed import seldom

GPT = "gpt-5.1"
KEY = "sk-of-the-user"
NOWHERE = "http://127.0.0.1:9"
# What differs from one run of the agent to the next, and what its connections say for themselves.
VOLATILE = ("content-length", "connection")


def headers(received: Received) -> dict[str, str]:
    """What the upstream saw of a request's headers, without what differs from run to run."""
    return {
        name: text
        for name, text in received.headers.items()
        if name not in VOLATILE and "session" not in name and "request-id" not in name
    }


class ThroughTheGatewayTests(GatewayedTestCase):
    """An agent whose providers are the daemon's."""

    async def test_main_job(self) -> None:
        """Asked for, decided and done as ever; the provider sees what a direct run sends, and its session is told.

        The user's proxy sees nothing of it.
        """
        llm = self.llm({GPT: [Call("_ship_update", SHIP), Say("all done"), Say("directly")]})
        self.use_upstream(llm)
        await self.furnish()
        self.configure_agent(f"openai/{GPT}")
        agent = self.launch(OPENAI_API_KEY=KEY, HTTP_PROXY=NOWHERE, http_proxy=NOWHERE, NO_PROXY="example.com")
        (approval,) = await self.waiting()
        await self.approve(approval["id"])
        finished = await agent.finish(60)
        self.assertEqual((finished.exit_code, opencode.texts(finished)), (0, ["all done"]))
        self.assertIn("through the gateway: openai", finished.stderr)
        self.assertEqual(len(llm.script.received[1].tool_results), 1)
        direct = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{llm.url}/v1"}
        await self.run_command(opencode.headless(self.home, "tell the team", None, **direct))
        first, second, directly = llm.script.received
        self.assertEqual(headers(first), headers(directly))
        self.assertEqual((first.headers["host"], first.path), (llm.url.removeprefix("http://"), "/v1/responses"))
        self.assertEqual(second.headers["authorization"], f"Bearer {KEY}")
        for each in (first, second):
            self.assertNotIn("ail_g_", json.dumps([each.path, each.headers, each.body]))
        session = await self.told("sessions", "show", approval["run"]["session_id"])
        self.assertEqual(session["gateway"]["requests"], 2)

    async def test_vault_locked(self) -> None:
        """With a locked vault the agent shows at once what to do, and nothing leaves."""
        llm = self.llm({opencode.CLAUDE: []})
        self.use_upstream(llm)
        await self.furnish()
        await self.operator("vault", "lock")
        self.configure_agent(f"anthropic/{opencode.CLAUDE}")
        finished = await self.launch(ANTHROPIC_API_KEY=KEY).finish(60)
        self.assertEqual(finished.exit_code, 1)
        self.assertIn("aileron vault unlock", finished.stdout)
        self.assertEqual(llm.script.received, [])


class LeftAloneTests(GatewayedTestCase):
    """An agent whose user decides otherwise."""

    @seldom
    async def test_own_base_url(self) -> None:
        """A provider that the user's own file sends elsewhere goes there, with nothing of ours, and it is said so."""
        llm = self.llm({opencode.CLAUDE: [Say("directly")]})
        await self.furnish()
        path = opencode.configure_user(self.home, opencode.anthropic_configuration(llm.url, key=KEY))
        before = path.read_bytes()
        finished = await self.launch().finish(60)
        self.assertEqual(opencode.texts(finished), ["directly"])
        self.assertIn(f"anthropic is left alone: {path}", finished.stderr)
        self.assertNotIn(llm.url, finished.stderr)
        (received,) = llm.script.received
        self.assertEqual(received.headers["x-api-key"], KEY)
        self.assertNotIn("x-aileron-gateway-key", received.headers)
        self.assertEqual(path.read_bytes(), before)

    async def test_no_gateway(self) -> None:
        """Where the launch is told so, the agent gets nothing but its tools."""
        await self.furnish()
        programs = self.home.root / "programs"
        programs.mkdir()
        (programs / "opencode").write_text('#!/bin/sh\necho "$OPENCODE_CONFIG_CONTENT"\n')
        (programs / "opencode").chmod(0o755)
        told = {}
        for options in ((), ("--no-gateway",)):
            command = self.launched(OPENAI_API_KEY=KEY)
            aileron, launch, *others = command.arguments
            finished = await self.run_command(attrs.evolve(command, arguments=(aileron, launch, *options, *others)))
            told[options] = json.loads(finished.stdout)
        self.assertEqual(told[()]["provider"]["openai"]["options"]["baseURL"], f"{self.home.discovery()['url']}/v1")
        self.assertEqual(set(told[("--no-gateway",)]), {"mcp"})


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
