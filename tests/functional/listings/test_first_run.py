"""C{doc/first-run.md}, played: the demo, setup, and the same once more step by step, up to the history."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

from twisted.internet.threads import deferToThread

from tests.extent import seldom
from tests.functional.browser import Browser, come
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.listings.reading import pages
from tests.functional.operated import CONNECTOR, GATED, SHIP
from tests.functional.reactor import until
from tests.functional.test_first_run import ACTION, answers_of_new_vault, answers_of_setup, curl_of

KEY = "xoxb-canary-70311"
AGENT = "#!/bin/sh\nwhile [ ! -e done ]; do sleep 0.1; done\n"
_EXAMPLE = re.compile(r"^```text\n(\+\+\+\n.*?)^```$", re.MULTILINE | re.DOTALL)


class FirstRunTests(PageTestCase):
    """A user in the first hour.

    The action of the page is asked of the test's own service, not of Slack.
    """

    page = "first-run.md"

    @seldom
    async def test_played(self) -> None:
        """Everything that the page says is done, and what was approved has happened."""
        await self.play(
            Play("aileron demo", answers=[(r"\[y\]es, \[n\]o, \[b\]rowser: ", "y")], shows=["execution.succeeded"]),
            Play(
                "aileron setup slack",
                replace={"setup slack": f"setup {shlex.join(curl_of(self.service.url))}"},
                answers=tuple(answers_of_setup(self.workspace.token).items()),
                shows=[f"Trusted: local://me/local, {ACTION}"],
            ),
        )
        await self.command("daemon", "stop")
        shutil.rmtree(self.state.root)
        self.secrets.append(KEY)
        await self.play(
            Play("aileron vault init", answers=tuple(answers_of_new_vault().items()), shows=["ed25519:"]),
            Play("aileron credential setup builtin://slack", answers=[LOG_IN, (r"\(not shown\): ", KEY)]),
        )
        await self.play_action()
        self.put_program("opencode", AGENT)
        agent = self.begin(Play("aileron launch opencode"))
        asked = await self.run_action(await self.session(), GATED)
        run_id = str(asked.body["run_id"])
        await self.play(
            Play("aileron approval list", shows=[run_id]),
            Play(
                "aileron approve 01J…",
                replace={"01J…": run_id},
                answers=[LOG_IN, (r"\[y/N\] ", "y")],
                shows=[SHIP["summary"], "Approved and completed"],
            ),
        )
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]])
        await self.play_browser()
        await self.play(
            Play("aileron run list", shows=[GATED]),
            Play("aileron audit list", shows=[GATED]),
        )
        (self.home.project / "done").touch()
        await self.finish(agent)

    async def play_action(self) -> None:
        """The example of the page on actions is added, and listed."""
        [example] = _EXAMPLE.findall((pages() / "writing-an-action.md").read_text("utf-8"))[:1]
        text = example.replace("builtin://slack", CONNECTOR)
        (self.home.project / "ship-update.md").write_text(text)
        self.write_connector()
        await self.operator("connector", "trust", "--yes", "--all")
        await self.feed(self.workspace.token, "binding", "setup", CONNECTOR, "--identity", "test")
        size = {"32 lines": f"{len(text.splitlines())} lines", "689 bytes": f"{len(text.encode())} bytes"}
        self.assertEqual((len(example.splitlines()), len(example.encode())), (32, 689))
        await self.play(
            Play(
                "aileron action add ship-update.md",
                answers=[LOG_IN, (r"exactly as shown\? \[y/N\] ", "y")],
                varies={**size, "sha256:2b1c…": "sha256:[0-9a-f]{64}"},
            ),
            Play("aileron action list"),
        )

    async def play_browser(self) -> None:
        """A browser is let in by the file that it is given, and the two words that it shows."""
        seen = self.home.root / "seen"
        program = self.put_program("browser", f'#!/bin/sh\ncp "$1" {seen}.html && mv {seen}.html {seen}\n')
        opening = self.begin(Play("aileron open", environment={"BROWSER": str(program)}, shows=["is logged in"]))
        await opening.running.expect(LOG_IN[0])
        opening.running.send(LOG_IN[1])
        await until(self.reactor, seen.exists, 30, f"a file to open: {opening.running!r}")
        browser = await deferToThread(come, Path(seen).read_text())
        assert isinstance(browser, Browser)
        await opening.running.expect("The two words shown at .*: ")
        opening.running.send(await deferToThread(browser.words))
        await self.finish(opening)
