"""A person fills in what a call leaves out, where the client can show a form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import mcp.types as t
from attrs import evolve
from mcp import MCPError

from aileron.client import SessionEnvironment
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._forms import Form, fill_in
from aileron.mcp._texts import Pending, ToolResult, render_form
from aileron.mcp._tools import CallOptions
from tests.mcp.case import Era, action, in_a_loop, in_both_eras, text_of
from tests.mcp.test_forms import ASKS, PROPERTIES, SCHEMA
from tests.mcp.waiting.case import ATTENDED, URL, Person, WaitingCase, WaitingTools, accepted, connected, never

HI = {"text": "hi"}


class AskingTools(WaitingTools):
    """An action that leaves something to a person.

    :ivar sent: the arguments of each call that was made.
    :ivar gated: whether it then waits for a decision.
    :ivar decided: whether that is there.
    """

    def __init__(self, *, gated: bool = False) -> None:
        super().__init__()
        self.sent: list[Mapping[str, Any]] = []
        self.gated, self.decided = gated, asyncio.Event()
        if not gated:
            self.decided.set()

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """It."""
        return read_definitions([action(input_schema=SCHEMA, asks=ASKS)])

    async def call(self, tool: str, arguments: Mapping[str, Any], options: CallOptions) -> ToolResult:
        """Make it, if nothing is missing."""
        self.manners.append(options)
        [definition] = await self.offered(hears_changes=True)
        given = fill_in(definition, arguments, options.answers)
        if isinstance(given, Form):
            return render_form(given)
        self.sent.append(given)
        if self.gated and options.early:
            return ToolResult("It waits.", pending=Pending("R", "Ship update", URL))
        await self.decided.wait()
        return ToolResult("ok")


class FormCase(WaitingCase):
    """One call that lacks something."""

    async def call(self, era: Era, person: Person, tools: WaitingTools, **more: Any) -> t.CallToolResult:
        """One call by a client of that era with that person before it."""
        async with connected(tools, era, elicitation_callback=person.elicited, **more) as client:
            result = await client.call_tool("ship_update", HI)
        assert isinstance(result, t.CallToolResult)
        return result


class FormTests(FormCase):
    """Of both eras."""

    @in_both_eras
    async def test_filled_in(self, era: Era) -> None:
        """What the person says is sent with what the agent said, once."""
        tools, person = AskingTools(), Person({"channel": "#random", "text": "no"})
        self.assertEqual(text_of(await self.call(era, person, tools)), "ok")
        self.assertEqual(tools.sent, [{"text": "hi", "channel": "#random"}])
        self.assertEqual(len({each.key for each in tools.manners}), 1)
        [form] = person.asked
        self.assertEqual(form.requested_schema["properties"], {each: PROPERTIES[each] for each in ASKS})
        self.assertEqual(form.requested_schema["required"], ["channel"])
        for words in ("Ship update", "approves nothing"):
            self.assertIn(words, form.message)

    @in_both_eras
    async def test_again(self, era: Era) -> None:
        """What is missing or cannot be taken is asked for again, with what was said before kept."""
        tools, person = AskingTools(), Person({"note": "x"}, {"channel": "#nowhere"}, {"channel": "#general"})
        self.assertEqual(text_of(await self.call(era, person, tools)), "ok")
        self.assertEqual(tools.sent, [{"text": "hi", "note": "x", "channel": "#general"}])
        names = [list(each.requested_schema["properties"]) for each in person.asked]
        self.assertEqual(names, [ASKS, ["channel", "loud"], ["channel", "loud"]])

    @in_both_eras
    async def test_not_said(self, era: Era) -> None:
        """Who does not say it has nothing sent, and the model is told not to make it up."""
        for pressed in ("decline", "cancel"):
            tools = AskingTools()
            result = await self.call(era, Person(pressed), tools)
            self.assertEqual((tools.sent, result.is_error), ([], True))
            self.assertIn("Do not make it up", text_of(result))

    @in_both_eras
    async def test_then_reviewed(self, era: Era) -> None:
        """After the form the page is shown where the call is decided, by a client that can."""
        tools = AskingTools(gated=True)
        person = Person({"channel": "#random"}, then=tools.decided.set)
        await self.call(era, person, tools)
        self.assertEqual([each.mode for each in person.asked], ["form", "url"])
        self.assertEqual({json.dumps(each) for each in tools.sent}, {'{"text": "hi", "channel": "#random"}'})
        self.assertEqual([each.early for each in tools.manners][-1], False)

    @in_both_eras
    async def test_who_is_not_asked(self, era: Era) -> None:
        """Where nobody sits, or the client shows no forms, the model is told to ask for what must be said."""
        goose, codex = (t.Implementation(name=each, version="1") for each in ("goose", "codex-mcp-client"))
        sessions: list[tuple[SessionEnvironment, dict[str, Any]]] = [
            (evolve(ATTENDED, attended=False), {}),
            (evolve(ATTENDED, client="goose"), {"client_info": goose}),
            (evolve(ATTENDED, client="codex"), {"client_info": codex}),
        ]
        for session, more in sessions:
            tools, person = AskingTools(), Person()
            result = await self.call(era, person, tools, session=session, **more)
            self.assertEqual((tools.sent, person.asked, result.is_error), ([], [], True))
            self.assertIn("Only the user can provide: channel. Ask them", text_of(result))
        async with connected(AskingTools(), era) as client:
            self.assertTrue((await client.call_tool("ship_update", HI)).is_error)
            result = await client.call_tool("ship_update", {**HI, "channel": "#general"})
            self.assertEqual(text_of(result), "ok")

    @in_both_eras
    async def test_listed(self, era: Era) -> None:
        """A model need not give what its person is asked for; where nobody is, it must."""
        able: dict[str, Any] = {"elicitation_callback": Person().elicited}
        for options, required in ((able, ["text"]), ({}, ["text", "channel"])):
            async with connected(AskingTools(), era, **options) as client:
                [tool] = (await client.list_tools()).tools
            self.assertEqual(tool.input_schema["required"], required)
            self.assertEqual(tool.input_schema["properties"], PROPERTIES)

    @in_both_eras
    async def test_unknown_client(self, era: Era) -> None:
        """A client that nobody knows is believed that it shows forms, whether or not it opens addresses."""
        tools, person = AskingTools(), Person({"channel": "#random"})
        unknown = t.Implementation(name="x", version="1")
        session = SessionEnvironment("", "")
        self.assertEqual(text_of(await self.call(era, person, tools, session=session, client_info=unknown)), "ok")

    @in_both_eras
    async def test_enough(self, era: Era) -> None:
        """Who says three times what cannot be taken is not asked a fourth time."""
        tools, person = AskingTools(), Person({"channel": "#nowhere"}, {"channel": 7}, {"note": "x"}, {})
        result = await self.call(era, person, tools)
        self.assertEqual((len(person.asked), tools.sent, result.is_error), (3, [], True))


class HandshakeTests(FormCase):
    """Of the era in which the call waits for the form."""

    @in_a_loop
    async def test_shows_none_after_all(self) -> None:
        """A client that refuses to ask leaves it to the model, which is told; what may be blank stays so."""

        async def refuse() -> None:
            raise MCPError(t.METHOD_NOT_FOUND, "No.")

        tools = AskingTools()
        async with connected(tools, "legacy", elicitation_callback=Person(first=refuse).elicited) as client:
            result = await client.call_tool("ship_update", HI)
            self.assertEqual((tools.sent, "Only the user can provide" in text_of(result)), ([], True))
            await client.call_tool("ship_update", {**HI, "channel": "#general"})
        self.assertEqual(tools.sent, [{**HI, "channel": "#general"}])

    @in_a_loop
    async def test_nobody_answers(self) -> None:
        """A form that stands longer than the call may wait ends it, and the form with it."""
        tools, person = AskingTools(), Person(first=never)
        result = await self.call("legacy", person, tools, session=evolve(ATTENDED, wait_seconds=1))
        await person.left_alone.wait()
        self.assertEqual((tools.sent, "has not answered" in text_of(result)), ([], True))

    @in_a_loop
    async def test_while_it_stands(self) -> None:
        """The client hears what is waited for, and that is no approval; the call waits then for what is left."""
        tools, heard, was_told = AskingTools(), list[str | None](), asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)
            was_told.set()

        async def slow() -> None:
            await was_told.wait()
            await asyncio.sleep(0.1)

        person = Person({"channel": "#random"}, first=slow)
        async with connected(tools, "legacy", elicitation_callback=person.elicited) as client:
            result = await client.call_tool("ship_update", HI, progress_callback=hear)
        self.assertEqual((text_of(result), heard[0]), ("ok", "Waiting for what the user says in the form."))
        first, second = (each.wait_seconds for each in tools.manners)
        self.assertGreaterEqual(first - second, 0.1)


class StatelessTests(WaitingCase):
    """Of the era in which the call comes again."""

    @in_a_loop
    async def test_after_the_page(self) -> None:
        """Once the run has begun no answer to a form undoes it: it is not told as not sent."""
        tools = AskingTools(gated=True)
        async with connected(tools, "auto", elicitation_callback=Person().elicited) as client:
            given = {**HI, "channel": "#general", "loud": True, "note": ""}
            first = await client.session.call_tool("ship_update", given, allow_input_required=True)
            assert isinstance(first, t.InputRequiredResult)
            tools.decided.set()
            late: Any = {"arguments": t.ElicitResult(action="decline")}
            result = await client.session.call_tool(
                "ship_update", given, input_responses=late, request_state=first.request_state
            )
        self.assertEqual(text_of(result), "ok")

    @in_a_loop
    async def test_other_answers(self) -> None:
        """Answers to what was not asked are no answers: the same is asked again."""
        tools = AskingTools()
        async with connected(tools, "auto", elicitation_callback=Person().elicited) as client:
            first = await client.session.call_tool("ship_update", HI, allow_input_required=True)
            assert isinstance(first, t.InputRequiredResult)
            other: Any = {"wrong": accepted({"channel": "#random"})}
            state = first.request_state
            again = await client.session.call_tool(
                "ship_update", HI, input_responses=other, request_state=state, allow_input_required=True
            )
        self.assertIsInstance(again, t.InputRequiredResult)
        self.assertEqual(tools.sent, [])
