"""Each method of the client asks for the route that the HTTP contract names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import AnswerNotUnderstood, Daemon, DaemonAnswer, DaemonClient, OpenedSession, Operator
from aileron.testing import ScriptedSite


class MethodCase(SynchronousTestCase):
    """Both clients, at one site in memory."""

    def setUp(self) -> None:
        self.site = ScriptedSite()
        self.clock = Clock()
        client = DaemonClient(self.site.agent, "http://127.0.0.1:9", "t", self.clock)
        self.daemon = Daemon(client)
        self.operator = Operator(client)

    def asks(self, call: Callable[[], Awaitable[Any]], *expected: Any) -> Any:
        """Assert what a call asks for; its result when the answer is C{{"a": 1}}."""
        self.site.answer(200, {"a": 1})
        asking = Deferred.fromCoroutine(_coroutine(call()))
        result = self.successResultOf(asking)
        asked = self.site.asked[-1]
        self.assertEqual((asked.method, asked.path, asked.body), expected)
        return result


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class DaemonTests(MethodCase):
    """The agent site."""

    def test_reading(self) -> None:
        """What is only read."""
        daemon = self.daemon
        for call, path in (
            (daemon.status, "status"),
            (daemon.actions, "actions"),
            (lambda: daemon.actions(7, 50), "actions?generation=7&wait=50"),
            (lambda: daemon.actions(0, 50), "actions?generation=0&wait=50"),
            (lambda: daemon.action("x"), "actions/x"),
            (lambda: daemon.result("R", 3), "action-approvals/R/result?wait=3"),
            (lambda: daemon.run_status("R"), "runs/R"),
        ):
            self.asks(call, "GET", f"/v1/{path}", None)

    def test_session(self) -> None:
        """A session is opened with what it claims, and its secrets are shown in no repr."""
        self.site.answer(201, {"id": "S", "token": "ail_a_x", "gateway_key": "gk", "started_at": "…"})
        opened = self.successResultOf(Deferred.fromCoroutine(self.daemon.open_session("opencode", "/w")))
        self.assertEqual(opened, OpenedSession("S", "ail_a_x", "gk"))
        self.assertEqual(self.site.asked[0].body, {"agent": "opencode", "working_dir": "/w"})
        self.assertNotIn("ail_a_x", repr(opened))
        self.assertNotIn("gk", repr(opened))
        self.asks(lambda: self.daemon.end_session("S", 3), "POST", "/v1/sessions/S/end", {"exit_code": 3})

    def test_session_without_a_token(self) -> None:
        """An answer that lacks what a session needs is not a session."""
        self.site.answer(201, {"id": "S"})
        self.failureResultOf(Deferred.fromCoroutine(self.daemon.open_session("a", "/")), AnswerNotUnderstood)

    def test_run(self) -> None:
        """A run carries arguments, key and the wait that it prefers."""
        answer = self.asks(
            lambda: self.daemon.run("ship-update", {"n": 1}, "K", 45),
            "POST",
            "/v1/actions/ship-update/run",
            {"args": {"n": 1}, "idempotency_key": "K"},
        )
        self.assertEqual(answer, DaemonAnswer(200, {"a": 1}))
        self.assertEqual(self.site.asked[-1].headers["prefer"], "wait=45")

    def test_run_by_default(self) -> None:
        """Without a wait the daemon's default holds, and the deadline outlasts it."""
        asking = Deferred.fromCoroutine(self.daemon.run("x", {}))
        self.assertNotIn("prefer", self.site.asked[-1].headers)
        self.assertEqual(self.site.asked[-1].body, {"args": {}})
        self.clock.advance(3600)
        self.assertNoResult(asking)
        self.site.answer(202, {})
        self.assertEqual(self.successResultOf(asking).status, 202)

    def test_withdraw(self) -> None:
        """A reason is sent if there is one."""
        path = "/v1/action-approvals/R/withdraw"
        self.asks(lambda: self.daemon.withdraw("R"), "POST", path, {})
        self.asks(lambda: self.daemon.withdraw("R", "no"), "POST", path, {"reason": "no"})


class OperatorTests(MethodCase):
    """The operator site."""

    def test_reading(self) -> None:
        """What is only read."""
        it = self.operator
        for call, path in (
            (lambda: it.approvals({"state": "pending_approval"}), "action-approvals?state=pending_approval"),
            (lambda: it.approval("R"), "action-approvals/R"),
            (lambda: it.result("R"), "action-approvals/R/result"),
            (lambda: it.runs({"limit": 3, "cursor": None}), "runs?limit=3"),
            (lambda: it.run("R"), "runs/R"),
            (it.audit, "audit"),
            (lambda: it.audit_record("A"), "audit/A"),
            (it.actions, "actions"),
            (lambda: it.action("x"), "actions/x"),
            (lambda: it.binding("a/b"), "bindings/a%2Fb"),
            (it.bindings, "bindings"),
            (it.trust_items, "trust"),
            (it.connectors, "connectors"),
            (it.sessions, "sessions"),
            (lambda: it.session("S"), "sessions/S"),
            (it.handed_over, "operator/handover"),
            (it.operator_sessions, "operator/sessions"),
        ):
            self.asks(call, "GET", f"/v1/{path}", None)

    def test_changing(self) -> None:
        """What logs in, decides or changes the daemon's state; a reason is sent if there is one."""
        it = self.operator
        yes, no = {"approved": True, "digest": "d"}, {"approved": False, "digest": "d", "reason": "no"}
        item = {"kind": "action", "name": "x", "digest": "sha256:1"}
        for call, path, body in (
            (lambda: it.challenge("N"), "operator/challenge", {"nonce": "N"}),
            (lambda: it.login("N", "P"), "operator/login", {"nonce": "N", "proof": "P"}),
            (it.logout, "operator/logout", {}),
            (it.hand_over, "operator/handover", {}),
            (lambda: it.confirm_hand_over("blue tower"), "operator/handover/confirm", {"words": "blue tower"}),
            (lambda: it.decide("R", True, "d"), "action-approvals/R/decide", yes),
            (lambda: it.decide("R", False, "d", reason="no"), "action-approvals/R/decide", no),
            (lambda: it.withdraw("R"), "action-approvals/R/withdraw", {}),
            (lambda: it.edit("R", {"x": 1}, "d"), "action-approvals/R/edit", {"args": {"x": 1}, "digest": "d"}),
            (lambda: it.resolve("R", "happened", "n"), "runs/R/resolve", {"outcome": "happened", "note": "n"}),
            (lambda: it.binding_target("c"), "bindings/target", {"connector": "c"}),
            (lambda: it.set_up_binding({"kind": "api_key"}), "bindings/setup", {"kind": "api_key"}),
            (lambda: it.trust([item]), "trust", {"items": [item]}),
            (lambda: it.rebind("a/b", 3), "bindings/a%2Fb/rebind", {"revision": 3}),
            (it.lock_vault, "vault/lock", {}),
            (lambda: it.end_session("S"), "sessions/S/end", {"exit_code": None}),
            (lambda: it.deny_session("S", "flood"), "sessions/S/deny", {"reason": "flood"}),
        ):
            self.asks(call, "POST", f"/v1/{path}", body)
        self.asks(lambda: it.set_enabled("x", False), "PATCH", "/v1/actions/x", {"enabled": False})
        self.asks(lambda: it.revoke_binding("api_key/slack/me"), "DELETE", "/v1/bindings/api_key%2Fslack%2Fme", {})
        self.asks(lambda: it.distrust("action", "x"), "DELETE", "/v1/trust", {"kind": "action", "name": "x"})
