"""The names of actions, completed, as the SDK's own client sees it in both eras of the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp.types as t
from mcp import Client, MCPError

from aileron.client import DaemonUnreachable
from aileron.mcp.offering.prompts import MOST_TOLD, complete_argument
from tests.mcp.case import Era, action, in_both_eras
from tests.mcp.offering.test_catalog import Offered, ShelfCase, serving
from tests.mcp.test_server import connected

PROMPT = t.PromptReference(name="use_action")
TEMPLATE = t.ResourceTemplateReference(uri="aileron://actions/{name}")
NAMES = ("relay", "post-note", "Post-all", "compost", "ship")


def actions(*names: str) -> list[dict[str, Any]]:
    """So many, whose tools are in another order than they are."""
    return [action(name, tool_name=f"t{len(names) - number:03}") for number, name in enumerate(names)]


class TalkTests(ShelfCase):
    """What a client is answered."""

    async def names(self, client: Client, ref: t.PromptReference | t.ResourceTemplateReference, **argument: str) -> Any:
        """Those that an argument can be, and how many, and whether there are more."""
        [(name, value)] = argument.items()
        found = (await client.complete(ref, {"name": name, "value": value})).completion
        return found.values, found.total, found.has_more

    @in_both_eras
    async def test_names(self, era: Era) -> None:
        """The prompt's action and the document's name are completed: what begins so, then what has it, by name."""
        async with connected(serving(*actions(*NAMES)), era) as client:
            for found in (
                await self.names(client, PROMPT, action="pOst"),
                await self.names(client, TEMPLATE, name="pOst"),
            ):
                self.assertEqual(found, (["Post-all", "post-note", "compost"], 3, False))
            every = await self.names(client, PROMPT, action="")
            self.assertEqual(every, (["Post-all", "compost", "post-note", "relay", "ship"], 5, False))
            for argument in ({"action": "zz"}, {"wish": "p"}):  # no action, and what can be anything
                self.assertEqual(await self.names(client, PROMPT, **argument), ([], 0, False))

    @in_both_eras
    async def test_runs(self, era: Era) -> None:
        """A run is completed from the session's newest, these first; where they cannot be told, that is an error."""
        told = [{"approval_id": each, "action": "a", "status": "completed"} for each in ("01B", "01A", "02C")]
        show = t.PromptReference(name="show_result")
        attachment = t.ResourceTemplateReference(uri="aileron://runs/{run}/attachments/{number}")
        async with connected(serving(told=told), era) as client:
            for ref in (show, attachment):
                self.assertEqual(await self.names(client, ref, run="01"), (["01B", "01A"], 2, False))
            self.assertEqual(await self.names(client, attachment, number="1"), ([], 0, False))
        async with connected(serving(told=DaemonUnreachable("No daemon.")), era) as client:
            with self.assertRaises(MCPError) as caught:
                await self.names(client, show, run="")
        self.assertEqual((caught.exception.code, caught.exception.message), (t.INTERNAL_ERROR, "No daemon."))

    @in_both_eras
    async def test_unknown(self, era: Era) -> None:
        """A prompt, a template or an argument that there is not is refused by its name."""
        guide = t.PromptReference(name="how_to_use_aileron")
        async with connected(serving(), era) as client:
            for ref, argument, told in (
                (t.PromptReference(name="other"), "action", "There is no prompt 'other'."),
                (PROMPT, "name", "The prompt 'use_action' has no argument 'name'."),
                (guide, "action", "The prompt 'how_to_use_aileron' has no argument 'action'."),
                (t.ResourceTemplateReference(uri="x://{y}"), "name", "There is no resource template 'x://{y}'."),
                (TEMPLATE, "action", f"The resource template {TEMPLATE.uri!r} has no argument 'action'."),
            ):
                error = await self.refused(client.complete(ref, {"name": argument, "value": ""}))
                self.assertEqual(error.message, told)


class ManyTests(ShelfCase):
    """More than a client is told."""

    def found(
        self, ref: t.PromptReference | t.ResourceTemplateReference, argument: str, typed: str, *names: str
    ) -> t.Completion:
        """What an argument can be."""
        asked = t.CompletionArgument(name=argument, value=typed)
        return asyncio.run(complete_argument(ref, asked, Offered(*actions(*names))))

    def test_bound(self) -> None:
        """No more than a hundred are told, and how many there are."""
        for number, more in ((MOST_TOLD, False), (MOST_TOLD + 1, True)):
            found = self.found(PROMPT, "action", "a", *[f"a-{each:03}" for each in range(number)])
            self.assertEqual((len(found.values), found.total, found.has_more), (100, number, more))
            self.assertEqual((found.values[0], found.values[-1]), ("a-000", "a-099"))

    def test_long(self) -> None:
        """What is longer than any name is no name's part."""
        self.assertEqual(self.found(TEMPLATE, "name", "a" * 500_000, "a").values, [])
