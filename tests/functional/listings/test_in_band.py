"""C{doc/in-band.md}, played: two small programs ask a model, which calls an action for them."""

from __future__ import annotations

import sys

from tests.extent import seldom
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.listings.page import PageTestCase, Play
from tests.functional.operated import SHIP
from tests.functional.script import Call, Say

KEY = "sk-of-the-user"
SCRIPT = """
import json, os, urllib.request
body = {"model": "m", "messages": [{"role": "user", "content": "tell the team"}]}
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as reply:
    print(json.load(reply)["choices"][0]["message"]["content"])
"""


class InBandTests(PageTestCase, GatewayedTestCase):
    """A user with programs that know nothing of MCP."""

    page = "in-band.md"

    @seldom
    async def test_played(self) -> None:
        """Each program is shown what the model says once the action ran, in and out of a sandbox."""
        self.use_upstream(self.llm({"m": [Call("post_note", SHIP), Say("all done")] * 2}))
        await self.furnish()
        self.secrets.append(KEY)
        self.put_program("aider", f"#!{sys.executable}\n{SCRIPT}")
        (self.home.project / "my_script.py").write_text(SCRIPT)
        for line in ("aileron launch --in-band aider", "aileron launch --sandbox --in-band python my_script.py"):
            await self.play(Play(line, environment={"OPENAI_API_KEY": KEY}, shows=["all done", "in-band mode"]))
        self.assertEqual([each.text for each in self.workspace.messages], [SHIP["summary"]] * 2)
