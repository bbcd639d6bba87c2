"""One tool call."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from aileron.base.json import JSON
from aileron.client import Connections, Daemon, DaemonClient, DaemonUnreachable, SessionEnvironment
from aileron.mcp._calls import Calls
from aileron.mcp._daemon import find_daemon
from aileron.mcp._link import FIRST_SECONDS
from aileron.mcp._texts import ToolResult, render_error
from aileron.mcp._tools import CallOptions
from aileron.mcp.offering.access import Shortlist
from aileron.mcp.waiting.running import Withdrawals
from tests.mcp.case import DaemonCase, action, fault, offering
from tests.scripted_site import RefusingAgent

OPTIONS = CallOptions("K1", 45)
DONE = {"run_id": "R", "audit_id": "A", "result": {"output": "done", "steps": {}}}


class CallsCase(DaemonCase):
    """A daemon that offers one action."""

    def setUp(self) -> None:
        super().setUp()
        shortlist = Shortlist(self.daemon, 40)
        self.calls = Calls(self.daemon, self.link, self.clock, 45, Withdrawals(self.daemon), shortlist)

    def call(self, tool: str = "ship_update", **arguments: Any) -> Deferred[ToolResult]:
        """Call a tool while the long poll of the list is answered by nobody."""
        return Deferred.fromCoroutine(self.calls.call(tool, arguments, OPTIONS))

    def started(self, tool: str = "ship_update", **arguments: Any) -> Deferred[ToolResult]:
        """Call a tool of a daemon that offers it; the call waits at the site alone."""
        self.begin(action())
        self.link.stop()
        self.site.agent.flush()
        return self.call(tool, **arguments)


class RunTests(CallsCase):
    """A call of an action."""

    def test_request(self) -> None:
        """A call runs the action with its key and its wait."""
        calling = self.started(text="hi")
        asked = self.site.asked[-1]
        self.assertEqual(asked.path, "/v1/actions/ship-update/run")
        self.assertEqual(asked.body, {"args": {"text": "hi"}, "idempotency_key": "K1"})
        self.assertEqual(asked.headers["prefer"], "wait=45")
        self.assertNoResult(calling)
        self.site.answer(200, DONE)
        self.assertEqual(self.successResultOf(calling), ToolResult("done"))

    def test_tool_call(self) -> None:
        """The id of the model's tool call is passed to a daemon that says it takes one, and to no other."""
        for takes, sent in ((True, {"tool_call": "toolu_1"}), (None, {}), ("yes", {}), (False, {})):
            self.setUp()
            self.start()
            self.site.answer(200, offering(1, action(), takes_tool_call=takes))
            self.link.stop()
            self.site.agent.flush()
            options = CallOptions("K1", 45, tool_call="toolu_1")
            calling = Deferred.fromCoroutine(self.calls.call("ship_update", {}, options))
            self.assertEqual(self.site.asked[-1].body, {"args": {}, "idempotency_key": "K1", **sent})
            self.site.answer(200, DONE)
            self.assertEqual(self.successResultOf(calling), ToolResult("done"))

    def test_refused(self) -> None:
        """The daemon's refusal becomes an error's text."""
        calling = self.started()
        self.site.answer(403, fault("approval_denied", "The operator denied this."))
        result = self.successResultOf(calling)
        self.assertTrue(result.is_error)
        self.assertIn("The operator denied this.", result.text)

    def test_restart_while_waiting(self) -> None:
        """A daemon that restarts, or of which only a front answers, is asked again as the same run for what is left."""
        for behind_a_front in (False, True):
            self.setUp()
            calling = self.started()
            self.clock.advance(10)
            if behind_a_front:
                self.site.answer(502, b"<html>")
            else:
                self.site.hang_up()
            self.assertNoResult(calling)
            self.clock.advance(0.2)
            again = self.site.asked[-1]
            self.assertEqual((again.body["idempotency_key"], again.headers["prefer"]), ("K1", "wait=34"))
            self.site.answer(200, DONE)
            self.assertEqual(self.successResultOf(calling), ToolResult("done"))

    def test_gone_for_good(self) -> None:
        """A daemon that went away and stays away is given up at the wait's end, and the outcome is left open."""
        calling = self.started()
        while self.clock.seconds() < 42:
            if self.site.waiting:
                self.site.hang_up()
            self.assertNoResult(calling)
            self.clock.advance(0.2)
        for _ in range(20):
            if self.site.waiting:
                self.site.hang_up()
            self.clock.advance(0.2)
        self.assertIn("do not repeat it", self.successResultOf(calling).text)

    def test_refused_after_a_restart(self) -> None:
        """A refusal after a lost attempt does not hide that the first may have arrived."""
        calling = self.started()
        self.site.hang_up()
        self.clock.advance(0.2)
        self.site.answer(423, fault("vault_locked"))
        self.assertIn("cut off", self.successResultOf(calling).text)

    def test_cancelled(self) -> None:
        """A client that gives up ends the wait and asks for nothing else."""
        calling = self.started()
        asked = len(self.site.asked)
        calling.cancel()
        self.failureResultOf(calling, CancelledError)
        self.site.agent.flush()
        self.clock.advance(60)
        self.assertEqual((self.site.waiting, len(self.site.asked)), (0, asked))

    def test_unknown(self) -> None:
        """A tool that is not offered is an error that says where to look, and reaches no daemon."""
        result = self.successResultOf(self.started("nope"))
        self.assertTrue(result.is_error)
        self.assertIn("aileron_diagnostics", result.text)
        self.assertNotIn("/v1/actions/nope/run", self.paths)


