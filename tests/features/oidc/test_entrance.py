"""Signing in with a provider at the public name."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.credentials import TokenAnswer, TokenRequest
from aileron.features.oidc._attempts import COOKIE
from aileron.features.oidc._entrance import MOST_AT_ONCE, RETURN_PATH
from aileron.features.phone.values import PhoneSettings, PhoneTls
from aileron.model.people import Role
from aileron.model.queries import AuditQuery
from tests.features.oidc.issuer import CLIENT_ID, SECRET
from tests.features.phone.case import PUBLIC

from .case import ISSUER, SETTINGS, OidcCase


class SignInTests(OidcCase):
    """The provider vouches for a person."""

    def test_let_in(self) -> None:
        """The person has an account with the role of the group, and the record says which login it is."""
        page = self.signed_in()
        self.assertEqual(self.looks(page), 200)
        account = self.only_account()
        self.assertRegex(account.name, r"^alice-[0-9a-f]{8}$")
        self.assertIs(account.role, Role.APPROVER)
        [made] = self.now(self.store.audit.list(AuditQuery(types=("people.added",)))).items
        self.assertEqual((made.event.payload["issuer"], made.event.payload["subject"]), (ISSUER, "u-1"))
        [record] = self.now(self.store.audit.list(AuditQuery(types=("operator.login",)))).items
        self.assertEqual(record.event.actor.person, account.name)
        self.assertIn("public_key", record.event.payload["key"])

    def test_decides(self) -> None:
        """The role decides what the person may call."""
        page = self.signed_in()
        self.assertEqual(self.send("POST", "/v1/pause", {"reason": "x"}, page).status, 200)
        self.assertEqual(self.send("GET", "/v1/people", browser=page).status, 403)

    def test_asked(self) -> None:
        """The provider's page is asked for a code, with PKCE, a state, a nonce, and our fixed return address."""
        cookie, url = self.begin()
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self.assertTrue(url.startswith(f"{ISSUER}/authorize?"))
        self.assertEqual(asked["redirect_uri"], PUBLIC + RETURN_PATH)
        self.assertEqual((asked["response_type"], asked["client_id"]), ("code", CLIENT_ID))
        self.assertEqual((asked["scope"], asked["code_challenge_method"]), ("openid profile email", "S256"))
        self.assertEqual(len({asked["state"], asked["nonce"], asked["code_challenge"]}), 3)
        for secret in (asked["state"], asked["nonce"], SECRET):
            self.assertNotIn(secret, cookie)

    def test_cookie(self) -> None:
        """The attempt's cookie is the host's own, no script reads it, and only our own pages' requests have it."""
        heard = self.send("POST", "/signin/oidc/begin", {})
        cookie = heard.headers["set-cookie"]
        self.assertTrue(cookie.startswith("__Host-aileron_signin="))
        for part in ("Path=/", "Max-Age=600", "HttpOnly", "SameSite=Strict", "Secure"):
            self.assertIn(part, cookie.split("; "))

    def test_again(self) -> None:
        """The account is the same at the next sign-in, and after the person's name has changed at the provider."""
        self.signed_in()
        first = self.only_account()
        self.issuer.person |= {"preferred_username": "operator"}
        self.signed_in()
        self.assertEqual(self.only_account(), first)

    def test_button(self) -> None:
        """The page for signing in names the provider, and its script is served."""
        page = self.send("GET", "/signin")
        self.assertIn("Sign in with login.example.org", page.text)
        self.assertIn("/static/oidc.js", page.text)
        self.assertEqual(self.send("GET", "/static/oidc.js").status, 200)

    def test_opened(self) -> None:
        """Opening the return address does nothing, whatever its query is: the code still counts."""
        cookie, url = self.begin()
        query = self.issuer.visit(url)
        for more in ("", f"?{query}", "?next=https://evil.example", f"?{query}&<script>"):
            heard = self.send("GET", RETURN_PATH + more)
            self.assertEqual((heard.status, heard.headers["cache-control"]), (200, "no-store"))
            self.assertNotIn("evil", heard.text)
            self.assertIn("frame-ancestors 'none'", heard.headers["content-security-policy"])
        self.assertEqual(self.finish(cookie, query)[1].status, 200)

    def test_nowhere_else(self) -> None:
        """No answer names an address to go to, except that of the provider's page."""
        cookie, url = self.begin()
        query = self.issuer.visit(url, next="https://evil.example", return_to="//evil.example")
        heard = self.finish(cookie, query)[1]
        self.assertEqual((heard.status, set(heard.json)), (200, {"instance"}))
        body = {"next": "https://evil.example"}
        self.assertEqual(self.send("POST", "/signin/oidc/begin", body).status, 400)

    def test_malformed(self) -> None:
        """Bodies of another form are refused."""
        bodies: tuple[Any, ...] = ([], {"query": "x"}, {"query": 1, "public_key": 2})
        for body in (*bodies, {"query": "x" * 20_000, "public_key": ""}):
            self.assertEqual(self.send("POST", "/signin/oidc", body).status, 400, body)

    def test_local_accounts(self) -> None:
        """Accounts with a passphrase are used as before."""
        page = self.joined("bob")
        self.assertEqual(self.looks(page), 200)
        self.renew()
        self.clock.advance(3600)
        self.assertEqual(self.looks(page), 200)


