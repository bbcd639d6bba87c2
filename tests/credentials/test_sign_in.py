"""A sign-in asks for what the connector file says, takes one answer that is its own, and never another's."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, quote, urlencode

import jwt
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.credentials import (
    CLIENT,
    CODE,
    KINDS,
    BrowserSignIn,
    DeviceSignIn,
    NotOurCallback,
    SignInClient,
    SignInRefused,
    TokenAnswer,
    TokenRequest,
    missing_scopes,
    write,
)
from tests.credentials.kind import NOW

SETTINGS = {
    "token_url": "https://login.example/token",
    "authorize_url": "https://login.example/authorize?prompt=consent",
    "scopes": "read write",
}
REDIRECT = "http://127.0.0.1:4711/callback"


def client(secret: str | None = None, **settings: str) -> SignInClient:
    """A client of a connector whose file has these settings beside."""
    return SignInClient({**SETTINGS, **settings}, "aileron", secret)


def begun(**settings: str) -> BrowserSignIn:
    """A sign-in whose random bytes are known."""
    given = iter((b"s" * 32, b"v" * 32))
    return BrowserSignIn.begin(client(**settings), REDIRECT, lambda _: next(given))


def answer(status: int = 200, **members: Any) -> TokenAnswer:
    """An answer of the token endpoint."""
    return TokenAnswer(status, json.dumps(members).encode())


def form(request: TokenRequest) -> dict[str, str]:
    """The form that a request sends."""
    return {name: value for name, (value,) in parse_qs((request.body or b"").decode(), strict_parsing=True).items()}


class AuthorizeTests(SynchronousTestCase):
    def test_url(self) -> None:
        """The browser is sent with the S256 challenge, the state, the scopes and the callback; the verifier stays."""
        sign_in = begun()
        page, _, query = sign_in.authorize_url.partition("?")
        self.assertEqual(page, "https://login.example/authorize")
        found = {name: value for name, (value,) in parse_qs(query, strict_parsing=True).items()}
        challenge = base64.urlsafe_b64encode(sha256(sign_in.verifier.encode()).digest()).rstrip(b"=").decode()
        self.assertEqual(
            found,
            {
                "prompt": "consent",
                "response_type": "code",
                "client_id": "aileron",
                "redirect_uri": REDIRECT,
                "scope": "read write",
                "state": sign_in.state,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            },
        )
        self.assertNotIn(sign_in.verifier, sign_in.authorize_url)

    def test_random(self) -> None:
        """State and verifier are 256 bits each, never the same, and in no repr."""
        sizes: list[int] = []

        def randomness(size: int) -> bytes:
            sizes.append(size)
            return bytes([len(sizes)]) * size

        sign_in = BrowserSignIn.begin(client("canary-secret"), REDIRECT, randomness)
        self.assertEqual(sizes, [32, 32])
        self.assertEqual({len(sign_in.state), len(sign_in.verifier)}, {43})
        self.assertNotEqual(sign_in.state, sign_in.verifier)
        for secret in (sign_in.state, sign_in.verifier, "canary-secret"):
            self.assertNotIn(secret, repr(sign_in))

    def test_code(self) -> None:
        """The code is exchanged with the verifier, by a public client without a secret, by another with it."""
        request = begun().token_request("c0de")
        self.assertEqual(
            form(request),
            {
                "grant_type": "authorization_code",
                "client_id": "aileron",
                "code": "c0de",
                "redirect_uri": REDIRECT,
                "code_verifier": begun().verifier,
            },
        )
        self.assertEqual((request.url, request.private_network), (SETTINGS["token_url"], False))
        self.assertNotIn("c0de", repr(request))
        for method in ("client_secret_post", "client_secret_basic"):
            found = client("s3cret", token_endpoint_auth_method=method, private_network="true").request(CODE, code="c")
            self.assertTrue(found.private_network)
            by_header = "Authorization" in dict(found.headers)
            self.assertEqual(("client_secret" in form(found), by_header), (not by_header, method.endswith("basic")))


class CallbackTests(SynchronousTestCase):
    def read(self, sign_in: BrowserSignIn | None = None, **members: str) -> str:
        """What a callback with these members gives."""
        sign_in = sign_in or begun()
        return sign_in.read_callback(urlencode({"state": sign_in.state, "code": "c0de", **members}))

    def test_code(self) -> None:
        """The code is what the service sent, decoded once."""
        self.assertEqual(self.read(code="a/b+c %41"), "a/b+c %41")
        self.assertEqual(self.read(session_state="whatever"), "c0de")

    def test_not_ours(self) -> None:
        """An answer without the state, with another or with a member twice belongs to no sign-in, errors too."""
        state = begun().state
        for query in (
            "",
            "code=c0de",
            "code=c0de&state=",
            f"code=c0de&state={state[:-1]}",
            f"code=c0de&state={state}x",
            f"code=c0de&state={quote('ä' * 43)}",
            f"code=c0de&state={state}&state={state}",
            f"code=a&code=b&state={state}",
            f"state={state}&code=%ff",
            f"code=c0de&state={begun().verifier}",
            "error=access_denied&state=other",
            "error=access_denied",
            f"state={state}&code",
        ):
            self.assertRaises(NotOurCallback, begun().read_callback, query)

    def test_refused(self) -> None:
        """An error of the service ends the sign-in in its words, cut where they do not end; so does a missing code."""
        error = self.assertRaises(SignInRefused, self.read, error="access_denied", error_description="You said no.")
        self.assertEqual(str(error), "The service refused: access_denied (You said no.)")
        error = self.assertRaises(SignInRefused, self.read, error="x" * 5000)
        self.assertLess(len(str(error)), 400)
        self.assertRaises(SignInRefused, self.read, code="")

    def test_issuer(self) -> None:
        """An issuer must be the declared one; where none is declared, one that is told is of the page's origin."""
        mine, declared = "https://login.example", begun(issuer="https://login.example/realm")
        self.assertEqual(self.read(iss=mine), "c0de")
        self.assertEqual(self.read(iss=f"{mine}/realm"), "c0de")
        self.assertEqual(self.read(declared, iss=f"{mine}/realm"), "c0de")
        for wrong in ("https://evil.example", "http://login.example", "https://login.example.evil", "nonsense", ""):
            self.assertRaises(SignInRefused, self.read, iss=wrong)
        for wrong in (mine, f"{mine}/realm/", ""):
            self.assertRaises(SignInRefused, self.read, declared, iss=wrong)
        self.assertRaises(SignInRefused, self.read, declared)

    @given(st.text(max_size=200))
    def test_any(self, query: str) -> None:
        """Whatever comes without the state is not ours."""
        self.assertRaises(NotOurCallback, begun().read_callback, query)

    @given(st.dictionaries(st.sampled_from(["code", "error", "error_description", "iss", "x"]), st.text(max_size=30)))
    def test_any_member(self, members: dict[str, str]) -> None:
        """With the state it is the code as it was sent, or a refusal; an error never gives a code."""
        query = urlencode({"state": begun().state, **members}, errors="surrogatepass")
        try:
            code = begun().read_callback(query)
        except (SignInRefused, NotOurCallback):
            return
        self.assertEqual((code, "error" in members), (members["code"], False))


