"""Each method of the client asks for the route that the HTTP contract names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import (
    AnswerNotUnderstood,
    Daemon,
    DaemonAnswer,
    DaemonClient,
    OpenedSession,
    Operator,
)
from aileron.testing import ScriptedSite

Asked = tuple[str, str, Any]


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
        self.asks(daemon.status, "GET", "/v1/status", None)
        self.asks(lambda: daemon.session("S"), "GET", "/v1/sessions/S", None)
        self.asks(daemon.actions, "GET", "/v1/actions", None)
        self.asks(lambda: daemon.actions(7, 50), "GET", "/v1/actions?generation=7&wait=50", None)
        self.asks(lambda: daemon.actions(0, 50), "GET", "/v1/actions?generation=0&wait=50", None)
        self.asks(lambda: daemon.action("x"), "GET", "/v1/actions/x", None)
        self.asks(lambda: daemon.result("R", 3), "GET", "/v1/action-approvals/R/result?wait=3", None)
        self.asks(lambda: daemon.run_status("R"), "GET", "/v1/runs/R", None)

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
        self.asks(it.status, "GET", "/v1/status", None)
        self.asks(
            lambda: it.approvals({"state": "pending_approval"}),
            "GET",
            "/v1/action-approvals?state=pending_approval",
            None,
        )
        self.asks(lambda: it.approval("R"), "GET", "/v1/action-approvals/R", None)
        self.asks(lambda: it.result("R"), "GET", "/v1/action-approvals/R/result", None)
        self.asks(lambda: it.runs({"limit": 3, "cursor": None}), "GET", "/v1/runs?limit=3", None)
        self.asks(lambda: it.run("R"), "GET", "/v1/runs/R", None)
        self.asks(it.audit, "GET", "/v1/audit", None)
        self.asks(lambda: it.audit_record("A"), "GET", "/v1/audit/A", None)
        self.asks(it.actions, "GET", "/v1/actions", None)
        self.asks(lambda: it.action("x"), "GET", "/v1/actions/x", None)
        self.asks(lambda: it.binding("a/b"), "GET", "/v1/bindings/a%2Fb", None)
        self.asks(it.bindings, "GET", "/v1/bindings", None)
        self.asks(it.trust_items, "GET", "/v1/trust", None)
        self.asks(it.connectors, "GET", "/v1/connectors", None)
        self.asks(it.sessions, "GET", "/v1/sessions", None)

    def test_login(self) -> None:
        """The proof of the operator."""
        it = self.operator
        self.asks(lambda: it.challenge("N"), "POST", "/v1/operator/challenge", {"nonce": "N"})
        self.asks(lambda: it.login("N", "P"), "POST", "/v1/operator/login", {"nonce": "N", "proof": "P"})
        self.asks(it.logout, "POST", "/v1/operator/logout", {})
        self.asks(it.hand_over, "POST", "/v1/operator/handover", {})
        self.asks(it.handed_over, "GET", "/v1/operator/handover", None)
        confirm = "/v1/operator/handover/confirm"
        self.asks(lambda: it.confirm_hand_over("blue tower"), "POST", confirm, {"words": "blue tower"})
        self.asks(it.operator_sessions, "GET", "/v1/operator/sessions", None)
        self.asks(lambda: it.session("S"), "GET", "/v1/sessions/S", None)

    def test_deciding(self) -> None:
        """A decision names the digest; a reason is sent if there is one."""
        it = self.operator
        path = "/v1/action-approvals/R/decide"
        self.asks(lambda: it.decide("R", True, "sha256:1"), "POST", path, {"approved": True, "digest": "sha256:1"})
        no = {"approved": False, "digest": "d", "reason": "no"}
        self.asks(lambda: it.decide("R", False, "d", reason="no"), "POST", path, no)
        self.asks(lambda: it.withdraw("R"), "POST", "/v1/action-approvals/R/withdraw", {})
        settled = {"outcome": "happened", "note": "n"}
        edited = {"args": {"x": 1}, "digest": "sha256:1"}
        self.asks(lambda: it.edit("R", {"x": 1}, "sha256:1"), "POST", "/v1/action-approvals/R/edit", edited)
        self.asks(lambda: it.resolve("R", "happened", "n"), "POST", "/v1/runs/R/resolve", settled)

    def test_changing(self) -> None:
        """What changes the daemon's state."""
        it = self.operator
        self.asks(lambda: it.set_enabled("x", False), "PATCH", "/v1/actions/x", {"enabled": False})
        self.asks(lambda: it.binding_target("c"), "POST", "/v1/bindings/target", {"connector": "c"})
        self.asks(lambda: it.set_up_binding({"kind": "api_key"}), "POST", "/v1/bindings/setup", {"kind": "api_key"})
        self.asks(lambda: it.revoke_binding("api_key/slack/me"), "DELETE", "/v1/bindings/api_key%2Fslack%2Fme", {})
        item = {"kind": "action", "name": "x", "digest": "sha256:1"}
        self.asks(lambda: it.trust([item]), "POST", "/v1/trust", {"items": [item]})
        self.asks(lambda: it.distrust("action", "x"), "DELETE", "/v1/trust", {"kind": "action", "name": "x"})
        self.asks(lambda: it.rebind("a/b", 3), "POST", "/v1/bindings/a%2Fb/rebind", {"revision": 3})
        self.asks(it.lock_vault, "POST", "/v1/vault/lock", {})
        self.asks(lambda: it.end_session("S"), "POST", "/v1/sessions/S/end", {"exit_code": None})
        self.asks(lambda: it.deny_session("S", "flood"), "POST", "/v1/sessions/S/deny", {"reason": "flood"})
