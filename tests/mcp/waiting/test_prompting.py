"""A person says in a form what a prompt lacks, where the client can show one."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp.types as t
from mcp import Client, MCPError

from aileron.client import DaemonUnreachable
from aileron.mcp.waiting.prompting import MOST_CHOICES
from tests.mcp.case import Era, action, in_a_loop, in_both_eras
from tests.mcp.offering.test_catalog import Offered
from tests.mcp.waiting.case import Person, WaitingCase, accepted, connected


def offered(count: int = 2, *, gone: bool = False) -> Offered:
    """So many actions, and two runs, unless the daemon has gone."""
    told = [{"approval_id": each, "action": "a", "status": "completed"} for each in ("R", "Q")]
    items = (action(f"a-{number:03}") for number in range(count))
    return Offered(*items, told=DaemonUnreachable("No daemon.") if gone else told, runs={"R": told[0]})


def client_of(era: Era, person: Person, tools: Offered) -> AbstractAsyncContextManager[Client]:
    """A client with that person before it."""
    return connected(tools, era, elicitation_callback=person.elicited)


def text_of(result: t.GetPromptResult) -> str:
    """What its last message says."""
    content = result.messages[-1].content
    assert isinstance(content, t.TextContent)
    return content.text


class PromptingTests(WaitingCase):
    """Of both eras."""

    @in_both_eras
    async def test_asked(self, era: Era) -> None:
        """What must be said is asked for, with what it can be; what was given stays."""
        person = Person({"action": "a-001", "wish": "no"}, {"run": "R"})
        async with client_of(era, person, offered()) as client:
            result = await client.get_prompt("use_action", {"wish": "Say hello."})
            shown = await client.get_prompt("show_result")
        self.assertIn("Use the action `a-001`", text_of(result))
        self.assertIn("Say hello.", text_of(result))
        self.assertIn("Read it", text_of(shown))
        action_form, run_form = (each.requested_schema for each in person.asked)
        titles = [{"const": f"a-00{number}", "title": "Ship update"} for number in range(2)]
        self.assertEqual(action_form["properties"]["action"]["oneOf"], titles)
        self.assertEqual((list(action_form["properties"]), action_form["required"]), (["action"], ["action"]))
        self.assertEqual(run_form["properties"]["run"]["oneOf"][0], {"const": "R", "title": "a: completed"})

    @in_both_eras
    async def test_many(self, era: Era) -> None:
        """Of many the name is typed; of none there is nothing to choose."""
        for count in (MOST_CHOICES + 1, 0):
            person = Person({"action": "A-000"}, "cancel")
            async with client_of(era, person, offered(count)) as client:
                try:
                    self.assertIn("Use the action `a-000`", text_of(await client.get_prompt("use_action")))
                except MCPError as error:
                    self.assertEqual((count, error.code), (0, t.INVALID_PARAMS))
            self.assertNotIn("oneOf", person.asked[0].requested_schema["properties"]["action"])

    @in_both_eras
    async def test_not_asked(self, era: Era) -> None:
        """Who gives all that must be said is asked nothing, and neither is a client that shows no form."""
        person = Person()
        async with client_of(era, person, offered()) as client:
            await client.get_prompt("use_action", {"action": "a-000"})
            await client.get_prompt("how_to_use_aileron")
            with self.assertRaises(MCPError):
                await client.get_prompt("other")
        async with connected(offered(), era) as client:
            with self.assertRaises(MCPError) as caught:
                await client.get_prompt("use_action")
        self.assertEqual((person.asked, caught.exception.code), ([], t.INVALID_PARAMS))

    @in_both_eras
    async def test_not_said(self, era: Era) -> None:
        """Who does not say it gets no prompt."""
        for pressed in ("decline", "cancel"):
            async with client_of(era, Person(pressed), offered()) as client:
                with self.assertRaises(MCPError) as caught:
                    await client.get_prompt("use_action")
            self.assertEqual(caught.exception.code, t.INVALID_PARAMS)

    @in_both_eras
    async def test_no_daemon(self, era: Era) -> None:
        """Where nobody can say what there is to choose from, that is the error."""
        async with client_of(era, Person(), offered(gone=True)) as client:
            with self.assertRaises(MCPError) as caught:
                await client.get_prompt("show_result")
        self.assertEqual((caught.exception.code, caught.exception.message), (t.INTERNAL_ERROR, "No daemon."))

    @in_a_loop
    async def test_again(self) -> None:
        """A client that brings back another answer than was asked for is asked again."""
        async with client_of("auto", Person(), offered()) as client:
            first = await client.session.get_prompt("use_action", allow_input_required=True)
            assert isinstance(first, t.InputRequiredResult)
            other: Any = {"wrong": accepted({"action": "a-000"})}
            again = await client.session.get_prompt(
                "use_action", input_responses=other, request_state=first.request_state, allow_input_required=True
            )
        self.assertIsInstance(again, t.InputRequiredResult)