class DeviceTests(SynchronousTestCase):
    def begun(self, **more: Any) -> DeviceSignIn:
        """One that the service has begun."""
        members = {"device_code": "canary-dc", "user_code": "ABCD-EFGH", "verification_uri": "https://login.example/d"}
        return DeviceSignIn.from_answer(
            client(device_url="https://login.example/device"), answer(**{**members, **more})
        )

    def test_requests(self) -> None:
        """It begins at its own address with the scopes, and goes on at the token endpoint with the code."""
        request = DeviceSignIn.request(client(device_url="https://login.example/device"))
        self.assertEqual(request.url, "https://login.example/device")
        self.assertEqual(form(request), {"client_id": "aileron", "scope": "read write"})
        request = self.begun().token_request()
        self.assertEqual((request.url, form(request)["device_code"]), (SETTINGS["token_url"], "canary-dc"))
        self.assertEqual(form(request)["grant_type"], "urn:ietf:params:oauth:grant-type:device_code")
        self.assertNotIn("canary", repr(self.begun()))

    def test_begun(self) -> None:
        """How long and how often is asked is what the service says, within reason; what is no code ends it."""
        self.assertEqual((self.begun().interval, self.begun().expires_in), (5, 1800))
        self.assertEqual((self.begun(interval=1).interval, self.begun(expires_in=60).expires_in), (1, 60))
        for wild in (-1, 0, 10**9, "1", True, None):
            self.assertEqual((self.begun(interval=wild).interval, self.begun(expires_in=wild).expires_in), (5, 1800))
        self.assertRaises(SignInRefused, self.begun, device_code=None)
        self.assertRaises(SignInRefused, self.begun, error="invalid_client")

    def test_waits(self) -> None:
        """It goes on asking while it is pending, slower where that is wanted, and ends at anything else."""
        pending = answer(400, error="authorization_pending")
        self.assertEqual(self.begun().go_on(pending), self.begun())
        slower = self.begun().go_on(answer(400, error="slow_down"))
        assert slower is not None
        self.assertEqual(slower.interval, 10)
        for last in (answer(400, error="expired_token"), answer(access_token="a"), TokenAnswer(500, b"")):
            self.assertIsNone(self.begun().go_on(last))


