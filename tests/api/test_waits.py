"""An agent that asks and asks: how many of its requests may wait, and how it is stopped in one step."""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred

from aileron.api._sessions import MOST_WAITS, RETRY_AFTER_SECONDS
from aileron.model.errors import ApprovalStale, Conflict
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import Approval, Decision, Run, RunState
from aileron.testing import ScriptedRunner, scripted_offer
from tests.api.case import ApiCase

LONG = {"Prefer": "wait=3600"}


@define
class SlowRunner(ScriptedRunner):
    """Looks up no run before it may.

    :ivar gate: that it may; L{None}: at once.
    """

    gate: Deferred[None] | None = None

    async def run(self, run_id: str) -> Run:
        if self.gate is not None:
            await self.gate
        return await ScriptedRunner.run(self, run_id)


class WaitTests(ApiCase):
    """A gated run of one session, waited for by many requests."""

    def setUp(self) -> None:
        super().setUp()
        self.session = self.open_session()
        self.token = self.session["token"]
        self.run_id = self.ask_gated(self.token).json["run_id"]

    def ask_gated(self, token: str, **more: Any) -> Any:
        """Ask for a gated action, and be answered at once."""
        return self.agents.ask("POST", "/v1/actions/ship-update/run", token, {"args": {"text": "x"}}, **more)

    def poll(self, path: str = "/v1/runs/{}?wait=3600", token: str | None = None) -> Any:
        return self.agents.start("GET", path.format(self.run_id), token or self.token)

    def fill(self) -> list[Any]:
        """As many as may wait, which all do."""
        polls = [self.poll() for _ in range(MOST_WAITS)]
        for poll in polls:
            self.assertNoResult(poll)
        return polls

    def heard(self, poll: Any) -> Any:
        """What a long poll is answered, which it must be by now."""
        self.agents.treq.flush()
        return self.successResultOf(poll)

    def test_too_many(self) -> None:
        """One more is refused on each route that waits, with when to come again; without a wait it is answered."""
        self.fill()
        generation = self.runner.offering().generation
        for path in (
            "/v1/runs/{}?wait=3600",
            "/v1/action-approvals/{}/result?wait=1",
            f"/v1/actions?generation={generation}&wait=60",
        ):
            refused = self.heard(self.poll(path))
            self.assertEqual((refused.status, refused.kind), (429, "limit_exceeded"))
            self.assertEqual(refused.headers["retry-after"], str(RETRY_AFTER_SECONDS))
            self.assertIn("request without waiting", refused.json["error"]["message"])
            self.assertEqual(self.heard(self.poll(path.partition("?")[0])).status, 200)

    def test_others(self) -> None:
        """Another session waits all the same, the operator without any bound; a call is never refused for it."""
        self.fill()
        asked = self.ask_gated(self.token, headers=LONG)
        self.assertEqual((asked.status, asked.json["status"]), (202, "pending_approval"))
        other = self.agent_token()
        held = self.agents.start("POST", "/v1/actions/ship-update/run", other, {"args": {"text": "y"}}, LONG)
        self.assertNoResult(held)
        operator = self.operator_token()
        for _ in range(MOST_WAITS + 1):
            path = f"/v1/runs/{self.run_id}?wait=3600"
            self.assertNoResult(self.operator.start("GET", path, operator))

    def test_room_again(self) -> None:
        """Each that is answered makes room for one."""
        polls = self.fill()
        token = self.operator_token()
        approval = self.operator.ask("GET", f"/v1/action-approvals/{self.run_id}", token).json
        word = {"approved": False, "digest": approval["digest"]}
        self.assertEqual(
            self.operator.ask("POST", f"/v1/action-approvals/{self.run_id}/decide", token, word).status, 200
        )
        self.assertEqual({self.heard(poll).json["state"] for poll in polls}, {"denied"})
        self.run_id = self.ask_gated(self.token).json["run_id"]
        self.fill()

    def test_time(self) -> None:
        """So does each whose time is over, which is answered as before."""
        short = self.poll("/v1/runs/{}?wait=5")
        polls = [self.poll() for _ in range(MOST_WAITS - 1)]
        self.clock.advance(5)
        self.assertEqual(self.heard(short).json["state"], "pending_approval")
        self.assertNoResult(self.poll())
        self.assertEqual(self.heard(self.poll()).status, 429)
        self.assertNoResult(polls[0])

    def test_left(self) -> None:
        """A client that leaves makes room as well."""
        polls = self.fill()
        self.assertFalse(self.deps.waits.allows(self.session["id"]))
        polls[0].cancel()
        self.agents.treq.flush()
        self.failureResultOf(polls[0])
        self.assertTrue(self.deps.waits.allows(self.session["id"]))
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_ended(self) -> None:
        """With its session ends what waits of it, as every request with its token; nothing of it is counted on."""
        polls = self.fill()
        self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/end", self.token)
        self.assertEqual({self.heard(poll).status for poll in polls}, {401})
        self.assertEqual(self.deps.waits._waiting, {})

    def test_ended_on_the_way(self) -> None:
        """A request that was let in before its session ended does not begin to wait after that."""
        runner = SlowRunner(self.clock)
        runner.offer(scripted_offer())
        self.build(runner=runner)
        self.run_id = self.ask_gated(self.token).json["run_id"]
        runner.gate = Deferred()
        poll = self.poll()
        self.agents.ask("POST", f"/v1/sessions/{self.session['id']}/end", self.token)
        runner.gate.callback(None)
        self.assertEqual(self.heard(poll).status, 401)
        self.assertEqual(self.deps.waits._waiting, {})

    def test_denied_with_its_session(self) -> None:
        """An agent whose session is denied as a whole learns of the denial that it waited for."""
        poll = self.poll("/v1/action-approvals/{}/result?wait=3600")
        path = f"/v1/sessions/{self.session['id']}/deny"
        told = self.operator.ask("POST", path, self.operator_token(), {"reason": "stop it"})
        self.assertEqual(told.json["denied"], [self.run_id])
        heard = self.heard(poll).json
        self.assertEqual((heard["status"], heard["reason"]), ("denied", "stop it"))


