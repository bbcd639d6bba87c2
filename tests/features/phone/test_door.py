"""What a phone gets at the public name, and what nobody gets there."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.api._sites import operator_routes
from aileron.base.signatures import write_base64url
from aileron.client import item_of
from aileron.features import FeatureSet
from aileron.features.phone._entrance import CHANGES, ROUTES, SHOWN
from aileron.features.phone._signing_in import signin_challenge
from aileron.features.phone.values import PhoneSettings, PhoneTls
from aileron.model.audit import Actor
from aileron.model.authority import decision_item
from aileron.model.errors import Forbidden
from aileron.model.runs import Assertion, Call, Decision, RunState
from aileron.model.signing import write_statement
from aileron.testing import MemoryOperators, SigningBrowser, SoftwareAuthenticator
from tests.api.case import COOKIE as DESK_COOKIE
from tests.api.case import LAUNCH_KEY, LOCAL_KEY

from .case import COOKIE, PUBLIC, PhoneCase


class SignInTests(PhoneCase):
    """A passkey alone lets a page in."""

    def body(self, person: SoftwareAuthenticator | None = None, **changes: Any) -> dict[str, Any]:
        """What a page sends to sign in."""
        page = SigningBrowser.generate("", self.clock.seconds)
        nonce = self.send("POST", "/signin/nonce", {}).json["nonce"]
        credential = self.answer_to(nonce, page, person)
        return {"nonce": nonce, "public_key": page.public_key, "credential": credential, **changes}

    def test_let_in(self) -> None:
        """The cookie is the host's own, by HTTPS only, and out of reach of scripts; the record has the key."""
        self.add_phone()
        heard = self.send("POST", "/signin", self.body())
        self.assertEqual(heard.status, 200, heard.text)
        name, _, rest = heard.headers["set-cookie"].partition("=")
        self.assertEqual(name, COOKIE)
        self.assertNotIn("clear-site-data", heard.headers)
        self.assertEqual(rest.split("; ")[1:], ["Path=/", "HttpOnly", "SameSite=Strict", "Secure"])
        self.assertIn("operator.login", self.events())

    def test_no_list(self) -> None:
        """Those without a login are told no passkey's id."""
        self.add_phone()
        told = self.send("POST", "/signin/nonce", {}).json
        self.assertEqual(set(told), {"instance", "nonce", "site"})

    def test_replayed(self) -> None:
        """An answer counts once, also for another key."""
        self.add_phone()
        body = self.body()
        self.assertEqual(self.send("POST", "/signin", body).status, 200)
        self.assertEqual(self.send("POST", "/signin", body).status, 401)

    def test_replayed_without_counter(self) -> None:
        """An answer of a passkey that does not count, as those of phones, counts once as well."""

        class Uncounted(SoftwareAuthenticator):
            def get(self, options: Any) -> Any:
                self.count = -1
                return super().get(options)

        person = Uncounted(PUBLIC, "phone.example.org", id=b"phone-2")
        self.add_phone(person)
        body = self.body(person)
        self.assertEqual(self.send("POST", "/signin", body).status, 200)
        self.assertEqual(self.send("POST", "/signin", body).status, 401)

    def test_late(self) -> None:
        """A nonce is for one minute, and one of ours."""
        self.add_phone()
        body = self.body()
        self.clock.advance(61)
        self.assertEqual(self.send("POST", "/signin", body).status, 401)
        page = SigningBrowser.generate("", self.clock.seconds)
        made = write_base64url(bytes(40))
        forged = {"nonce": made, "public_key": page.public_key, "credential": self.answer_to(made, page)}
        self.assertEqual(self.send("POST", "/signin", forged).status, 401)

    def test_another_key(self) -> None:
        """The answer covers the page's key: nobody in between puts in a key of their own."""
        self.add_phone()
        other = SigningBrowser.generate("", self.clock.seconds).public_key
        self.assertEqual(self.send("POST", "/signin", self.body(public_key=other)).status, 401)

    def test_another_purpose(self) -> None:
        """A nonce for a decision signs nobody in."""
        self.add_phone()
        nonce, page = self.approvers.make_nonce(), SigningBrowser.generate("", self.clock.seconds)
        body = {"nonce": nonce, "public_key": page.public_key, "credential": self.answer_to(nonce, page)}
        self.assertEqual(self.send("POST", "/signin", body).status, 401)

    def test_elsewhere(self) -> None:
        """An answer made at a neighbouring name or port, or in a frame, or without the person, is refused."""
        self.add_phone()
        for changes in (
            {"origin": "https://evil.phone.example.org"},
            {"origin": "https://phone.example.org:8444"},
            {"origin": "http://phone.example.org"},
            {"site": "example.org"},
            {"verifies": False},
            {"more": {"crossOrigin": True}},
            {"more": {"topOrigin": "https://evil.example"}},
            {"synced": False},
        ):
            body = self.body(evolve(self.person, **changes))
            self.assertEqual(self.send("POST", "/signin", body).status, 401, changes)
        self.assertEqual(self.send("POST", "/signin", self.body()).status, 200)

    def test_unknown(self) -> None:
        """A passkey that is not registered is told so, so that the phone forgets it; one of the desk is none here."""
        self.assertEqual(self.send("POST", "/signin", self.body()).status, 404)
        desk = SoftwareAuthenticator(MemoryOperators.ADDRESS, id=b"desk")
        self.passkeys.confirm(self.passkeys.propose("Desk", desk.create(self.passkeys.offer())))
        self.assertEqual(self.send("POST", "/signin", self.body(desk)).status, 401)

    def test_again(self) -> None:
        """Signing in again in the same browser ends the login before."""
        self.add_phone()
        first = self.sign_in()
        second = self.sign_in(before=first)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=first).status, 401)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=second).status, 200)


