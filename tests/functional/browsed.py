"""A user who looks at the pages: the daemon, an agent that asks, and a browser that is logged in."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from twisted.internet.defer import Deferred

from aileron.cli.vault.open import write_page
from aileron.client import Connections
from tests.extent import Turns, is_all
from tests.functional import install
from tests.functional.chromium import Chromium, Page
from tests.functional.operated import GATED, PASSPHRASE, AgentSession, OperatedTestCase
from tests.functional.process import Running
from tests.functional.reactor import until

PICTURES = os.environ.get("AILERON_TEST_PICTURES")

SIZES = {360: 740, 390: 800, 1280: 900, 1920: 1080}
"""The height of a window by its width, in pixels."""

BETWEEN = (320, 600, 768, 960, 1085)
"""Widths of the smallest phone and of what is between phones and desktops: pages are not kept, but must fit as well."""

STYLES: Mapping[str, Mapping[str, Any]] = {
    f"{width}-{scheme}": {"width": width, "height": height, "dark": scheme == "dark"}
    for at, (width, height) in enumerate(SIZES.items())
    for scheme in (("light", "dark") if is_all() or PICTURES else (("light", "dark")[at % 2],))
}
"""Every width and both schemes; each width in both where everything is wanted, or pictures are."""
JUDGED = frozenset(STYLES if is_all() else ("390-dark", "1280-light"))
"""Where axe-core looks for faults: each scheme once, narrow and wide; in every style where everything is wanted."""

ASKS_UNTIL = "void dispatchEvent(new Event('online')) ?? (%s)"
"""Has the page look for news until something is so. A look on its way misses the event, so each try sends it again."""

_CONTRAST = {"runOnly": ["color-contrast"]}
_FAULTS = """axe.run(document, { resultTypes: ["violations"], selectors: false, ...%s })
  .then(({ violations }) => violations
  .filter(({ impact }) => impact === "serious" || impact === "critical")
  .map(({ id, nodes }) => [id, nodes.map(({ html, failureSummary }) => [html, failureSummary])]))"""
_ROUNDS, _MOST_TABS = 3, 120
_FOCUSED = """(({ activeElement: at }) => [
  at.matches(%s), at.matches(":focus-visible"), `${at.tagName}#${at.id}`, document.hasFocus()])(document)"""
_TO_THE_FRONT_SECONDS = 0.6
"""For how long a page takes no press once it has got the focus, and a little more."""
# axe-core wants a name of what says that it is a picture, and asks no drawing whether it is one.
_NAMELESS = """[...document.querySelectorAll("svg, canvas, [role=img]")]
  .filter((each) => !each.closest("[aria-hidden=true]") && !(each.role === "img" && each.ariaLabel?.trim()))
  .map((each) => each.outerHTML.slice(0, 200))"""
_READ = """(() => {
  const next = document.querySelector("#unread a");
  next?.click();
  if (next) document.activeElement.scrollTop = 1e6;
  return document.querySelector("#approve:not(:disabled)") !== null;
})()"""
"""Goes to what was not on the screen yet, and to the end of it; true where nothing is left."""
# Links within a sentence are as high as their line; a checkbox is pressed by its label as well.
_PRESSED = "button, .button, summary, select, input, textarea, header a, .row-link, .list th a"
_SMALL = """[...document.querySelectorAll(%s)]
  .filter((each) => each.checkVisibility() && !each.matches("[type=checkbox], [type=radio]"))
  .map((each) => [each.outerHTML.slice(0, 120), each.getBoundingClientRect().height])
  .filter(([, height]) => height < 43.9)"""
_CUT = """[...document.querySelectorAll(".wide")].filter((each) => each.scrollWidth > each.clientWidth)
  .map((each) => each.ariaLabel)"""


class BrowsedTestCase(OperatedTestCase):
    """A user with a daemon, an agent that asks for a gated action, and a browser.

    With AILERON_TEST_PICTURES set to a directory, pictures of the pages are kept there.

    :cvar styles: those of L{STYLES} in which pages are looked at.
    :cvar judged: in which of them axe-core looks for faults; for all of its faults in one, and of contrast,
        which is the scheme's, in the others.
    :cvar config: the text of C{config.yaml}, trusted; empty: there is none.
    :cvar notifies: whether the browser's service workers are to show notifications.
    """

    styles: ClassVar[Sequence[str]] = tuple(STYLES)
    judged: ClassVar[Collection[str]] = JUDGED
    config: ClassVar[str] = ""
    notifies: ClassVar[bool] = False
    agent: AgentSession
    browser: Chromium
    url: str
    login_page: str

    async def begin(self) -> None:
        """Start everything."""
        await self.furnish(self.config)
        self.url = str(self.home.discovery()["operator_url"])
        self.agent = await self.session("opencode")
        self.browser = await Chromium.lend(self.reactor, notifies=self.notifies)
        self.finally_(self.browser.give_back)

    async def entered(self, path: str = "/approvals") -> Page:
        """A new tab that is logged in."""
        page = await self.browser.page()
        await self.log_in(page, path)
        return page

    async def log_in(self, page: Page, path: str = "/approvals") -> None:
        """Let this tab in by the file, the code and the two words, as ``aileron open`` does, without a terminal."""
        connections = Connections(self.reactor)
        try:
            site = str(self.home.discovery()["operator_url"])
            operator = connections.operator(site, await self.operator_token())
            file = write_page(self.state, site, (await operator.post("operator", "handover"))["code"], path)
            self.login_page = file.read_text()
            await page.open(file.as_uri())
            words = await page.text("#words")
            file.unlink()
            await operator.post("operator", "handover", "confirm", body={"words": words})
        finally:
            await connections.close()
        await self._let_in(page)

    async def open_pages(self, page: Page, *what: str) -> Path:
        """Run ``aileron open`` with this tab as the browser; the file that it was given."""
        place = self.home.temporary / "opened"
        place.unlink(missing_ok=True)
        program = self.home.root / "browser"
        program.write_text(f'#!/bin/sh\nprintf %s "$1" > {place}.part && mv {place}.part {place}\n')
        program.chmod(0o700)
        running = self.on_terminal("open", *what, BROWSER=str(program))
        await running.expect("Passphrase of the vault: ")
        running.send(PASSPHRASE)
        await until(self.reactor, place.exists, 30, f"a file to open: {running!r}")
        file = Path(place.read_text())
        await page.open(file.as_uri())
        await self.type_words(running, page)
        finished = await running.finish(30)
        self.assertEqual(finished.exit_code, 0, finished.stdout)
        await self._let_in(page)
        return file

    async def _let_in(self, page: Page) -> None:
        await page.until("location.pathname !== '/confirm' && document.querySelector('#main > [data-title]') !== null")

    async def type_words(self, running: Running, page: Page) -> None:
        """Carry the two words from the page to the terminal, as the person does."""
        words = await page.text("#words")
        await running.expect("The two words shown at .*: ")
        running.send(words)

    async def ask(self, summary: str = "Dark mode", channel: str = "#general") -> str:
        """The agent asks for an action; the id of what then waits."""
        reply = await self.run_action(self.agent, GATED, {"channel": channel, "summary": summary})
        self.assertEqual(reply.status, 202, reply.text)
        return str(reply.body["run_id"])

    async def edit_action(self) -> None:
        """Change what the gated action would post, and trust it so."""
        await self.add(self.action_file(GATED, gated=True, before="Edited: "), force=True)

    async def outcome(self, run_id: str, wait: int = 0) -> tuple[str, str | None]:
        """What the agent learns: the status and the reason."""
        told = (await self.result(self.agent, run_id, wait)).body
        return told["status"], told.get("reason")

    async def open_approval(self, page: Page, run_id: str) -> None:
        """Follow the list's link to an approval."""
        await page.click(f'a[href="/approvals/{run_id}"]')
        await page.until(f"document.querySelector('article[data-id=\"{run_id}\"]') !== null")

    async def ready(self, page: Page) -> None:
        """Read the approval that the page shows to its end, and wait until it can be approved."""
        await page.until(_READ)

    async def stands(self, page: Page, state: str) -> None:
        """Wait until the page shows an approval in that state."""
        await page.until(f"document.querySelector('article').dataset.state === '{state}'")

    # by keyboard ------------------------------------------------------------------------------

    async def reach(self, page: Page, selector: str) -> None:
        """Press Tab until the focus is on such an element, once there is one that can be used; it is seen there.

        A page that is drawn anew has its buttons rest for a moment, in which Tab passes them by. Behind its last
        element Tab leads out of the page, and then into it again; such a page takes no press for a moment, since one
        may be meant for what was in front of it, and this returns after that.
        """
        wanted = json.dumps(f"{selector}:not(:disabled)")
        seen: list[str] = []
        came, is_in_front = -_TO_THE_FRONT_SECONDS, True
        for at in range(_ROUNDS * _MOST_TABS):
            if at % _MOST_TABS == 0:
                await page.until(f"document.querySelector({wanted}) !== null")
                is_in_front = await page.evaluate("document.hasFocus()")
            was_in_front = is_in_front
            await page.press("Tab")
            is_there, is_seen, name, is_in_front = await page.evaluate(_FOCUSED % wanted)
            if not was_in_front:
                came = self.reactor.seconds()
            if is_there:
                self.assertTrue(is_seen, selector)
                await self.pause(max(0, came + _TO_THE_FRONT_SECONDS - self.reactor.seconds()))
                return
            seen.append(name)
        raise AssertionError(f"Tab does not lead to {selector}, but to {seen}")

    async def use(self, page: Page, selector: str, key: str = "Enter") -> None:
        """Go to an element and press a key there."""
        await self.reach(page, selector)
        await page.press(key)

    async def confirm(self, page: Page, button: str, says: str = "") -> None:
        """Use a button that asks whether one is sure, and confirm.

        :param says: of what it asks.
        """
        await self.use(page, button)
        await page.shows(says)
        await page.until(f"document.activeElement.matches({json.dumps(button + '[data-asked]:not(:disabled)')})")
        await page.press("Enter")

    # what is shown ----------------------------------------------------------------------------

    async def keep(self, page: Page, name: str, *, whole: bool = True) -> None:
        """Keep a picture, if pictures are wanted: of the whole page, or of the window."""
        if PICTURES:
            await page.picture(Path(PICTURES) / f"{name}.png", whole=whole)

    async def look_at(self, page: Page, name: str) -> None:
        """What the tab shows now, in every style, with axe-core, which finds what keeps people from using it."""
        if self.judged and await page.evaluate("window.axe === undefined"):
            await page.evaluate(install.axe(install.place() / "opencode").read_text(encoding="utf-8") + ";0")
        wholly = Turns(f"{self.id()} {name}").of(*sorted(self.judged)) if self.judged else ()
        self.assertEqual(await page.evaluate(_NAMELESS), [], f"{name} has pictures without a name")
        for style in self.styles:
            size = STYLES[style]
            await page.look(**size)
            await self.keep(page, f"{name}-{style}")
            await self._assert_fits(page, size["width"], name, style)
            if style in self.judged:
                found = await page.evaluate(_FAULTS % json.dumps({} if style in wholly else _CONTRAST))
                self.assertEqual(found, [], f"{name} {style}")
        for width in BETWEEN:
            await page.look(width=width, height=SIZES[1280])
            await self._assert_fits(page, width, name)
        await self._assert_touchable(page, name)
        await page.look()

    async def _assert_touchable(self, page: Page, name: str) -> None:
        """With a finger, whatever is pressed is at least 44 pixels high."""
        await page.look(width=390, height=SIZES[390])
        await page.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.assertEqual(await page.evaluate(_SMALL % json.dumps(_PRESSED)), [], f"{name} has small targets")
        await page.call("Emulation.setTouchEmulationEnabled", enabled=False)

    async def _assert_fits(self, page: Page, width: int, *said: str) -> None:
        # Not held against innerWidth: a phone's window grows with what is too wide for it.
        self.assertLessEqual(await page.evaluate("document.documentElement.scrollWidth"), width, said)
        self.assertEqual(await page.evaluate(_CUT), [], (width, *said))

    async def call(self, page: Page, path: str, **options: Any) -> Any:
        """Status and text of a request that the page signs; L{None}: it is nobody's."""
        called = f"({{ call }}) => call({json.dumps(path)}, {json.dumps(options)})"
        told = "async (answer) => answer && [answer.status, await answer.text()]"
        return await page.evaluate(f"import('/static/key.js').then({called}).then({told})")

    async def fetch(self, page: Page, path: str, **options: Any) -> Any:
        """Status and text of a request from within a page; status 0 if the browser lets it know nothing."""
        wanted = f"fetch({json.dumps(path)}, {json.dumps(options)})"
        return await page.evaluate(f"{wanted}.then(async r => [r.status, await r.text()], e => [0, String(e)])")


class PagesTestCase(BrowsedTestCase):
    """The same, with everything started."""

    def setUp(self) -> Any:
        """Start it."""
        super().setUp()
        return Deferred.fromCoroutine(self.begin())
