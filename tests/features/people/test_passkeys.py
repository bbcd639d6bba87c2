"""The passkeys of accounts: added by their person alone, and good for signing in to that account alone."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from treq.testing import StubTreq
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.base.signatures import write_base64url
from aileron.features.people._accounts import Accounts
from aileron.features.people._attempts import FREE
from aileron.features.people._passkeys import (
    ADD_SECONDS,
    ANSWER_SECONDS,
    CONFIRM_TAG,
    MOST_PASSKEYS,
    SIGN_IN_TAG,
    AccountPasskeys,
    SignedInPerson,
    make_challenge,
)
from aileron.features.people.running import NONCE_TAG, sign_nonce
from aileron.features.phone.values import PhoneSettings, PhoneTls
from aileron.model.errors import Conflict, Unauthorized
from aileron.model.people import AccountPasskey, PasskeyUse, Role
from aileron.model.queries import AuditQuery
from aileron.testing import MemoryOperators, SigningBrowser, SoftwareAuthenticator
from aileron.vault import Nonces, RelyingParty
from tests.features.phone.case import COOKIE, PUBLIC, SITE

from .case import OPERATOR, PASSPHRASE, PeopleCase

PATH = "/v1/account/passkeys"


class PasskeyCase(PeopleCase):
    """A person with an account, who is signed in and has an authenticator."""

    def setUp(self) -> None:
        """Sign the person in."""
        super().setUp()
        self.page = self.joined()
        self.mine = SoftwareAuthenticator(PUBLIC, SITE, id=b"mine-1", synced=True)

    def offered(self, page: SigningBrowser | None = None, body: Any = None) -> Any:
        """What the daemon answers to a confirmation, by default with the passphrase."""
        given = {"passphrase": PASSPHRASE} if body is None else body
        return self.send("POST", f"{PATH}/offer", given, page or self.page)

    def create(self, offer: Mapping[str, Any], mine: SoftwareAuthenticator | None = None) -> Any:
        """What a page sends to add the passkey that was offered."""
        credential = (mine or self.mine).create(offer["options"])
        return {"nonce": offer["nonce"], "name": "Laptop", "credential": credential}

    def add_passkey(self, mine: SoftwareAuthenticator | None = None, page: SigningBrowser | None = None) -> None:
        """Add a passkey."""
        offer = self.offered(page)
        self.assertEqual(offer.status, 200, offer.text)
        heard = self.send("POST", PATH, self.create(offer.json, mine), page or self.page)
        self.assertEqual(heard.status, 201, heard.text)

    def nonce(self) -> str:
        """A new challenge for signing in."""
        heard = self.send("POST", "/signin/account/nonce", {})
        self.assertEqual(heard.json["site"], SITE)
        return str(heard.json["nonce"])

    def credential(
        self, nonce: str, page: SigningBrowser, mine: SoftwareAuthenticator | None = None, user: str | None = None
    ) -> dict[str, Any]:
        """What the authenticator answers to sign a page in."""
        challenge = make_challenge(SIGN_IN_TAG, nonce, page.public_key)
        found: dict[str, Any] = (mine or self.mine).get({"challenge": write_base64url(challenge)})
        handle = self.account().id if user is None else user
        return {**found, "response": {**found["response"], "userHandle": write_base64url(handle.encode())}}

    def sign_in_with(self, **changes: Any) -> tuple[SigningBrowser, Any]:
        """Sign a new page in by the passkey, changed so, and return the page and the answer."""
        page = SigningBrowser.generate("", self.clock.seconds)
        nonce = changes.pop("nonce", None) or self.nonce()
        user = changes.pop("user", None)
        mine = evolve(self.mine, **changes) if changes else self.mine
        body = {"nonce": nonce, "credential": self.credential(nonce, page, mine, user)}
        return self.answer(page, body)

    def answer(self, page: SigningBrowser, body: Mapping[str, Any]) -> tuple[SigningBrowser, Any]:
        """Send an answer for a page of another browser, and return the page and the daemon's answer."""
        before, self.treq = self.treq, StubTreq(self.site.resource)
        heard = self.send("POST", "/signin/account/passkey", {**body, "public_key": page.public_key})
        self.treq = before
        cookie = heard.headers.get("set-cookie", "").partition(";")[0].partition("=")[2]
        return evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=cookie), heard

    def refused(self, heard: Any) -> None:
        """Check that a sign-in was refused, and that this is on record."""
        self.assertEqual(heard.status, 401, heard.text)
        self.assertIn("not accepted", heard.text)
        self.assertNotIn("set-cookie", heard.headers)
        self.assertIn("operator.login_refused", self.events())