class AttemptTests(OidcCase):
    """The provider's answer belongs to one attempt of one browser."""

    def test_other_browser(self) -> None:
        """Without the cookie of the attempt, an answer lets nobody in, and is not exchanged."""
        _cookie, url = self.begin()
        heard = self.finish("", self.issuer.visit(url))[1]
        self.assertEqual(heard.status, 401)
        self.assertIn("Start again", heard.text)
        self.assertEqual(self.issuer.forms, [])

    def test_other_state(self) -> None:
        """The answer to another attempt is refused, and neither attempt is used up by it."""
        mine, my_url = self.begin()
        theirs, their_url = self.begin()
        their_query = self.issuer.visit(their_url)
        self.assertEqual(self.finish(mine, their_query)[1].status, 401)
        self.assertEqual(self.issuer.forms, [])
        self.assertEqual(self.finish(mine, self.issuer.visit(my_url))[1].status, 200)
        self.assertEqual(self.finish(theirs, their_query)[1].status, 200)

    def test_replayed(self) -> None:
        """An answer counts once, and its code is sent to the provider once."""
        cookie, url = self.begin()
        query = self.issuer.visit(url)
        self.assertEqual(self.finish(cookie, query)[1].status, 200)
        self.assertEqual(self.finish(cookie, query)[1].status, 401)
        self.assertEqual(len(self.issuer.forms), 1)

    def test_replayed_code(self) -> None:
        """A code of an earlier sign-in is refused by the provider in another attempt: the verifier is another."""
        _cookie, url = self.begin()
        [code] = parse_qs(self.issuer.visit(url))["code"]
        self.refused("refused (invalid_grant)", code=code)

    def test_late(self) -> None:
        """An attempt ends after ten minutes."""
        cookie, url = self.begin()
        query = self.issuer.visit(url)
        self.clock.advance(600)
        self.assertEqual(self.finish(cookie, query)[1].status, 401)

    def test_two_at_once(self) -> None:
        """Of two requests with one answer at the same time, one is let in."""
        cookie, url = self.begin()
        query, held = self.issuer.visit(url), Deferred[None]()
        through = self.issuer.exchange

        async def slow(asked: TokenRequest) -> TokenAnswer:
            await held
            return await through(asked)

        self.provider._exchange = slow
        body = {"query": query, "public_key": self.signing_key()}
        headers = {"Cookie": f"{COOKIE}={cookie}"}
        sent = [self.post(body, headers) for _ in range(2)]
        held.callback(None)
        self.treq.flush()
        statuses = sorted(self.successResultOf(each).code for each in sent)
        self.assertEqual(statuses, [200, 401])

    def signing_key(self) -> str:
        """The public key of a page."""
        from aileron.testing import SigningBrowser

        return SigningBrowser.generate("", self.clock.seconds).public_key

    def post(self, body: Any, headers: dict[str, str]) -> Any:
        """Send the page's request, and return its pending answer."""
        import json

        fields = {"Content-Type": "application/json", **headers}
        sent = self.treq.request("POST", f"{PUBLIC}/signin/oidc", headers=fields, data=json.dumps(body).encode())
        self.treq.flush()
        return sent


