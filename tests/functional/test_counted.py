"""What agents ask their models is counted, shown and scraped; what they say is kept nowhere."""

import hashlib
from collections.abc import Mapping
from typing import Any

import attrs

from tests.functional.canary import in_files
from tests.functional.gatewayed import GatewayedTestCase, Kept
from tests.functional.llm import ScriptedLLM
from tests.functional.script import Refuse, Say
from tests.functional.sdks import Api

_SCRAPER = "the-scrapers-own-token"
_CANARY = "canary-of-a-conversation"
_QUESTION = {"messages": [{"role": "user", "content": _CANARY}]}


def _responds(api: Api) -> object:
    return list(api.client.responses.create(model="m", input=_CANARY, stream=True))


class CountedTests(GatewayedTestCase):
    """With a daemon whose configuration knows a scraper."""

    async def counted(self, llm: ScriptedLLM) -> Kept:
        """That daemon, and a session of its."""
        self.use_upstream(llm)
        await self.operator("vault", "init")
        digest = hashlib.sha256(_SCRAPER.encode()).hexdigest()
        await self.set_config(f"metrics: {{token_sha256: {digest}}}\n")
        session = await self.session()
        return Kept(self.home, llm.port, self.home.discovery()["url"], session.gateway_key)

    async def totals(self) -> Mapping[str, Any]:
        """What the status tells."""
        found: Mapping[str, Any] = (await self.status())["gateway"]["totals"]
        return found

    async def metrics(self) -> str:
        """What the scraper gets."""
        url = f"{self.home.discovery()['operator_url']}/metrics"
        self.assertEqual((await self.web.ask("GET", url)).status, 401)
        reply = await self.web.ask("GET", url, _SCRAPER)
        self.assertEqual(reply.status, 200)
        return reply.text

    async def test_counted(self) -> None:
        """Calls of both SDKs, streamed or not, of a session or none, are counted with the tokens that were told.

        Those of a session are still there when the daemon starts anew.
        """
        llm = self.llm({"m": [Say(_CANARY), Say(_CANARY), Say(_CANARY), Say(_CANARY), Refuse(429, "slowly")]})
        kept = await self.counted(llm)
        session, stranger = self.through(kept), self.through(kept, key="nowhere")
        await session.use(lambda api: api.generate(**_QUESTION))
        await session.use(lambda api: list(api.generate(stream=True, **_QUESTION)))
        await session.use(_responds)
        await attrs.evolve(stranger, provider="anthropic").use(lambda api: list(api.generate(stream=True, **_QUESTION)))
        await session.problem()
        totals = await self.totals()
        self.assertEqual(
            {each["name"]: each["requests"] for each in totals["providers"]}, {"anthropic": 1, "openai": 4}
        )
        for each in totals["providers"]:
            self.assertEqual((each["untold"], each["under_way"]), (0, 0), each)
            self.assertGreater(each["input_tokens"] * each["output_tokens"], 0)
        openai = totals["providers"][1]
        self.assertEqual((openai["answers"]["2xx"], openai["answers"]["4xx"]), (3, 1))
        await self.seen_everywhere(totals)
        await self.command("daemon", "stop")
        await self.unlock()
        listed = (await self.operator("sessions", "list")).stdout
        self.assertIn(f"{openai['input_tokens']} in, {openai['output_tokens']} out", listed)
        self.assertEqual((await self.totals())["providers"], [])

    async def seen_everywhere(self, totals: Mapping[str, Any]) -> None:
        """The same numbers are on the command line and in the metrics; no word of a conversation is anywhere."""
        openai = totals["providers"][1]
        shown = (await self.command("status")).stdout
        self.assertIn(f"LLM calls           5 (tokens: {totals['input_tokens']} in,", shown)
        listed = (await self.operator("sessions", "list")).stdout
        self.assertIn(f"{openai['input_tokens']} in, {openai['output_tokens']} out", listed)
        metrics = await self.metrics()
        for line in (
            'aileron_gateway_requests_total{code="2xx",provider="openai"} 3.0',
            f'aileron_gateway_output_tokens_total{{provider="openai"}} {openai["output_tokens"]}.0',
            'aileron_gateway_added_seconds_count{provider="openai"} 4.0',
            'aileron_gateway_first_byte_seconds_bucket{le="+Inf",provider="anthropic"} 1.0',
            'aileron_vault_state{state="unlocked"} 1.0',
            "aileron_sessions 1.0",
        ):
            self.assertIn(line, metrics.splitlines())
        self.assertIn("process_resident_memory_bytes", metrics)
        for text in (shown, listed, metrics):
            self.assertNotIn(_CANARY, text)
        self.assertEqual(in_files(self.home.aileron, _CANARY), [])
