"""Running an action: waits, settled runs, messages."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from aileron.model.audit import Actor
from aileron.model.errors import ExternalApiError, LimitExceeded, NetworkError, StoreUnavailable
from aileron.model.runs import Call, Run, RunState
from aileron.testing import ScriptedRunner, scripted_offer

from .case import LAUNCH_KEY, ApiCase, Heard

RUN = "/v1/actions/ship-update/run"
LOOK_UP = "/v1/actions/look-up/run"
ARGS: dict[str, Any] = {"args": {"text": "é"}}


class SlowRunner(ScriptedRunner):
    """Takes four seconds to accept a run, as a preview might."""

    async def submit(self, call: Call) -> Run:
        await deferLater(self.clock, 4)
        return await super().submit(call)


class StoppingRunner(ScriptedRunner):
    """Ends every wait, as a daemon does that stops."""

    async def wait(self, run_id: str, seconds: float) -> Run:
        raise CancelledError


class RunTests(ApiCase):
    """An agent runs actions."""

    def setUp(self) -> None:
        super().setUp()
        self.session = self.open_session()
        self.token = self.session["token"]

    def start(self, path: str = RUN, wait: str | None = None, body: Any = None) -> Deferred[Heard]:
        """Run, with a preference."""
        headers = {} if wait is None else {"Prefer": f"wait={wait}"}
        return self.agents.start("POST", path, self.token, ARGS if body is None else body, headers)

    def now(self, path: str = RUN, wait: str | None = None, body: Any = None) -> Heard:
        """Run, and have the answer at once."""
        return self.successResultOf(self.start(path, wait, body))

    def test_ungated(self) -> None:
        """An ungated action answers 200 with its result and the id of the event that ended it."""
        heard = self.now(LOOK_UP)
        self.assertEqual(heard.status, 200)
        self.assertEqual(
            heard.json,
            {"run_id": "run-1", "audit_id": "audit-run-1", "result": {"output": {"text": "é"}, "steps": {}}},
        )

    def test_submitted(self) -> None:
        """The runner learns who calls, in which session, with what key; the operator may run an action in none."""
        self.now(LOOK_UP, body={**ARGS, "idempotency_key": "k-1"})
        self.assertEqual(self.operator.ask("POST", LOOK_UP, self.operator_token(), ARGS).status, 200)
        call, operators = self.runner.calls
        self.assertEqual((call.action, call.arguments, call.idempotency_key), ("look-up", {"text": "é"}, "k-1"))
        self.assertEqual((call.actor.type, call.actor.id), ("agent", self.session["id"]))
        self.assertEqual(call.session.id if call.session else None, self.session["id"])
        self.assertEqual((operators.actor.type, operators.session), ("human", None))

    def test_tool_call(self) -> None:
        """The runner learns the id of the model's tool call; one that is no visible ASCII, or too long, is refused."""
        self.now(LOOK_UP, body={**ARGS, "tool_call": "toolu_1"})
        self.now(LOOK_UP)
        self.assertEqual([call.tool_call for call in self.runner.calls], ["toolu_1", None])
        for bad in ("", "a b", "\u00e9", "a\n", "x" * 129, 1, None):
            self.assertEqual(self.now(LOOK_UP, body={**ARGS, "tool_call": bad}).status, 400)
        self.assertEqual(len(self.runner.calls), 2)
        self.assertIs(self.agents.ask("GET", "/v1/actions", self.token).json["takes_tool_call"], True)

    def test_gated(self) -> None:
        """A gated action without a preference answers 202 at once, with all that an LLM must know."""
        heard = self.now()
        self.assertEqual(heard.status, 202)
        self.assertEqual(heard.json["status"], "pending_approval")
        self.assertEqual((heard.json["run_id"], heard.json["approval_id"]), ("run-1", "run-1"))
        url = "http://localhost:7001/approvals/run-1"
        self.assertEqual(heard.json["review_url"], url)
        self.assertEqual(heard.json["retry_after"], 5)
        for part in (url, "aileron open approval run-1", "check_action_status"):
            self.assertIn(part, heard.json["message"])

    def test_waits_for_decision(self) -> None:
        """With a preference the answer is held: no result, the decision and its end, then the result."""
        answer = self.start(wait="30")
        self.assertNoResult(answer)
        self.runner.finish("run-1", RunState.APPROVED)
        self.agents.treq.flush()
        self.assertNoResult(answer)
        self.runner.finish("run-1", result={"output": 1, "steps": {}})
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(answer).json["result"], {"output": 1, "steps": {}})
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_edited(self) -> None:
        """Whoever waits for what the operator edited is told how, with the result and with a failure."""
        for state, status in ((RunState.COMPLETED, 200), (RunState.FAILED, 500)):
            answer = self.start(wait="30")
            run_id = self.runner.calls and f"run-{len(self.runner.calls)}"
            edited = self.runner.edit(str(run_id), {"text": "other"}, None, Actor("human", "op"))
            self.successResultOf(Deferred.fromCoroutine(edited))
            self.runner.finish(str(run_id), state)
            self.agents.treq.flush()
            heard = self.successResultOf(answer)
            self.assertEqual(heard.status, status)
            told = heard.json["edited"] if status == 200 else heard.json["error"]["details"]["edited"]
            self.assertEqual([change["after"] for change in told], ["other"])

    def test_resumed(self) -> None:
        """A later session of the same agent in the same directory is told how a run stands, and waits for it."""
        self.now()
        resumed = self.open_session()["token"]
        answer = self.agents.start("GET", "/v1/action-approvals/run-1/result?wait=30", resumed)
        self.assertNoResult(answer)
        self.runner.finish("run-1", result={"output": 1, "steps": {}})
        self.agents.treq.flush()
        told = self.successResultOf(answer).json
        self.assertEqual((told["status"], told["result"]), ("completed", {"output": 1, "steps": {}}))
        self.assertEqual(self.agents.ask("GET", "/v1/runs/run-1", resumed).json["status"], "completed")
        self.assertEqual(self.agents.ask("GET", "/v1/runs", resumed).json["items"], [])

    def test_not_resumed(self) -> None:
        """Another agent, another directory and an earlier session hear that it may be an earlier session's.

        They are told so in the same words as of a run that does not exist, and nobody but its own session withdraws it.
        """
        earlier = self.open_session()
        self.clock.advance(1)
        self.session = self.open_session()
        self.token = self.session["token"]
        self.now()
        claims = {"agent": "opencode", "working_dir": "/elsewhere"}
        elsewhere = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, claims).json
        strangers = [each["token"] for each in (self.open_session("codex"), elsewhere, earlier)]
        asked = [
            self.agents.ask("GET", f"/v1/{path}", token)
            for token in strangers
            for path in ("action-approvals/run-1/result", "action-approvals/none/result", "runs/run-1", "runs/none")
        ]
        resumed = self.open_session()["token"]
        asked.append(self.agents.ask("POST", "/v1/action-approvals/run-1/withdraw", resumed))
        self.assertEqual({heard.status for heard in asked}, {404})
        (message,) = {heard.json["error"]["message"] for heard in asked}
        self.assertIn("belongs to an earlier session, ask the user", message)
        self.assertIn("do not repeat the call", message)

    def test_no_directory(self) -> None:
        """Sessions that name no directory are not taken for one that was resumed."""
        tokens = [self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": "x"}).json["token"] for _ in range(2)]
        self.token = tokens[0]
        self.now()
        self.assertEqual(self.agents.ask("GET", "/v1/runs/run-1", tokens[1]).status, 404)

    def test_wait_ends(self) -> None:
        """When the preferred wait is over, 202 tells the present status."""
        answer = self.start(wait="30")
        self.runner.finish("run-1", RunState.AWAITING_VAULT)
        self.clock.advance(29.9)
        self.agents.treq.flush()
        self.assertNoResult(answer)
        self.clock.advance(0.2)
        self.agents.treq.flush()
        heard = self.successResultOf(answer)
        self.assertEqual((heard.status, heard.json["status"]), (202, "awaiting_vault"))
        self.assertIn("aileron vault unlock", heard.json["message"])

    def test_credential(self) -> None:
        """A run that waits for a credential is told as pending, with what the user can do."""
        answer = self.start(wait="1")
        self.runner.finish("run-1", RunState.AWAITING_CREDENTIAL)
        self.clock.advance(1.1)
        self.agents.treq.flush()
        heard = self.successResultOf(answer)
        self.assertEqual((heard.status, heard.json["status"]), (202, "awaiting_credential"))
        for part in ("renews the credential", "nothing was sent", "aileron credential list"):
            self.assertIn(part, heard.json["message"])

    def test_ungated_waits_until_settled(self) -> None:
        """An ungated action without a preference waits until it is settled, for an hour at most."""
        self.runner.usual = RunState.EXECUTING
        answer = self.start(LOOK_UP)
        self.clock.advance(3599)
        self.agents.treq.flush()
        self.assertNoResult(answer)
        self.clock.advance(1)
        self.agents.treq.flush()
        heard = self.successResultOf(answer)
        self.assertEqual((heard.status, heard.json["status"]), (202, "running"))
        self.assertNotIn("approval_id", heard.json)

    def test_preferences(self) -> None:
        """The wait is found among other preferences, and an hour at most; what is no number is refused."""
        held = self.agents.start("POST", RUN, self.token, ARGS, {"Prefer": 'respond-async, Wait = "7"; x=y'})
        self.assertNoResult(held)
        self.clock.advance(7)
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(held).status, 202)
        for wish in ("soon", "-1", "1.5", "", "\u00e9"):
            self.assertEqual(self.now(wait=wish).status, 400, wish)
        answer = self.agents.start("POST", RUN, self.token, ARGS, {"Prefer": b"\xff, wait=0"})
        self.assertEqual(self.successResultOf(answer).status, 202)
        answer = self.start(wait="999999999")
        self.clock.advance(3600)
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(answer).status, 202)

    def test_client_leaves(self) -> None:
        """A client that goes away ends its wait, not the run, and nothing is logged as an error."""
        logged = self.logged()
        answer = self.start(wait="30")
        answer.cancel()
        self.failureResultOf(answer)
        self.agents.treq.flush()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.runner.finish("run-1").state, RunState.COMPLETED)
        self.assertEqual(logged, [])

    def test_daemon_stops(self) -> None:
        """A wait that the daemon itself ends is told so, as a failure of the daemon."""
        self.build(runner=StoppingRunner.of(scripted_offer(), clock=self.clock))
        heard = self.now(wait="30")
        self.assertEqual((heard.status, heard.kind), (500, "internal_error"))
        self.assertIn("stopping", heard.json["error"]["message"])

    def test_submitting_counts(self) -> None:
        """The preferred wait bounds the whole request, the time until the run was accepted too."""
        self.build(runner=SlowRunner.of(scripted_offer(), clock=self.clock))
        answer = self.start(wait="10")
        self.clock.advance(4)
        self.clock.advance(5.9)
        self.agents.treq.flush()
        self.assertNoResult(answer)
        self.clock.advance(0.2)
        self.agents.treq.flush()
        self.assertEqual(self.successResultOf(answer).status, 202)

    def settled(self, state: RunState, **changes: Any) -> Heard:
        """Run, wait, and have the run end so."""
        answer = self.start(wait="30")
        self.runner.finish(self.last(), state, **changes)
        self.agents.treq.flush()
        return self.successResultOf(answer)

    def last(self) -> str:
        """The id of the run that was submitted last."""
        return f"run-{len(self.runner.calls)}"

    def test_settled_runs(self) -> None:
        """Each end of a run without a result is the failure that it is, and names the run and its last event."""
        ends = [
            (RunState.DENIED, 403, "approval_denied"),
            (RunState.EXPIRED, 410, "approval_expired"),
            (RunState.CANCELLED, 409, "cancelled"),
            (RunState.UNKNOWN, 500, "outcome_unknown"),
        ]
        for state, status, kind in ends:
            heard = self.settled(state, reason="because of x")
            self.assertEqual((heard.status, heard.kind), (status, kind))
            error = heard.json["error"]
            self.assertEqual((error["run_id"], error["audit_id"]), (self.last(), f"audit-{self.last()}"))
            self.assertEqual(error["details"]["reason"], "because of x")

    def test_failed_run(self) -> None:
        """A failed run answers with its own fault and status; an unknown outcome says what was last heard."""
        heard = self.settled(RunState.FAILED, fault=NetworkError("refused", {"retried": 3}).fault())
        self.assertEqual((heard.status, heard.kind), (502, "network_error"))
        self.assertEqual(heard.json["error"]["details"], {"retried": 3})
        self.assertTrue(heard.json["error"]["retriable"])
        heard = self.settled(RunState.UNKNOWN, fault=ExternalApiError("Slack was silent").fault())
        self.assertEqual(heard.json["error"]["details"]["cause"]["class"], "external_api_error")
        self.assertIn("Slack was silent", heard.json["error"]["message"])

    def test_same_key(self) -> None:
        """The same idempotency key answers with the same run; with other arguments it is a conflict."""
        body = {**ARGS, "idempotency_key": "k"}
        self.assertEqual(self.now(body=body).json["run_id"], self.now(body=body).json["run_id"])
        self.assertEqual(self.now(body={"args": {}, "idempotency_key": "k"}).kind, "conflict")

    def test_refusals(self) -> None:
        """What the runner refuses is answered with its class and status, and when to come again."""
        for refusal, status, retry in (
            (LimitExceeded("too many", {"retry_after": 7}), 429, "7"),
            (StoreUnavailable("full"), 503, "1"),
            (NetworkError("x"), 502, None),
        ):
            self.runner.refusal = refusal
            heard = self.now()
            self.assertEqual((heard.status, heard.kind), (status, refusal.kind))
            self.assertEqual(heard.headers.get("retry-after"), retry)

    def test_unexpected(self) -> None:
        """A bug is an internal error that tells nothing; the log tells where, and not what was in it."""
        events = self.logged()
        self.runner.refusal = ZeroDivisionError("canary-secret")
        heard = self.now()
        self.assertEqual((heard.status, heard.kind), (500, "internal_error"))
        logged = [event for event in events if "ZeroDivisionError" in str(event)]
        self.assertEqual(len(logged), 1)
        self.assertNotIn("canary-secret", str(events) + heard.text)
        self.assertNotIn(self.token, str(events))
        self.assertEqual(self.flushLoggedErrors(), [])


