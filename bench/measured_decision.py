"""The test cases that C{python -m bench decision} runs: each goes some ways to one decision and writes the figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import attrs

from bench.browsing import write_figures
from bench.table import ROUNDS
from tests.functional.chromium import Page
from tests.functional.commands import fork_daemons
from tests.functional.operated import PASSPHRASE
from tests.functional.passkeyed import PasskeyTestCase
from tests.functional.process import Running
from tests.functional.reactor import until

_IDLE_SECONDS = 8.0
_SHORT = f"import aileron.vault._logins as logins\nlogins.IDLE_SECONDS = {_IDLE_SECONDS}\n"
_WATCHES = "document.documentElement.dataset.level === 'reading'"
_CAN_BE_RAISED = "document.documentElement.dataset.raise === 'passkey'"


@attrs.define
class Steps:
    """What a person does.

    :ivar commands: the commands that are typed.
    :ivar prompts: the questions that are answered in the terminal.
    :ivar typed: the characters of the answers, with Enter. Those of the command are not counted.
    :ivar presses: the buttons that are pressed in the browser.
    :ivar touches: how often the authenticator is touched.
    """

    commands: int = 0
    prompts: int = 0
    typed: int = 0
    presses: int = 0
    touches: int = 0

    def answer(self, running: Running, line: str) -> None:
        """Answer a question in the terminal."""
        self.prompts += 1
        self.typed += len(line) + 1
        running.send(line)

    async def press(self, page: Page, selector: str) -> None:
        """Press a button in the browser."""
        self.presses += 1
        await page.click(selector)


class DecisionCase(PasskeyTestCase):
    """A person whose browser has an authenticator."""

    timeout = 900
    page: Page
    authenticator: str

    async def begin(self) -> None:
        """Have a browser with an authenticator."""
        await super().begin()
        self.page, self.authenticator = await self.furnished()
        await self.page.look(width=1440, height=900)

    async def touched(self) -> int:
        """How often the authenticator was touched since it made a passkey."""
        found = await self.page.call("WebAuthn.getCredentials", authenticatorId=self.authenticator)
        return sum(int(each["signCount"]) for each in found["credentials"])

    async def measured(self, prepare: Callable[[], Awaitable[str]], go: Callable[[Steps, str], Awaitable[None]]) -> Any:
        """Go a way some times. The steps of the last one, and the median of the seconds."""
        took, steps = list[float](), Steps()
        for _ in range(ROUNDS):
            run_id, steps, before = await prepare(), Steps(), await self.touched()
            began = monotonic()
            await go(steps, run_id)
            took.append(monotonic() - began)
            steps.touches += await self.touched() - before
        return {"steps": attrs.asdict(steps), "seconds": median(took)}

    async def approve_shown(self, steps: Steps, run_id: str) -> None:
        """Approve the request that the page shows, and wait until it is carried out. Reading it is no step."""
        await self.ready(self.page)
        await steps.press(self.page, "#approve")
        await self.page.until("document.querySelector('article').dataset.state === 'completed'")

    async def began(self, steps: Steps, *command: str) -> Running:
        """Type a command and the passphrase, until this browser has opened the file."""
        steps.commands += 1
        opened, program = self.home.temporary / "opened", self.home.root / "browser"
        opened.unlink(missing_ok=True)
        program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
        program.chmod(0o700)
        running = self.start(self.home.on_terminal("aileron", *command, BROWSER=str(program)))
        await running.expect("Passphrase of the vault: ")
        steps.answer(running, PASSPHRASE)
        await until(self.reactor, opened.exists, 60, f"a file to open: {running!r}")
        await self.page.open(Path(opened.read_text()).as_uri())
        await running.expect("The two words shown at .*: ")
        return running

    async def by_words(self, steps: Steps, run_id: str) -> None:
        """Open the request by two words, and approve it."""
        running = await self.began(steps, "open", "approval", run_id)
        steps.answer(running, await self.page.text("#words"))
        await running.finish(60)
        await self.approve_shown(steps, run_id)


class ColdFigures(DecisionCase):
    """The daemon is stopped, so the vault is locked and no browser is logged in."""

    executes_daemons = True

    async def test_figures(self) -> None:
        """Go each way and write the figures. This asserts nothing."""
        found = {"words": await self.measured(self.stopped, self.by_words)}
        found["add"] = await self.measured_once(self.add_passkey)
        found["touch"] = await self.measured(self.stopped, self.by_touch)
        await self.operator("passkey", "require", "--all")
        found["needed"] = await self.measured(self.stopped, self.by_touch)
        write_figures(found)

    async def measured_once(self, go: Callable[[Steps], Awaitable[None]]) -> Any:
        """Go a way once, which makes a passkey by one touch."""
        await self.command("daemon", "stop")
        steps, began = Steps(touches=1), monotonic()
        await go(steps)
        return {"steps": attrs.asdict(steps), "seconds": monotonic() - began}

    async def stopped(self) -> str:
        """Ask for something, and stop the daemon. The id of what waits."""
        run_id = await self.ask()
        await self.command("daemon", "stop")
        return run_id

    async def by_touch(self, steps: Steps, run_id: str) -> None:
        """Open the request by a touch, and approve it."""
        running = await self.began(steps, "open", "approval", run_id)
        await steps.press(self.page, "#use-passkey")
        await running.finish(60)
        await self.approve_shown(steps, run_id)

    async def add_passkey(self, steps: Steps) -> None:
        """Add a passkey."""
        running = await self.began(steps, "passkey", "add")
        await steps.press(self.page, "#new-passkey button")
        steps.answer(running, await self.page.text("#words"))
        await running.finish(60)


class LapsedFigures(DecisionCase):
    """A page that is kept open, whose login lapses after eight seconds in place of thirty minutes."""

    def confine(self) -> None:
        """Have each daemon begin with the short time."""
        fork_daemons(_SHORT)

    async def test_figures(self) -> None:
        """Let a page lapse, decide by one touch, and write the figures. This asserts nothing."""
        await self.added(self.page)
        lapsed = await self.measured(self.lapsed, self.raise_page)
        await self.operator("passkey", "reset")
        write_figures({"lapsed": lapsed, "lapsed_words": await self.measured(self.only_watched, self.by_words)})

    async def lapsed(self) -> str:
        """Ask for something, and wait until a passkey can let its page decide again. The id of what waits."""
        run_id = await self.only_watched()
        await self.page.until(_CAN_BE_RAISED, 60)
        return run_id

    async def only_watched(self) -> str:
        """Ask for something, and wait until its page only watches. The id of what waits."""
        run_id = await self.ask()
        await self.page.open(f"{self.url}/approvals/{run_id}")
        await self.page.until(_WATCHES, 60)
        return run_id

    async def raise_page(self, steps: Steps, run_id: str) -> None:
        """Have the page decide again, and approve the request."""
        await steps.press(self.page, ".bar .raise")
        await self.approve_shown(steps, run_id)