class SignInTests(PasskeyCase):
    """A passkey signs its account in, without a name."""

    def setUp(self) -> None:
        """Add a passkey."""
        super().setUp()
        self.add_passkey()

    def test_let_in(self) -> None:
        """The page is signed in, and the record says by which passkey."""
        page, heard = self.sign_in_with()
        self.assertEqual(heard.status, 200, heard.text)
        self.assertTrue(heard.headers["set-cookie"].startswith(f"{COOKIE}="))
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 200)
        [record, *_] = self.now(self.store.audit.list(AuditQuery(types=("operator.login",)))).items
        self.assertEqual(record.event.actor.person, "alice")
        told = record.event.payload
        self.assertEqual((told["by"], told["passkey_name"]), ("passkey", "Laptop"))
        self.assertIn("public_key", told["key"])

    def test_last_used(self) -> None:
        """The list says when a passkey was used."""
        self.assertIsNone(self.send("GET", PATH, browser=self.page).json["items"][0]["used_at"])
        self.sign_in_with()
        [item] = self.send("GET", PATH, browser=self.page).json["items"]
        self.assertIsNotNone(item["used_at"])
        self.assertEqual((item["name"], item["synced"], item["usable"]), ("Laptop", True, True))

    def test_elsewhere(self) -> None:
        """A page of another origin, and one that believes to be at another site, let nobody in."""
        self.refused(self.sign_in_with(origin="https://evil.example.org")[1])
        self.refused(self.sign_in_with(origin=f"{PUBLIC}:8443")[1])
        self.refused(self.sign_in_with(site="example.org")[1])
        self.refused(self.sign_in_with(more={"crossOrigin": True})[1])

    def test_unverified(self) -> None:
        """An authenticator that did not verify the person lets nobody in."""
        self.refused(self.sign_in_with(verifies=False)[1])

    def test_late(self) -> None:
        """A challenge can be answered for one minute, and has to be ours."""
        nonce = self.nonce()
        self.clock.advance(ANSWER_SECONDS)
        self.refused(self.sign_in_with(nonce=nonce)[1])
        self.refused(self.sign_in_with(nonce="A" * len(nonce))[1])

    def test_replayed(self) -> None:
        """An answer counts once, also if the authenticator counts nothing."""
        self.mine.count = -1  # the next use has the counter 0
        page, nonce = SigningBrowser.generate("", self.clock.seconds), self.nonce()
        body = {"nonce": nonce, "credential": self.credential(nonce, page)}
        self.assertEqual(self.answer(page, body)[1].status, 200)
        self.refused(self.answer(page, body)[1])

    def test_replayed_after_another(self) -> None:
        """Nor does it count again once a daemon whose clock is an hour ahead has accepted another answer."""
        self.mine.count = -1
        page, nonce = SigningBrowser.generate("", self.clock.seconds), self.nonce()
        body = {"nonce": nonce, "credential": self.credential(nonce, page)}
        self.assertEqual(self.answer(page, body)[1].status, 200)
        account, at = self.account(), utc(self.clock.seconds() + 3600)
        use = PasskeyUse(account.passkeys[0].id, 0, at)
        self.assertTrue(self.now(self.store.people.use_passkey(account, use, "c" * 64, at)))
        self.refused(self.answer(page, body)[1])

    def test_another_page(self) -> None:
        """An answer lets in the page whose key was signed, and no other."""
        page, nonce = SigningBrowser.generate("", self.clock.seconds), self.nonce()
        body = {"nonce": nonce, "credential": self.credential(nonce, page)}
        self.refused(self.answer(SigningBrowser.generate("", self.clock.seconds), body)[1])

    def test_counter(self) -> None:
        """A counter that has not grown belongs to a copy of the key."""
        self.assertEqual(self.sign_in_with(count=7)[1].status, 200)
        self.refused(self.sign_in_with(count=7)[1])
        self.refused(self.sign_in_with(count=3)[1])
        self.assertEqual(self.sign_in_with(count=8)[1].status, 200)

    def test_synced_later(self) -> None:
        """A passkey that may be copied now, and could not before, is refused."""
        self.refused(self.sign_in_with(synced=False)[1])

    def test_handle_of_another(self) -> None:
        """A passkey signs in to no other account than its own, and to none that does not exist."""
        self.now(self.accounts.add("bob", Role.ADMINISTRATOR, OPERATOR))
        for user in (self.account("bob").id, "per_unknown", "", "operator"):
            self.refused(self.sign_in_with(user=user)[1])

    def test_another_key(self) -> None:
        """Another authenticator that claims the passkey's ID is refused, as is another ID."""
        self.refused(self.answer_of(SoftwareAuthenticator(PUBLIC, SITE, id=b"mine-1", synced=True)))
        self.refused(self.answer_of(SoftwareAuthenticator(PUBLIC, SITE, id=b"other", synced=True)))

    def answer_of(self, mine: SoftwareAuthenticator) -> Any:
        """What the daemon answers to another authenticator."""
        page, nonce = SigningBrowser.generate("", self.clock.seconds), self.nonce()
        return self.answer(page, {"nonce": nonce, "credential": self.credential(nonce, page, mine)})[1]

    def test_of_operator(self) -> None:
        """The operator's passkey opens no account, and an account's passkey is no phone of the operator."""
        self.add_phone()
        self.refused(self.answer_of(self.person))
        page, nonce = SigningBrowser.generate("", self.clock.seconds), self.send("POST", "/signin/nonce", {})
        body = {
            "nonce": nonce.json["nonce"],
            "public_key": page.public_key,
            "credential": self.answer_to(nonce.json["nonce"], page, self.mine),
        }
        self.assertEqual(self.send("POST", "/signin", body).status, 404)

    def test_removed(self) -> None:
        """A removed account, and a removed passkey, let nobody in."""
        account = self.account()
        passkey = account.passkeys[0].id
        self.assertEqual(self.send("DELETE", f"{PATH}/{passkey}", {}, self.page).status, 200)
        self.refused(self.sign_in_with()[1])
        self.add_passkey()
        self.now(self.accounts.remove("alice", OPERATOR))
        self.refused(self.sign_in_with(user=account.id)[1])

    def test_altered(self) -> None:
        """A passkey that a program writes into the row takes the account its rights."""
        account = self.account()
        forged = SoftwareAuthenticator(PUBLIC, SITE, id=b"forged", synced=True)
        key = evolve(account.passkeys[0], id=write_base64url(b"forged"), name="Forged")
        self.assertTrue(self.now(self.store.people.change(evolve(account, passkeys=(key,)), account.revision, ())))
        self.refused(self.answer_of(forged))
        self.assertEqual(self.people.describe(self.account()), "altered")
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=self.page).status, 401)

    def test_malformed(self) -> None:
        """Bodies of another form are refused."""
        nonce, page = self.nonce(), SigningBrowser.generate("", self.clock.seconds)
        bodies: tuple[Any, ...] = ([], {}, {"nonce": 1, "public_key": "x", "credential": {}}, {"nonce": nonce})
        for body in bodies:
            self.assertEqual(self.send("POST", "/signin/account/passkey", body).status, 400, body)
        for response in ({}, {"userHandle": 1}, {"userHandle": "!"}, {"userHandle": "_____w"}):
            self.refused(self.answer(page, {"nonce": nonce, "credential": {"id": "x", "response": response}})[1])
        self.assertEqual(self.send("POST", "/signin/account/nonce", {"x": 1}).status, 400)


