"""Calls of an agent to the action by which its own tools use a service."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.attacks.case import AttackTestCase
from tests.functional.operated import UNGATED

_NAMES = ("github-tools", "github_tools", "github-tools.md", "GITHUB-TOOLS")
_WRITTEN = {
    "host": "api.github.com",
    "method": "DELETE",
    "target": "/repos/me/mine",
    "headers": ["Accept: application/json"],
}
_MEMBERS: tuple[dict[str, Any], ...] = (
    {},
    {"claim": {"form": "sha256:0", "size": 1}},
    {"call": {"claim": {"form": "sha256:0", "size": 1}}},
    {"idempotency_key": "one"},
    {"tool_call": "one"},
    {"actor": {"kind": "human", "id": "operator"}},
    {"session": None},
)


class ActionTests(AttackTestCase):
    """A user who let the tools of agents use GitHub, and an agent that calls the action itself."""

    async def test_call(self) -> None:
        """No call of the agent's reaches the action, whatever it says of itself; nobody is asked, nothing is sent."""
        await self.furnish()
        await self.operator("own-tools", "add", "github", "--yes")
        await self.feed("ghp_CANARY", "credential", "setup", "builtin://github")
        session = await self.session()
        url = self.home.discovery()["url"]
        listed = (await self.web.ask("GET", f"{url}/v1/actions", session.token)).body["items"]
        self.assertIn(UNGATED, {each["name"] for each in listed})
        self.assertNotIn("github-tools", {each["name"] for each in listed})
        statuses = set()
        for name, members in product(_NAMES, _MEMBERS):
            for arguments in (_WRITTEN, {**_WRITTEN, **members}):
                body = {"args": arguments, **members}
                answer = await self.web.ask("POST", f"{url}/v1/actions/{name}/run", session.token, body)
                statuses.add(answer.status)
        self.assertLessEqual(statuses, {400, 403, 404, 422}, statuses)
        self.assertIn(403, statuses)
        self.assertEqual([], await self.waiting(0))
        runs = (await self.web.ask("GET", f"{url}/v1/runs", session.token)).body["items"]
        self.assertEqual([], runs)

    async def test_mcp(self) -> None:
        """No tool of MCP stands for the action, and its name calls nothing."""
        await self.furnish()
        await self.operator("own-tools", "add", "github", "--yes")
        await self.feed("ghp_CANARY", "credential", "setup", "builtin://github")
        client = await self.mcp(await self.session())
        names = set(await client.tools())
        self.assertTrue(names)
        self.assertNotIn("github_tools", names)
        called = await client.call("github_tools", _WRITTEN)
        self.assertTrue(called.is_error, called)
        self.assertEqual([], await self.waiting(0))