class NoDaemonTests(CallsCase):
    """A session that names no daemon."""

    def nowhere(self, **environment: str) -> Calls:
        """The calls of such a session."""
        session = SessionEnvironment.of(environment)
        daemon = find_daemon(session, Connections(self.clock))
        return Calls(daemon, self.link, self.clock, 45, Withdrawals(daemon), Shortlist(daemon, 40))

    def test_says_so(self) -> None:
        """It says what is missing or malformed, and shows no token."""
        for environment, word in [({}, "not set"), ({"AILERON_URL": "x", "AILERON_TOKEN": "hunter2"}, "malformed")]:
            calls = self.nowhere(**environment)
            result = self.successResultOf(Deferred.fromCoroutine(calls.call("aileron_diagnostics", {}, OPTIONS)))
            self.assertIn(word, result.text)
            self.assertNotIn("hunter2", result.text)

    def test_nothing_to_wait_for(self) -> None:
        """Whatever is called, it is said at once what is to be put right; no start of the daemon helps."""
        calls = self.nowhere(AILERON_URL="http://aileron.internal:8081", AILERON_TOKEN="hunter2")
        self.link.trouble = DaemonUnreachable("By plain HTTP.", misdirected=True)
        self.link.stop()
        for tool, given in {"check_action_status": {"approval_id": "R"}, "aileron_diagnostics": {}}.items():
            result = self.successResultOf(Deferred.fromCoroutine(calls.call(tool, given, OPTIONS)))
            self.assertIn("AILERON_PLAIN_HOST", result.text)
            self.assertIn("AILERON_URL, AILERON_TOKEN and AILERON_CA", result.text)
            self.assertNotIn("daemon start", result.text)
            self.assertNotIn("hunter2", result.text)
        calling = Deferred.fromCoroutine(calls.call("ship_update", {}, OPTIONS))
        self.clock.advance(FIRST_SECONDS)
        self.assertEqual(self.successResultOf(calling), render_error(self.link.trouble))

    def test_status_gives_up_soon(self) -> None:
        """A daemon that was never reached is given up after 3 s, whatever the wait."""
        daemon = Daemon(DaemonClient(RefusingAgent(), "http://127.0.0.1:9", "t", self.clock))
        calls = Calls(daemon, self.link, self.clock, 45, Withdrawals(daemon), Shortlist(daemon, 40))
        arguments: dict[str, JSON] = {"approval_id": "R", "wait_seconds": 45}
        calling = Deferred.fromCoroutine(calls.call("check_action_status", arguments, OPTIONS))
        self.clock.advance(0.2)
        self.assertNoResult(calling)
        self.clock.pump([0.4, 0.8, 1.6])
        self.assertTrue(self.successResultOf(calling).is_error)


