"""The official SDKs of OpenAI and Anthropic see no difference between the gateway and the provider itself."""

import json
import re
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.reactor import until
from tests.functional.script import Call, Received, Refuse, Say, Turn
from tests.functional.sdks import ASKED, Api

PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "openai": [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": PLACE}}],
    "anthropic": [{"name": "weather", "description": "d", "input_schema": PLACE}],
    "responses": [{"type": "function", "name": "weather", "description": "d", "parameters": PLACE, "strict": False}],
}
CALL = Call("weather", {"place": "Zürich"})
TEXT = "Grüße, said the model, and then it said some more of them."
LONG = " ".join(f"word{number}" for number in range(200))
TURNS: dict[str, list[Turn]] = {
    "openai": [Say(TEXT), Say(TEXT), CALL, CALL] * 2,
    "anthropic": [Say(TEXT), Say(TEXT), CALL, CALL],
}
WAYS = tuple(product(("path", "header", "nowhere"), (False, True)))
GONE_WITHIN_SECONDS = 0.05


def conversations(api: Api) -> list[Any]:
    """All that a program asks of a provider, answered whole and streamed, with and without tools."""
    answers = []
    for tools in ({}, {"tools": TOOLS[api.provider]}):
        answers.append(api.generate(**tools))
        answers.append(list(api.generate(stream=True, **tools)))
    others = (_anthropic if api.provider == "anthropic" else _openai)(api.client)
    return [*answers, *others, list(api.client.models.list())]


def _anthropic(client: Any) -> Iterator[Any]:
    yield client.messages.count_tokens(**ASKED)


def _openai(client: Any) -> Iterator[Any]:
    for tools in ({}, {"tools": TOOLS["responses"]}):
        yield client.responses.create(model="m", input="hello", **tools)
        yield list(client.responses.create(model="m", input="hello", stream=True, **tools))


def plain(answers: Any) -> str:
    """As text, without the running numbers of the script's calls."""
    dumped = json.dumps(answers, default=lambda answer: answer.model_dump(mode="json"), ensure_ascii=False)
    return re.sub(r"call_\d+", "call", dumped)


def as_sent(received: Received) -> tuple[Any, ...]:
    """A request as the upstream saw it, but for what each connection says for itself."""
    headers = {name: text for name, text in received.headers.items() if name != "connection"}
    return received.path, headers, received.body


def arrivals(api: Api) -> list[float]:
    """When each piece of a streamed text came."""
    return [time.monotonic() for event in api.generate(stream=True) if api.words(event)]


def ending(api: Api) -> tuple[str, str]:
    """The text of a stream, and the exception that it ended with."""
    text = ""
    try:
        for event in api.generate(stream=True):
            text += api.words(event)
    except Exception as problem:  # noqa: BLE001 - which one is what the test compares
        return text, type(problem).__name__
    return text, "none"


def closed(api: Api) -> float:
    """When a stream was closed in its midst."""
    stream = api.generate(stream=True)
    next(event for event in stream if api.words(event))
    when = time.monotonic()
    stream.close()
    return when


class EqualityTests(GatewayedTestCase):
    """The OpenAI SDK: what it gets by the gateway, and what the provider gets of it."""

    async def test_conversations(self) -> None:
        """At every address each answer is equal to the provider's own, and the upstream gets equal requests."""
        kept, llm = await self.gateway(TURNS[self.provider] * (1 + len(WAYS)))
        expected = plain(await self.direct(llm).use(conversations))
        self.assertIn("weather", expected)
        for key, whole in WAYS:
            sdk = self.through(kept, whole=whole, key=key)
            self.assertEqual(plain(await sdk.use(conversations)), expected, sdk.url)
        for received in (llm.script.received, llm.script.listings):
            sent, each = [as_sent(one) for one in received], len(received) // (1 + len(WAYS))
            self.assertEqual(sent, sent[:each] * (1 + len(WAYS)))
            self.assertEqual(received[-1].headers["host"], llm.url.removeprefix("http://"))
            for hidden in (kept.gateway_key, "aileron"):
                self.assertNotIn(hidden, json.dumps(sent).lower())

    async def test_errors(self) -> None:
        """A provider's error is the SDK's own exception for it, with the provider's words and headers."""
        ids = {"request-id": "r", "x-request-id": "r"}
        refusals = [Refuse(status, f"no {status}", ids) for status in (400, 401, 403, 404, 429, 500, 529)]
        kept, llm = await self.gateway([refusal for refusal in refusals for _ in range(2)])
        for refusal in refusals:
            problems = [await sdk.problem() for sdk in (self.direct(llm), self.through(kept))]
            theirs, ours = [(type(each), each.status_code, each.body, each.request_id) for each in problems]
            self.assertEqual(ours, theirs)
            self.assertEqual((ours[1], ours[3]), (refusal.status, "r"))
            self.assertIn(refusal.message, str(problems[1]))