class TokenTests(SynchronousTestCase):
    def test_kept(self) -> None:
        """What is kept is a credential that the vault takes, good for as long as the service said."""
        told = answer(access_token="a", refresh_token="r", expires_in=60, token_type="Bearer")
        document = client().read_tokens(CODE, told, NOW)
        self.assertEqual((document.access_token, document.refresh_token), ("a", "r"))
        self.assertEqual((document.scopes, document.grant), (("read", "write"), CODE))
        self.assertEqual(document.token_endpoint_auth_method, "none")
        assert document.expires_at is not None
        self.assertEqual((document.expires_at - NOW).total_seconds(), 60)
        KINDS["oauth2"].check(write(document))

    def test_fewer_scopes(self) -> None:
        """Scopes that were not given are known from then on, however the service separates them."""
        for told in ("read", "read,extra", "read extra"):
            document = client().read_tokens(CODE, answer(access_token="a", scope=told), NOW)
            self.assertEqual(missing_scopes(document, ("read", "write")), ("write",))
            kind, kept = KINDS["oauth2"], write(document)
            self.assertEqual(kind.limit(kept, ("read", "write")), "It was not given: write.")
            self.assertIsNone(kind.limit(kept, ("read",)))

    def test_unknown_scopes(self) -> None:
        """A credential of which nobody knows what it was given is not called limited."""
        document = client(scopes="").read_tokens(CODE, answer(access_token="a"), NOW)
        kind = KINDS["oauth2"]
        self.assertIsNone(kind.limit(write(document), ("read", "write")))
        self.assertIsNone(kind.surplus(write(document), ("read",)))

    def test_more_scopes(self) -> None:
        """What was given beyond what is needed is named, without what only says who signed in."""
        told = answer(access_token="a", scope="read openid email mail.send", refresh_token="r")
        kind, kept = KINDS["oauth2"], write(client().read_tokens(CODE, told, NOW))
        more = "It was given more than your trusted actions need: mail.send."
        self.assertEqual(kind.surplus(kept, ("read",)), more)
        self.assertIsNone(kind.surplus(kept, ("read", "Mail.Send")))
        self.assertIsNone(KINDS["api_key"].surplus(b"k", ("read",)))

    def test_google_identity(self) -> None:
        """Google writes back what says who signed in by other names, which are no surplus either."""
        place = "https://www.googleapis.com/auth"
        told = answer(access_token="a", scope=f"openid {place}/userinfo.email {place}/userinfo.profile {place}/drive")
        kind, kept = KINDS["oauth2"], write(client().read_tokens(CODE, told, NOW))
        self.assertIsNone(kind.surplus(kept, (f"{place}/drive",)))
        self.assertIn("drive", kind.surplus(kept, ()) or "")

    def test_rewritten_scopes(self) -> None:
        """A scope counts as given in other case, behind an address, and as offline where there is a refresh token."""
        asked = ("Mail.Send", "offline_access")
        told = answer(access_token="a", scope="https://graph.example/mail.send", refresh_token="r")
        kind, kept = KINDS["oauth2"], write(client().read_tokens(CODE, told, NOW))
        self.assertIsNone(kind.limit(kept, asked))
        self.assertIsNone(kind.surplus(kept, asked))
        self.assertEqual(kind.limit(kept, ("Mail.Read", "l.send")), "It was not given: Mail.Read, l.send.")
        lone = client().read_tokens(CODE, answer(access_token="a", scope="mail.send"), NOW)
        self.assertEqual(missing_scopes(lone, asked), ("offline_access",))

    def test_own(self) -> None:
        """A client that asks for itself keeps the scopes that it asks for, and its secret."""
        mine = client("s3cret", token_endpoint_auth_method="client_secret_post")
        self.assertEqual(form(mine.request(CLIENT, scope=list(mine.scopes)))["scope"], "read write")
        document = mine.read_tokens(CLIENT, answer(access_token="a", scope="read"), NOW)
        self.assertEqual((document.scopes, document.client_secret), (("read", "write"), "s3cret"))
        KINDS["oauth2"].check(write(document))

    def test_refused(self) -> None:
        """What is no token ends the sign-in: an error in the service's words, anything else by its status."""
        for told, words in (
            (answer(400, error="invalid_grant", error_description="Too late."), "invalid_grant (Too late.)"),
            (answer(200, error="bad_verification_code"), "bad_verification_code"),
            (TokenAnswer(503, b"<html>"), "status 503"),
            (TokenAnswer(302, b""), "status 302"),
            (TokenAnswer(200, b"<html>"), "no token"),
            (answer(200, access_token="a\nb"), "no token"),
            (answer(200, access_token=""), "no token"),
            (TokenAnswer(200, b'["a"]'), "no token"),
        ):
            error = self.assertRaises(SignInRefused, client().read_tokens, CODE, told, NOW)
            self.assertIn(words, str(error))

    @given(st.binary(max_size=200) | st.sampled_from([b"null", b"{}", b'{"error": 1}']), st.integers(100, 599))
    def test_any(self, body: bytes, status: int) -> None:
        """Whatever comes is a token or a refusal."""
        self.assertRaises(SignInRefused, client().read_tokens, CODE, TokenAnswer(status, body), NOW)


