"""C{doc/phone.md}, played: a message is tried, and the live view is opened by what stands for ssh."""

from __future__ import annotations

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED

CONFIG = "notifications:\n  desktop: {{command: {}}}\n"


class PhoneTests(PageTestCase):
    """A user who is away, and a request that waits."""

    page = "phone.md"

    @seldom
    async def test_played(self) -> None:
        """The test message is sent, and the view over ssh shows the request."""
        told = self.put_recorder("notify")
        self.put_program("ssh", '#!/bin/sh\ntest "$1 $2" = "-t you@your-machine" || exit 9\nshift 2\nexec "$@"\n')
        await self.furnish()
        await self.set_config(CONFIG.format(self.programs / "notify"))
        await self.run_action(await self.session(), GATED)
        await self.play(Play("aileron notification test", answers=[LOG_IN], shows=["desktop"]))
        self.assertTrue(told())
        watching = self.begin(Play("ssh -t you@your-machine aileron approval watch", answers=[LOG_IN, (GATED, "q")]))
        await self.finish(watching)