class AnthropicEqualityTests(EqualityTests):
    """The same of the Anthropic SDK."""

    provider = "anthropic"


class StreamTests(GatewayedTestCase):
    """When the bytes of an answer pass, whatever the SDK."""

    async def test_retries(self) -> None:
        """An SDK that is told how long to wait waits as long, asks again, and gets its answer; nobody else asks."""
        kept, llm = await self.gateway([Refuse(429, "slowly", {"Retry-After": "1"}), Say("well")])
        self.assertIn("well", plain(await self.through(kept).use(Api.generate, retries=1)))
        first, second = llm.times.asked
        # Of itself it waits half a second at most.
        self.assertGreaterEqual(second - first, 1)

    async def test_at_once(self) -> None:
        """Each event of a stream is there before the next but one is sent."""
        tries = 4  # on a machine that is busy with something else
        late: list[float] = []
        kept, llm = await self.gateway([Say("one two three four", pause_seconds=0.1)] * tries)
        for _ in range(tries):
            seen = await self.through(kept).use(arrivals)
            # In either format three more events follow the last word.
            due = [llm.times.sent[-before_the_end] for before_the_end in (5, 4, 3, 2)]
            late.append(max(arrived - sent for arrived, sent in zip(seen, due, strict=True)))
        self.assertLess(min(late), 0, late)

    async def test_broken_off(self) -> None:
        """A provider that breaks off mid-stream is the same exception after the same text."""
        kept, llm = await self.gateway([Say(LONG, cut_after=20)] * 2)
        theirs, ours = [await sdk.use(ending) for sdk in (self.direct(llm), self.through(kept))]
        self.assertEqual(ours, theirs)
        self.assertNotEqual(ours[1], "none")

    async def test_closed_by_the_program(self) -> None:
        """A stream that the program closes is closed at the provider within 50 ms."""
        tries = 5  # on a machine that is busy with something else
        late: list[float] = []
        kept, llm = await self.gateway([Say(LONG, pause_seconds=0.02)] * tries)
        for _ in range(tries):
            when = await self.through(kept).use(closed)
            await until(self.reactor, lambda: llm.hung_up > len(late), 30, "the end at the provider")
            late.append(llm.times.left[-1] - when)
        self.assertLess(min(late), GONE_WITHIN_SECONDS)


class LockedTests(GatewayedTestCase):
    """Both SDKs at a daemon whose vault is locked."""

    async def test_vault_locked(self) -> None:
        """It refuses at once, with the command that opens the vault, and nothing leaves; then all is well again."""
        llm = self.llm({"m": [Say("well")] * 2})
        kept = await self.own_gateway(llm)
        await self.operator("vault", "lock")
        for self.provider in ("openai", "anthropic"):
            problem = await self.through(kept).problem()
            self.assert_ours(problem, "PermissionDeniedError", 403)
            self.assertIn("aileron vault unlock", str(problem))
        self.provider = "openai"
        problem = await self.through(kept).problem(lambda api: api.client.responses.create(model="m", input="x"))
        self.assert_ours(problem, "BadRequestError", 400)
        self.assertEqual(llm.script.received, [])
        await self.unlock()
        for self.provider in ("openai", "anthropic"):
            self.assertIn("well", plain(await self.through(kept).use(Api.generate)))

    def assert_ours(self, problem: Any, name: str, status: int) -> None:
        """The gateway's own answer is an exception of the SDK's, which found the message where it looks for it."""
        self.assertEqual((type(problem).__name__, problem.status_code), (name, status), problem)
        self.assertEqual(problem.response.headers["x-aileron-error"], "vault_locked")
        inner = problem.body.get("error", problem.body)
        self.assertIn(inner["message"], str(problem))
        self.assertIsInstance(inner["type"], str)
