"""Limits on spending, before the official SDKs, real streams and a real agent."""

import json
from collections.abc import Mapping
from typing import Any

import attrs

from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.operated import PASSPHRASE
from tests.functional.script import Say
from tests.functional.sdks import Api

_LONG = "a word and another " * 40


def _stream(api: Api) -> str:
    """The words of a streamed answer."""
    return "".join(
        api.words(event) or "" for event in api.generate(stream=True, messages=[{"role": "user", "content": "x"}])
    )


class SpendingTests(GatewayedTestCase):
    """A daemon with limits."""

    async def limits(self) -> list[Mapping[str, Any]]:
        """The limits, with what was used."""
        found: list[Mapping[str, Any]] = json.loads((await self.command("gateway", "limit", "list", "--json")).stdout)[
            "items"
        ]
        return found

    async def reached(self, provider: str, error: str) -> None:
        """A limit is reached between two streams of a provider, told in its own form at once, and raised."""
        llm = self.llm({"m": [Say(_LONG), Say(_LONG), Say(_LONG)]})
        kept = await self.own_gateway(llm)
        sdk = attrs.evolve(self.through(kept), provider=provider)
        await self.operator("gateway", "limit", "set", "--per", "session", "--requests", "2")
        await self.operator("gateway", "limit", "set", "--per", "day", "--tokens", "10000000", "--provider", provider)
        for _ in range(2):
            self.assertEqual(await sdk.use(_stream), _LONG)
        problem = await sdk.problem(_stream)
        self.assertEqual(type(problem).__name__, error)
        self.assertIn("Aileron's limit of requests in one session is reached: 2 requests of 2 requests", str(problem))
        self.assertEqual(len(llm.script.received), 2)
        with_retries = await sdk.use(self.refusal, retries=3)
        self.assertEqual((with_retries, len(llm.script.received)), (error, 2))
        (limit,) = [each for each in await self.limits() if each["unit"] == "requests"]
        self.assertTrue(limit["reached"])
        tokens = {each["used"] for each in await self.limits() if each["unit"] == "tokens"}
        self.assertTrue(all(each > 0 for each in tokens), tokens)
        raised = (await self.operator("gateway", "limit", "raise", limit["id"], "--by", "1")).stdout
        self.assertIn("2 requests of 3 requests used", raised)
        self.assertEqual(await sdk.use(_stream), _LONG)
        await sdk.problem(_stream)
        await self.restarted(limit["id"], tokens)
        # The daemon records its news in the background, and all of it before it stops.
        events = (await self.operator("audit", "list", "--json")).stdout
        for type_, count in (("spending.warned", 1), ("spending.reached", 2), ("spending.changed", 3)):
            self.assertGreaterEqual(events.count(f'"{type_}"'), count, type_)

    def refusal(self, api: Api) -> str:
        """The name of the error that a call ends with."""
        try:
            _stream(api)
        except Exception as problem:  # noqa: BLE001 - whatever it is, its name is told
            return type(problem).__name__
        return ""

    async def restarted(self, limit: str, tokens: set[int]) -> None:
        """After a restart what was used, and what was added to the limit, is still known."""
        before = json.loads((await self.command("gateway", "usage", "--json")).stdout)
        await self.command("daemon", "stop")
        await self.unlock()
        self.assertEqual(json.loads((await self.command("gateway", "usage", "--json")).stdout), before)
        self.assertEqual(before["total"]["requests"], 3)
        (found,) = [each for each in await self.limits() if each["id"] == limit]
        self.assertEqual((found["most"], found["used"], found["reached"]), (3, 3, True))
        (now,) = [each["used"] for each in await self.limits() if each["unit"] == "tokens"]
        self.assertGreater(now, max(tokens))

    async def test_openai(self) -> None:
        """OpenAI's SDK: the error of a status that it does not retry, with the sentence."""
        await self.reached("openai", "PermissionDeniedError")

    async def test_anthropic(self) -> None:
        """Anthropic's SDK, likewise."""
        await self.reached("anthropic", "PermissionDeniedError")

    async def test_watch(self) -> None:
        """Who watches in the terminal sees that the limit is reached, raises it by two keys, and the agent goes on."""
        llm = self.llm({"m": [Say("one"), Say("two")]})
        sdk = self.through(await self.own_gateway(llm))
        await self.operator("gateway", "limit", "set", "--per", "day", "--requests", "1")
        await sdk.use(Api.generate)
        watching = self.on_terminal("approval", "watch", TERM="xterm")
        await watching.expect("Passphrase of the vault: ")
        watching.send(PASSPHRASE)
        await watching.expect("A spending limit is reached: requests a day, 1 of 1 request used today.")
        watching.press("+")
        await watching.expect(r"Raise requests a day by 1 to 2 requests today\? 1 of 1 request used\. \[y/N\]")
        watching.press("y")
        await watching.expect("Raised to 2 requests. The agent can go on.")
        await sdk.use(Api.generate)
        watching.press("q")
        self.assertEqual((await watching.finish(30)).exit_code, 0)

    async def test_prices(self) -> None:
        """Money is counted by the prices in config.yaml; a model without one is refused, and an unread request too."""
        llm = self.llm({"m": [Say("hello")]})
        sdk = self.through(await self.own_gateway(llm))
        await self.set_config("gateway:\n  limits: [{per: day, money: 5}]\n  prices: {m: {input: 3, output: 15}}\n")
        await sdk.use(Api.generate)
        other = await sdk.problem(lambda api: api.generate(model="other"))
        self.assertIn("has no price for the model other", str(other))
        used = json.loads((await self.command("gateway", "usage", "--json")).stdout)["items"]
        (item,) = used
        cost = item["input_tokens"] * 3 + item["output_tokens"] * 15
        self.assertEqual((item["model"], item["cost_microdollars"]), ("m", cost))

    async def test_claims(self) -> None:
        """A last answer that claims an effect which no run had is told on the session's page, and by the launcher."""
        llm = self.llm({"gpt-5.1": [Say("I have posted the update to Slack.")]})
        self.use_upstream(llm)
        await self.furnish()
        self.configure_agent("openai/gpt-5.1")
        finished = await self.launch(OPENAI_API_KEY="sk-1").finish(60)
        self.assertIn("aileron: Says it posted to Slack; no run did.", finished.stdout + finished.stderr)

    async def test_agent(self) -> None:
        """OpenCode shows the sentence of a reached limit, and stops."""
        llm = self.llm({"gpt-5.1": [Say("one")]})
        self.use_upstream(llm)
        await self.furnish()
        self.configure_agent("openai/gpt-5.1")
        for sees in ("one", "limit of requests a day for model gpt-5.1 is reached"):
            finished = await self.launch(OPENAI_API_KEY="sk-1").finish(60)
            self.assertIn(sees, finished.stdout + finished.stderr)
            await self.operator("gateway", "limit", "set", "--per", "day", "--requests", "1", "--model", "gpt-5.1")
        self.assertEqual(len(llm.script.of("gpt-5.1")), 1)