class AnswerTests(OidcCase):
    """The provider's answer is not as it must be."""

    def test_mixed_up(self) -> None:
        """An answer that names another provider is refused, and its code is sent to nobody (RFC 9207)."""
        self.refused("another authorization server", iss="https://evil.example")
        self.assertEqual(self.issuer.forms, [])

    def test_unnamed(self) -> None:
        """A provider that names itself in each answer does so."""
        self.issuer.metadata = {"authorization_response_iss_parameter_supported": True}
        self.refused("or none (iss)")
        self.assertEqual(self.enter_by_provider(iss=ISSUER)[1].status, 200)

    def test_denied(self) -> None:
        """What the provider says is shown as text."""
        heard = self.enter_by_provider(code=None, error="access_denied", error_description="<b>no</b>\u202e")[1]
        self.assertEqual((heard.status, heard.headers["content-type"]), (401, "text/plain; charset=utf-8"))
        self.assertIn("access_denied", heard.text)
        self.assertNotIn("\u202e", heard.text)

    def test_no_code(self) -> None:
        """An answer without a code lets nobody in."""
        self.refused("without a code", code=None)
        self.refused("without a code", code="")

    def test_wrong_tokens(self) -> None:
        """An ID token that is not for this sign-in lets nobody in, and the words say why."""
        for claims, words in (
            ({"iss": "https://evil.example"}, "another issuer"),
            ({"aud": "other"}, "another application"),
            ({"nonce": "other"}, "another sign-in"),
            ({"nonce": None}, "another sign-in"),
            ({"exp": int(self.clock.seconds()) - 3600}, "expired"),
            ({"at_hash": "AAAA"}, "another access token"),
            ({"sub": None}, "names nobody"),
        ):
            self.issuer.claims = claims
            self.refused(words)
        self.assertEqual(self.now(self.accounts.list()), ())

    def test_endpoint(self) -> None:
        """What the token endpoint answers, if it is no tokens, lets nobody in."""
        for reply, status in (
            ((400, b'{"error": "invalid_grant"}'), 401),
            ((200, b'{"access_token": "a"}'), 401),
            ((200, b'{"id_token": "a.b.c"}'), 401),
            ((200, b'{"access_token": "a", "id_token": 5}'), 401),
            ((200, b'{"access_token": "a", "id_token": "a.b.c"}'), 401),
            ((302, b""), 502),
            ((302, b'{"access_token": "a", "id_token": "a.b.c"}'), 401),
            ((200, b"<html>Sign in to the airport's network</html>"), 502),
            ((200, b"[" * 10_000), 502),
            ((503, b'{"error": "busy"}'), 502),
        ):
            self.issuer.replies = [reply]
            heard = self.enter_by_provider()[1]
            self.assertEqual(heard.status, status, (reply, heard.text))
        self.assertEqual(self.operators.list(), ())

    def test_down(self) -> None:
        """If the provider cannot be reached, the words say so, before and after the person was there."""
        cookie, url = self.begin()
        self.issuer.is_down = True
        heard = self.finish(cookie, self.issuer.visit(url))[1]
        self.assertEqual(heard.status, 502, heard.text)
        self.clock.advance(4000)
        heard = self.send("POST", "/signin/oidc/begin", {})
        self.assertEqual(heard.status, 502)
        self.assertIn("could not be reached", heard.text)

    def test_secrets(self) -> None:
        """Nothing that was given out is in an answer, in the record or in a log."""
        seen = [self.enter_by_provider()[1].text]
        self.issuer.claims = {"aud": "other"}
        seen.append(self.enter_by_provider()[1].text)
        self.issuer.claims = {}
        self.clock.advance(400)
        self.renew()
        seen += map(repr, self.now(self.store.audit.list(AuditQuery(limit=100))).items)
        seen += map(repr, self.flushLoggedErrors())
        for secret in (*self.issuer.given, SECRET, *(each["code_verifier"] for each in self.issuer.forms[:2])):
            self.assertNotIn(secret, "\n".join(seen))


