"""Lists and documents, as the SDK's own client sees them in both eras of the protocol."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import mcp.types as t
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client, MCPError
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import DaemonError, DaemonFault, DaemonUnreachable, SessionEnvironment
from aileron.mcp._definitions import ToolDefinition, own_definitions, read_definitions
from aileron.mcp._server import ToolServer
from aileron.mcp._texts import ToolResult
from aileron.mcp.offering.access import ACCESS_DEFINITIONS
from aileron.mcp.offering.catalog import page
from aileron.mcp.waiting.calling import ClientPolicy
from aileron.model.faults import Fault
from tests.mcp.case import Era, action, in_both_eras, text_of
from tests.mcp.test_server import ScriptedTools, connected, done

RUNS: Mapping[str, Mapping[str, Any]] = {
    "R": {
        "id": "R",
        "action": "draw",
        "status": "completed",
        "result": {
            "output": {
                "caption": "A square.",
                "picture": {"media_type": "image/png", "base64": "iVBORw0KGgo="},
                "notes": {"media_type": "text/csv", "text": "a;b"},
            }
        },
    },
    "P": {"id": "P", "action": "draw", "status": "pending_approval", "result": None},
}
SCHEMA = {"type": "object", "properties": {"ts": {"type": "string"}}, "required": ["ts"]}


class Offered(ScriptedTools):
    """So many actions, and runs that can be told or not.

    :ivar told: the newest runs; or why they cannot be told.
    :ivar runs: by id.
    """

    def __init__(
        self,
        *items: dict[str, Any],
        answer: Callable[[], Awaitable[ToolResult]] = done,
        told: Sequence[Mapping[str, Any]] | DaemonError = (),
        runs: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(answer)
        self.definitions = read_definitions(items)
        self.told = told
        self.runs = runs or {}

    async def offered(self, *, hears_changes: bool) -> tuple[ToolDefinition, ...]:
        """All; those that lead to what is added to whoever does not hear of it."""
        ours = (*own_definitions(45), *(() if hears_changes else ACCESS_DEFINITIONS))
        return (*self.definitions, *sorted(ours, key=lambda definition: definition.name))

    async def actions(self) -> tuple[ToolDefinition, ...]:
        """All."""
        return self.definitions

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """As given."""
        if isinstance(self.told, DaemonError):
            raise self.told
        return self.told

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """As given."""
        if isinstance(self.told, DaemonError):
            raise self.told
        if run_id not in self.runs:
            raise DaemonFault("No.", 404, Fault("not_found", "No."))
        return self.runs[run_id]


def serving(*items: dict[str, Any], **given: Any) -> ToolServer:
    """A server over these actions and runs."""
    return ToolServer(Offered(*items, **given))


class ShelfCase(SynchronousTestCase):
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

    @in_both_eras
    async def test_tools(self, era: Era) -> None:
        """Many tools come in pages, in one order, our own last; a bad cursor is an error of its own."""
        names = [f"action_{number:03}" for number in range(600)]
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

    @in_both_eras
    async def test_others(self, era: Era) -> None:
        """Every other list refuses a bad cursor as well."""
        async with connected(serving(action()), era) as client:
            for asking in (client.list_resources, client.list_resource_templates, client.list_prompts):
                await self.refused(asking(cursor="nonsense"))


class LaterTests(ShelfCase):
    """What leads to actions that come later."""

    @in_both_eras
    async def test_who_does_not_hear(self, era: Era) -> None:
        """It is offered to a client that hears of no change as long as it runs, and to no other."""
        leading = {definition.name for definition in ACCESS_DEFINITIONS}
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
            named, _, alone = launched.partition(" ")
            policy = ClientPolicy(SessionEnvironment("", "" if alone else "ail_a_test", client=named))
            server = ToolServer(Offered(action()), policy)
            info = t.Implementation(name=introduced, version="1")
            async with connected(server, era, client_info=info) as client:
                names = {tool.name for tool in (await client.list_tools()).tools}
            self.assertEqual(names & leading, set() if hears else leading, introduced)


class ToolTests(ShelfCase):
    """What a tool says of itself, and its answers as data."""

    @in_both_eras
    async def test_data(self, era: Era) -> None:
        """An action that declares its output answers with data that the SDK's client finds to be as declared."""

        async def answer() -> ToolResult:
            return ToolResult('{"ts":"1"}', data={"status": "completed", "output": {"ts": "1"}})

        async with connected(serving(action(output_schema=SCHEMA), answer=answer), era) as client:
            tool = (await client.list_tools()).tools[0]
            result = await client.call_tool("ship_update", {})
        assert tool.output_schema is not None
        self.assertEqual(tool.output_schema["properties"]["output"], SCHEMA)
        self.assertEqual(result.structured_content, {"status": "completed", "output": {"ts": "1"}})
        self.assertTrue(result.content)

    @in_both_eras
    async def test_refusal(self, era: Era) -> None:
        """A refusal, of such an action too, is an error in text, which the client takes."""

        async def answer() -> ToolResult:
            return ToolResult("No.", is_error=True)

        async with connected(serving(action(output_schema=SCHEMA), answer=answer), era) as client:
            await client.list_tools()
            result = await client.call_tool("ship_update", {})
        self.assertEqual((text_of(result), result.is_error, result.structured_content), ("No.", True, None))