class LimitTests(PasskeyCase):
    """Somebody tries out answers."""

    def test_one_account(self) -> None:
        """After some refused answers for an account each next one waits, and passphrases are not concerned."""
        self.add_passkey()
        statuses = []
        for _ in range(FREE + 1):
            self.clock.advance(0.2)
            statuses.append(self.sign_in_with(verifies=False)[1].status)
        self.assertEqual(statuses, [401] * FREE + [429])
        body = {"name": "alice", "passphrase": PASSPHRASE}
        self.assertEqual(self.enter("/signin/account", body)[1].status, 200)


class AddTests(PasskeyCase):
    """A person adds passkeys to their own account."""

    def test_added(self) -> None:
        """The passkey is on record, the logins stay, and the person is asked to be verified."""
        offer = self.offered().json
        chosen = offer["options"]["authenticatorSelection"]
        self.assertEqual((chosen["userVerification"], chosen["residentKey"]), ("required", "required"))
        self.assertEqual((offer["options"]["rp"]["id"], offer["options"]["user"]["name"]), (SITE, "alice"))
        self.assertEqual(self.send("POST", PATH, self.create(offer), self.page).status, 201)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=self.page).status, 200)
        [record] = self.now(self.store.audit.list(AuditQuery(types=("people.passkey_added",)))).items
        self.assertEqual((record.event.actor.person, record.event.payload["passkey_name"]), ("alice", "Laptop"))
        self.assertEqual(self.people.describe(self.account()), "active")
        again = self.offered().json["options"]
        self.assertEqual([each["id"] for each in again["excludeCredentials"]], [self.account().passkeys[0].id])

    def test_unconfirmed(self) -> None:
        """Nothing is added without an offer, with that of another login, with a used one, or too late."""
        offer = self.offered().json
        _, other = self.enter("/signin/account", {"name": "alice", "passphrase": PASSPHRASE})
        self.assertEqual(other.status, 200)
        page, _ = self.enter("/signin/account", {"name": "alice", "passphrase": PASSPHRASE})
        body = self.create(offer)
        self.assertEqual(self.send("POST", PATH, {**body, "nonce": self.nonce()}, self.page).status, 403)
        self.assertEqual(self.send("POST", PATH, body, page).status, 403)
        self.assertEqual(self.send("POST", PATH, body, self.page).status, 201)
        self.assertEqual(self.send("POST", PATH, body, self.page).status, 403)
        late = self.create(self.offered().json, SoftwareAuthenticator(PUBLIC, SITE, id=b"late"))
        self.clock.advance(ADD_SECONDS)
        self.assertEqual(self.send("POST", PATH, late, self.page).status, 403)
        self.assertEqual(len(self.account().passkeys), 1)

    def test_long(self) -> None:
        """A passkey whose ID is longer than WebAuthn permits is refused."""
        for length, status in ((1024, 409), (1023, 201)):
            body = self.create(self.offered().json, evolve(self.mine, id=b"x" * length))
            self.assertEqual(self.send("POST", PATH, body, self.page).status, status, length)

    def test_unsound(self) -> None:
        """A passkey of another origin or site, or without a verified person, is refused."""
        for changes in ({"origin": "https://evil.example"}, {"site": "evil.example"}, {"verifies": False}):
            body = self.create(self.offered().json, evolve(self.mine, **changes))
            self.assertEqual(self.send("POST", PATH, body, self.page).status, 409, changes)
        offer = self.offered().json
        for name in (" ", "", "x" * 65):
            self.assertEqual(self.send("POST", PATH, {**self.create(offer), "name": name}, self.page).status, 400)
        self.assertEqual(self.account().passkeys, ())

    def test_many(self) -> None:
        """The number is bounded."""
        for at in range(MOST_PASSKEYS):
            self.add_passkey(SoftwareAuthenticator(PUBLIC, SITE, id=b"mine-%d" % at))
        self.assertEqual(self.offered().status, 409)

    def test_twice(self) -> None:
        """One passkey is added once."""
        self.add_passkey()
        self.assertEqual(self.send("POST", PATH, self.create(self.offered().json), self.page).status, 409)

    def test_provider(self) -> None:
        """A person who signs in with a provider adds none."""
        login = self.now(self.accounts.sign_in("oidc_1", "dave", Role.APPROVER, {}))
        work = self.account_passkeys.offer(SignedInPerson(login, "dave.1"))
        self.failureResultOf(Deferred.fromCoroutine(work), Conflict)

    def test_changed_meanwhile(self) -> None:
        """A change that was made from an earlier state is refused."""
        before = self.account()
        self.add_passkey()
        work = self.accounts.change_passkeys("people.passkey_removed", before, (), OPERATOR, {})
        self.failureResultOf(Deferred.fromCoroutine(work), Conflict)
        self.assertEqual(len(self.account().passkeys), 1)


