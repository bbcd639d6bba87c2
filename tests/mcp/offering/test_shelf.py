"""Lists and documents, as the SDK's own client sees them in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import mcp.types as t
from mcp import Client, MCPError

from aileron.client import SessionEnvironment
from aileron.mcp._cards import Card, cards_of, own_cards
from aileron.mcp._server import ToolServer
from aileron.mcp._texts import Said
from aileron.mcp.offering.access import ACCESS_CARDS
from aileron.mcp.waiting.calling import Etiquette
from tests.mcp.case import action
from tests.mcp.test_server import Era, ScriptedTools, ServerCase, connected, done

SCHEMA = {"type": "object", "properties": {"ts": {"type": "string"}}, "required": ["ts"]}


class Offered(ScriptedTools):
    """So many actions, and runs that can be told or not."""

    def __init__(self, *items: dict[str, Any], answer: Callable[[], Awaitable[Said]] = done, told: Said) -> None:
        super().__init__(answer)
        self.cards = cards_of(items)
        self.told = told

    async def offered(self, *, hears_changes: bool) -> tuple[Card, ...]:
        """All; those that lead to what is added to whoever does not hear of it."""
        ours = (*own_cards(45), *(() if hears_changes else ACCESS_CARDS))
        return (*self.cards, *sorted(ours, key=lambda card: card.name))

    async def actions(self) -> tuple[Card, ...]:
        """All."""
        return self.cards

    async def recent_runs(self) -> Said:
        """As given."""
        return self.told


def serving(
    *items: dict[str, Any], answer: Callable[[], Awaitable[Said]] = done, told: Said | None = None
) -> ToolServer:
    """A server over these actions."""
    return ToolServer(Offered(*items, answer=answer, told=told or Said('{"runs": []}')))


class ShelfCase(ServerCase):
    """Has conversations with a server."""

    async def refused(self, asking: Awaitable[object]) -> MCPError:
        """The error of invalid parameters that a request ends with."""
        try:
            await asking
        except MCPError as error:
            self.assertEqual(error.code, t.INVALID_PARAMS)
            return error
        raise AssertionError("not refused")


class PageTests(ShelfCase):
    """Long lists."""

    def test_tools(self) -> None:
        """Many tools come in pages, in one order, our own last; a bad cursor is an error of its own."""
        names = [f"action_{number:03}" for number in range(600)]

        async def talk(era: Era) -> None:
            async with connected(serving(*map(action, reversed(names))), era) as client:
                found: list[str] = []
                cursor: str | None = None
                for _ in range(3):
                    page = await client.list_tools(cursor=cursor)
                    found += [tool.name for tool in page.tools]
                    cursor = page.next_cursor
                self.assertIsNone(cursor)
                self.assertEqual(found, [*names, "aileron_diagnostics", "check_action_status"])
                await self.refused(client.list_tools(cursor="nonsense"))

        self.in_both_eras(talk)

    def test_others(self) -> None:
        """Every other list refuses a bad cursor as well."""

        async def talk(era: Era) -> None:
            async with connected(serving(action()), era) as client:
                for asking in (client.list_resources, client.list_resource_templates, client.list_prompts):
                    await self.refused(asking(cursor="nonsense"))

        self.in_both_eras(talk)


class LaterTests(ShelfCase):
    """What leads to actions that come later."""

    def test_who_does_not_hear(self) -> None:
        """It is offered to a client that hears of no change as long as it runs, and to no other."""
        leading = {card.name for card in ACCESS_CARDS}
        for introduced, launched, hears in [
            ("claude-code", "claude", True),
            ("codex-mcp-client", "codex", True),
            ("codex-mcp-client", "", False),
            ("codex-mcp-client", "codex by itself", False),
            ("codex-mcp-client", "claude", False),  # one that another agent has started
            ("goose", "goose", False),
            ("goose-desktop", "", False),
            ("?", "", True),
        ]:

            async def talk(
                era: Era, introduced: str = introduced, launched: str = launched, hears: bool = hears
            ) -> None:
                named, _, alone = launched.partition(" ")
                etiquette = Etiquette(SessionEnvironment("", "" if alone else "ail_a_test", client=named))
                server = ToolServer(Offered(action(), told=Said("")), etiquette)
                info = t.Implementation(name=introduced, version="1")
                async with connected(server, era, client_info=info) as client:
                    names = {tool.name for tool in (await client.list_tools()).tools}
                self.assertEqual(names & leading, set() if hears else leading, introduced)

            self.in_both_eras(talk)


class ToolTests(ShelfCase):
    """What a tool says of itself, and its answers as data."""

    def test_hints(self) -> None:
        """All four hints are the daemon's."""

        async def talk(era: Era) -> None:
            item = action(read_only=True, idempotent=True, destructive=False, open_world=False)
            async with connected(serving(item), era) as client:
                tool = (await client.list_tools()).tools[0]
            hints = tool.annotations
            assert hints is not None
            self.assertEqual((hints.read_only_hint, hints.destructive_hint), (True, False))
            self.assertEqual((hints.idempotent_hint, hints.open_world_hint), (True, False))
            self.assertIsNone(tool.output_schema)

        self.in_both_eras(talk)

    def test_data(self) -> None:
        """An action that declares its output answers with data that the SDK's client finds to be as declared."""

        async def answer() -> Said:
            return Said('{"ts":"1"}', data={"status": "completed", "output": {"ts": "1"}})

        async def talk(era: Era) -> None:
            async with connected(serving(action(output_schema=SCHEMA), answer=answer), era) as client:
                tool = (await client.list_tools()).tools[0]
                result = await client.call_tool("ship_update", {})
            assert tool.output_schema is not None
            self.assertEqual(tool.output_schema["properties"]["output"], SCHEMA)
            self.assertEqual(result.structured_content, {"status": "completed", "output": {"ts": "1"}})
            self.assertTrue(result.content)

        self.in_both_eras(talk)

    def test_refusal(self) -> None:
        """A refusal of such an action is an error in text, which the client takes."""

        async def answer() -> Said:
            return Said("No.", is_error=True)

        async def talk(era: Era) -> None:
            async with connected(serving(action(output_schema=SCHEMA), answer=answer), era) as client:
                await client.list_tools()
                result = await client.call_tool("ship_update", {})
            self.assertEqual((result.is_error, result.structured_content), (True, None))

        self.in_both_eras(talk)


