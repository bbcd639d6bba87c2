"""A person fills in what a call leaves out, where the client can show a form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
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
from tests.mcp.waiting.case import ATTENDED, URL, WaitingCase, WaitingTools, connected

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


class Filling:
    """A person who fills in forms.

    :param contents: of one form after the other; a word: what is pressed instead.
    :param then: called once a page was opened.
    :ivar asked: the forms, and the addresses.
    """

    def __init__(self, *contents: Mapping[str, Any] | str, then: Callable[[], object] = lambda: None) -> None:
        self.asked: list[Any] = []
        self._then = then
        self._contents = list(contents)

    async def elicited(self, _context: object, params: t.ElicitRequestParams) -> t.ElicitResult:
        """The SDK's callback."""
        self.asked.append(params)
        if isinstance(params, t.ElicitRequestURLParams):
            self._then()
            return t.ElicitResult(action="accept")
        result: Any = self._contents.pop(0)
        return t.ElicitResult(action=result) if result in ("decline", "cancel") else _accepted(result)


def _accepted(content: Any) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content=content)


class FormTests(WaitingCase):
    """Of both eras."""

    async def call(self, era: Era, person: Filling, tools: WaitingTools, **more: Any) -> t.CallToolResult:
        """One call by a client of that era with that person before it."""
        async with connected(tools, era, elicitation_callback=person.elicited, **more) as client:
            result = await client.call_tool("ship_update", HI)
        assert isinstance(result, t.CallToolResult)
        return result

    @in_both_eras
    async def test_filled_in(self, era: Era) -> None:
        """What the person says is sent with what the agent said, once."""
        tools, person = AskingTools(), Filling({"channel": "#random", "text": "no"})
        self.assertEqual(text_of(await self.call(era, person, tools)), "ok")
        self.assertEqual(tools.sent, [{"text": "hi", "channel": "#random"}])
        self.assertEqual(len({each.key for each in tools.manners}), 1)
        [form] = person.asked
        self.assertEqual(form.requested_schema["properties"], {each: PROPERTIES[each] for each in ASKS})
        self.assertEqual(form.requested_schema["required"], ["channel"])

    @in_both_eras
    async def test_again(self, era: Era) -> None:
        """What is missing or cannot be taken is asked for again, with what was said before kept."""
        tools, person = AskingTools(), Filling({"note": "x"}, {"channel": "#nowhere"}, {"channel": "#general"})
        self.assertEqual(text_of(await self.call(era, person, tools)), "ok")
        self.assertEqual(tools.sent, [{"text": "hi", "note": "x", "channel": "#general"}])
        names = [list(each.requested_schema["properties"]) for each in person.asked]
        self.assertEqual(names, [ASKS, ["channel", "loud"], ["channel", "loud"]])

    @in_both_eras
    async def test_not_said(self, era: Era) -> None:
        """Who does not say it has nothing sent, and the model is told not to make it up."""
        for pressed in ("decline", "cancel"):
            tools = AskingTools()
            result = await self.call(era, Filling(pressed), tools)
            self.assertEqual((tools.sent, result.is_error), ([], True))
            self.assertIn("Do not make it up", text_of(result))

    @in_both_eras
    async def test_then_reviewed(self, era: Era) -> None:
        """After the form the page is shown where the call is decided, by a client that can."""
        tools = AskingTools(gated=True)
        person = Filling({"channel": "#random"}, then=tools.decided.set)
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
            tools, person = AskingTools(), Filling()
            result = await self.call(era, person, tools, session=session, **more)
            self.assertEqual((tools.sent, person.asked, result.is_error), ([], [], True))
            self.assertIn("for the user to say: channel. Ask them", text_of(result))
        async with connected(AskingTools(), era) as client:
            self.assertTrue((await client.call_tool("ship_update", HI)).is_error)
            result = await client.call_tool("ship_update", {**HI, "channel": "#general"})
            self.assertEqual(text_of(result), "ok")

    @in_both_eras
    async def test_listed(self, era: Era) -> None:
        """A model need not give what its person is asked for; where nobody is, it must."""
        able: dict[str, Any] = {"elicitation_callback": Filling().elicited}
        for options, required in ((able, ["text"]), ({}, ["text", "channel"])):
            async with connected(AskingTools(), era, **options) as client:
                [tool] = (await client.list_tools()).tools
            self.assertEqual(tool.input_schema["required"], required)
            self.assertEqual(tool.input_schema["properties"], PROPERTIES)

    @in_both_eras
    async def test_unknown_client(self, era: Era) -> None:
        """A client that nobody knows is believed that it shows forms, whether or not it opens addresses."""
        tools, person = AskingTools(), Filling({"channel": "#random"})
        unknown = t.Implementation(name="x", version="1")
        session = SessionEnvironment("", "")
        self.assertEqual(text_of(await self.call(era, person, tools, session=session, client_info=unknown)), "ok")


