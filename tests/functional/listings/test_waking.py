"""C{doc/waking.md}, played with a program that stands for OpenCode: it ends while its call waits, and is resumed."""

from __future__ import annotations

import re
import sys

from tests.extent import seldom
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import GATED

AGENT = f"""#!{sys.executable}
import json, os, sys, urllib.request

(server,) = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"].values()
given = server["environment"]


def post(path, body):
    headers = {{"Authorization": f"Bearer {{given['AILERON_TOKEN']}}", "Content-Type": "application/json"}}
    request = urllib.request.Request(given["AILERON_URL"] + path, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request).status


if "--session" in sys.argv:
    print("resumed:", *sys.argv[2:])
else:
    post("/v1/wake/conversation", {{"conversation": "ses_1"}})
    print(post("/v1/actions/{GATED}/run", {{"args": {{"channel": "#general", "summary": "x"}}}}))
"""


class WakingTests(PageTestCase):
    """A user whose agent ends before the decision."""

    page = "waking.md"

    @seldom
    async def test_played(self) -> None:
        """The settings of the page are valid, and the launch goes on with the agent after the approval."""
        (config,) = re.findall(r"```yaml\n(.*?)```", self.page_text(), re.DOTALL)
        await self.furnish(config)
        self.put_program("opencode", AGENT)
        launched = self.begin(
            Play(
                'aileron launch --wake opencode run "Ship it and tell the team"',
                shows=[f"resumed: --session ses_1 Aileron: {GATED}, which you called earlier"],
            )
        )
        await launched.running.expect("It is resumed with the outcome", 60)
        (approval,) = await self.waiting()
        await self.approve(approval["id"])
        await self.finish(launched)
