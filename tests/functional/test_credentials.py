"""Which credential opens what: every route of both sites, asked with everything but the operator's token."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from tests.functional.operated import GATED, SHIP, OperatedTestCase
from tests.functional.reactor import Patience

# 405: the agent site has the path, but with other methods.
REFUSED = (401, 403, 404, 405)
# What an agent's token, and what a launch key is for, by the agent site's own document.
AGENT, LAUNCH = "agentToken", "launchKey"


@attrs.frozen
class Route:
    """One route as the site's document describes it.

    :ivar open_to: the kinds of credentials; empty: none is needed.
    """

    method: str
    path: str
    open_to: frozenset[str]

    def at(self, site: str, run_id: str) -> str:
        """Its address, about a run, session or name that is there."""
        path = self.path
        for name in ("run_id", "approval_id", "session_id", "audit_id"):
            path = path.replace(f"{{{name}}}", run_id)
        return f"{site}{path.replace('{name}', GATED)}"


def routes_of(document: Mapping[str, Any]) -> Iterator[Route]:
    """Every route of a document that is ours to answer: what the gateway carries on is not."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "gateway" in operation.get("tags", ()):
                continue
            yield Route(method.upper(), path, frozenset(kind for each in operation["security"] for kind in each))


class CredentialTests(OperatedTestCase):
    """One approval waits; who may decide it?"""

    async def documented(self, site: str) -> list[Route]:
        """Every route of a site."""
        return list(routes_of((await self.web.ask("GET", f"{site}/v1/openapi.json")).body))

    async def refused(self, routes: list[Route], site: str, run_id: str, token: str | None) -> None:
        """Fail if any of the routes answers otherwise than by a refusal."""
        for route in routes:
            # A body that would be right for deciding: what refuses must be the credential alone.
            body = None if route.method == "GET" else {"approved": True, "digest": "sha256:" + "0" * 64}
            reply = await self.web.ask(route.method, route.at(site, run_id), token, body)
            self.assertIn(reply.status, REFUSED, f"{route.method} {route.path}: {reply.text}")
            self.assertEqual(set(reply.body), {"error"})

    async def test_operator_site(self) -> None:
        """No route of the operator site is open to agent, launcher, a made-up operator or nobody, on either site."""
        await self.furnish()
        session = await self.session()
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        found = self.home.discovery()
        routes = [route for route in await self.documented(found["operator_url"]) if route.open_to]
        self.assertIn("/v1/action-approvals/{approval_id}/decide", {route.path for route in routes})
        credentials = [session.token, found["launch_key"], "ail_o_" + "A" * 43, "ail_a_" + "A" * 43, None]
        for token in credentials:
            await self.refused(routes, found["operator_url"], asked, token)
        shared = {(each.method, each.path) for each in await self.documented(found["url"])}
        theirs = [each for each in routes if (each.method, each.path) not in shared]
        self.assertGreater(len(theirs), 8)
        for token in (*credentials, await self.operator_token()):
            await self.refused(theirs, found["url"], asked, token)
        await self.assert_untouched(asked)

    async def test_agent_site(self) -> None:
        """Each route of the agent site is open to whom its document names, and to nobody else."""
        await self.furnish()
        session, other = await self.session(), await self.session()
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        found = self.home.discovery()
        routes = [route for route in await self.documented(found["url"]) if route.open_to]
        without = {AGENT: found["launch_key"], LAUNCH: session.token}
        for kind, token in without.items():
            await self.refused([each for each in routes if each.open_to == {kind}], found["url"], asked, token)
        for token in (None, "ail_a_" + "A" * 43, await self.operator_token()):
            await self.refused(routes, found["url"], asked, token)
        about_a_run = [each for each in routes if "{run_id}" in each.path or "{approval_id}" in each.path]
        self.assertGreaterEqual(len(about_a_run), 3)
        for route in about_a_run:
            body: Mapping[str, Any] | None = None if route.method == "GET" else {}
            reply = await self.web.ask(route.method, route.at(found["url"], asked), other.token, body)
            self.assertEqual((reply.status, reply.body["error"]["class"]), (404, "not_found"), route)
        await self.assert_untouched(asked)

    async def assert_untouched(self, approval_id: str) -> None:
        """It still waits, nothing was sent, and the operator can decide it."""
        (approval,) = await self.waiting()
        self.assertEqual((approval["id"], approval["run"]["arguments"]), (approval_id, SHIP))
        self.assertEqual(self.workspace.requests, [])
        await self.approve(approval_id)
        self.assertEqual(len(self.workspace.messages), 1)

    async def test_ended_session(self) -> None:
        """A session that has ended opens nothing any more, and what it asked for still waits for the operator."""
        await self.furnish()
        session = await self.session()
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        found = self.home.discovery()
        ended = await self.web.ask("POST", f"{found['url']}/v1/sessions/{session.id}/end", session.token, {})
        self.assertEqual(ended.status, 200)
        routes = [route for route in await self.documented(found["url"]) if route.open_to]
        await self.refused(routes, found["url"], asked, session.token)
        await self.assert_untouched(asked)


class NamesTests(OperatedTestCase):
    """Actions that are not there."""

    async def test_unknown_and_disabled(self) -> None:
        """An unknown action is 404, a disabled one 409 and no tool, and over MCP both are told in words."""
        await self.furnish()
        session = await self.session()
        client = await self.mcp(session)
        unknown = await self.run_action(session, "launch-rocket")
        self.assertEqual((unknown.status, unknown.body["error"]["class"]), (404, "not_found"))
        self.assertIn("launch_rocket", (await client.call("launch_rocket", {})).text)
        await self.operator("action", "disable", GATED)
        disabled = await self.run_action(session, GATED)
        self.assertEqual((disabled.status, disabled.body["error"]["class"]), (409, "conflict"))
        told = await client.call("ship_update", SHIP)
        self.assertTrue(told.is_error)
        patience = Patience(self.reactor, 30)  # the server hears of it a moment after the daemon knows
        while "ship_update" in await client.tools():
            self.assertFalse(patience.is_over, "the disabled action is a tool")
            await self.pause(0.1)
        self.assertEqual((await self.told("runs", "list"))["items"], [])
        await self.operator("action", "enable", GATED)
        self.assertEqual((await self.run_action(session, GATED)).status, 202)

    async def test_wrong_arguments(self) -> None:
        """Every wrong argument is named at once, by the command line as by the API, and nothing is queued."""
        await self.furnish()
        session = await self.session()
        wrong = {"channel": 5, "summary": "x" * 201, "more": 1}
        refused = await self.run_action(session, GATED, wrong)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (400, "invalid_request"))
        problems = refused.body["error"]["details"]["problems"]
        self.assertEqual({each["pointer"] for each in problems}, {"/args/channel", "/args/summary", "/args/more"})
        finished = await self.command("action", "run", GATED, "--args", '{"channel": 5}', code=1)
        self.assertIn("/channel", finished.stderr)
        self.assertIn("/summary", finished.stderr)
        self.assertEqual((await self.told("runs", "list"))["items"], [])
