"""Pausing, limits, forgiving and putting off, over HTTP."""

from __future__ import annotations

from datetime import timedelta

from aileron.values import RunState, timestamp, utc
from tests.api.case import LAUNCH_KEY, NOW, ApiCase, Heard


class PauseTests(ApiCase):
    """C{/v1/pause} and C{/v1/resume}."""

    def setUp(self) -> None:
        super().setUp()
        self.token = self.operator_token()

    def pauses(self) -> list[str | None]:
        """Whose runs are paused."""
        return [pause.session_id for pause in self.runner.pauses()]

    def test_operator(self) -> None:
        """The operator pauses everything, and is told what is under way; resuming tells what is asked anew."""
        self.runner.usual = RunState.EXECUTING
        agent = self.agent_token()
        begun = self.agents.ask("POST", "/v1/actions/look-up/run", agent, headers={"Prefer": "wait=0"}).json["run_id"]
        halt = self.operator.ask("POST", "/v1/pause", self.token, {"reason": "look"}).json
        self.assertEqual((halt["pause"]["reason"], halt["pause"]["since"]), ("look", timestamp(utc(NOW))))
        self.assertEqual([run["id"] for run in halt["under_way"]], [begun])
        self.assertEqual(self.pauses(), [None])
        self.assertEqual(self.operator.ask("POST", "/v1/resume", self.token).json, {"asked_anew": []})
        self.assertEqual(self.pauses(), [])

    def test_agent(self) -> None:
        """An agent pauses its own session, whatever it says, and resumes nothing."""
        session = self.open_session()
        self.agents.ask("POST", "/v1/pause", session["token"], {"reason": "I go in circles"})
        self.assertEqual(self.pauses(), [session["id"]])
        refused = self.agents.ask("POST", "/v1/pause", session["token"], {"session": "another"})
        self.assertEqual(refused.status, 404)
        self.assertEqual(self.agents.ask("POST", "/v1/resume", session["token"]).status, 404)
        self.assertEqual(self.agents.ask("POST", "/v1/pause", LAUNCH_KEY).status, 403)

    def test_session(self) -> None:
        """The operator pauses one session that there is."""
        session = self.open_session()["id"]
        self.operator.ask("POST", "/v1/pause", self.token, {"session": session})
        self.assertEqual(self.pauses(), [session])
        self.assertEqual(self.operator.ask("POST", "/v1/pause", self.token, {"session": "none"}).status, 404)
        self.operator.ask("POST", "/v1/resume", self.token, {"session": session})
        self.assertEqual(self.pauses(), [])

    def test_told(self) -> None:
        """The status tells of the pause to whom it concerns, and the metrics to the operator."""
        mine, other = self.open_session(), self.open_session()
        self.operator.ask("POST", "/v1/pause", self.token, {"session": mine["id"]})
        for session, paused in ((mine, True), (other, False)):
            status = self.agents.ask("GET", "/v1/status", session["token"]).json
            self.assertEqual((status["paused"], "pause" in status), (paused, paused))
            shown = self.agents.ask("GET", "/v1/sessions", session["token"]).json["items"]
            self.assertEqual([each["paused"] for each in shown], [paused])
        self.assertFalse(self.operator.ask("GET", "/v1/status", self.token).json["paused"])
        self.operator.ask("POST", "/v1/pause", self.token)
        self.assertTrue(self.operator.ask("GET", "/v1/status", self.token).json["paused"])
        self.assertTrue(self.agents.ask("GET", "/v1/status", other["token"]).json["paused"])
        metrics = self.operator.ask("GET", "/metrics", self.token).text
        self.assertIn("aileron_paused 1.0", metrics)
        self.assertIn("aileron_paused_sessions 1.0", metrics)


class CapTests(ApiCase):
    """C{/v1/caps}."""

    def setUp(self) -> None:
        super().setUp()
        self.token = self.operator_token()

    def caps(self, answer: Heard) -> list[tuple[object, ...]]:
        """What is limited, in short."""
        keys = ("action", "argument", "per_session", "window", "most")
        return [tuple(item[key] for key in keys) for item in answer.json["items"]]

    def test_all(self) -> None:
        """Limits are set, replaced, listed and removed."""
        ask = self.operator.ask
        ask("POST", "/v1/caps", self.token, {"per_hour": 5, "per_day": 9})
        ask("POST", "/v1/caps", self.token, {"action": "mail", "argument": "to", "per_hour": 1, "per_session": True})
        ask("POST", "/v1/caps", self.token, {"per_hour": 6})
        everything = [(None, None, False, "per_hour", 6), (None, None, False, "per_day", 9)]
        mail = ("mail", "to", True, "per_hour", 1)
        self.assertEqual(self.caps(ask("GET", "/v1/caps", self.token)), [*everything, mail])
        left = ask("DELETE", "/v1/caps", self.token, {"window": "per_day"})
        self.assertEqual(self.caps(left), [everything[0], mail])
        self.assertEqual(ask("DELETE", "/v1/caps", self.token, {"window": "per_day"}).status, 404)

    def test_wrong(self) -> None:
        """A limit that says nothing, less than one, or names an argument of no action is refused."""
        for body in ({}, {"per_hour": 0}, {"per_hour": 1.5}, {"argument": "to", "per_hour": 1}, {"per_minute": 1}):
            self.assertEqual(self.operator.ask("POST", "/v1/caps", self.token, body).status, 400, body)
        self.assertEqual(self.agents.ask("GET", "/v1/caps", self.agent_token()).status, 404)


class DecisionTests(ApiCase):
    """What of decisions has to do with time."""

    def setUp(self) -> None:
        super().setUp()
        self.token, self.agent = self.operator_token(), self.agent_token()
        asked = self.agents.ask("POST", "/v1/actions/ship-update/run", self.agent, {"args": {"text": "hello"}})
        self.path = f"/v1/action-approvals/{asked.json['approval_id']}"
        self.digest = self.operator.ask("GET", self.path, self.token).json["digest"]

    def decide(self, **more: object) -> Heard:
        """Decide what waits."""
        body = {"approved": True, "digest": self.digest, **more}
        return self.operator.ask("POST", f"{self.path}/decide", self.token, body)

    def test_put_off(self) -> None:
        """An approval can be put off; the agent is told when it begins, and never that it is done."""
        later = utc(NOW) + timedelta(hours=2)
        decided = self.decide(not_before=later.isoformat()).json
        self.assertEqual((decided["not_before"], decided["run"]["start_after"]), (timestamp(later),) * 2)
        result = self.agents.ask("GET", f"{self.path}/result", self.agent).json
        self.assertEqual((result["status"], result["begins_at"]), ("running", timestamp(later)))
        self.clock.advance(7200)
        self.assertNotIn("begins_at", self.agents.ask("GET", f"{self.path}/result", self.agent).json)

    def test_no_moment(self) -> None:
        """What is no moment is refused, and decides nothing."""
        for moment in ("tomorrow", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00"):
            self.assertEqual(self.decide(not_before=moment).status, 400, moment)
        self.assertEqual(self.operator.ask("GET", self.path, self.token).json["run"]["state"], "pending_approval")

    def test_forgive(self) -> None:
        """What was denied can be forgiven, by the operator alone."""
        self.assertEqual(self.operator.ask("POST", f"{self.path}/forgive", self.token).status, 409)
        self.decide(approved=False)
        self.assertEqual(self.operator.ask("POST", f"{self.path}/forgive", self.token).status, 200)
        self.assertEqual(self.agents.ask("POST", f"{self.path}/forgive", self.agent).status, 404)