class PlainTests(PhoneCase):
    """Where the daemon is reached by plain HTTP, another program may have served a page before."""

    settings = PhoneSettings(PUBLIC, tls=PhoneTls.NONE)

    def test_cleared(self) -> None:
        """Signing in empties the browser's cache."""
        self.add_phone()
        page = SigningBrowser.generate("", self.clock.seconds)
        nonce = self.send("POST", "/signin/nonce", {}).json["nonce"]
        body = {"nonce": nonce, "public_key": page.public_key, "credential": self.answer_to(nonce, page)}
        self.assertEqual(self.send("POST", "/signin", body).headers["clear-site-data"], '"cache"')


class StrangerTests(PhoneCase):
    """Those without a login."""

    def test_slowed(self) -> None:
        """They may ask so often, then wait; whoever signs in after a moment is let in."""
        self.add_phone()
        statuses = [self.send("POST", "/signin/nonce", {}).status for _ in range(60)]
        self.assertEqual((statuses[0], statuses[-1]), (200, 429))
        self.clock.advance(2)
        self.sign_in()

    def test_nothing_displaced(self) -> None:
        """However many nonces they ask for, the one of a person who signs in stays good."""
        self.add_phone()
        page, nonce = (
            SigningBrowser.generate("", self.clock.seconds),
            self.send("POST", "/signin/nonce", {}).json["nonce"],
        )
        for _ in range(20):
            for _ in range(30):
                self.send("POST", "/signin/nonce", {})
            self.clock.advance(2.9)
        body = {"nonce": nonce, "public_key": page.public_key, "credential": self.answer_to(nonce, page)}
        self.assertEqual(self.send("POST", "/signin", body).status, 200)

    def test_scanners(self) -> None:
        """Opening an address does nothing: the code is still good afterwards."""
        code = self.pairings.begin("ops_1", "Mine")
        for method in ("GET", "HEAD"):
            for path in ("/pair", f"/pair?code={code}", f"/pair/open?code={code}", "/signin", "/pair/state"):
                self.send(method, path)
        self.assertEqual(self.send("POST", "/pair/open", {"code": code}).status, 200)

    def test_pages_tell_nothing(self) -> None:
        """The pages of pairing and signing in are the same for everybody, without scripts of others."""
        for path in ("/pair", "/signin"):
            heard = self.send("GET", path)
            self.assertEqual(heard.status, 200)
            self.assertIn("frame-ancestors 'none'", heard.headers["content-security-policy"])
            self.assertEqual(heard.headers["cache-control"], "no-store")

    def test_malformed(self) -> None:
        """Bodies of another form are refused."""
        for path in ("/pair/open", "/pair/passkey", "/pair/state", "/signin/nonce", "/signin"):
            bodies: tuple[object, ...] = ([], {"x": 1}, {"code": "x" * 40_000}, "x")
            for body in bodies:
                self.assertEqual(self.send("POST", path, body).status, 400, (path, body))
        self.assertEqual(self.send("POST", "/signin", {"nonce": 1, "public_key": 2, "credential": 3}).status, 400)

    def test_pairing_refused(self) -> None:
        """A code used twice, or none at all, is on record."""
        code = self.pairings.begin("ops_1", "Mine")
        self.assertEqual(self.send("POST", "/pair/open", {"code": "A" * 22}).status, 401)
        self.assertEqual(self.send("POST", "/pair/open", {"code": code}).status, 200)
        self.assertEqual(self.send("POST", "/pair/open", {"code": code}).status, 409)
        self.assertIn("phone.pairing_opened", self.events())
        self.assertIn("phone.pairing_refused", self.events())


