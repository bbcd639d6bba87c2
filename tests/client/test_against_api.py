"""Client and routes understand each other: every method of the client against both real sites, in memory."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from treq.testing import RequestTraversalAgent
from twisted.internet.defer import Deferred
from twisted.web.resource import IResource

from aileron.client import Daemon, DaemonClient, DaemonFault, Operator
from aileron.mcp._definitions import definitions_of
from tests.api.case import LAUNCH_KEY, ApiCase


class AgainstApiTests(ApiCase):
    """Real requests, real routes, scripted collaborators."""

    def client(self, resource: IResource, token: str | None) -> DaemonClient:
        """A client to one of the sites."""
        return DaemonClient(RequestTraversalAgent(resource), "http://localhost:7001", token, self.clock)

    def daemon(self, token: str) -> Daemon:
        """The agent site."""
        return Daemon(self.client(self.agents.resource, token))

    def operating(self) -> Operator:
        """The operator site, logged in."""
        return Operator(self.client(self.operator.resource, self.operator_token()))

    def of(self, awaitable: Awaitable[Any]) -> Any:
        """What it brings, which must be at once."""
        return self.successResultOf(Deferred.fromCoroutine(_whole(awaitable)))

    def test_session(self) -> None:
        """A session is opened with the launch key, works with its own token, and ends."""
        launcher = self.daemon(LAUNCH_KEY)
        self.assertEqual(self.of(launcher.health())["status"], "ok")
        opened = self.of(launcher.open_session("opencode", "/src"))
        agent = self.daemon(opened.token)
        self.assertEqual(self.of(agent.session(opened.id))["agent"], "opencode")
        self.assertEqual(self.of(agent.status())["vault_state"], "unlocked")
        self.assertEqual(self.of(agent.vault_status())["state"], "unlocked")
        self.assertEqual(self.of(agent.end_session(opened.id, 137))["exit_code"], 137)
        self.assertEqual(self.failureResultOf(Deferred.fromCoroutine(agent.status()), DaemonFault).value.status, 401)

    def test_tools(self) -> None:
        """What the daemon lists becomes tools, the gated ones saying so."""
        listed = self.of(self.daemon(self.agent_token()).actions())
        definitions = {definition.name: definition for definition in definitions_of(listed["items"])}
        self.assertEqual(sorted(definitions), ["look_up", "ship_update"])
        self.assertIn("approval", definitions["ship_update"].description)
        self.assertNotIn("user's approval", definitions["look_up"].description)

    def test_run_and_decide(self) -> None:
        """A gated run is pending for the agent, is decided by the operator, and its result is found."""
        agent, operator = self.daemon(self.agent_token()), self.operating()
        pending = self.of(agent.run("ship-update", {"text": "hi"}, "K", 0))
        self.assertEqual(pending.status, 202)
        run_id = pending.body["approval_id"]
        [listed] = self.of(operator.approvals())["items"]
        approval = self.of(operator.approval(run_id))
        self.assertEqual((listed["id"], approval["id"]), (run_id, run_id))
        self.assertTrue(self.of(operator.decide(run_id, True, approval["digest"], reason="fine"))["approved"])
        self.runner.finish(run_id)
        self.assertEqual(self.of(agent.result(run_id, 5))["status"], "completed")
        self.assertEqual(self.of(agent.run_status(run_id))["id"], run_id)
        self.assertEqual(self.of(operator.run(run_id))["id"], run_id)
        self.assertEqual(self.of(operator.runs({"limit": 1}))["items"][0]["id"], run_id)

    def test_withdraw(self) -> None:
        """An agent takes its run back, with or without a reason."""
        agent = self.daemon(self.agent_token())
        for key, reason in [("K1", None), ("K2", "changed my mind")]:
            run_id = self.of(agent.run("ship-update", {"text": "hi"}, key, 0)).body["run_id"]
            self.assertEqual(self.of(agent.withdraw(run_id, reason))["status"], "cancelled")

    def test_not_json(self) -> None:
        """A number that JSON cannot say is refused by the daemon as a bad request."""
        asking = self.daemon(self.agent_token()).run("ship-update", {"text": float("nan")})
        caught = self.failureResultOf(Deferred.fromCoroutine(_whole(asking)), DaemonFault).value
        self.assertEqual(caught.fault.kind, "invalid_request")

    def test_operator(self) -> None:
        """What the operator looks at and changes."""
        operator = self.operating()
        self.assertEqual(len(self.of(operator.actions())["items"]), 2)
        self.assertFalse(self.of(operator.set_enabled("ship-update", False))["enabled"])
        self.assertFalse(self.of(operator.action("ship-update"))["enabled"])
        self.assertEqual(len(self.of(operator.connectors())["items"]), 1)
        self.assertEqual(self.of(operator.sessions())["items"], [])
        self.assertTrue(self.of(operator.hand_over())["code"])
        self.assertIn("items", self.of(operator.audit({"limit": 1})))
        self.assertEqual(self.of(operator.status())["version"], "1.2.3")

    def test_bindings(self) -> None:
        """A credential is bound, listed without its secret, and revoked by its name, slashes and all."""
        operator = self.operating()
        connector = self.of(operator.connectors())["items"][0]["name"]
        new = {"service": "slack", "identity": "me", "connector": connector, "secret": "xoxb-canary"}
        name = self.of(operator.set_up_binding(new))["name"]
        listed = self.of(operator.bindings())
        self.assertEqual([binding["name"] for binding in listed["items"]], [name])
        self.assertNotIn("xoxb-canary", str(listed))
        self.of(operator.revoke_binding(name))
        self.assertEqual(self.of(operator.bindings())["items"], [])

    def test_lock(self) -> None:
        """The vault is locked, which ends the login."""
        operator = self.operating()
        self.assertEqual(self.of(operator.lock_vault())["state"], "locked")


async def _whole(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
