"""The operator's routes of the public name, on the operator site."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from aileron.base.signatures import write_base64url
from aileron.features.phone._certificates import make_certificate
from aileron.features.phone.doctor import find_problems
from aileron.features.phone.values import PhoneSettings, PhoneTls
from aileron.model.vault import VaultState

from .case import PUBLIC, PhoneCase
from .test_certificates import key_of, pem_of


class PhonesTests(PhoneCase):
    """Phones are paired, listed and removed from a terminal."""

    def setUp(self) -> None:
        """A terminal, and a certificate."""
        super().setUp()
        self.token = self.operator_token()
        self.assertEqual(self.operator.ask("POST", "/v1/phone/certificate", self.token, {}).status, 200)

    def pair(self) -> str:
        """Begin a pairing, and return the words that the phone shows."""
        begun = self.operator.ask("POST", "/v1/phone/pairing", self.token, {"name": "Mine"})
        self.assertEqual((begun.status, begun.json["url"]), (200, PUBLIC))
        opened = self.send("POST", "/pair/open", {"code": begun.json["code"]}).json
        credential = self.person.create(opened["options"])
        words: str = self.send("POST", "/pair/passkey", {"page": opened["page"], "credential": credential}).json[
            "words"
        ]
        self.page = opened["page"]
        return words

    def test_paired(self) -> None:
        """The words in the terminal pair the phone, which can then sign in; the record has its key."""
        words = self.pair()
        state = self.operator.ask("GET", "/v1/phone/pairing", self.token).json
        self.assertEqual(state, {"state": "opened", "words": True})
        paired = self.operator.ask("POST", "/v1/phone/pairing/confirm", self.token, {"words": words})
        self.assertEqual((paired.status, paired.json["name"], paired.json["synced"]), (200, "Mine", True))
        self.assertEqual(self.send("POST", "/pair/state", {"page": self.page}).json, {"state": "confirmed"})
        self.sign_in()
        self.assertIn("operator.passkey_added", self.events())
        listed = self.operator.ask("GET", "/v1/phone", self.token).json
        self.assertEqual([each["name"] for each in listed["items"]], ["Mine"])
        again = self.operator.ask("POST", "/v1/phone/pairing", self.token, {"name": "Mine"})
        self.assertEqual(again.status, 403)

    def test_wrong_words(self) -> None:
        """Wrong words pair nobody, and are on record."""
        self.pair()
        refused = self.operator.ask("POST", "/v1/phone/pairing/confirm", self.token, {"words": "wrong words"})
        self.assertEqual(refused.status, 403)
        self.assertIn("phone.pairing_refused", self.events())
        self.assertEqual(self.operator.ask("GET", "/v1/phone", self.token).json["items"], [])
        self.assertEqual(self.operator.ask("GET", "/v1/phone/pairing", self.token).json["state"], "wrong_words")

    def test_removed(self) -> None:
        """A removed phone is logged out at once; another stays."""
        self.add_phone()
        page, phone_id = self.sign_in(), write_base64url(self.person.id)
        gone = self.operator.ask("DELETE", f"/v1/phone/{phone_id}", self.token)
        self.assertEqual(gone.status, 200)
        self.assertEqual([each for each in self.operators.list() if each.browser], [])
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)
        self.assertEqual(self.operator.ask("DELETE", f"/v1/phone/{phone_id}", self.token).status, 404)
        self.assertIn("operator.passkey_removed", self.events())

    def test_in_terminals_only(self) -> None:
        """No page pairs or removes a phone, or sets the certificate."""
        page, _session = self.operators.open_browser()
        for method, path, body in (
            ("POST", "/v1/phone/pairing", {"name": "x"}),
            ("POST", "/v1/phone/pairing/confirm", {"words": "x"}),
            ("POST", "/v1/phone/certificate", {}),
            ("DELETE", "/v1/phone/x", {}),
        ):
            self.assertEqual(self.operator.ask(method, path, body=body, browser=page).status, 403, path)

    def test_no_pairing(self) -> None:
        """Without a pairing there is no state."""
        self.assertEqual(self.operator.ask("GET", "/v1/phone/pairing", self.token).status, 404)


class CertificateTests(PhoneCase):
    """The certificate by the routes."""

    def test_made(self) -> None:
        """It is made once; what is shown is the authority, without a key. Before, nobody is paired."""
        token = self.operator_token()
        self.assertEqual(self.operator.ask("GET", "/v1/phone/certificate", token).status, 404)
        self.assertEqual(self.operator.ask("POST", "/v1/phone/pairing", token, {"name": "x"}).status, 403)
        self.assertFalse(self.listener.is_open)
        made = self.operator.ask("POST", "/v1/phone/certificate", token, {})
        self.assertTrue(self.listener.is_open)
        self.assertNotIn("PRIVATE", made.text)
        self.assertEqual(made.json["pem"].count("BEGIN CERTIFICATE"), 1)
        again = self.operator.ask("POST", "/v1/phone/certificate", token, {})
        self.assertEqual(again.json["fingerprint"], made.json["fingerprint"])
        self.assertEqual(self.operator.ask("GET", "/v1/phone/certificate", token).json, made.json)

    def test_given(self) -> None:
        """One that is brought takes its place; a wrong one changes nothing."""
        token, given = self.operator_token(), make_certificate("phone.example.org", self.deps.now())
        body = {"certificate": pem_of(*given.chain), "key": key_of(given)}
        put = self.operator.ask("POST", "/v1/phone/certificate", token, body)
        self.assertEqual((put.status, put.json["own"]), (200, False))
        other = make_certificate("other.example", self.deps.now())
        wrong = {"certificate": pem_of(*other.chain), "key": key_of(other)}
        self.assertEqual(self.operator.ask("POST", "/v1/phone/certificate", token, wrong).status, 400)
        self.assertEqual(self.operator.ask("GET", "/v1/phone/certificate", token).json, put.json)


class StatusTests(PhoneCase):
    """What the doctor is told."""

    def told(self) -> Any:
        """The public name in the status."""
        return self.running.status()["phone"]

    def found(self) -> list[str]:
        """The findings of the doctor."""
        return [each.says for each in find_problems(self.running.status())]

    def test_none_yet(self) -> None:
        """Without a certificate nobody is served, and that is said."""
        self.successResultOf(Deferred.fromCoroutine(self.listener.load()))
        self.assertIn("aileron phone certificate", self.told()["problem"])
        self.assertEqual(len(self.found()), 1)

    def test_ready(self) -> None:
        """With one there is nothing to say."""
        self.operator.ask("POST", "/v1/phone/certificate", self.operator_token(), {})
        self.assertIsNone(self.told()["problem"])

    def test_locked(self) -> None:
        """A locked vault serves nobody."""
        self.operator.ask("POST", "/v1/phone/certificate", self.operator_token(), {})
        self.vault.lock()
        self.assertEqual(self.vault.state(), VaultState.LOCKED)
        self.assertFalse(self.listener.is_open)
        self.assertIn("locked", str(self.told()["problem"]))

    def test_without_feature(self) -> None:
        """A daemon without a public name has no problem."""
        self.assertEqual(list(find_problems({})), [])


class PlainTests(PhoneCase):
    """Plain HTTP to a proxy."""

    settings = PhoneSettings(PUBLIC, tls=PhoneTls.NONE)

    def test_told(self) -> None:
        """It serves without a certificate, and the doctor says what that lets a program do."""
        self.assertTrue(self.listener.is_open)
        (found,) = find_problems(self.running.status())
        self.assertIn("passkey", repr(found))