class ResourceTests(ShelfCase):
    """Documents."""

    async def read(self, client: Client, uri: str) -> tuple[str | None, str]:
        """Kind and text of one."""
        [content] = (await client.read_resource(uri)).contents
        assert isinstance(content, t.TextResourceContents)
        return content.mime_type, content.text

    def test_list(self) -> None:
        """The session's runs come first, then each action's documentation, in pages; a template tells their form."""
        names = [f"action-{number:03}" for number in range(75)] + [f"action.{number:03}" for number in range(75)]
        items = [action(name, tool_name=f"tool_{number}") for number, name in enumerate(names)]

        async def talk(era: Era) -> None:
            async with connected(serving(*items), era) as client:
                first = await client.list_resources()
                second = await client.list_resources(cursor=first.next_cursor)
                [template] = (await client.list_resource_templates()).resource_templates
            uris = [resource.uri for page in (first, second) for resource in page.resources]
            expected = ["aileron://runs", *[f"aileron://actions/{name}" for name in names]]
            self.assertEqual((uris, second.next_cursor), (expected, None))
            self.assertEqual(template.uri_template, "aileron://actions/{name}")

        self.in_both_eras(talk)

    def test_document(self) -> None:
        """An action's document is read by its name."""

        async def talk(era: Era) -> None:
            async with connected(serving(action()), era) as client:
                kind, text = await self.read(client, "aileron://actions/ship-update")
            self.assertEqual(kind, "text/markdown")
            self.assertIn("Posts a message.", text)

        self.in_both_eras(talk)

    def test_runs(self) -> None:
        """The session's runs are JSON; where they cannot be told, the error says why."""

        async def talk(era: Era) -> None:
            async with connected(serving(), era) as client:
                self.assertEqual(await self.read(client, "aileron://runs"), ("application/json", '{"runs": []}'))
            async with connected(serving(told=Said("Disk full.", is_error=True)), era) as client:
                with self.assertRaises(MCPError) as caught:
                    await client.read_resource("aileron://runs")
            self.assertEqual((caught.exception.code, caught.exception.message), (t.INTERNAL_ERROR, "Disk full."))

        self.in_both_eras(talk)

    def test_none(self) -> None:
        """What is no resource of ours is refused by its address."""

        async def talk(era: Era) -> None:
            async with connected(serving(action()), era) as client:
                for uri in (
                    "aileron://actions/gone",
                    "aileron://actions/",
                    "ship-update",
                    "aileron://x",
                    "file:///etc/passwd",
                ):
                    error = await self.refused(client.read_resource(uri))
                    self.assertEqual(error.data, {"uri": uri})

        self.in_both_eras(talk)


class PromptTests(ShelfCase):
    """What a person can pick."""

    async def text(self, client: Client, name: str, **arguments: str) -> str:
        """Of the one message of a prompt."""
        [message] = (await client.get_prompt(name, arguments)).messages
        assert isinstance(message.content, t.TextContent)
        return message.content.text

    def test_list(self) -> None:
        """There are two, with their arguments."""

        async def talk(era: Era) -> None:
            async with connected(serving(), era) as client:
                prompts = (await client.list_prompts()).prompts
            told = [(prompt.name, [each.name for each in prompt.arguments or []]) for prompt in prompts]
            self.assertEqual(told, [("how_to_use_aileron", []), ("use_action", ["action", "wish"])])

        self.in_both_eras(talk)

    def test_guide(self) -> None:
        """The guide tells how actions work and which there are; of many, some, and how the others are found."""

        async def talk(era: Era) -> None:
            async with connected(serving(*[action(f"a-{number:03}") for number in range(60)]), era) as client:
                text = await self.text(client, "how_to_use_aileron")
            for part in ("pending", "- a-000: Ship update", "and 20 more: search_actions"):
                self.assertIn(part, text)
            async with connected(serving(), era) as client:
                self.assertIn("No action is installed", await self.text(client, "how_to_use_aileron"))

        self.in_both_eras(talk)

    def test_use(self) -> None:
        """One action's document is attached, then comes what is to be done; one that is not there is refused."""

        async def talk(era: Era) -> None:
            async with connected(serving(action()), era) as client:
                asked = {"action": "ship_update", "wish": "Say hello."}
                attached, said = (await client.get_prompt("use_action", asked)).messages
                [read] = (await client.read_resource("aileron://actions/ship-update")).contents
                await self.refused(client.get_prompt("use_action", {"action": "gone"}))
                await self.refused(client.get_prompt("use_action", {}))
                await self.refused(client.get_prompt("other", {}))
            self.assertEqual((attached.role, said.role), ("user", "user"))
            assert isinstance(attached.content, t.EmbeddedResource) and isinstance(said.content, t.TextContent)
            self.assertEqual(attached.content.resource, read)
            for part in ("`ship-update`", "`ship_update`", "run_action", "Say hello."):
                self.assertIn(part, said.content.text)
            self.assertNotIn("Posts a message.", said.content.text)

        self.in_both_eras(talk)