class StatusTests(CallsCase):
    """check_action_status."""

    def test_asked(self) -> None:
        """Without a wait the daemon is asked how it stands now; with one for so long, but no longer than is borne."""
        calling = self.started("check_action_status", approval_id="R")
        self.assertEqual(self.site.asked[-1].path, "/v1/action-approvals/R/result")
        self.site.answer(200, {"status": "completed", "audit_id": "A", "result": {"output": 1}})
        self.assertEqual(self.successResultOf(calling).text, "status: completed (audit_id=A)\nresult: 1")
        self.call("check_action_status", approval_id="R", wait_seconds=1000)
        self.assertEqual(self.site.asked[-1].path, "/v1/action-approvals/R/result?wait=45")

    def test_restart(self) -> None:
        """A poll survives the daemon's restart."""
        calling = self.started("check_action_status", approval_id="R", wait_seconds=30)
        self.clock.advance(5)
        self.site.hang_up()
        self.clock.advance(0.2)
        self.assertEqual(self.site.asked[-1].path, "/v1/action-approvals/R/result?wait=24")
        self.site.answer(200, {"status": "denied"})
        self.assertIn("denied", self.successResultOf(calling).text)

    def test_unknown(self) -> None:
        """An unknown id is the daemon's to refuse."""
        calling = self.started("check_action_status", approval_id="../R")
        self.assertEqual(self.site.asked[-1].path, "/v1/action-approvals/..%2FR/result")
        self.site.answer(404, fault("not_found", "There is no such run."))
        self.assertTrue(self.successResultOf(calling).is_error)

    def test_bad_arguments(self) -> None:
        """Arguments of the wrong kind are refused before the daemon is asked."""
        bad: list[dict[str, Any]] = [
            {},
            {"approval_id": 7},
            {"approval_id": ""},
            *({"approval_id": "R", "wait_seconds": wait} for wait in (-1, "5", True, float("nan"), None)),
        ]
        for arguments in bad:
            self.assertTrue(self.successResultOf(self.call("check_action_status", **arguments)).is_error, arguments)
        self.assertEqual(self.site.asked, [])

    def test_offered(self) -> None:
        """Our own two tools come after the daemon's; who hears of nothing later gets those that lead there."""
        self.begin(action())
        own = ["aileron_diagnostics", "check_action_status"]
        for hears, leading in ((True, []), (False, ["describe_action", "run_action", "search_actions"])):
            definitions = self.successResultOf(Deferred.fromCoroutine(self.calls.offered(hears_changes=hears)))
            self.assertEqual(
                [definition.name for definition in definitions], ["ship_update", *sorted([*own, *leading])]
            )


class WithdrawTests(CallsCase):
    """A run that is cancelled by its id, as a task is."""

    def withdraw(self, status: str = "pending_approval", **more: Any) -> list[str]:
        """What is asked of the daemon for it."""
        self.begin(action(gated=True, **more))
        self.link.stop()
        self.site.agent.flush()
        withdrawing = Deferred.fromCoroutine(self.calls.withdraw_run("R"))
        self.site.answer(200, {"id": "R", "action": "ship-update", "status": status})
        if self.site.waiting:
            self.site.answer(200, {"status": "cancelled"})
        self.successResultOf(withdrawing)
        return [path for path in self.paths if "/R" in path]

    def test_withdrawn(self) -> None:
        """It is taken back where its action says so, and somebody still has to decide it."""
        for on_cancel, status, more in (
            ("withdraw", "pending_approval", ["/v1/action-approvals/R/withdraw"]),
            ("keep", "pending_approval", []),
            ("withdraw", "running", []),
        ):
            self.assertEqual(self.withdraw(status, on_cancel=on_cancel), ["/v1/runs/R", *more])
            self.setUp()


class DiagnosticsTests(CallsCase):
    """aileron_diagnostics."""

    def diagnosis(self, status: int, body: object) -> str:
        """What it says of a daemon that answers so."""
        calling = self.started("aileron_diagnostics")
        self.assertEqual(self.site.asked[-1].path, "/v1/status")
        self.site.answer(status, body)
        result = self.successResultOf(calling)
        self.assertFalse(result.is_error)
        return result.text

    def test_told(self) -> None:
        """Version, vault and tools are told, and what stands in the way, with its remedy or in the daemon's words."""
        healthy = {"version": "1.2", "vault_state": "unlocked", "paused": False}
        hindered = {"version": "1", "vault_state": "locked", "paused": True}
        table: list[tuple[int, dict[str, Any], list[str]]] = [
            (200, healthy, ["version 1.2, vault unlocked", "Actions offered (1): ship_update."]),
            (200, hindered, ["aileron vault unlock", "paused"]),
            (401, fault("unauthorized"), ["start this agent again"]),
            (503, fault("store_unavailable", "Disk full."), ["Disk full."]),
        ]
        for status, body, parts in table:
            text = self.diagnosis(status, body)
            for part in parts:
                self.assertIn(part, text)
            self.setUp()
        calling = self.started("aileron_diagnostics")
        self.site.hang_up()
        self.assertIn("aileron daemon start", self.successResultOf(calling).text)
