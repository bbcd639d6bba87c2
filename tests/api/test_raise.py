"""A page that only watches, and a passkey that lets it decide again, over HTTP."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.api.tokens import AccessLog
from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.testing import SigningBrowser

from .case import LOCAL_KEY, Heard
from .test_passkeys import PasskeyCase

PATH = "/v1/operator/raise"


class RaiseTests(PasskeyCase):
    """A login that lapsed, of a person with a passkey."""

    def setUp(self) -> None:
        super().setUp()
        self.add()
        self.clock.advance(30 * 60)

    def ask(self, browser: SigningBrowser | None = None) -> Any:
        """What the page hands to the passkey."""
        return self.by_page("POST", f"{PATH}/ask", {}, browser).json

    def touch(self, browser: SigningBrowser | None = None, **changes: Any) -> Heard:
        """Have the person's passkey, changed so, signed what a page asks."""
        told = self.ask(browser)
        credential = (evolve(self.person, **changes) if changes else self.person).get(told["options"])
        return self.by_page("POST", PATH, {"nonce": told["nonce"], "credential": credential}, browser)

    def level(self, browser: SigningBrowser | None = None) -> str:
        """What the login may do."""
        return self.by_page("GET", "/v1/runs", browser=browser).headers["x-aileron-level"]

    def test_whole(self) -> None:
        """It decides again, under the same name, and the passkey is on record."""
        heard = self.touch()
        self.assertEqual((heard.status, heard.json["id"], heard.json["decides"]), (200, self.session.id, True))
        self.assertTrue(heard.json["yours"])
        self.assertEqual((self.level(), self.by_page("POST", "/v1/resume").status), ("deciding", 200))
        query = AuditQuery(type="operator.login_raised")
        (record,) = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(query))).items
        event = record.event
        self.assertEqual((event.actor.id, event.payload["passkey"]), (self.session.id, self.passkeys.passkeys()[0].id))
        self.assertIn("browser", str(event.payload["key"]))

    def test_adds_no_passkey(self) -> None:
        """A touch is no proof of the passphrase: a passkey is added after a login only."""
        self.touch()
        self.assertEqual(self.by_page("POST", "/v1/operator/passkeys/offer").status, 403)

    def test_others(self) -> None:
        """Neither a login that decides, nor a terminal, nor a program with a key that reads is raised."""
        told = self.ask()
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        fresh, _session = self.operators.open_browser()
        for path, sent in ((f"{PATH}/ask", {}), (PATH, body)):
            self.assertEqual(self.by_page("POST", path, sent, fresh).status, 403, path)
            self.assertEqual(self.operator.ask("POST", path, self.operator_token(), sent).status, 403, path)
            self.assertEqual(self.operator.ask("POST", path, LOCAL_KEY, sent).status, 403, path)
            self.assertEqual(self.agents.ask("POST", path, self.operator_token(), sent).status, 404, path)
        self.assertEqual(self.level(), "reading")

    def test_relayed(self) -> None:
        """What the passkey signed for one page lets no other decide, and the other way round."""
        other, _session = self.operators.open_browser()
        self.clock.advance(30 * 60)
        told = self.ask(other)
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        refused = self.by_page("POST", PATH, body)
        self.assertEqual((refused.status, refused.json["error"]["details"]), (403, {"passkey": True}))
        self.assertEqual((self.level(), self.level(other)), ("reading", "reading"))
        self.assertIn("operator.login_refused", self.events())

    def test_unsigned(self) -> None:
        """The answer of a passkey opens nothing to who has the cookie without the page's key."""
        told = self.ask()
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        thief = SigningBrowser.generate(self.browser.cookie, self.clock.seconds).with_instance(self.browser.instance)
        self.assertEqual(self.by_page("POST", PATH, body, thief).status, 401)
        self.assertEqual(self.level(), "reading")

    def test_replayed(self) -> None:
        """A touch raises once: after the next lapse, what it signed is worth nothing, and neither is a guess."""
        told = self.ask()
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        self.assertEqual(self.by_page("POST", PATH, body).status, 200)
        self.clock.advance(30 * 60)
        self.assertEqual(self.by_page("POST", PATH, body).status, 403)
        self.assertEqual(self.by_page("POST", PATH, {"nonce": "", "credential": {}}).status, 403)
        self.assertEqual(self.level(), "reading")

    def test_locked(self) -> None:
        """After `vault lock` no touch raises anything."""
        told = self.ask()
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        self.by_page("POST", "/v1/vault/lock")
        for path, sent in ((f"{PATH}/ask", {}), (PATH, body)):
            self.assertEqual(self.by_page("POST", path, sent).kind, "vault_locked", path)
        self.assertEqual(self.level(), "reading")

    def test_revoked(self) -> None:
        """A page whose login was revoked is not known any more."""
        told = self.ask()
        body = {"nonce": told["nonce"], "credential": self.person.get(told["options"])}
        self.operators.log_out(self.session.id)
        for path, sent in ((f"{PATH}/ask", {}), (PATH, body)):
            self.assertEqual(self.by_page("POST", path, sent).kind, "unauthorized", path)

    def test_unrecorded(self) -> None:
        """If it cannot be recorded, it does not count."""

        async def fail(_log: AccessLog, kind: str, *_more: object) -> None:
            raise StoreUnavailable(kind)

        self.logged()
        self.patch(AccessLog, "record", fail)
        self.assertEqual(self.touch().status, 503)
        self.assertEqual(self.level(), "reading")
        self.flushLoggedErrors(StoreUnavailable)