class OrderTests(ApiCase):
    """Which fault is told first."""

    def refused(self, path: str, token: str | None, body: Any) -> int:
        """The status of a run that is refused."""
        return self.agents.ask("POST", path, token, body).status

    def test_order(self) -> None:
        """Credential, then the action, then the body."""
        token = self.agent_token()
        self.runner.offer(scripted_offer(), scripted_offer("off", enabled=False))
        self.assertEqual(self.refused("/v1/actions/nothing/run", None, {"bad": 1}), 401)
        self.assertEqual(self.refused("/v1/actions/nothing/run", token, {"bad": 1}), 404)
        self.assertEqual(self.refused("/v1/actions/off/run", token, {"bad": 1}), 409)
        self.assertEqual(self.refused(RUN, token, {"bad": 1}), 400)
        self.assertEqual(self.refused(RUN, token, {"args": {"other": 1}}), 400)
        self.assertEqual(self.runner.calls, [])

    def test_every_problem(self) -> None:
        """Every problem of a body is told at once, by pointer, and no value is repeated."""
        body = {"args": "canary-1", "idempotency_key": "canary two", "canary/key": 1}
        heard = self.agents.ask("POST", RUN, self.agent_token(), body)
        pointers = [problem["pointer"] for problem in heard.json["error"]["details"]["problems"]]
        self.assertEqual(sorted(pointers), ["/args", "/canary~1key", "/idempotency_key"])
        self.assertNotIn("canary-1", heard.text)
        self.assertNotIn("canary two", heard.text)

    def test_ambiguous_json(self) -> None:
        """A body that two readers could read differently, or a key with a line feed, is refused at the door."""
        token = self.agent_token()
        for body in (
            b'{"args": {}, "args": {}}',
            b'{"args": {"text": NaN}}',
            b'{"args": {"text": 9007199254740993}}',
            b'{"args": {"text": "\\ud800"}}',
            b'{"args": ' + b"[" * 40 + b"]" * 40 + b"}",
            b"[]",
            b"\xff",
            b"{",
        ):
            heard = self.agents.ask("POST", RUN, token, body)
            self.assertEqual((heard.status, heard.kind), (400, "invalid_request"), body)
        self.assertEqual(self.runner.calls, [])
        for key in ("k\n", "\nk", "k\n\n"):
            heard = self.agents.ask("POST", RUN, self.agent_token(), {**ARGS, "idempotency_key": key})
            self.assertEqual(heard.status, 400)
        self.assertEqual(self.runner.calls, [])
