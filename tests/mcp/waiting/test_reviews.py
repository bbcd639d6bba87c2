"""The review page is shown by clients that can, and what a person does there alone decides."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp.types as t
from attrs import evolve
from mcp import MCPError

from aileron.mcp._texts import ToolResult
from tests.mcp.case import Era, in_a_loop, in_both_eras, text_of
from tests.mcp.waiting.case import ATTENDED, URL, Answer, Person, WaitingCase, WaitingTools, connected, never

WAITS = "Ship update waits for your approval; nothing was sent yet. Review it on Aileron's page."
STANDS = "Decide on the page, not here, and then close this question: Ship update."
"""Of a question that cannot be taken back: it is to be closed, and does not say how the call stands."""


class ReviewTests(WaitingCase):
    """A client that a person sits before."""

    @in_both_eras
    async def test_opened_is_not_approved(self, era: Era) -> None:
        """The page's opening ends nothing: the call waits on, as the same run, until the decision is there."""
        tools, person = WaitingTools(), Person()
        async with connected(tools, era, elicitation_callback=person.elicited) as client:
            calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
            await person.was_asked.wait()
            await tools.began.wait()
            await asyncio.sleep(0.05)
            self.assertFalse(calling.done())
            tools.decide(ToolResult("The user said no.", is_error=True))
            result = await calling
        self.assertEqual((text_of(result), result.is_error), ("The user said no.", True))
        self.assertEqual([each.early for each in tools.manners], [True, False])
        self.assertEqual(len({each.key for each in tools.manners}), 1)
        [asked] = person.asked
        self.assertIsInstance(asked, t.ElicitRequestURLParams)
        self.assertEqual(asked.url, URL)
        self.assertEqual(asked.message, STANDS if era == "auto" else WAITS)

    @in_both_eras
    async def test_declined_is_not_denied(self, era: Era) -> None:
        """Who does not want to open the page has not said no: the call waits as if nobody had been asked."""
        answers: tuple[Answer, ...] = ("decline", "cancel")
        for page in answers:
            tools, person = WaitingTools(), Person(page=page)
            async with connected(tools, era, elicitation_callback=person.elicited) as client:
                calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
                await person.was_asked.wait()
                await tools.began.wait()
                self.assertFalse(calling.done())
                tools.decide()
                self.assertEqual(text_of(await calling), "ok")

    @in_a_loop
    async def test_decided_elsewhere(self) -> None:
        """A decision that comes while the question stands ends the call, and the question with it."""
        tools, person = WaitingTools(), Person(first=never)
        async with connected(tools, "legacy", elicitation_callback=person.elicited) as client:
            calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
            await person.was_asked.wait()
            tools.decide()
            self.assertEqual(text_of(await calling), "ok")
            await person.left_alone.wait()

    @in_a_loop
    async def test_over(self) -> None:
        """A client that opened the page hears when there is nothing to decide there any more."""
        heard: list[str] = []

        async def hear(message: object) -> None:
            if isinstance(message, t.ElicitCompleteNotification):
                heard.append(message.params.elicitation_id)

        tools, person = WaitingTools(), Person()
        options: dict[str, Any] = {"elicitation_callback": person.elicited, "message_handler": hear}
        async with connected(tools, "legacy", **options) as client:
            calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
            await person.was_asked.wait()
            await asyncio.sleep(0.05)
            tools.decide()
            await calling
            await self.soon(lambda: heard)
        self.assertEqual(heard, ["R"])

    @in_both_eras
    async def test_who_is_not_asked(self, era: Era) -> None:
        """Without a person before it, of another kind than was launched, unknown, or unable: no client is asked."""
        person = Person()
        able: dict[str, Any] = {"elicitation_callback": person.elicited}
        opencode = t.Implementation(name="opencode", version="1")
        unknown = t.Implementation(name="x", version="1")
        for session, options in [
            (evolve(ATTENDED, attended=False), able),
            (evolve(ATTENDED, client=""), able),
            (evolve(ATTENDED, client="opencode"), able),
            (evolve(ATTENDED, client="opencode"), {**able, "client_info": opencode}),
            (evolve(ATTENDED, client="goose"), {**able, "client_info": unknown}),
            (evolve(ATTENDED, client="x"), {**able, "client_info": unknown}),
            (ATTENDED, {}),
        ]:
            tools = WaitingTools()
            tools.decide()
            async with connected(tools, era, session, **options) as client:
                self.assertEqual(text_of(await client.call_tool("ship_update", {})), "ok")
            self.assertEqual([each.early for each in tools.manners], [False])
        self.assertEqual(person.asked, [])


class SealedTests(WaitingCase):
    """What a client of the newer era brings back."""

    @in_a_loop
    async def test_sealed(self) -> None:
        """The state names the run to nobody, and an altered one or another call's is refused."""
        tools = WaitingTools()
        async with connected(tools, "auto", elicitation_callback=Person().elicited) as client:
            first = await client.session.call_tool("ship_update", {"a": 1}, allow_input_required=True)
            assert isinstance(first, t.InputRequiredResult)
            state = first.request_state or ""
            self.assertNotIn(tools.manners[0].key, state)
            answers: Any = {"review": t.ElicitResult(action="accept")}
            for arguments, brought in [({"a": 1}, state[:-4] + "AAAA"), ({"a": 2}, state)]:
                with self.assertLogs("mcp.server.request_state"), self.assertRaises(MCPError):
                    await client.session.call_tool(
                        "ship_update", arguments, input_responses=answers, request_state=brought
                    )
        self.assertEqual(len(tools.manners), 1)

    @in_a_loop
    async def test_without_it(self) -> None:
        """Answers without the state run nothing: it would be a second run."""
        tools = WaitingTools()
        async with connected(tools, "auto", elicitation_callback=Person().elicited) as client:
            answers: Any = {"review": t.ElicitResult(action="accept")}
            result = await client.session.call_tool("ship_update", {}, input_responses=answers)
            self.assertTrue(result.is_error)
        self.assertEqual(tools.manners, [])
