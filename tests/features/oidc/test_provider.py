"""The requests to the provider."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.credentials import SignInRefused, TokenAnswer, TokenRequest
from aileron.features.oidc._attempts import ProviderAttempt
from aileron.features.oidc._provider import (
    ANSWERED_SECONDS,
    BETWEEN_SECONDS,
    KEPT_SECONDS,
    SignInProvider,
    VerifiedPerson,
)
from aileron.model.errors import NetworkError
from tests.features.oidc.case import ISSUER, SETTINGS
from tests.features.oidc.issuer import SECRET, Issuer

RETURN = "https://phone.example.org/signin/oidc/return"
ATTEMPT = ProviderAttempt("state-1", "nonce-1", "verifier-1" * 5)
METADATA = "/.well-known/openid-configuration"


class ProviderCase(SynchronousTestCase):
    """A provider in memory."""

    oidc = SETTINGS
    secret: str | None = SECRET

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.issuer = Issuer(ISSUER, self.clock.seconds)
        self.requests: list[TokenRequest] = []
        self.provider = SignInProvider(self.oidc, self.exchange, self.open_secret, self.clock)

    async def open_secret(self) -> str | None:
        """The client secret."""
        return self.secret

    async def exchange(self, asked: TokenRequest) -> TokenAnswer:
        """Ask the provider, and note it."""
        self.requests.append(asked)
        return await self.issuer.exchange(asked)

    def now(self, work: Awaitable[Any]) -> Any:
        """The result of a coroutine, which must be there at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))  # type: ignore[arg-type]

    def fails(self, kind: type[Exception], work: Awaitable[Any]) -> str:
        """The message of an error."""
        return str(self.failureResultOf(Deferred.fromCoroutine(work), kind).value)  # type: ignore[arg-type]

    async def sign_in(self) -> VerifiedPerson:
        """Sign in."""
        sign_in = await self.provider.open(ATTEMPT, RETURN)
        code = sign_in.read_callback(self.issuer.visit(f"{sign_in.authorize_url}&nonce={ATTEMPT.nonce}"))
        return await self.provider.redeem(sign_in, code, ATTEMPT.nonce)


class MetadataTests(ProviderCase):
    """The provider's metadata."""

    def test_once(self) -> None:
        """It is fetched once in an hour, also by several at once."""
        for _ in range(3):
            self.now(self.sign_in())
        self.assertEqual(self.issuer.asked.count(METADATA), 1)
        self.clock.advance(KEPT_SECONDS)
        self.now(self.sign_in())
        self.assertEqual(self.issuer.asked.count(METADATA), 2)

    def test_issuer(self) -> None:
        """Metadata of another issuer, or of none, is refused."""
        for issuer in (None, f"{ISSUER}/", "https://evil.example", [ISSUER]):
            self.setUp()
            self.issuer.metadata = {"issuer": issuer}
            self.assertIn("another issuer", self.fails(SignInRefused, self.provider.open(ATTEMPT, RETURN)))

    def test_plain(self) -> None:
        """An address that is no https URL is refused."""
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            for url in (
                None,
                5,
                "",
                "/token",
                "http://login.example.org/x",
                "http://127.0.0.1/x",
                "https://me@login.example.org/x",
                "https://login.example.org/x#y",
                "javascript:alert(1)",
                "file:///etc/passwd",
                "https://login.example.org/" + "x" * 3000,
            ):
                self.setUp()
                self.issuer.metadata = {name: url}
                self.assertIn(name, self.fails(SignInRefused, self.provider.open(ATTEMPT, RETURN)), url)

    def test_pkce(self) -> None:
        """A provider that says that it supports PKCE without S256 is refused. One that says nothing is not (Entra)."""
        self.issuer.metadata = {"code_challenge_methods_supported": ["plain"]}
        self.assertIn("PKCE", self.fails(SignInRefused, self.provider.open(ATTEMPT, RETURN)))
        self.setUp()
        self.issuer.metadata = {"code_challenge_methods_supported": None}
        self.assertEqual(self.now(self.sign_in()).subject, "u-1")

    def test_hostile(self) -> None:
        """What is no metadata is refused, and nothing is asked again for some seconds."""
        for answer in (
            TokenAnswer(200, b"<html>Hello</html>"),
            TokenAnswer(200, b"[]"),
            TokenAnswer(302, b""),
            TokenAnswer(500, b"{}"),
            TokenAnswer(404, b'{"issuer": "https://login.example.org"}'),
            TokenAnswer(200, b"[" * 60_000),
        ):
            self.setUp()

            async def exchange(asked: TokenRequest, answer: TokenAnswer = answer) -> TokenAnswer:
                self.requests.append(asked)
                return answer

            self.provider = SignInProvider(self.oidc, exchange, self.open_secret, self.clock)
            for _ in range(3):
                self.assertIn("valid answer", self.fails(NetworkError, self.provider.open(ATTEMPT, RETURN)))
            self.assertEqual(len(self.requests), 1)
            self.clock.advance(BETWEEN_SECONDS)
            self.fails(NetworkError, self.provider.open(ATTEMPT, RETURN))
            self.assertEqual(len(self.requests), 2)


