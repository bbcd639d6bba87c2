"""Passkeys over HTTP: who may do what with them, and a decision that needs one."""

from __future__ import annotations

from typing import Any

from aileron.model.authority import PasskeyRule
from aileron.model.runs import Approval, Decision
from aileron.testing import SigningBrowser, SoftwareAuthenticator

from .case import ApiCase, Heard

BASE = "/v1/operator/passkeys"
RULE = {"everything": False, "actions": ["ship-update"]}


class PasskeyCase(ApiCase):
    """A browser, a terminal, and a person with an authenticator."""

    def setUp(self) -> None:
        super().setUp()
        self.browser, self.session = self.operators.open_browser()
        self.token = self.operator_token()
        self.person = SoftwareAuthenticator(self.operators.ADDRESS)

    def by_page(self, method: str, path: str, body: Any = None, browser: SigningBrowser | None = None) -> Heard:
        """What the page asks for."""
        return self.operator.ask(method, path, body=body, browser=browser or self.browser)

    def add(self) -> Heard:
        """Make one on the page, and let it count in the terminal."""
        made = self.person.create(self.by_page("POST", f"{BASE}/offer").json)
        words = self.by_page("POST", BASE, {"name": "Mine", "credential": made}).json["words"]
        return self.operator.ask("POST", f"{BASE}/confirm", self.token, {"words": words})


class AddingTests(PasskeyCase):
    """From the page by the terminal into the vault."""

    def test_whole(self) -> None:
        """It is listed once the words were typed, and each step is on record."""
        self.assertEqual(self.add().status, 200)
        self.assertEqual(self.operator.ask("POST", f"{BASE}/rule", self.token, RULE).json["rule"], RULE)
        listed = self.by_page("GET", BASE).json
        self.assertEqual(([each["name"] for each in listed["items"]], listed["rule"]), (["Mine"], RULE))
        self.assertEqual((listed["site"], listed["items"][0]["site"]), ("localhost", "localhost"))
        self.assertEqual(self.operator.ask("DELETE", BASE, self.token).json["items"], [])
        told = ["proposed", "added", "required", "reset"]
        self.assertEqual(self.events()[-4:], [f"operator.passkey_{each}" for each in told])

    def test_removed(self) -> None:
        """One is removed by a terminal, and no page removes any."""
        key = self.add().json
        path = f"{BASE}/{key['id']}"
        self.assertEqual(self.by_page("DELETE", path).status, 403)
        self.assertEqual(self.operator.ask("DELETE", path, self.token).json["name"], "Mine")
        self.assertEqual(self.operator.ask("DELETE", path, self.token).status, 404)
        self.assertEqual((self.by_page("GET", BASE).json["items"], self.events()[-1]), ([], "operator.passkey_removed"))

    def test_sides(self) -> None:
        """A page cannot let one count, nor change the rule, nor forget any; a terminal cannot make one."""
        for method, path, body in (
            ("POST", f"{BASE}/confirm", {"words": "any words"}),
            ("POST", f"{BASE}/rule", RULE),
            ("DELETE", BASE, {}),
        ):
            self.assertEqual(self.by_page(method, path, body).status, 403, path)
        self.assertEqual(self.operator.ask("POST", f"{BASE}/offer", self.token).status, 403)
        proposed = {"name": "x", "credential": {}}
        self.assertEqual(self.operator.ask("POST", BASE, self.token, proposed).status, 403)

    def test_wrong(self) -> None:
        """What is no passkey, wrong words and a looser rule are refused; so is a login a quarter of an hour old."""
        self.by_page("POST", f"{BASE}/offer")
        self.assertEqual(self.by_page("POST", BASE, {"name": "x", "credential": {}}).status, 400)
        self.assertEqual(self.operator.ask("POST", f"{BASE}/confirm", self.token, {"words": "x"}).status, 409)
        self.assertEqual(self.operator.ask("POST", f"{BASE}/rule", self.token, RULE).status, 409)
        self.clock.advance(15 * 60)
        self.assertEqual(self.by_page("POST", f"{BASE}/offer").status, 200)
        self.clock.advance(1)
        self.assertEqual(self.by_page("POST", f"{BASE}/offer").status, 403)


class DecidingTests(PasskeyCase):
    """A decision that needs one: the runner here asks for it as the real one does."""

    def setUp(self) -> None:
        super().setUp()
        self.add()
        self.passkeys.require(PasskeyRule(everything=True))
        decide = self.runner.decide

        async def asking(run_id: str, decision: Decision) -> Approval:
            return await decide(run_id, self.approvers.admit("ship-update", run_id, decision, None))

        self.patch(type(self.runner), "decide", staticmethod(asking))
        asked = self.agents.ask("POST", "/v1/actions/ship-update/run", self.agent_token(), {"args": {"text": "x"}})
        self.run_id = asked.json["run_id"]
        self.path = f"/v1/action-approvals/{self.run_id}"
        self.decision = {"approved": True, "digest": self.by_page("GET", self.path).json["digest"], "reason": "fine"}

    def test_page(self) -> None:
        """The page is told that a passkey is needed, has one sign exactly this, and is let through once."""
        refused = self.by_page("POST", f"{self.path}/decide", self.decision)
        self.assertEqual((refused.status, refused.json["error"]["details"]), (403, {"passkey": True}))
        asked = self.by_page("POST", f"{self.path}/passkey", self.decision).json
        passkey = {"nonce": asked["nonce"], "credential": self.person.get(asked["options"])}
        other = {**self.decision, "reason": "other", "passkey": passkey}
        self.assertEqual(self.by_page("POST", f"{self.path}/decide", other).status, 403)
        asked = self.by_page("POST", f"{self.path}/passkey", self.decision).json
        passkey = {"nonce": asked["nonce"], "credential": self.person.get(asked["options"])}
        self.assertEqual(self.by_page("POST", f"{self.path}/decide", {**self.decision, "passkey": passkey}).status, 200)

    def test_terminal(self) -> None:
        """A terminal cannot, and is told where it can be done."""
        refused = self.operator.ask("POST", f"{self.path}/decide", self.token, self.decision)
        self.assertEqual(refused.status, 403)
        self.assertIn("aileron open", refused.json["error"]["message"])