class ConfirmTests(PasskeyCase):
    """A passkey is added only after the person has confirmed."""

    def confirmation(self, mine: SoftwareAuthenticator | None = None, page: SigningBrowser | None = None) -> Any:
        """What a page sends to confirm by a passkey."""
        asked = self.send("POST", f"{PATH}/ask", {}, page or self.page)
        self.assertEqual(asked.status, 200, asked.text)
        return {"nonce": asked.json["nonce"], "credential": (mine or self.mine).get(asked.json["options"])}

    def test_wrong(self) -> None:
        """A wrong passphrase offers nothing, and is on record. So do a missing one, and both at once."""
        heard = self.offered(body={"passphrase": "wrong"})
        self.assertEqual(heard.status, 403)
        self.assertIn("operator.login_refused", self.events())
        for body in ({}, {"passphrase": PASSPHRASE, "nonce": "x", "credential": {}}, {"nonce": "x"}):
            self.assertEqual(self.offered(body=body).status, 400)

    def test_of_another(self) -> None:
        """The passphrase of somebody else confirms nothing."""
        self.joined("bob")
        body = {"code": self.add("carol"), "passphrase": "another " + PASSPHRASE}
        carol, _ = self.enter("/join", body)
        self.assertEqual(self.offered(carol).status, 403)

    def test_guessed(self) -> None:
        """Passphrases cannot be tried out with a stolen login."""
        for _ in range(FREE - 1):  # joining was none for this name
            self.offered(body={"passphrase": "wrong"})
        self.offered(body={"passphrase": "wrong"})
        self.assertEqual(self.offered().status, 429)

    def test_by_passkey(self) -> None:
        """Another passkey confirms as well, once."""
        self.add_passkey()
        self.mine.count = 4
        confirmation = self.confirmation()
        offer = self.offered(body=confirmation)
        self.assertEqual(offer.status, 200, offer.text)
        self.assertEqual(self.offered(body=confirmation).status, 403)
        second = SoftwareAuthenticator(PUBLIC, SITE, id=b"mine-2")
        self.assertEqual(self.send("POST", PATH, self.create(offer.json, second), self.page).status, 201)

    def test_late(self) -> None:
        """A confirmation is for one minute, and for one login."""
        self.add_passkey()
        late = self.confirmation()
        self.clock.advance(ANSWER_SECONDS)
        self.assertEqual(self.offered(body=late).status, 403)
        page, _ = self.enter("/signin/account", {"name": "alice", "passphrase": PASSPHRASE})
        self.assertEqual(self.offered(page, self.confirmation()).status, 403)

    def test_sign_in_is_none(self) -> None:
        """What a passkey signed to sign in confirms nothing."""
        self.add_passkey()
        nonce, page = self.nonce(), SigningBrowser.generate("", self.clock.seconds)
        body = {"nonce": nonce, "credential": self.credential(nonce, page)}
        self.assertEqual(self.offered(body=body).status, 403)
        self.assertNotEqual(make_challenge(CONFIRM_TAG, nonce), make_challenge(SIGN_IN_TAG, nonce))

    def test_none_yet(self) -> None:
        """Somebody without a passkey is told to use the passphrase."""
        heard = self.send("POST", f"{PATH}/ask", {}, self.page)
        self.assertEqual(heard.status, 409)
        self.assertIn("passphrase", heard.text)