class HandshakeTests(WaitingCase):
    """Of the era in which the call waits for the form."""

    @in_a_loop
    async def test_enough(self) -> None:
        """Who says three times what cannot be taken is not asked a fourth time."""
        tools, person = AskingTools(), Filling(*[{"channel": "#nowhere"}] * 4)
        async with connected(tools, "legacy", elicitation_callback=person.elicited) as client:
            result = await client.call_tool("ship_update", HI)
        self.assertEqual((len(person.asked), tools.sent, result.is_error), (3, [], True))

    @in_a_loop
    async def test_shows_none_after_all(self) -> None:
        """A client that refuses to ask leaves it to the model, which is told; what may be blank stays so."""

        async def refuse(_context: object, _params: object) -> t.ElicitResult:
            raise MCPError(t.METHOD_NOT_FOUND, "No.")

        tools = AskingTools()
        async with connected(tools, "legacy", elicitation_callback=refuse) as client:
            result = await client.call_tool("ship_update", HI)
            self.assertEqual((tools.sent, "for the user to say" in text_of(result)), ([], True))
            await client.call_tool("ship_update", {**HI, "channel": "#general"})
        self.assertEqual(tools.sent, [{**HI, "channel": "#general"}])

    @in_a_loop
    async def test_nobody_answers(self) -> None:
        """A form that stands longer than the call may wait ends it, and the form with it."""
        tools, left = AskingTools(), asyncio.Event()

        async def silent(_context: object, _params: object) -> t.ElicitResult:
            try:
                return await asyncio.Future()
            finally:
                left.set()

        session = evolve(ATTENDED, wait_seconds=1)
        async with connected(tools, "legacy", session, elicitation_callback=silent) as client:
            result = await client.call_tool("ship_update", HI)
            await left.wait()
        self.assertEqual((tools.sent, "has not answered" in text_of(result)), ([], True))

    @in_a_loop
    async def test_time(self) -> None:
        """The time that a form takes is the call's: what is left of it is how long the call waits then."""
        tools = AskingTools()

        async def slow(_context: object, _params: object) -> t.ElicitResult:
            await asyncio.sleep(0.1)
            return _accepted({"channel": "#random"})

        async with connected(tools, "legacy", elicitation_callback=slow) as client:
            self.assertEqual(text_of(await client.call_tool("ship_update", HI)), "ok")
        first, second = (each.wait_seconds for each in tools.manners)
        self.assertGreaterEqual(first - second, 0.1)

    @in_a_loop
    async def test_told(self) -> None:
        """While the form stands the client hears what is waited for, and that is no approval."""
        heard: list[str | None] = []
        was_told = asyncio.Event()

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)
            was_told.set()

        async def slow(_context: object, _params: object) -> t.ElicitResult:
            await was_told.wait()
            return _accepted({"channel": "#random"})

        async with connected(AskingTools(), "legacy", elicitation_callback=slow) as client:
            await client.call_tool("ship_update", HI, progress_callback=hear)
        self.assertEqual(heard[0], "Waiting for what the user says in the form.")


class StatelessTests(WaitingCase):
    """Of the era in which the call comes again."""

    @in_a_loop
    async def test_enough(self) -> None:
        """Who says three times what cannot be taken is not asked a fourth time."""
        tools, person = AskingTools(), Filling(*[{"channel": "#nowhere"}] * 4)
        async with connected(tools, "auto", elicitation_callback=person.elicited) as client:
            result = await client.call_tool("ship_update", HI)
        self.assertEqual((len(person.asked), tools.sent, result.is_error), (3, [], True))

    @in_a_loop
    async def test_after_the_page(self) -> None:
        """Once the run has begun no answer to a form undoes it: it is not told as not sent."""
        tools = AskingTools(gated=True)
        async with connected(tools, "auto", elicitation_callback=Filling().elicited) as client:
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
        async with connected(tools, "auto", elicitation_callback=Filling().elicited) as client:
            first = await client.session.call_tool("ship_update", HI, allow_input_required=True)
            assert isinstance(first, t.InputRequiredResult)
            other: Any = {"wrong": _accepted({"channel": "#random"})}
            state = first.request_state
            again = await client.session.call_tool(
                "ship_update", HI, input_responses=other, request_state=state, allow_input_required=True
            )
        self.assertIsInstance(again, t.InputRequiredResult)
        self.assertEqual(tools.sent, [])
