"""Hostile words on every page, in a real browser: from agents' calls and claims, files, and reasons of denials."""

from __future__ import annotations

from collections.abc import Iterator

from aileron.features import FeatureSet
from aileron.web._table import shown
from tests.functional.browsed import PagesTestCase
from tests.functional.chromium import Page
from tests.functional.operated import GATED, AgentSession
from tests.hostile import HIT, hostile_strings

_CALLS, _LONGEST = 8, 200
_FOREIGN = "script, img, iframe, object, embed, link, style, base, meta, video, math, svg script, animate, form[action]"
_FOUND = f"[...document.querySelectorAll('main :is({_FOREIGN})')].map((each) => each.outerHTML)"


def sendable() -> list[str]:
    """Those that JSON can say and the door lets in."""
    return [each for each in hostile_strings() if not any("\ud800" <= c <= "\udfff" or c == "\0" for c in each)]


def packed(longest: int) -> Iterator[str]:
    """As many as fit into each text of that length, those that would act first."""
    text = ""
    for each in sorted(sendable(), key=lambda each: HIT not in each):
        if len(text) + len(each) > longest:
            yield text
            text = ""
        text += each if len(each) <= longest else ""


class HostilePagesTests(PagesTestCase):
    """An agent whose every word is hostile."""

    async def test_inert(self) -> None:
        """No page runs, loads, asks or becomes anything of it."""
        self.agent = await self.claiming("".join(sendable())[:3000])
        texts = packed(_LONGEST)
        runs = [await self.ask(summary=next(texts), channel=f"#{sendable()[number]}"[:80]) for number in range(_CALLS)]
        await self.operator("approval", "deny", runs[0], "--reason", "".join(sendable()[3:9])[:500])
        (self.state.actions / "hostile.md").write_text(self.hostile_action(), "utf-8")
        page = await self.entered()
        await page.shows("#")
        for path in (
            *(rule for rule in shown(FeatureSet()) if "<" not in rule),
            *(f"/approvals/{run_id}" for run_id in runs),
        ):
            await page.open(self.url + path)
            await page.until("document.querySelector('main h1') !== null")
            await self.pause(0.2)
            await self.assert_inert(page, path)

    async def claiming(self, directory: str) -> AgentSession:
        """An agent that says that it works there; names are not as free."""
        found = self.home.discovery()
        body = {"agent": "opencode", "working_dir": directory}
        opened = (await self.web.ask("POST", f"{found['url']}/v1/sessions", found["launch_key"], body)).body
        return AgentSession(opened["id"], opened["token"], opened["gateway_key"])

    def hostile_action(self) -> str:
        """A file that says all of it where an agent would read it."""
        text = self.action_file(GATED, gated=True).read_text()
        return text.replace(f'"{GATED}"', '"hostile"') + "\n".join(each for each in sendable() if "\r" not in each)

    async def assert_inert(self, page: Page, path: str) -> None:
        """It is as quiet as with harmless words."""
        self.assertNotIn(HIT, await page.evaluate("document.title"), path)
        self.assertEqual(await page.evaluate(_FOUND), [], path)
        self.assertEqual((page.dialogs, page.problems), ([], []), path)
        # A browser draws its field for a date with a picture of its own; one of the page's would be a problem above.
        strange = [url for _, url in page.requests if not url.startswith((self.url, "file:", "about:", "data:image/"))]
        self.assertEqual(strange, [], path)
