"""Standing grants as the operator site takes them, and as nobody else does."""

from __future__ import annotations

from typing import Any

from aileron.values import timestamp, utc

from .case import NOW, ApiCase, Heard

LATER = timestamp(utc(NOW + 3600))
WISH: dict[str, Any] = {
    "uses": 3,
    "not_after": LATER,
    "predicates": [{"argument": "text", "kind": "one_of", "given": ["hello", 1, True]}],
}


class GrantsCase(ApiCase):
    """A gated call that waits."""

    def setUp(self) -> None:
        """Have an agent ask."""
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
        """Revoked, it stays listed as such; twice is safe."""
        path = f"/v1/grants/{self.decide(self.key).json['grant']['id']}"
        for _ in range(2):
            heard = self.operator.ask("DELETE", path, self.key)
            self.assertEqual((heard.status, heard.json["state"]), (200, "revoked"))
        self.assertEqual(self.operator.ask("DELETE", "/v1/grants/other", self.key).status, 404)

    def test_suspended(self) -> None:
        """Why it allows nothing is told."""
        self.runner.suspended["ship-update"] = "It was changed."
        grant = self.decide(self.key).json["grant"]
        heard = self.operator.ask("GET", f"/v1/grants/{grant['id']}", self.key)
        self.assertEqual((heard.json["state"], heard.json["suspended"]), ("live", "It was changed."))

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


class AgentTests(GrantsCase):
    """What an agent can do: nothing of it."""

    def test_decides_nothing(self) -> None:
        """A decision with a grant is not taken from it."""
        self.assertIn(self.decide(self.agent_key).status, (401, 403))
        self.assertEqual(self.operator.ask("GET", "/v1/grants", self.key).json, {"items": []})