class SecretTests(ProviderCase):
    """How the client authenticates."""

    def test_basic(self) -> None:
        """The secret is sent in the header, and stands in no URL or body."""
        self.now(self.sign_in())
        [asked] = [each for each in self.requests if each.body is not None]
        self.assertIn("Authorization", dict(asked.headers))
        self.assertNotIn(SECRET, f"{asked.url} {asked.body!r} {asked!r}")

    def test_post(self) -> None:
        """A provider that supports only the body gets it there."""
        self.issuer.metadata = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
        self.now(self.sign_in())
        self.assertEqual(self.issuer.forms[0]["client_secret"], SECRET)

    def test_unsupported(self) -> None:
        """A provider that supports neither is refused."""
        self.issuer.metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
        self.assertIn("no client secret", self.fails(SignInRefused, self.provider.open(ATTEMPT, RETURN)))

    def test_none(self) -> None:
        """Without a secret, PKCE alone proves who asks."""
        self.secret = None
        self.assertIn("invalid_client", self.fails(SignInRefused, self.sign_in()))
        [form] = self.issuer.forms
        self.assertNotIn("client_secret", form)
        self.assertEqual(form["code_verifier"], ATTEMPT.verifier)

    def test_private(self) -> None:
        """Only a provider at a private address is asked there."""
        self.now(self.sign_in())
        self.assertEqual({each.private_network for each in self.requests}, {False})
        self.provider = SignInProvider(
            evolve(self.oidc, private_network=True), self.exchange, self.open_secret, self.clock
        )
        self.requests.clear()
        self.now(self.sign_in())
        self.assertEqual({each.private_network for each in self.requests}, {True})


class KeyTests(ProviderCase):
    """The provider's keys."""

    def test_kinds(self) -> None:
        """RSA and elliptic curves work."""
        for kid in ("one", "curve"):
            self.issuer.kid = kid
            self.assertEqual(self.now(self.sign_in()).subject, "u-1")
        self.assertEqual(self.issuer.asked.count("/keys"), 1)

    def test_rotated(self) -> None:
        """A key that is not known yet is fetched."""
        self.now(self.sign_in())
        self.clock.advance(BETWEEN_SECONDS)
        self.issuer.kid, self.issuer.published = "two", ["two"]
        self.assertEqual(self.now(self.sign_in()).subject, "u-1")
        self.clock.advance(BETWEEN_SECONDS)
        self.issuer.kid = "one"
        self.assertIn("does not publish", self.fails(SignInRefused, self.sign_in()))

    def test_rate(self) -> None:
        """Keys that nobody publishes are looked for every ten seconds at most."""
        self.now(self.sign_in())
        self.issuer.header = {"kid": "made-up"}
        for _ in range(5):
            self.assertIn("does not publish", self.fails(SignInRefused, self.sign_in()))
        self.assertEqual(self.issuer.asked.count("/keys"), 1)
        self.clock.advance(BETWEEN_SECONDS)
        for _ in range(5):
            self.fails(SignInRefused, self.sign_in())
        self.assertEqual(self.issuer.asked.count("/keys"), 2)

    def test_withdrawn(self) -> None:
        """A key that is not published any more counts for an hour at most."""
        self.now(self.sign_in())
        self.issuer.published = ["two"]
        self.clock.advance(KEPT_SECONDS)
        self.assertIn("does not publish", self.fails(SignInRefused, self.sign_in()))

    def test_not_signed(self) -> None:
        """A token without a signature is refused, whatever it says."""
        import jwt

        self.issuer.sign = lambda claims: jwt.encode(claims, None, "none", headers={"kid": "one"})  # type: ignore[arg-type]
        self.assertIn("not signed", self.fails(SignInRefused, self.sign_in()))

    def test_cancelled(self) -> None:
        """A browser that leaves while keys are fetched does not keep others from them."""
        held = Deferred[TokenAnswer]()
        asked: list[str] = []

        async def exchange(request: TokenRequest) -> TokenAnswer:
            asked.append(request.url)
            return await held

        provider = SignInProvider(self.oidc, exchange, self.open_secret, self.clock)
        leaves = Deferred.fromCoroutine(provider.open(ATTEMPT, RETURN))
        stays = Deferred.fromCoroutine(provider.open(ATTEMPT, RETURN))
        leaves.addErrback(lambda _: None)
        leaves.cancel()
        held.callback(self.now(self.issuer.exchange(TokenRequest(ISSUER + METADATA, False, (), None))))
        self.successResultOf(stays)
        self.assertEqual(len(asked), 1)


