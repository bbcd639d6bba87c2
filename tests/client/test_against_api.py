"""Client and routes understand each other: every method of the client against both real sites, in memory."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, cast

from attrs import asdict
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import CancelledError, Deferred
from twisted.web.resource import IResource
from zope.interface import implementer

from aileron.api import MAX_BODY_BYTES
from aileron.api._sessions import MOST_WAITS
from aileron.base.trace_context import TraceParent
from aileron.client import Daemon, DaemonClient, DaemonError, DaemonFault, DaemonUnreachable, InProcessClient, Operator
from aileron.model.interfaces.services import IAgentRoutes
from tests.api.case import LAUNCH_KEY, ApiCase


class BothWaysCase(ApiCase):
    """Real requests, real routes, scripted collaborators."""

    def client(self, resource: IResource, token: str | None) -> DaemonClient:
        """A client to one of the sites."""
        return DaemonClient(RequestTraversalAgent(resource), "http://localhost:7001", token, self.clock)

    def daemon(self, token: str) -> Daemon:
        """The agent site."""
        return Daemon(self.client(self.agents.resource, token))

    def beside(self, token: str) -> Daemon:
        """The same, asked in this process."""
        return Daemon(InProcessClient(self.routes, token, self.clock))

    def operating(self) -> Operator:
        """The operator site, logged in."""
        return Operator(self.client(self.operator.resource, self.operator_token()))

    def of(self, awaitable: Awaitable[Any]) -> Any:
        """What it brings, which must be at once."""
        return self.successResultOf(Deferred.fromCoroutine(_whole(awaitable)))


class AgainstApiTests(BothWaysCase):
    """Every method of the client, over HTTP."""

    def test_session(self) -> None:
        """A session is opened with the launch key, works with its own token, and ends."""
        launcher = self.daemon(LAUNCH_KEY)
        opened = self.of(launcher.open_session("opencode", "/src"))
        agent = self.daemon(opened.token)
        self.assertEqual(self.of(agent.status())["vault_state"], "unlocked")
        self.assertEqual(self.of(agent.end_session(opened.id, 137))["exit_code"], 137)
        self.assertEqual(self.failureResultOf(Deferred.fromCoroutine(agent.status()), DaemonFault).value.status, 401)

    def test_run_and_decide(self) -> None:
        """A gated run is pending for the agent, is decided by the operator, and its result is found."""
        agent, operator = self.daemon(self.agent_token()), self.operating()
        pending = self.of(agent.run("ship-update", {"text": "hi"}, "K", 0))
        self.assertEqual(pending.status, 202)
        run_id = pending.body["approval_id"]
        [listed] = self.of(operator.get("action-approvals"))["items"]
        approval = self.of(operator.get("action-approvals", run_id))
        self.assertEqual((listed["id"], approval["id"]), (run_id, run_id))
        body = {"approved": True, "digest": approval["digest"], "reason": "fine"}
        self.assertTrue(self.of(operator.post("action-approvals", run_id, "decide", body=body))["approved"])
        self.runner.finish(run_id)
        self.assertEqual(self.of(agent.result(run_id, 5))["status"], "completed")
        self.assertEqual(self.of(agent.run_status(run_id))["id"], run_id)
        self.assertEqual(self.of(operator.get("runs", run_id))["id"], run_id)
        self.assertEqual(self.of(operator.get("runs", query={"limit": 1}))["items"][0]["id"], run_id)

    def test_withdraw(self) -> None:
        """An agent takes its run back, with or without a reason; what JSON cannot say is a bad request."""
        agent = self.daemon(self.agent_token())
        for key, reason in [("K1", None), ("K2", "changed my mind")]:
            run_id = self.of(agent.run("ship-update", {"text": "hi"}, key, 0)).body["run_id"]
            self.assertEqual(self.of(agent.withdraw(run_id, reason))["status"], "cancelled")
        asking = self.daemon(self.agent_token()).run("ship-update", {"text": float("nan")})
        caught = self.failureResultOf(Deferred.fromCoroutine(_whole(asking)), DaemonFault).value
        self.assertEqual(caught.fault.kind, "invalid_request")

    def test_operator(self) -> None:
        """What the operator looks at and changes; locking the vault ends the login."""
        operator = self.operating()
        self.assertEqual(len(self.of(operator.get("actions"))["items"]), 2)
        self.assertFalse(self.of(operator.patch("actions", "ship-update", body={"enabled": False}))["enabled"])
        self.assertFalse(self.of(operator.action("ship-update"))["enabled"])
        self.assertEqual(len(self.of(operator.get("connectors"))["items"]), 1)
        self.assertEqual(self.of(operator.get("sessions"))["items"], [])
        self.assertTrue(self.of(operator.post("operator", "handover"))["code"])
        self.assertIn("items", self.of(operator.get("audit", query={"limit": 1})))
        operator = self.operating()
        self.assertEqual(self.of(operator.post("vault", "lock"))["state"], "locked")

    def test_bindings(self) -> None:
        """A credential is bound, listed without its secret, and revoked by its name, slashes and all."""
        operator = self.operating()
        connector = self.of(operator.get("connectors"))["items"][0]["name"]
        new = {"service": "slack", "identity": "me", "connector": connector, "secret": "xoxb-canary"}
        name = self.of(operator.post("bindings", "setup", body=new))["name"]
        listed = self.of(operator.get("bindings"))
        self.assertEqual([binding["name"] for binding in listed["items"]], [name])
        self.assertNotIn("xoxb-canary", str(listed))
        self.of(operator.delete("bindings", name))
        self.assertEqual(self.of(operator.get("bindings"))["items"], [])


Call = Callable[[Daemon], Awaitable[Any]]


@implementer(IAgentRoutes)
class SilentRoutes:
    """Routes that answer nothing.

    :ivar cancelled: whether a request was.
    """

    cancelled = False

    def in_band(self) -> SilentRoutes:
        """Answer nothing to anybody."""
        return self

    async def ask(self, *_arguments: object, **_more: object) -> tuple[int, bytes]:
        """Wait until it is cancelled."""
        never: Deferred[tuple[int, bytes]] = Deferred()
        try:
            return await never
        except CancelledError:
            self.cancelled = True
            raise


class InProcessTests(BothWaysCase):
    """What an agent asks in the daemon's own process is what it asks over HTTP."""

    CALLS: tuple[Call, ...] = (
        lambda daemon: daemon.status(),
        lambda daemon: daemon.actions(),
        lambda daemon: daemon.actions(-1, 30),
        lambda daemon: daemon.action("ship-update"),
        lambda daemon: daemon.action("no/such action"),
        lambda daemon: daemon.most_used(3),
        lambda daemon: daemon.most_used(10_000),
        lambda daemon: daemon.run("ship-update", {"text": "hï"}, "K", 0),
        lambda daemon: daemon.run("ship-update", {"text": "other"}, "K", 0),
        lambda daemon: daemon.run("ship-update", {}, "K2", 0, parent=TraceParent("1" * 32, "2" * 16)),
        lambda daemon: daemon.run("ship-update", {"text": float("nan")}),
        lambda daemon: daemon.run("nowhere", {}, "not visible: \n", 0),
        lambda daemon: daemon.result("01JA", 5),
        lambda daemon: daemon.run_status("../status"),
        lambda daemon: daemon.withdraw("01JA", "r" * 10_000),
        lambda daemon: daemon.runs(0),
        lambda daemon: daemon.open_session("opencode", "/src"),
    )

    def outcome(self, daemon: Daemon, call: Call) -> object:
        """What a call comes to: its answer, or the class and the fields of its error."""
        asking = Deferred.fromCoroutine(_whole(call(daemon)))
        self.agents.treq.flush()
        failures: list[DaemonError] = []
        asking.addErrback(lambda failure: failures.append(cast("DaemonError", failure.value)))
        answer = self.successResultOf(asking)
        return answer if not failures else (type(failures[0]), asdict(failures[0]))

    def test_same(self) -> None:
        """Every call has the same answer or the same error, whatever is wrong with it."""
        token = self.agent_token()
        over_http, here = self.daemon(token), self.beside(token)
        for number, call in enumerate(self.CALLS):
            self.assertEqual(self.outcome(here, call), self.outcome(over_http, call), f"call {number}")

    def test_credentials(self) -> None:
        """A token that nobody knows, and one whose session has ended, open nothing; nor does a launch key."""
        opened = self.open_session()
        self.of(self.beside(opened["token"]).end_session(opened["id"], None))
        for token in (opened["token"], "ail_a_nobody", "nonsense"):
            here = self.outcome(self.beside(token), lambda daemon: daemon.status())
            self.assertEqual(here, self.outcome(self.daemon(token), lambda daemon: daemon.status()))
        launcher = self.beside(LAUNCH_KEY)
        for call in (launcher.status(), launcher.open_session("opencode", "/src")):
            self.assertEqual(self.failureResultOf(Deferred.fromCoroutine(call), DaemonFault).value.status, 403)

    def test_waits(self) -> None:
        """A wait counts among those of the session, ends with it, and ends alone when it is cancelled."""
        opened = self.open_session()
        agent = self.beside(opened["token"])
        run_id = self.of(agent.run("ship-update", {"text": "hi"}, "K", 0)).body["run_id"]
        waiting = [Deferred.fromCoroutine(agent.result(run_id, 60)) for _ in range(MOST_WAITS)]
        one_more = self.failureResultOf(Deferred.fromCoroutine(agent.result(run_id, 60)), DaemonFault)
        self.assertEqual(one_more.value.fault.kind, "limit_exceeded")
        waiting[0].cancel()
        self.failureResultOf(waiting[0], CancelledError)
        self.assertEqual(self.of(agent.run_status(run_id))["status"], "pending_approval")
        self.of(self.daemon(opened["token"]).end_session(opened["id"], None))
        for each in waiting[1:]:
            self.assertEqual(self.failureResultOf(each, DaemonFault).value.status, 401)

    def test_deadline(self) -> None:
        """What the daemon does not answer in time counts as sent and lost, and is asked for no more."""
        routes = SilentRoutes()
        asking = Deferred.fromCoroutine(Daemon(InProcessClient(routes, "t", self.clock)).runs(1))
        self.clock.advance(14)
        self.assertNoResult(asking)
        self.clock.advance(1)
        self.assertTrue(self.failureResultOf(asking, DaemonUnreachable).value.sent)
        self.assertTrue(routes.cancelled)

    def test_too_long(self) -> None:
        """A body or a path that the site's channels would refuse is refused in their words; streams are not asked."""
        agent = self.beside(self.agent_token())
        for status, call in (
            (413, agent.run("ship-update", {"text": "x" * MAX_BODY_BYTES})),
            (431, agent.result("x" * 20_000)),
        ):
            caught = self.failureResultOf(Deferred.fromCoroutine(_whole(call)), DaemonFault).value
            self.assertEqual((caught.status, caught.fault.kind), (status, "invalid_request"))
        self.failureResultOf(Deferred.fromCoroutine(agent.hold_lease("any")), DaemonUnreachable)

    def test_bodies(self) -> None:
        """Of bodies so much is under way at once; where it is more, who has less than its share goes on."""
        self.patch(sys.modules["aileron.api.agent_routes"], "MOST_BODIES_BYTES", 4000)
        greedy, other = self.beside(self.agent_token()), self.beside(self.agent_token())
        calls = [Deferred.fromCoroutine(greedy.run("ship-update", {"text": "x" * 1000}, f"K{n}", 60)) for n in range(4)]
        for call in calls[:3]:
            self.assertNoResult(call)
        refused = self.failureResultOf(calls[3], DaemonFault).value
        self.assertEqual((refused.status, refused.fault.kind), (429, "limit_exceeded"))
        self.assertEqual(self.of(greedy.status())["vault_state"], "unlocked")
        self.assertEqual(self.of(other.run("ship-update", {"text": "x" * 1500}, "K", 0)).status, 202)
        calls[0].cancel()
        self.failureResultOf(calls[0], CancelledError)
        self.assertEqual(self.of(greedy.run("ship-update", {"text": "x" * 500}, "K5", 0)).status, 202)


async def _whole(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