class RouteTests(PasskeyCase):
    """The routes are for people with an account."""

    def test_operator(self) -> None:
        """The operator has no account, at the desk or on a phone."""
        token = self.operator_token()
        self.assertEqual(self.operator.ask("GET", PATH, token).status, 403)
        self.add_phone()
        page = self.sign_in()
        for method, path in (("GET", PATH), ("POST", f"{PATH}/ask")):
            self.assertEqual(self.send(method, path, {} if method == "POST" else None, page).status, 403)

    def test_viewer(self) -> None:
        """A viewer has passkeys as well."""
        page = self.joined("vera", Role.VIEWER)
        self.add_passkey(page=page)
        self.assertEqual(len(self.account("vera").passkeys), 1)
        [item] = self.send("GET", PATH, browser=page).json["items"]
        self.assertEqual(self.send("DELETE", f"{PATH}/{item['id']}", {}, page).status, 200)
        self.assertEqual(self.events()[-1], "people.passkey_removed")

    def test_of_another(self) -> None:
        """Nobody, an administrator neither, sees or removes another person's passkeys here."""
        self.add_passkey()
        root = self.joined("root", Role.ADMINISTRATOR)
        self.assertEqual(self.send("GET", PATH, browser=root).json["items"], [])
        path = f"{PATH}/{self.account().passkeys[0].id}"
        self.assertEqual(self.send("DELETE", path, {}, root).status, 404)
        self.assertEqual(len(self.account().passkeys), 1)

    def test_lapsed(self) -> None:
        """A page that was left alone adds and removes none."""
        self.add_passkey()
        path = f"{PATH}/{self.account().passkeys[0].id}"
        vera = self.joined("vera", Role.VIEWER)
        self.clock.advance(31 * 60)
        for page in (self.page, vera):
            self.assertEqual(self.send("DELETE", path, {}, page).json["error"]["class"], "login_lapsed")
            self.assertEqual(self.offered(page).json["error"]["class"], "login_lapsed")
        self.assertEqual(len(self.account().passkeys), 1)

    def test_counted(self) -> None:
        """The list of accounts says how many passkeys each has, and nothing more of them."""
        self.add_passkey()
        heard = self.operator.ask("GET", "/v1/people", self.operator_token())
        self.assertEqual(heard.json["items"][0]["passkeys"], 1)
        self.assertNotIn(self.account().passkeys[0].public_key, heard.text)

    def test_page(self) -> None:
        """A person's page lists the passkeys, and is for accounts alone."""
        path = "/fragments/settings/account"
        self.assertIn("No passkeys yet", self.send("GET", path, browser=self.page).text)
        self.add_passkey()
        drawn = self.send("GET", path, browser=self.page).text
        self.assertIn("Laptop", drawn)
        self.assertIn("Confirm with a passkey", drawn)
        self.assertIn('href="/settings/account"', self.send("GET", "/fragments/approvals", browser=self.page).text)
        self.add_phone()
        phone = self.sign_in()
        self.assertIn("You have none.", self.send("GET", path, browser=phone).text)
        self.assertNotIn("/settings/account", self.send("GET", "/fragments/approvals", browser=phone).text)

    def test_page_of_provider(self) -> None:
        """A person who signs in with a provider is told that their passkeys are there."""
        login = self.now(self.accounts.sign_in("oidc_1", "dave", Role.APPROVER, {}))
        page = SigningBrowser.generate("", self.clock.seconds)
        cookie, _ = self.operators.admit_account(page.public_key, login)
        page = evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=cookie)
        drawn = self.send("GET", "/fragments/settings/account", browser=page).text
        self.assertIn("with a provider", drawn)
        self.assertNotIn("add-own-passkey", drawn)