class SlowTests(ProviderCase):
    """A provider that does not answer."""

    def test_slow(self) -> None:
        """Nobody waits for long; what was asked for is kept when it arrives after all."""
        held = Deferred[TokenAnswer]()

        async def exchange(asked: TokenRequest) -> TokenAnswer:
            self.requests.append(asked)
            return await held if asked.body is None else await self.issuer.exchange(asked)

        self.provider = SignInProvider(self.oidc, exchange, self.open_secret, self.clock)
        waiting = Deferred.fromCoroutine(self.provider.open(ATTEMPT, RETURN))
        self.clock.advance(ANSWERED_SECONDS - 1)
        self.assertNoResult(waiting)
        self.clock.advance(1)
        self.failureResultOf(waiting, NetworkError)
        held.callback(self.now(self.issuer.exchange(TokenRequest(ISSUER + METADATA, False, (), None))))
        self.now(self.provider.open(ATTEMPT, RETURN))
        self.assertEqual(len(self.requests), 1)


class RefreshTests(ProviderCase):
    """Asking again."""

    def test_refreshed(self) -> None:
        """A refresh token brings the person again, with the present groups and another refresh token."""
        first = self.now(self.sign_in())
        self.issuer.person["groups"] = ["boss"]
        again = self.now(self.provider.refresh(first.refresh_token, ATTEMPT.nonce))
        self.assertEqual((again.subject, again.claims["groups"]), ("u-1", ["boss"]))
        self.assertNotEqual(again.refresh_token, first.refresh_token)
        self.assertIn("invalid_grant", self.fails(SignInRefused, self.provider.refresh(first.refresh_token, "x")))

    def test_other_nonce(self) -> None:
        """A token of another sign-in is refused."""
        first = self.now(self.sign_in())
        self.issuer.claims = {"nonce": "other"}
        self.fails(SignInRefused, self.provider.refresh(first.refresh_token, ATTEMPT.nonce))

    def test_busy(self) -> None:
        """A provider that is busy has not refused."""
        first = self.now(self.sign_in())
        for status, body in ((500, b"{}"), (503, b'{"error": "x"}'), (429, b'{"error": "x"}'), (200, b"<html>")):
            self.issuer.replies = [(status, body)]
            self.fails(NetworkError, self.provider.refresh(first.refresh_token, ATTEMPT.nonce))
        self.assertEqual(self.now(self.provider.refresh(first.refresh_token, ATTEMPT.nonce)).subject, "u-1")

    def test_words(self) -> None:
        """Only a plain error code of the provider is repeated."""
        for error in ('"<script>"', '"a b"', "5", '"\\u202e"', '""', f'"{"x" * 500}"'):
            self.setUp()
            self.issuer.replies = [(400, f'{{"error": {error}}}'.encode())]
            words = self.fails(SignInRefused, self.sign_in())
            self.assertTrue(words.isascii() and "<" not in words and len(words) < 120, words)