class AccountTests(SynchronousTestCase):
    """Who signed in, as the token endpoint says."""

    def read(self, path: str, **told: object) -> str | None:
        """What is read of an answer."""
        found = SignInClient({"token_url": "https://login.example/token", "account": path}, "aileron")
        return found.read_account(TokenAnswer(200, json.dumps(told).encode()))

    def claims(self, **claims: object) -> str:
        """An ID token."""
        return jwt.encode({"aud": "aileron", "exp": 2_000_000_000, **claims}, "x" * 32, algorithm="HS256")

    def test_claim(self) -> None:
        """A claim of the ID token is read, if the token is for this client."""
        token = self.claims(email="ada@example.org")
        self.assertEqual(self.read("id_token.email", id_token=token), "ada@example.org")
        other = self.claims(email="ada@example.org", aud="another")
        for bad in (other, "a.b.c", "", 1, None):
            self.assertIsNone(self.read("id_token.email", id_token=bad))

    def test_member(self) -> None:
        """A member of the answer is read, however deep; what is no short text of visible ASCII is left alone."""
        self.assertEqual(self.read("team.name", team={"name": " Kit "}), "Kit")
        for name in ("", " ", "a\nb", "\u202e", "x" * 201, 7, {"deeper": "x"}):
            self.assertIsNone(self.read("team.name", team={"name": name}))
        self.assertIsNone(self.read("team.name", team="Kit"))
        self.assertIsNone(client().read_account(TokenAnswer(200, b'{"": "x"}')))

    def test_asked(self) -> None:
        """An OpenID provider is asked for who signs in, beside the scopes; another is not."""
        for account, scopes in (
            ("id_token.email", ("read", "openid", "email")),
            ("id_token.preferred_username", ("read", "openid", "profile")),
            ("team.name", ("read",)),
        ):
            self.assertEqual(SignInClient({"scopes": "read", "account": account}, "a").asked_scopes, scopes)
