"""C{doc/phone.md}, played: the live view and a tunnel by what stands for ssh, and a browser's login."""

from __future__ import annotations

import re

from twisted.internet.threads import deferToThread

from tests.extent import seldom
from tests.functional.browser import Browser, come
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED

SSH = """\
#!/bin/sh
case "$1 $2 $3" in
"-t you@your-machine aileron") shift 2; exec "$@" ;;
"-L 41807:localhost:41807 you@your-machine") exit 0 ;;
*) exit 9 ;;
esac
"""
FORM = '<form action="{}/handover"><input name="code" value="{}">'
CODE = r"\s((?:[A-Z]{4}-){4}[A-Z]{4})\s"


class PhoneTests(PageTestCase):
    """A user who is away, and a request that waits."""

    page = "phone.md"

    @seldom
    async def test_played(self) -> None:
        """The view over ssh shows the request, and a browser elsewhere is let in by a code."""
        self.put_program("ssh", SSH)
        await self.furnish()
        await self.run_action(await self.session(), GATED)
        watching = self.begin(
            Play("ssh -t you@your-machine aileron watch", answers=[LOG_IN, ("Post to #engineering", "q")])
        )
        await self.finish(watching)
        url = str(self.home.discovery()["operator_url"])
        await self.play(Play("aileron status", shows=[url]), Play("ssh -L 41807:localhost:41807 you@your-machine"))
        opening = self.begin(Play("aileron open --code", shows=["The browser is logged in"]))
        await opening.running.expect(LOG_IN[0])
        opening.running.send(LOG_IN[1])
        code = (await opening.running.expect(CODE))[1]
        browser = await deferToThread(come, FORM.format(url, code))
        assert isinstance(browser, Browser), browser
        await opening.running.expect(re.escape(f"The two words shown at {url}/: "))
        opening.running.send(await deferToThread(browser.words))
        await self.finish(opening)
