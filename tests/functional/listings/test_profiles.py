"""C{doc/profiles.md}, played with a program that stands for OpenCode and calls actions by their names."""

from __future__ import annotations

import re
import sys

from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.operated import GATED, UNGATED
from tests.functional.process import Command

AGENT = f"""#!{sys.executable}
import json, os, urllib.error, urllib.request

(server,) = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"].values()
given = server["environment"]
for name in ("{GATED}", "{UNGATED}"):
    request = urllib.request.Request(
        f"{{given['AILERON_URL']}}/v1/actions/{{name}}/run",
        json.dumps({{"args": {{"channel": "#general", "summary": "x"}}}}).encode(),
        {{"Authorization": f"Bearer {{given['AILERON_TOKEN']}}", "Content-Type": "application/json"}},
    )
    try:
        print(name, urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as refused:
        print(name, refused.code)
"""


class ProfilesTests(PageTestCase):
    """A user with a gated and an ungated action, and the profiles of the page, of which one has what is there."""

    page = "profiles.md"

    @seldom
    async def test_played(self) -> None:
        """An agent can use what its profile allows; a call of another action by its name is refused."""
        await self.furnish()
        self.put_program("opencode", AGENT)
        (config,) = re.findall(r"```yaml\n(.*?)```", self.page_text(), re.DOTALL)
        self.state.config.write_text(config.replace('"effect:read"', f'"{UNGATED}"'))
        await self.play(
            Play("aileron config trust", answers=[LOG_IN, YES], shows=["Trusted: config.yaml"]),
            Play("aileron daemon stop"),
            Play("aileron vault unlock", answers=[LOG_IN]),
        )
        await self.play(Play("aileron profile list", shows=["reader", UNGATED], environment={"COLUMNS": "160"}))
        shows = [f"{GATED} 403", f"{UNGATED} 200"]
        await self.play(Play("aileron launch --profile reader opencode", shows=shows))
        shown = await self.play(Play("aileron launch --print --profile reader opencode", shows=["profile", "reader"]))
        self.assertRegex(shown, rf"actions\s+{UNGATED}\b")
        (self.home.project / ".aileron.toml").write_text(f'[tools]\ndeny = ["{UNGATED}"]\n')
        command = Command(
            arguments=("/bin/bash", "-c", "aileron launch opencode"),
            environment=self.environment(),
            directory=self.home.project,
            terminal=True,
        )
        narrowed = (await self.start(command).finish(60)).stdout
        self.assertIn(f"{GATED} 202", narrowed)
        self.assertIn(f"{UNGATED} 403", narrowed)
