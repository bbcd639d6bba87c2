"""Credentials of single accounts: each person's agent acts with that person's credential, and never with another's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.extent import seldom
from tests.functional.operated import CONNECTOR, GATED, SHIP, UNGATED, AgentSession, OperatedTestCase
from tests.functional.phoned import config
from tests.functional.web import Reply

_PEOPLE = ("alice", "bob", "carol")


class PersonalTests(OperatedTestCase):
    """Agents of alice and bob, who have credentials of their own, and of carol and the operator, who have none."""

    async def begin(self) -> None:
        """A daemon with a public name, the accounts with an agent each, and the operator's own agent."""
        await self.furnish(config())
        self.tokens = {name: f"xoxb-of-{name}-{self.workspace.token[-12:]}" for name in ("alice", "bob")}
        self.workspace.others = {*self.tokens.values()}
        self.agents: dict[str, AgentSession] = {"operator": await self.session()}
        for name in _PEOPLE:
            await self.operator("people", "add", name, "--role", "approver")
            opened = await self.told("people", "connect", name, "opencode")
            self.agents[name] = AgentSession(opened["id"], opened["token"], opened["gateway_key"])
        for name, token in self.tokens.items():
            await self.feed(token, "binding", "setup", CONNECTOR, "--owner", name)

    async def act(self, name: str, action: str = UNGATED, wait: int | None = 30) -> Reply:
        """A call of this person's agent, which says whose it is."""
        return await self.run_action(self.agents[name], action, {**SHIP, "summary": f"by {name}"}, wait)

    def used(self) -> list[tuple[str, str]]:
        """Of each post, what it says and whose token it came with; then begin anew."""
        whose = {f"Bearer {token}": name for name, token in {"shared": self.workspace.token, **self.tokens}.items()}
        posts = [each for each in self.workspace.requests if each.path == "/api/chat.postMessage"]
        self.workspace.requests.clear()
        return [(str(each.body["text"]), whose[each.headers["authorization"]]) for each in posts]

    def refused(self, reply: Reply, begins: str) -> None:
        """Check that a call was refused for want of a credential, in words that name no other person."""
        told = reply.body["error"]
        self.assertEqual((reply.status, told["class"]), (412, "binding_required"))
        self.assertTrue(told["message"].startswith(begins), told)
        self.assertNotIn("bob", json.dumps(reply.body))

    async def approve_all(self) -> Mapping[str, Any]:
        """Approve whatever waits, and return by whose agent it is whose credential was shown."""
        shown = {}
        for each in (await self.told("approval", "list"))["items"]:
            found = await self.told("approval", "show", each["id"])
            (step,) = found["review"]["steps"]
            shown[found["run"].get("owner", {}).get("name", "operator")] = (
                step["binding"].get("owner") or {"name": "shared"}
            )["name"]
            await self.approve(each["id"], "--wait", "20")
        return shown

    @seldom
    async def test_each(self) -> None:
        """Each request is sent with the credential of the person whose agent it is, else with the shared one."""
        await self.begin()
        shared = {"carol": "shared", "operator": "shared", "alice": "alice", "bob": "bob"}
        for name in ("alice", "bob", "alice", "carol", "operator", "bob"):
            self.assertEqual((await self.act(name)).status, 200, name)
            self.assertEqual(self.used(), [(f"by {name}", shared[name])])
        for name in shared:
            self.assertEqual((await self.act(name, GATED, None)).status, 202)
        self.assertEqual(await self.approve_all(), shared)
        self.assertEqual(sorted(self.used()), sorted((f"by {name}", whose) for name, whose in shared.items()))

    @seldom
    async def test_none(self) -> None:
        """Who has none, where nothing is shared, is told so; nothing is sent, also with another's credential there."""
        await self.begin()
        await self.operator("binding", "revoke", "api_key/slack/default")
        for action in (UNGATED, GATED):
            self.refused(await self.act("carol", action), f"No credential is bound to {CONNECTOR} for carol, and none")
            self.refused(await self.act("operator", action), f"No credential is bound to {CONNECTOR}. Run")
        self.assertEqual((await self.act("alice")).status, 200)
        self.assertEqual(self.used(), [("by alice", "alice")])
        await self.operator("binding", "revoke", "api_key/slack/alice")
        self.refused(await self.act("alice"), f"No credential is bound to {CONNECTOR} for alice, and none")
        self.assertEqual((await self.act("bob")).status, 200)
        self.assertEqual(self.used(), [("by bob", "bob")])
        await self.operator("people", "remove", "bob")
        self.assertEqual((await self.act("bob")).status, 401)
        listed = json.dumps(await self.told("binding", "list"))
        self.assertNotIn("bob", listed)
        self.assertEqual(self.used(), [])
