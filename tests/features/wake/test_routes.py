"""The routes by which an agent's hook waits, and what the other routes tell the feature."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from aileron.features.wake._outcomes import OutcomeService
from aileron.features.wake.running import RunningWake
from aileron.features.wake.values import WakeSettings
from aileron.model.audit import DAEMON, Event
from aileron.model.runs import RunState
from tests.api.case import LAUNCH_KEY, ApiCase, Heard, running


class RunsOfRunner:
    """The runs of a scripted runner, as a store gives them."""

    def __init__(self, runner: Any) -> None:
        self._runner = runner

    async def get(self, run_id: str) -> Any:
        """See L{IRuns}."""
        return await self._runner.run(run_id)

    async def count(self, query: Any) -> int:
        """See L{IRuns}."""
        return len((await self._runner.runs(query)).items)


class WakeTests(ApiCase):
    """C{POST /v1/wake}."""

    def setUp(self) -> None:
        super().setUp()
        runs: Any = RunsOfRunner(self.runner)
        self.outcomes = OutcomeService(WakeSettings(), self.store.audit, runs, self.clock, self.fresh_id)
        self.feature = RunningWake(self.outcomes)
        self.build(features=running(self.feature))
        self.successResultOf(Deferred.fromCoroutine(self.outcomes.begin()))
        following = Deferred.fromCoroutine(self.outcomes.follow())
        following.addErrback(lambda failure: failure.trap(CancelledError))
        self.addCleanup(following.cancel)
        self.addCleanup(self.outcomes.stop)
        opened = self.open_session("claude")
        self.token, self.session_id = opened["token"], opened["id"]

    def ask(self, token: str | None = None, **body: Any) -> Deferred[Heard]:
        """The hook asks."""
        return self.agents.start("POST", "/v1/wake", token or self.token, body)

    def heard(self, asked: Deferred[Heard]) -> Heard:
        """The answer, once it is sent."""
        self.agents.treq.flush()
        return self.successResultOf(asked)

    def call(self) -> str:
        """The agent calls a gated action, and is told that it waits."""
        body = {"args": {"text": "x"}}
        answer = self.agents.ask("POST", "/v1/actions/ship-update/run", self.token, body, headers={"Prefer": "wait=0"})
        self.assertEqual(answer.status, 202, answer.text)
        return str(answer.json["run_id"])

    def finish(self, run_id: str) -> None:
        """Its run completes."""
        self.runner.finish(run_id, RunState.COMPLETED, result={"output": {}, "steps": {}})
        event = Event(
            self.fresh_id(),
            "execution.succeeded",
            self.deps.now(),
            DAEMON,
            run_id=run_id,
            session_id=self.session_id,
        )
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))

    def test_woken(self) -> None:
        """A hook that waits is told the outcome after the rest, and that nothing else can come."""
        run_id = self.call()
        asked = self.ask(wait=60)
        self.finish(run_id)
        self.clock.advance(5)
        said = self.heard(asked).json
        self.assertEqual((said["outcome"]["run_id"], said["outcome"]["state"]), (run_id, "completed"))
        self.assertEqual(self.heard(self.ask(wait=60)).json["waiting"], False)

    def test_fetched(self) -> None:
        """What the agent fetches by any route, even within a wait, does not wake it."""
        for fetch in ("/v1/runs/{}", "/v1/runs/{}?wait=60", "/v1/action-approvals/{}/result"):
            run_id = self.call()
            early = self.agents.start("GET", fetch.format(run_id), self.token) if "wait" in fetch else None
            self.finish(run_id)
            if early is None:
                self.agents.ask("GET", fetch.format(run_id), self.token)
            else:
                self.assertEqual(self.heard(early).json["status"], "completed")
            self.clock.advance(6)
            said = self.heard(self.ask(wait=60)).json
            self.assertEqual((said["outcome"], said["waiting"]), (None, False), fetch)

    def test_read_by_others(self) -> None:
        """What the operator reads, the agent does not know."""
        run_id = self.call()
        self.finish(run_id)
        self.operator.ask("GET", f"/v1/runs/{run_id}", self.operator_token())
        self.clock.advance(6)
        self.assertEqual(self.heard(self.ask()).json["outcome"]["run_id"], run_id)

    def test_session_ended(self) -> None:
        """The end of the session ends the wait."""
        self.call()
        asked = self.ask(wait=60)
        self.assertNoResult(asked)
        self.agents.ask("POST", f"/v1/sessions/{self.session_id}/end", self.token, {})
        self.assertEqual(self.heard(asked).status, 401)

    def test_conversation(self) -> None:
        """The hook says which conversation it has; what could be an option or a path is refused."""
        for wrong in ("--model=x", "-p", "", "a/b", "a b", "x" * 129, "ä"):
            for path in ("/v1/wake", "/v1/wake/conversation"):
                self.assertEqual(self.agents.ask("POST", path, self.token, {"conversation": wrong}).status, 400, wrong)
        self.assertEqual(self.agents.ask("POST", "/v1/wake/conversation", self.token, {"conversation": "c-1"}).json, {})
        self.assertEqual(self.heard(self.ask()).json["conversation"], "c-1")
        self.assertEqual(self.heard(self.ask(conversation="c-2")).json["conversation"], "c-2")

    def test_who(self) -> None:
        """Only the session's token asks; without the feature there is nothing to ask."""
        self.assertEqual(self.heard(self.ask(LAUNCH_KEY)).status, 403)
        self.assertEqual(self.heard(self.ask(self.operator_token())).status, 401)
        told = self.agents.ask("GET", "/v1/status", LAUNCH_KEY).json
        self.assertEqual(told["wake"], {"resume": False, "most_resumes": 3})
        self.build(features=running())
        for path, body in (("/v1/wake", {}), ("/v1/wake/conversation", {"conversation": "c"})):
            self.assertEqual(self.agents.ask("POST", path, self.token, body).status, 404)