class ChangeTests(PasskeyCase):
    """Changes of an account that has a passkey."""

    def setUp(self) -> None:
        """Add a passkey."""
        super().setUp()
        self.add_passkey()

    def test_role(self) -> None:
        """Another role or group ends the logins and keeps the passkeys."""
        before = self.account()
        self.now(self.accounts.change_role("alice", Role.ADMINISTRATOR, OPERATOR))
        self.assertIsNone(self.now(self.accounts.find_role(before.login)))
        self.now(self.accounts.change_groups("alice", ["finance"], OPERATOR))
        self.assertEqual(self.account().passkeys, before.passkeys)
        self.assertEqual(self.sign_in_with()[1].status, 200)
        again = self.account().login
        self.now(self.accounts.change_role("alice", Role.ADMINISTRATOR, OPERATOR))
        self.assertIsNone(self.now(self.accounts.find_role(again)))

    def test_invited(self) -> None:
        """A new link ends the passphrase, the passkeys and the logins."""
        login = self.account().login
        _, code = self.now(self.accounts.invite("alice", OPERATOR))
        self.assertIsNone(self.now(self.accounts.find_role(login)))
        self.assertEqual(self.account().passkeys, ())
        self.refused(self.sign_in_with()[1])
        self.now(self.accounts.join(code, PASSPHRASE))
        self.refused(self.sign_in_with()[1])

    def test_put_back(self) -> None:
        """A row from before a passkey was removed has no rights."""
        before = self.account()
        self.send("DELETE", f"{PATH}/{before.passkeys[0].id}", {}, self.page)
        self.assertTrue(self.now(self.store.people.change(before, self.account().revision, ())))
        self.refused(self.sign_in_with()[1])
        self.assertIsNone(self.now(self.accounts.find_role(before.login)))

    def test_digest(self) -> None:
        """The digest covers each part of a passkey, and that of the logins none."""
        account = self.account()
        [key] = account.passkeys
        changes: tuple[AccountPasskey, ...] = (
            evolve(key, id="x"),
            evolve(key, name="x"),
            evolve(key, public_key="x"),
            evolve(key, count=key.count + 1),
            evolve(key, site="x"),
            evolve(key, synced=not key.synced),
        )
        for each in changes:
            changed = evolve(account, passkeys=(each,))
            self.assertNotEqual(changed.digest, account.digest)
            self.assertEqual(changed.login, account.login)
        self.assertNotEqual(evolve(account, revision=account.revision + 1).digest, account.digest)

    def test_earlier_versions(self) -> None:
        """An account whose passkeys were never changed is stored in the vault as earlier versions did."""
        self.now(self.accounts.change_role("alice", Role.VIEWER, OPERATOR))
        self.assertNotEqual(self.account().digest, self.account().login_digest)
        self.now(self.accounts.invite("alice", OPERATOR))
        self.assertEqual(self.account().digest, self.account().login_digest)
        self.assertEqual(self.book.people()[self.account().id], self.account().login_digest)


