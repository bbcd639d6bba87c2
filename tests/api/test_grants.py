"""Standing grants, pausing, limits, forgiving and putting off, as only the operator site takes them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from twisted.internet.defer import Deferred

from aileron.base.json import timestamp, utc
from aileron.model.queries import AuditQuery
from aileron.model.reviews import Card
from aileron.model.runs import RunState
from tests.api.case import LAUNCH_KEY, LOCAL_KEY, NOW, ApiCase, Heard

LATER = timestamp(utc(NOW + 3600))
WISH: dict[str, Any] = {
    "uses": 3,
    "not_after": LATER,
    "predicates": [{"argument": "text", "kind": "one_of", "given": ["hello", 1, True]}],
}


class GrantsCase(ApiCase):
    """A gated call that waits."""

    def setUp(self) -> None:
        super().setUp()
        self.key = self.operator_token()
        self.agent_key = self.agent_token()
        self.waiting = self.ask_to_run()

    def ask_to_run(self) -> str:
        """The id of a new approval."""
        heard = self.agents.ask("POST", "/v1/actions/ship-update/run", self.agent_key, {"args": {"text": "hello"}})
        return str(heard.json["approval_id"])

    def decide(self, key: str, approved: bool = True, **grant: Any) -> Heard:
        """Approve what is shown, with a grant."""
        path = f"/v1/action-approvals/{self.waiting}"
        digest = self.operator.ask("GET", path, self.key).json["digest"]
        return self.operator.ask(
            "POST", f"{path}/decide", key, {"approved": approved, "digest": digest, "grant": {**WISH, **grant}}
        )


class GrantsTests(GrantsCase):
    """What the operator can do."""

    def test_decided_with_a_grant(self) -> None:
        """The answer to the decision tells the grant, whole, and then it is listed."""
        heard = self.decide(self.key)
        self.assertEqual((heard.status, heard.json["approved"], heard.json["grant_id"]), (200, True, None))
        grant = heard.json["grant"]
        self.assertEqual((grant["state"], grant["uses"], grant["left"], grant["not_after"]), ("live", 3, 3, LATER))
        self.assertEqual(grant["predicates"], WISH["predicates"])
        self.assertEqual((grant["exact"], grant["run_id"]), ({}, self.waiting))
        self.assertIsNotNone(grant["session_id"])
        self.assertEqual(self.operator.ask("GET", "/v1/grants", self.key).json, {"items": [grant]})
        self.assertEqual(self.operator.ask("GET", f"/v1/grants/{grant['id']}", self.key).json, grant)

    def test_posted(self) -> None:
        """A grant can be posted with the approval that it is made of."""
        digest = self.operator.ask("GET", f"/v1/action-approvals/{self.waiting}", self.key).json["digest"]
        body = {"approval_id": self.waiting, "digest": digest, "grant": {**WISH, "session": False}}
        heard = self.operator.ask("POST", "/v1/grants", self.key, body)
        self.assertEqual((heard.status, heard.json["session_id"]), (201, None))

    def test_revoked(self) -> None:
        """Why one allows nothing is told; revoked, it stays listed as such, and twice is safe."""
        self.runner.suspended["ship-update"] = "It was changed."
        path = f"/v1/grants/{self.decide(self.key).json['grant']['id']}"
        heard = self.operator.ask("GET", path, self.key)
        self.assertEqual((heard.json["state"], heard.json["suspended"]), ("live", "It was changed."))
        for _ in range(2):
            heard = self.operator.ask("DELETE", path, self.key)
            self.assertEqual((heard.status, heard.json["state"]), (200, "revoked"))
        self.assertEqual(self.operator.ask("DELETE", "/v1/grants/other", self.key).status, 404)

    def test_malformed(self) -> None:
        """What is no grant is refused before anything is decided."""
        for wrong in (
            {"uses": 0},
            {"uses": 1001},
            {"uses": True},
            {"not_after": "tomorrow"},
            {"not_after": "2026-99-99T00:00:00Z"},
            {"predicates": [{"argument": "text", "kind": "like", "given": ""}]},
            {"predicates": [{"argument": "text"}]},
            {"session": 1},
            {"more": 1},
        ):
            self.assertEqual(self.decide(self.key, **wrong).status, 400, wrong)
        self.assertEqual(self.decide(self.key, approved=False).status, 400)
        path = f"/v1/action-approvals/{self.waiting}"
        self.assertIsNone(self.operator.ask("GET", path, self.key).json["approved"])

    def test_suggested(self) -> None:
        """One approval tells what could be granted of its arguments."""
        heard = self.agents.ask("POST", "/v1/actions/ship-update/run", self.agent_key, {"args": {"text": "me@a.org"}})
        found = self.operator.ask("GET", f"/v1/action-approvals/{heard.json['approval_id']}", self.key)
        self.assertEqual(found.json["suggested"], [{"argument": "text", "kind": "domain", "given": ["a.org"]}])

    def test_cards(self) -> None:
        """One approval tells what it would send as what a person knows it, with every value of its type."""
        self.runner.shown_cards[self.waiting] = (
            Card("only", "issue", (("repository", ("me", "x")), ("number", (3,)))),
        )
        parts = [{"name": "repository", "values": ["me", "x"]}, {"name": "number", "values": [3]}]
        found = self.operator.ask("GET", f"/v1/action-approvals/{self.waiting}", self.key).json["cards"]
        self.assertEqual(found, [{"step": "only", "kind": "issue", "parts": parts}])


class AgentTests(GrantsCase):
    """What an agent can do: nothing of it."""

    def test_decides_nothing(self) -> None:
        """A decision with a grant is not taken from it."""
        self.assertIn(self.decide(self.agent_key).status, (401, 403))
        self.assertEqual(self.operator.ask("GET", "/v1/grants", self.key).json, {"items": []})


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

    def test_session(self) -> None:
        """The operator pauses one session that there is; an agent its own, whatever it says, and resumes nothing."""
        session = self.open_session()["id"]
        self.operator.ask("POST", "/v1/pause", self.token, {"session": session})
        self.assertEqual(self.pauses(), [session])
        self.assertEqual(self.operator.ask("POST", "/v1/pause", self.token, {"session": "none"}).status, 404)
        self.operator.ask("POST", "/v1/resume", self.token, {"session": session})
        self.assertEqual(self.pauses(), [])
        mine = self.open_session()
        self.agents.ask("POST", "/v1/pause", mine["token"], {"reason": "I go in circles"})
        self.assertEqual(self.pauses(), [mine["id"]])
        refused = self.agents.ask("POST", "/v1/pause", mine["token"], {"session": "another"})
        self.assertEqual(refused.status, 404)
        self.assertEqual(self.agents.ask("POST", "/v1/resume", mine["token"]).status, 404)
        self.assertEqual(self.agents.ask("POST", "/v1/pause", LAUNCH_KEY).status, 403)

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
        """Limits are set, replaced, listed and removed; what is none is refused."""
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
        """An approval can be put off, to a moment; the agent is told when it begins, and never that it is done."""
        for moment in ("tomorrow", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00"):
            self.assertEqual(self.decide(not_before=moment).status, 400, moment)
        self.assertEqual(self.operator.ask("GET", self.path, self.token).json["run"]["state"], "pending_approval")
        later = utc(NOW) + timedelta(hours=2)
        decided = self.decide(not_before=later.isoformat()).json
        self.assertEqual((decided["not_before"], decided["run"]["start_after"]), (timestamp(later),) * 2)
        result = self.agents.ask("GET", f"{self.path}/result", self.agent).json
        self.assertEqual((result["status"], result["begins_at"]), ("running", timestamp(later)))
        self.clock.advance(7200)
        self.assertNotIn("begins_at", self.agents.ask("GET", f"{self.path}/result", self.agent).json)

    def snooze(self, until: object) -> Heard:
        """Snooze what is pending."""
        return self.operator.ask("POST", f"{self.path}/snooze", self.token, {"until": until})

    def test_snooze(self) -> None:
        """A pending request is put aside until a moment, for every reader, and back; it is still decided as before."""
        until = timestamp(utc(NOW) + timedelta(minutes=10))
        self.assertEqual(self.snooze(until).json, {"snoozed_until": until})
        (listed,) = self.operator.ask("GET", "/v1/action-approvals", self.token).json["items"]
        self.assertEqual(listed["snoozed_until"], until)
        self.assertEqual(self.operator.ask("GET", self.path, self.token).json["snoozed_until"], until)
        self.clock.advance(600)
        self.assertIsNone(self.operator.ask("GET", self.path, self.token).json["snoozed_until"])
        later = timestamp(utc(NOW) + timedelta(hours=2))
        self.snooze(later)
        self.assertEqual([self.snooze(None).json for _ in range(2)], [{"snoozed_until": None}] * 2)
        self.assertIsNone(self.operator.ask("GET", self.path, self.token).json["snoozed_until"])
        events = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items
        snoozed = [each.event for each in events if each.event.type == "approval.snoozed"]
        self.assertEqual([each.payload["until"] for each in snoozed], [None, later, until])
        self.assertEqual({each.run_id for each in snoozed}, {self.path.rpartition("/")[2]})
        self.assertEqual({each.actor.type for each in snoozed}, {"human"})
        self.assertEqual(self.decide().status, 200)

    def test_snooze_refused(self) -> None:
        """Only the operator snoozes, only what is pending, and only until a moment of the next 30 days."""
        ahead = utc(NOW) + timedelta(hours=1)
        for moment in ("tomorrow", timestamp(utc(NOW)), timestamp(utc(NOW) + timedelta(days=31))):
            self.assertEqual(self.snooze(moment).status, 400, moment)
        body = {"until": timestamp(ahead)}
        self.assertEqual(self.agents.ask("POST", f"{self.path}/snooze", self.agent, body).status, 404)
        self.assertEqual(self.operator.ask("POST", f"{self.path}/snooze", LOCAL_KEY, body).status, 403)
        self.assertEqual(self.operator.ask("POST", "/v1/action-approvals/none/snooze", self.token, body).status, 404)
        self.decide(approved=False)
        self.assertEqual(self.snooze(body["until"]).status, 409)

    def test_forgive(self) -> None:
        """What was denied can be forgiven, by the operator alone."""
        self.assertEqual(self.operator.ask("POST", f"{self.path}/forgive", self.token).status, 409)
        self.decide(approved=False)
        self.assertEqual(self.operator.ask("POST", f"{self.path}/forgive", self.token).status, 200)
        self.assertEqual(self.agents.ask("POST", f"{self.path}/forgive", self.agent).status, 404)
