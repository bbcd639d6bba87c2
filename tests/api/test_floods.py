"""An agent that asks and asks is stopped in one step."""

from __future__ import annotations

from attrs import define, evolve, field
from twisted.internet.defer import Deferred

from aileron.errors import ApprovalStale, Conflict
from aileron.testing import ScriptedRunner, scripted_offer
from aileron.values import Approval, Decision, Page, RunQuery, RunState
from tests.api.case import ApiCase


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

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        """See L{IDecisions.approvals}; page by page."""
        everything = await ScriptedRunner.approvals(self, evolve(query, limit=1000, cursor=None))
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
        """What was changed in this moment is denied as it is then; what somebody decided first is told."""
        session, _, (changed, decided) = self.flood(2)
        self.stubborn.refusals = {changed: [ApprovalStale("changed")], decided: [Conflict("It is approved already.")]}
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {}).json
        self.assertEqual(told["denied"], [changed])
        self.assertEqual(told["left"], [{"id": decided, "message": "It is approved already."}])

    def test_always_changing(self) -> None:
        """What changes at each look is left, and said to be."""
        session, _, (run,) = self.flood(1)
        self.stubborn.refusals = {run: [ApprovalStale("changed"), ApprovalStale("changed again")]}
        told = self.operator.ask("POST", f"/v1/sessions/{session}/deny", self.token, {}).json
        self.assertEqual(told["left"], [{"id": run, "message": "changed again"}])

    def test_whose(self) -> None:
        """There must be such a session, and no agent can do it, not even to its own."""
        self.assertEqual(self.operator.ask("POST", "/v1/sessions/none/deny", self.token, {}).status, 404)
        session, token, _ = self.flood(1)
        self.assertEqual(self.agents.ask("POST", f"/v1/sessions/{session}/deny", token, {}).status, 404)
