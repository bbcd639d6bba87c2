"""How many requests of one session may wait at a time, and what becomes of the others."""

from __future__ import annotations

from typing import Any

from attrs import define
from twisted.internet.defer import Deferred

from aileron.api._sessions import MOST_WAITS, RETRY_AFTER_SECONDS
from aileron.testing import ScriptedRunner, scripted_offer
from aileron.values import Run

from .case import ApiCase

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
        """Have it asked for."""
        super().setUp()
        self.session = self.open_session()
        self.token = self.session["token"]
        self.run_id = self.ask_gated(self.token).json["run_id"]

    def ask_gated(self, token: str, **more: Any) -> Any:
        """Ask for a gated action, and be answered at once."""
        return self.agents.ask("POST", "/v1/actions/ship-update/run", token, {"args": {"text": "x"}}, **more)

    def poll(self, path: str = "/v1/runs/{}?wait=3600", token: str | None = None) -> Any:
        """Begin a long poll."""
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
            self.assertIn("ask without a wait", refused.json["error"]["message"])
            self.assertEqual(self.heard(self.poll(path.partition("?")[0])).status, 200)

    def test_run_is_kept(self) -> None:
        """A call is never refused for it: it is answered at once, with the run that now waits."""
        self.fill()
        asked = self.ask_gated(self.token, headers=LONG)
        self.assertEqual((asked.status, asked.json["status"]), (202, "pending_approval"))

    def test_others(self) -> None:
        """Another session waits all the same, and the operator without any bound."""
        self.fill()
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

    def test_ordinary(self) -> None:
        """Twenty calls that wait together meet no limit."""
        for _ in range(20):
            held = self.agents.start("POST", "/v1/actions/ship-update/run", self.token, {"args": {"text": "z"}}, LONG)
            self.assertNoResult(held)