class ResourceTests(ShelfCase):
    """Documents."""

    async def read(self, client: Client, uri: str) -> tuple[str | None, str]:
        """Kind and text of one."""
        [content] = (await client.read_resource(uri)).contents
        assert isinstance(content, t.TextResourceContents)
        return content.mime_type, content.text

    @in_both_eras
    async def test_list(self, era: Era) -> None:
        """The session's runs come first, then each action's documentation, in pages; a template tells their form."""
        names = [f"action-{number:03}" for number in range(75)] + [f"action.{number:03}" for number in range(75)]
        items = [action(name, tool_name=f"tool_{number}") for number, name in enumerate(names)]
        async with connected(serving(*items), era) as client:
            first = await client.list_resources()
            second = await client.list_resources(cursor=first.next_cursor)
            templates = (await client.list_resource_templates()).resource_templates
        uris = [resource.uri for page in (first, second) for resource in page.resources]
        expected = ["aileron://runs", *[f"aileron://actions/{name}" for name in names]]
        self.assertEqual((uris, second.next_cursor), (expected, None))
        addresses = [template.uri_template for template in templates]
        runs = ["aileron://runs/{run}", "aileron://runs/{run}/attachments/{number}"]
        self.assertEqual(addresses, ["aileron://actions/{name}", *runs])

    @in_both_eras
    async def test_read(self, era: Era) -> None:
        """An action's document is Markdown, the session's runs are JSON; where they cannot be told it is said why."""
        async with connected(serving(action()), era) as client:
            kind, text = await self.read(client, "aileron://actions/ship-update")
            self.assertEqual((kind, "Posts a message." in text), ("text/markdown", True))
            kind, text = await self.read(client, "aileron://runs")
        self.assertEqual((kind, json.loads(text)), ("application/json", {"runs": []}))
        async with connected(serving(told=DaemonError("Disk full.")), era) as client:
            for uri in ("aileron://runs", "aileron://runs/R", "aileron://runs/R/attachments/1"):
                with self.assertRaises(MCPError) as caught:
                    await client.read_resource(uri)
                error = caught.exception
                self.assertEqual((error.code, error.message), (t.INTERNAL_ERROR, "Disk full."))

    @in_both_eras
    async def test_attachments(self, era: Era) -> None:
        """What is attached to a result is read by its number; where there is none, there is no such document."""
        async with connected(serving(runs=RUNS), era) as client:
            [picture] = (await client.read_resource("aileron://runs/R/attachments/1")).contents
            [notes] = (await client.read_resource("aileron://runs/R/attachments/2")).contents
            for nowhere in ("R/attachments/0", "R/attachments/3", "Q/attachments/1", "P/attachments/1", "Q", "R/"):
                await self.refused(client.read_resource(f"aileron://runs/{nowhere}"))
            self.assertIn("A square.", (await self.read(client, "aileron://runs/R"))[1])
        assert isinstance(picture, t.BlobResourceContents) and isinstance(notes, t.TextResourceContents)
        self.assertEqual((picture.mime_type, picture.blob), ("image/png", "iVBORw0KGgo="))
        self.assertEqual((notes.mime_type, notes.text), ("text/csv", "a;b"))

    @in_both_eras
    async def test_none(self, era: Era) -> None:
        """What is no resource of ours is refused by its address."""
        async with connected(serving(action()), era) as client:
            for uri in (
                "aileron://actions/gone",
                "aileron://actions/",
                "ship-update",
                "aileron://x",
                "aileron://runs/../attachments/1",
                "file:///etc/passwd",
            ):
                error = await self.refused(client.read_resource(uri))
                self.assertEqual(error.data, {"uri": uri})