@define
class StubbornRunner(ScriptedRunner):
    """Refuses decisions as a test says.

    :ivar refusals: by run, what is raised by its next decisions.
    """

    refusals: dict[str, list[Exception]] = field(factory=dict)

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        if self.refusals.get(run_id):
            raise self.refusals[run_id].pop(0)
        return await ScriptedRunner.decide(self, run_id, decision)

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        """See L{IDecisions.approvals}; page by page."""
        everything = await ScriptedRunner.approvals(self, evolve(query, limit=1000, cursor=None), only_read=only_read)
        begin = int(query.cursor or 0)
        end = begin + query.limit
        return Page(everything.items[begin:end], str(end) if end < len(everything.items) else None)


class DenySessionTests(ApiCase):
    """C{POST /v1/sessions/ID/deny}."""

    def setUp(self) -> None:
        super().setUp()
        self.stubborn = StubbornRunner(self.clock)
        self.stubborn.offer(scripted_offer())
        self.build(runner=self.stubborn)
        self.token = self.operator_token()

    def flood(self, count: int = 3) -> tuple[str, str, list[str]]:
        """A session's id and token, and what waits of it."""
        session = self.open_session()
        asked = [
            self.agents.ask("POST", "/v1/actions/ship-update/run", session["token"], {"args": {"text": str(number)}})
            for number in range(count)
        ]
        return session["id"], session["token"], [each.json["run_id"] for each in asked]

    def state(self, run_id: str) -> RunState:
        """Where a run stands."""
        return self.successResultOf(Deferred.fromCoroutine(self.stubborn.run(run_id))).state

    def test_all(self) -> None:
        """All that waits of it is denied with the reason, it has ended and asks no more; others' requests stay."""
        session, token, runs = self.flood()
        _, _, (other,) = self.flood(1)
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {"reason": "stop it"})
        self.assertEqual((told.status, told.json["denied"], told.json["left"]), (200, runs, []))
        self.assertEqual(told.json["session"]["state"], "ended")
        self.assertEqual([self.state(run) for run in runs], [RunState.DENIED] * 3)
        self.assertEqual(self.state(other), RunState.PENDING)
        self.assertEqual(self.agents.ask("GET", "/v1/status", token).status, 401)
        self.assertEqual(self.events().count("session.ended"), 1)

    def test_many(self) -> None:
        """More than one page of them is denied whole."""
        session, _, runs = self.flood(130)
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {})
        self.assertEqual(len(told.json["denied"]), 130)
        self.assertEqual({self.state(run) for run in runs}, {RunState.DENIED})

    def test_changed_meanwhile(self) -> None:
        """What was changed in this moment is denied as it is then, or left; what somebody decided first is told."""
        session, _, (changed, decided) = self.flood(2)
        self.stubborn.refusals = {changed: [ApprovalStale("changed")], decided: [Conflict("It is approved already.")]}
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {}).json
        self.assertEqual(told["denied"], [changed])
        self.assertEqual(told["left"], [{"id": decided, "message": "It is approved already."}])
        session, _, (run,) = self.flood(1)
        self.stubborn.refusals = {run: [ApprovalStale("changed"), ApprovalStale("changed again")]}
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {}).json
        self.assertEqual(told["left"], [{"id": run, "message": "changed again"}])

    def test_whose(self) -> None:
        """There must be such a session, and no agent can do it, not even to its own."""
        self.assertEqual(self.operator.ask("POST", "/v1/sessions/none/deny", self.token, {}).status, 404)
        session, token, _ = self.flood(1)
        self.assertEqual(self.agents.ask("POST", f"/v1/sessions/{session}/deny", token, {}).status, 404)