class PlainTests(PasskeyCase):
    """Something else ends TLS, so the daemon is reached by plain HTTP."""

    settings = PhoneSettings(PUBLIC, tls=PhoneTls.NONE)

    def joined(self, name: str = "alice", role: Role = Role.APPROVER) -> SigningBrowser:
        """A page of an account that joined before the setting was changed."""
        login = self.now(self.accounts.join(self.add(name, role), PASSPHRASE))
        page = SigningBrowser.generate("", self.clock.seconds)
        cookie, _ = self.operators.admit_account(page.public_key, login)
        return evolve(page.with_instance(MemoryOperators.INSTANCE), cookie=cookie)

    def test_not_added(self) -> None:
        """No passkey is added, and none lets anybody in."""
        self.assertEqual(self.offered().status, 409)
        self.assertEqual(self.offered(body={"nonce": "x", "credential": {}}).status, 409)
        self.assertEqual(self.send("POST", "/signin/account/nonce", {}).status, 409)
        body = {"nonce": "x", "public_key": "y", "credential": {}}
        self.assertEqual(self.send("POST", "/signin/account/passkey", body).status, 409)


class DaemonsTests(PasskeyCase):
    """Another daemon has the same database and vault."""

    def setUp(self) -> None:
        """Add a passkey, and start the other daemon."""
        super().setUp()
        self.add_passkey()
        self.other = self.daemon(b"vault")

    def daemon(self, key: bytes) -> AccountPasskeys:
        """A daemon whose vault has this key."""
        accounts = Accounts(self.store.people, self.book, self.clock, self.fresh_id, self.randomness, self.derive)
        nonces = Nonces(self.clock, authenticate=lambda text: hmac.digest(key, text, "sha256"))
        return AccountPasskeys(accounts, self.store.people, nonces, RelyingParty(SITE, (PUBLIC,)), self.clock)

    def check(self, daemon: AccountPasskeys, nonce: str, page: SigningBrowser, credential: Any) -> Any:
        """Have a daemon check an answer."""
        return Deferred.fromCoroutine(daemon.check_sign_in(nonce, page.public_key, credential))

    def test_answered(self) -> None:
        """A challenge of one daemon is answered at the other one."""
        nonce, page = self.nonce(), SigningBrowser.generate("", self.clock.seconds)
        login, passkey = self.successResultOf(self.check(self.other, nonce, page, self.credential(nonce, page)))
        self.assertEqual((login, passkey.name), (self.account().login, "Laptop"))

    def test_replayed(self) -> None:
        """An answer that one daemon has accepted is refused by the other one."""
        self.mine.count = -1
        nonce, page = self.nonce(), SigningBrowser.generate("", self.clock.seconds)
        credential = self.credential(nonce, page)
        self.successResultOf(self.check(self.other, nonce, page, credential))
        self.refused(self.answer(page, {"nonce": nonce, "credential": credential})[1])

    def test_another_vault(self) -> None:
        """A challenge of a daemon with another vault is none here."""
        stranger = self.daemon(b"another")
        nonce, page = str(stranger.offer_sign_in()["nonce"]), SigningBrowser.generate("", self.clock.seconds)
        self.failureResultOf(self.check(self.other, nonce, page, self.credential(nonce, page)), Unauthorized)

    def test_key(self) -> None:
        """The key of nonces is that of the vault, and what is signed is no decision."""
        signed: list[Mapping[str, Any]] = []

        class Control:
            """A vault that signs."""

            def sign(self, statement: Mapping[str, Any]) -> bytes:
                signed.append(statement)
                return repr(sorted(statement.items())).encode()

        control: Any = Control()
        self.assertEqual(sign_nonce(control, b"x"), sign_nonce(control, b"x"))
        self.assertNotEqual(sign_nonce(control, b"x"), sign_nonce(control, b"y"))
        self.assertEqual({each["tag"] for each in signed}, {NONCE_TAG})