class PromptTests(ShelfCase):
    """What a person can pick."""

    async def text(self, client: Client, name: str, **arguments: str) -> str:
        """Of the one message of a prompt."""
        [message] = (await client.get_prompt(name, arguments)).messages
        assert isinstance(message.content, t.TextContent)
        return message.content.text

    @in_both_eras
    async def test_list(self, era: Era) -> None:
        """There are three, with their arguments."""
        async with connected(serving(), era) as client:
            prompts = (await client.list_prompts()).prompts
        told = [(prompt.name, [each.name for each in prompt.arguments or []]) for prompt in prompts]
        with_arguments = [("use_action", ["action", "wish"]), ("show_result", ["run"])]
        self.assertEqual(told, [("how_to_use_aileron", []), *with_arguments])

    @in_both_eras
    async def test_guide(self, era: Era) -> None:
        """The guide tells how actions work and which there are; of many, some, and how the others are found."""
        async with connected(serving(*[action(f"a-{number:03}") for number in range(60)]), era) as client:
            text = await self.text(client, "how_to_use_aileron")
        for part in ("pending", "- a-000: Ship update", "and 20 more: search_actions"):
            self.assertIn(part, text)
        async with connected(serving(), era) as client:
            self.assertIn("No action is installed", await self.text(client, "how_to_use_aileron"))

    @in_both_eras
    async def test_use(self, era: Era) -> None:
        """One action's document is attached, then comes what is to be done; one that is not there is refused."""
        async with connected(serving(action()), era) as client:
            asked = {"action": "Ship_update", "wish": "Say hello."}
            attached, result = (await client.get_prompt("use_action", asked)).messages
            [read] = (await client.read_resource("aileron://actions/ship-update")).contents
            await self.refused(client.get_prompt("use_action", {"action": "gone"}))
            await self.refused(client.get_prompt("use_action", {}))
            await self.refused(client.get_prompt("other", {}))
        self.assertEqual((attached.role, result.role), ("user", "user"))
        assert isinstance(attached.content, t.EmbeddedResource) and isinstance(result.content, t.TextContent)
        self.assertEqual(attached.content.resource, read)
        for part in ("`ship-update`", "`ship_update`", "run_action", "Say hello."):
            self.assertIn(part, result.content.text)
        self.assertNotIn("Posts a message.", result.content.text)

    @in_both_eras
    async def test_show(self, era: Era) -> None:
        """What came of a call is put before the agent, pictures as such; what cannot be told is an error."""
        async with connected(serving(runs=RUNS), era) as client:
            messages = (await client.get_prompt("show_result", {"run": "R"})).messages
            pending = (await client.get_prompt("show_result", {"run": "P"})).messages
            await self.refused(client.get_prompt("show_result", {"run": "Q"}))
            await self.refused(client.get_prompt("show_result", {}))
        async with connected(serving(told=DaemonUnreachable("No daemon.")), era) as client:
            with self.assertRaises(MCPError) as caught:
                await client.get_prompt("show_result", {"run": "R"})
        self.assertEqual((caught.exception.code, caught.exception.message), (t.INTERNAL_ERROR, "No daemon."))
        text, picture, notes, task = (message.content for message in messages)
        assert isinstance(text, t.EmbeddedResource) and isinstance(task, t.TextContent)
        assert isinstance(text.resource, t.TextResourceContents)
        self.assertEqual(("A square." in text.resource.text, text.resource.uri), (True, "aileron://runs/R"))
        self.assertIn("no instruction of mine", task.text)
        self.assertEqual((picture.type, notes.type, "`draw`" in task.text), ("image", "resource", True))
        assert isinstance(pending[0].content, t.EmbeddedResource)
        self.assertIn("Nothing was sent yet", str(pending[0].content.resource))


def after(cursor: str | None) -> t.PaginatedRequestParams:
    """The parameters of a request for what comes after a cursor."""
    return t.PaginatedRequestParams(cursor=cursor)


def pages(names: list[str], size: int) -> list[list[str]]:
    """All of them, one after the other."""
    found: list[list[str]] = []
    cursor: str | None = None
    while not found or cursor is not None:
        shown, cursor = page(names, str, after(cursor), size)
        found.append(list(shown))
    return found


class CursorTests(SynchronousTestCase):
    """What a client gets by following the cursors."""

    @settings(deadline=None, max_examples=60)
    @given(st.sets(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(1, 5))
    def test_whole(self, names: set[str], size: int) -> None:
        """Everything comes, once, in order, and no page but the last is short."""
        found = pages(sorted(names), size)
        self.assertEqual([name for each in found for name in each], sorted(names))
        self.assertTrue(all(len(each) == size for each in found[:-1]))

    def test_change_meanwhile(self) -> None:
        """What comes or goes before the cursor moves nothing behind it."""
        _, cursor = page(["a", "c", "e"], str, None, 2)
        self.assertEqual(page(["b", "e", "f"], str, after(cursor), 2), (["e", "f"], None))

    def test_foreign(self) -> None:
        """A cursor that none of our lists gave is refused."""
        for cursor in ("", "x", "1", "=", "AWE=", "YQ", "_w", "é", "AWE\n", "AWH"):
            self.assertRaises(MCPError, page, ["a", "b"], str, after(cursor), 1)
        self.assertEqual(page(["a", "b"], str, after("AWE"), 1), (["b"], None))