class PersonTests(OidcCase):
    """The person's groups give the role."""

    def test_no_role(self) -> None:
        """Somebody without a role is not let in, and has no account."""
        self.issuer.person["groups"] = ["guests"]
        self.refused("gives you no role")
        self.assertEqual(self.now(self.accounts.list()), ())

    def test_changed_group(self) -> None:
        """The next sign-in gives the role of the present groups, and the logins with the earlier one end."""
        before = self.signed_in()
        self.issuer.person["groups"] = ["ops", "boss"]
        after = self.signed_in()
        self.assertIs(self.only_account().role, Role.ADMINISTRATOR)
        self.assertEqual((self.looks(before), self.looks(after)), (401, 200))
        self.assertIn("people.role_changed", self.events())

    def test_group_left(self) -> None:
        """A sign-in of somebody who has no role any more is refused, and ends the logins from before."""
        page = self.signed_in()
        before = self.only_account()
        self.issuer.person["groups"] = []
        self.refused("gives you no role")
        self.assertEqual(self.looks(page), 401)
        self.assertEqual(self.only_account().login, before.login)  # so approvals given before still count

    def test_removed(self) -> None:
        """Who was removed is out with the next request, and stays out until the operator allows it."""
        page = self.signed_in()
        name = self.only_account().name
        token = self.operator_token()
        self.assertEqual(self.operator.ask("DELETE", f"/v1/people/{name}", token).status, 200)
        self.assertEqual(self.looks(page), 401)
        self.refused("removed your account")
        shown = self.operator.ask("GET", "/v1/oidc", token)
        self.assertEqual(shown.json["removed"], [name])
        self.assertEqual(self.operator.ask("DELETE", f"/v1/oidc/removed/{name}", token).json, {"name": name})
        self.assertEqual(self.operator.ask("DELETE", f"/v1/oidc/removed/{name}", token).status, 404)
        self.assertEqual(self.looks(self.signed_in()), 200)
        self.assertEqual(self.looks(page), 401)

    def test_two_people(self) -> None:
        """Two people of one name are two accounts."""
        self.signed_in()
        self.issuer.person["sub"] = "u-2"
        self.signed_in()
        self.assertEqual(len({each.name for each in self.now(self.accounts.list())}), 2)


class LeavingTests(OidcCase):
    """The provider is asked again while somebody is signed in."""

    def test_confirmed(self) -> None:
        """The login goes on while the provider confirms it, with rotating refresh tokens."""
        page = self.signed_in()
        for _ in range(12):
            self.clock.advance(290)
            self.renew()
            self.clock.advance(290)
            self.renew()
            self.assertEqual(self.looks(page), 200)
        self.assertGreater(len(self.issuer.forms), 8)

    def test_revoked(self) -> None:
        """When the provider refuses, the login ends with the next request, and the record says so."""
        page = self.signed_in()
        self.issuer.revoked = True
        self.clock.advance(300)
        self.assertEqual(self.looks(page), 200)
        self.renew()
        self.assertEqual(self.looks(page), 401)
        self.assertIn("oidc.withdrawn", self.events())

    def test_silent(self) -> None:
        """While the provider is silent, the login goes on until its confirmation has ended."""
        page = self.signed_in()
        self.issuer.is_down = True
        self.clock.advance(899)
        self.renew()
        self.assertEqual(self.looks(page), 200)
        self.clock.advance(1)
        self.assertEqual(self.looks(page), 401)

    def test_no_refresh_token(self) -> None:
        """A provider that gives no refresh token confirms nobody again."""
        self.issuer.gives_refresh = False
        page = self.signed_in()
        self.clock.advance(900)
        self.renew()
        self.assertEqual(self.looks(page), 401)


class PlainTests(OidcCase):
    """Something else ends TLS, so the daemon is reached by plain HTTP."""

    settings = PhoneSettings(PUBLIC, tls=PhoneTls.NONE)

    def test_refused(self) -> None:
        """Nobody begins to sign in, or ends it."""
        self.assertEqual(self.send("POST", "/signin/oidc/begin", {}).status, 409)
        self.assertEqual(self.finish("", "code=a&state=b")[1].status, 409)
        self.assertIn("phone.tls", str(self.provided.describe()["problem"]))


class LimitTests(OidcCase):
    """Strangers begin to sign in."""

    def test_strangers(self) -> None:
        """They are slowed down."""
        statuses = {self.send("POST", "/signin/oidc/begin", {}).status for _ in range(60)}
        self.assertEqual(statuses, {200, 429})

    def test_at_once(self) -> None:
        """The provider is asked about a few at once."""
        self.entrance._under_way.extend([None] * MOST_AT_ONCE)
        cookie, url = self.begin()
        self.assertEqual(self.finish(cookie, self.issuer.visit(url))[1].status, 429)
        self.entrance._under_way.pop()
        self.assertEqual(self.finish(cookie, self.issuer.visit(url))[1].status, 200)
        self.assertEqual(len(self.entrance._under_way), MOST_AT_ONCE - 1)


class DomainTests(OidcCase):
    """Only people of a domain, by their addresses."""

    oidc = evolve(SETTINGS, roles={}, emails={"alice@example.org": Role.VIEWER}, domains=("example.org",))

    def test_listed(self) -> None:
        """A listed, verified address gives its role. Others give none."""
        self.issuer.person |= {"email": "Alice@example.org", "email_verified": True}
        self.signed_in()
        self.assertIs(self.only_account().role, Role.VIEWER)
        self.issuer.person |= {"sub": "u-9", "email_verified": False}
        self.refused("gives you no role")