class LoginTests(PhoneCase):
    """The logins of phones, and those of the desk."""

    def test_watches(self) -> None:
        """A phone sees the requests."""
        self.add_phone()
        page = self.sign_in()
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 200)

    def test_cookie_alone(self) -> None:
        """The cookie opens nothing without the signature, also beside cookies that a neighbouring name has set."""
        self.add_phone()
        page = self.sign_in()
        plain = {"Cookie": f"{COOKIE}={page.cookie}"}
        self.assertEqual(self.send("GET", "/fragments/approvals", headers=plain).status, 401)
        tossed = page.headers(COOKIE, "GET", "/fragments/approvals")
        tossed["Cookie"] = f"aileron_life=x; {COOKIE}=tossed; {tossed['Cookie']}"
        self.assertEqual(self.send("GET", "/fragments/approvals", headers=tossed).status, 200)
        unprefixed = self.send("GET", "/fragments/approvals", browser=page, cookie=DESK_COOKIE)
        self.assertEqual(unprefixed.status, 401, "a cookie that any neighbour can set was taken")

    def test_at_the_desk(self) -> None:
        """A phone's login opens nothing at the desk's address."""
        self.add_phone()
        page = self.sign_in()
        headers = page.headers(DESK_COOKIE, "GET", "/v1/action-approvals")
        self.assertEqual(self.operator.ask("GET", "/v1/action-approvals", headers=headers).status, 401)

    def test_of_the_desk(self) -> None:
        """A login of the desk opens nothing at the public name."""
        page, _session = self.operators.open_browser()
        self.assertFalse(self.operators.knows_passkey_cookie(page.cookie))
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)

    def test_removed(self) -> None:
        """A passkey that was removed opens nothing any more, and its logins are gone."""
        self.add_phone()
        page = self.sign_in()
        self.phone_passkeys.remove(write_base64url(self.person.id))
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)
        self.assertEqual(self.operators.list(), ())

    def test_listed(self) -> None:
        """The operator's list of logins names the phone's, and can end it."""
        self.add_phone()
        page = self.sign_in()
        token = self.operator_token()
        listed = self.operator.ask("GET", "/v1/operator/sessions", token).json["items"]
        (phone,) = [each for each in listed if each["passkey"]]
        self.operator.ask("DELETE", f"/v1/operator/sessions/{phone['id']}", token)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 401)

    def test_lapsed(self) -> None:
        """After half an hour without use it only watches."""
        self.add_phone()
        page = self.sign_in()
        self.clock.advance(1801)
        heard = self.send("GET", "/fragments/approvals", browser=page)
        self.assertEqual((heard.status, heard.headers["x-aileron-level"]), (200, "reading"))
        self.assertEqual(self.send("POST", "/v1/operator/passkeys/ask", {}, page).status, 401)


class ServedTests(PhoneCase):
    """What is served, and what is not."""

    def test_every_route(self) -> None:
        """Of all the operator's routes only the named ones are there; the others do not exist, with any credential."""
        self.add_phone()
        names = {endpoint.name for endpoint, _ in operator_routes(FeatureSet()).endpoints}
        self.assertLessEqual(set(ROUTES), names)
        for endpoint, _ in operator_routes(FeatureSet()).endpoints:
            if endpoint.name in ROUTES:
                continue
            path = endpoint.path.replace("<path:", "<").replace("<", "").replace(">", "")
            self.clock.advance(5)
            page = self.sign_in()
            heard = self.send(endpoint.method, path, None if endpoint.method == "GET" else {}, page)
            self.assertIn(heard.status, (404, 405), (endpoint.method, path))

    def test_credentials(self) -> None:
        """No token and no key of a file counts: not the operator's, the launcher's, the home's or the scraper's."""
        self.add_phone()
        for token in (self.operator_token(), LAUNCH_KEY, LOCAL_KEY, self.agent_token()):
            headers = {"Authorization": f"Bearer {token}"}
            self.assertEqual(self.send("GET", "/v1/events", headers=headers).status, 401)
            self.assertEqual(self.send("GET", "/fragments/approvals", headers=headers).status, 401)

    def test_nothing_else(self) -> None:
        """No metrics, no description, no hand-over, no page beside the inbox."""
        self.add_phone()
        page = self.sign_in()
        for path in ("/metrics", "/docs", "/v1/openapi.json", "/v1/health", "/mcp"):
            self.assertEqual(self.send("GET", path, browser=page).status, 404, path)
        for path in ("/handover", "/handover/key", "/handover/state"):
            self.assertIn(self.send("POST", path, {}, page).status, (404, 405), path)
        for path in ("/trust", "/settings", "/settings/passkeys", "/grants", "/audit", "/connectors", "/actions"):
            self.assertEqual(self.send("GET", f"/fragments{path}", browser=page).status, 404, path)

    def test_shown(self) -> None:
        """The shell is served for the shown pages, with the sign-in of this name."""
        for path in ("/", "/approvals", "/runs", "/history"):
            heard = self.send("GET", path)
            self.assertEqual(heard.status, 200, path)
            self.assertIn('href="/signin"', heard.text)
            entrance = heard.text.partition('<template id="desk-session">')[0].partition("no-session")[2]
            self.assertNotIn("aileron open", entrance)
        self.assertEqual(len(SHOWN), 6)
        self.assertTrue(CHANGES)
        for name in ("phone.js", "phone.css", "phone.webmanifest", "icon-180.png", "scripts.js", "style.css"):
            self.assertEqual(self.send("GET", f"/static/{name}").status, 200, name)


