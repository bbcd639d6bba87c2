"""The demo as a newcomer meets it: installed commands, a terminal, and nothing left behind."""

import re
from pathlib import Path

from twisted.internet.threads import deferToThread

from tests.extent import seldom
from tests.functional.browser import Browser, come
from tests.functional.case import FunctionalTestCase
from tests.functional.process import Finished, Running
from tests.functional.reactor import until

_PROMPT = r"\[y\]es, \[n\]o, \[b\]rowser: "


class DemoTests(FunctionalTestCase):
    """Each test ends with no file and no process of the demo left."""

    async def play(self, *arguments: str) -> Finished:
        """Play it without a terminal."""
        finished = await self.run_command(self.home.script("aileron", "demo", *arguments), 90)
        await self.nothing_left()
        return finished

    def on_terminal(self) -> Running:
        """Play it on a terminal, where there is a browser that opens nothing."""
        return self.start(self.home.on_terminal("aileron", "demo", BROWSER="true"))

    async def nothing_left(self) -> None:
        """Assert that its directory is gone, and with it every process that knew it."""
        self.assertEqual(list(self.home.temporary.iterdir()), [])
        place = str(self.home.temporary).encode()
        await until(self.reactor, lambda: not _mentioning(place), 30, "the end of the demo's processes")
        self.assertFalse(self.home.aileron.exists())

    def assert_told(self, output: str) -> None:
        """All of the story is told, and not the chat's key."""
        for part in (
            "Trusted: local://demo/team-chat, ship-update",
            "ship_update",
            "Authorization: (the credential, added when the request is sent)",
            "New message in #releases of the chat:\n     │ Shipped: The new parser is out.",
            'The agent received:\n     │ {"number":1,"channel":"#releases"}',
            "approval.requested",
            "approval.approved",
            "execution.succeeded",
        ):
            self.assertIn(part, output)
        self.assertNotIn("demo-", output.replace("aileron-demo-", ""), "the chat's key shows")

    @seldom  # as on a terminal; that the answer is decided is in tests.features.demo
    async def test_yes(self) -> None:
        """With --yes it is shown, approved, done and on record."""
        found = await self.play("--yes")
        self.assertEqual(found.exit_code, 0, found)
        self.assert_told(found.stdout)

    async def test_page(self) -> None:
        """While it asks, a browser may be let in, and a decision there counts: it is done and on record."""
        playing = self.on_terminal()
        await playing.expect(_PROMPT, 60)
        playing.send("what?")
        await playing.expect(_PROMPT)
        playing.send("b")
        page = await playing.expect(r"within a minute: (\S+\.html)")
        approval = re.search(r"In the browser:\s+(\S+/approvals/(\w+))", playing.output)
        assert approval is not None
        browser = await deferToThread(come, Path(page.group(1)).read_text())
        assert isinstance(browser, Browser)
        await playing.expect("The two words shown at .*: ")
        playing.send(await deferToThread(browser.words))
        await playing.expect(_PROMPT)
        site = approval.group(1).partition("/approvals")[0]
        url = f"{site}/v1/action-approvals/{approval.group(2)}"
        digest = (await deferToThread(browser.ask, url))[1]["digest"]
        status, _ = await deferToThread(browser.ask, f"{url}/decide", {"approved": True, "digest": digest})
        self.assertEqual(status, 200)
        await playing.expect(r"Decided on the page\.")
        await playing.expect("Shipped: The new parser is out")
        self.assertEqual((await playing.finish(30)).exit_code, 0)
        self.assert_told(playing.output.replace("\r\n", "\n"))
        await self.nothing_left()

    async def test_interrupted(self) -> None:
        """Ctrl-C, also pressed twice, leaves nothing behind: at the question, and while a command of it runs."""
        for moment, times in (("aileron vault init", 2), ("aileron action add", 1), (_PROMPT, 2)):
            playing = self.on_terminal()
            await playing.expect(moment, 60)
            for _ in range(times):
                playing.send("\x03")
            found = await playing.finish(40)
            self.assertEqual(found.exit_code, 130, found)
            self.assertNotIn("Traceback", found.stdout)
            self.assertNotIn("Event loop", found.stdout)
            await self.nothing_left()


def _mentioning(place: bytes) -> list[Path]:
    """Processes whose arguments or environment name a place."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if place in (process / "cmdline").read_bytes() and b"aileron" in (process / "cmdline").read_bytes():
                found.append(process)
        except OSError:
            continue  # it has ended meanwhile
    return found
