"""Texts that are made to be slow to look at: in arguments, in a preview, in a result; everybody is still served."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import CONNECTOR

_LONGEST = 60_000
_PIECES = (
    "[](",
    "[",
    "![",
    "[a](b ",
    "<a ",
    "<a href",
    "<a href=b ",
    "<img src",
    "<http://a|",
    "@a@a.",
    "a@",
    "+1 1 1",
    "http://é@é ",
    "<@U1|",
    " \n",
)
_HEAD = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "{connector}"
version = "1.0.0"
capabilities = ["post_message", "find_messages"]
"""
_INPUT = """
[[inputs]]
name = "{name}"
type = "string"
multiline = true
description = "Some text"
"""
_POST = """
[[execute]]
id = "post"
connector = "{connector}"
op = "post_message"
inputs = {{ channel = "#general", text = "{text}" }}

[approval]
required = true

[approval.preview]
op = "find_messages"
args = {{ channel = "#general" }}
render = {{ {render} }}
+++
# Posts

Posts texts.
"""
_READ = """
[[execute]]
id = "read"
connector = "{connector}"
op = "find_messages"
inputs = {{ channel = "#general" }}

[approval]
required = true
+++
# Reads

Reads texts.
"""


def filled(piece: str) -> str:
    """As much of it as goes into an argument."""
    return (piece * (_LONGEST // len(piece) + 1))[:_LONGEST]


class SlowTextTests(PagesTestCase):
    """An agent, and somebody who writes to a channel; nobody of both is kept from making the operator's page slow."""

    timeout = 600

    async def test_served(self) -> None:
        """The list, the approval and the run are shown, and no turn of the reactor is long while they are drawn."""
        texts = {f"text_{number}": filled(piece) for number, piece in enumerate(_PIECES)}
        for text in texts.values():
            self.workspace._add("C0001", {"text": text})
        await self.add(self.posting(texts), self.reading())
        page = await self.entered()
        posts, reads = await self.asked("post-all", texts), await self.asked("read-all", {})
        for _ in range(4):
            await self.asked("post-all", texts)
        await self.opened(page, "/approvals")
        await self.waiting(6)
        for run_id in (posts, reads):
            await self.opened(page, f"/approvals/{run_id}")
            await self.opened(page, f"/runs/{run_id}")
        await self.approve(reads)
        self.assertEqual((await self.result(self.agent, reads, wait=60)).body["status"], "completed")
        for path in (f"/approvals/{reads}", f"/runs/{reads}", "/runs", "/audit"):
            await self.opened(page, path)

    async def test_long_lists(self) -> None:
        """A list of the largest runs comes in pages that the operator's commands can read and nobody waits for."""
        texts = {f"text_{number}": filled("a ") for number in range(15)}
        await self.add(self.posting(texts))
        asked = [await self.asked("post-all", texts) for _ in range(11)]
        found: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            listed = await self.told("approval", "list", *(("--cursor", cursor) if cursor else ()))
            found += [item["id"] for item in listed["items"]]
            cursor = listed["cursor"]
        self.assertEqual(found, asked)
        url = f"{self.home.discovery()['url']}/v1/runs?limit=1000"
        runs = await self.web.ask("GET", url, self.agent.token)
        self.assertLess(len(runs.text), 8 * 1024 * 1024)
        self.assertIsNotNone(runs.body["cursor"])
        page = await self.entered()
        for path in ("/approvals", "/runs"):
            await self.opened(page, path)

    def posting(self, names: Mapping[str, str]) -> Path:
        """The file of an action that takes as much as can be given, and shows as much as is shown."""
        render = ", ".join(f'"Message {number}" = "messages.{number}.text"' for number in range(4))
        post = _POST.format(connector=CONNECTOR, text="".join(f"${{args.{name}}}" for name in names), render=render)
        return self.written("post-all", "".join(_INPUT.format(name=name) for name in names) + post)

    def reading(self) -> Path:
        """The file of an action whose result is all that others wrote."""
        return self.written("read-all", _READ.format(connector=CONNECTOR))

    def written(self, name: str, text: str) -> Path:
        """A file of that name."""
        path = self.home.project / f"{name}.md"
        path.write_text(_HEAD.format(name=name, connector=CONNECTOR) + text)
        return path

    async def asked(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The id of a call that waits."""
        reply = await self.run_action(self.agent, name, arguments)
        self.assertEqual(reply.status, 202, reply.text)
        return str(reply.body["run_id"])

    async def opened(self, page: Page, path: str) -> None:
        """What a page shows comes, and whoever else asks at once is answered."""
        status, text = await self.call(page, f"/fragments{path}")
        self.assertEqual(status, 200, text[:500])
        self.assertEqual((await self.status())["vault_state"], "unlocked")