class DecidingTests(PhoneCase):
    """A phone denies with its login, and approves with its passkey."""

    def setUp(self) -> None:
        """A request, and a phone that has signed in."""
        super().setUp()
        self.add_phone()
        self.page = self.sign_in()
        run = self.successResultOf(
            Deferred.fromCoroutine(self.runner.submit(Call("ship-update", {}, Actor("agent", "s"))))
        )
        self.run_id = run.id
        approval = self.successResultOf(Deferred.fromCoroutine(self.runner.approval(run.id)))
        self.digest = approval.digest
        self.path = f"/v1/action-approvals/{run.id}"

    def signed(self, decision: dict[str, Any]) -> dict[str, Any]:
        """A decision with the signature of the page's key."""
        items = [item_of(self.run_id, decision)]
        text, signature = self.page.sign_text(lambda nonce: write_statement(MemoryOperators.INSTANCE, nonce, items))
        return {**decision, "signed": {"statement": text, "signature": signature}}

    def state(self) -> RunState:
        """The state of the run."""
        return self.successResultOf(Deferred.fromCoroutine(self.runner.approval(self.run_id))).run.state

    def test_denies(self) -> None:
        """A denial needs the login alone."""
        heard = self.send(
            "POST", f"{self.path}/decide", self.signed({"approved": False, "digest": self.digest}), self.page
        )
        self.assertEqual(heard.status, 200, heard.text)

    def test_without_passkey(self) -> None:
        """An approval by the login alone is refused, and says that the passkey is needed, with a grant as well."""
        decision = {"approved": True, "digest": self.digest}
        grant = {"uses": 1, "not_after": "2026-01-01T00:00:00Z"}
        for body in (decision, self.signed(decision), {**decision, "grant": grant}):
            heard = self.send("POST", f"{self.path}/decide", body, self.page)
            self.assertEqual(heard.status, 403, heard.text)
            self.assertTrue(heard.json["error"]["details"]["passkey"])
        self.assertEqual(self.state(), RunState.PENDING)

    def test_with_passkey(self) -> None:
        """An approval that the passkey signs is passed on; the options are for this name."""
        decision = {"approved": True, "digest": self.digest}
        asked = self.send("POST", f"{self.path}/passkey", decision, self.page).json
        self.assertEqual(asked["options"]["rpId"], "phone.example.org")
        passkey = {"nonce": asked["nonce"], "credential": self.person.get(asked["options"])}
        heard = self.send("POST", f"{self.path}/decide", {**decision, "passkey": passkey}, self.page)
        self.assertEqual(heard.status, 200, heard.text)

    def test_list(self) -> None:
        """A list can be signed at once: the page gets a nonce and the options of this name."""
        asked = self.send("POST", "/v1/operator/passkeys/ask", {}, self.page).json
        self.assertEqual(set(asked), {"instance", "nonce", "options"})
        self.assertNotIn("challenge", asked["options"])

    def test_sign_in_as_decision(self) -> None:
        """What was signed to sign in decides nothing."""
        nonce = self.send("POST", "/signin/nonce", {}).json["nonce"]
        challenge = signin_challenge("life", nonce, self.page.public_key)
        credential = self.person.get({"challenge": write_base64url(challenge)})
        decision = Decision(True, self.digest, "ops_1")
        statement = self.approvers.write(nonce, [decision_item(self.run_id, decision, None)])
        forged = evolve(decision, assertion=Assertion(statement, credential=credential))
        self.assertRaises(Forbidden, self.approvers.admit, "ship-update", self.run_id, forged, None)
