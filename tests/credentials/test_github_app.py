"""GitHub Apps: the app's own token, and what comes of what GitHub answers."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import cache
from typing import Any

import jwt
from attrs import evolve
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from aileron.credentials import NeedsYou, TokenAnswer
from aileron.model.errors import NetworkError
from aileron.model.vault import CredentialStatus
from tests.credentials.kind import NOW, KindCase, KindContract

TOKEN = "ghs_canary1"


@cache
def key(bits: int = 2048) -> rsa.RSAPrivateKey:
    """A private key."""
    return rsa.generate_private_key(65537, bits)


def pem(private: Any, under: KeySerializationEncryption | None = None) -> str:
    """It in PEM."""
    text: bytes = private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, under or NoEncryption())
    return text.decode()


def document(**more: Any) -> bytes:
    """What is kept of an app."""
    return json.dumps({"app_id": "12345", "installation_id": "678", "private_key": pem(key()), **more}).encode()


def given(token: Any = TOKEN, expires_at: Any = "2026-05-01T13:00:00Z", status: int = 201) -> TokenAnswer:
    """What GitHub answers."""
    return TokenAnswer(status, json.dumps({"token": token, "expires_at": expires_at, "permissions": {}}).encode())


class GithubAppTests(KindCase, KindContract):
    """An installation whose token is there."""

    name = "github_app"
    good = document(access_token=TOKEN, expires_at="2026-05-01T13:00:00.000000Z")
    bad = (
        b"",
        b"canary",
        document(app_id="canary/.."),
        document(installation_id=""),
        document(private_key="canary"),
        document(private_key=pem(key(1024))),
        document(private_key=pem(ec.generate_private_key(ec.SECP256R1()))),
        document(private_key=pem(key(), BestAvailableEncryption(b"canary"))),
        document(canary=1),
    )
    sent_secrets = (TOKEN,)

    def obtained(self, *answers: TokenAnswer) -> str:
        """The header that is sent, where there is no token yet."""
        self.held.kept = document()
        self.held.answers = list(answers)
        ((_, value),) = self.authorized().headers
        return value

    def test_asked(self) -> None:
        """The connector's own host is asked, with a token that only the app's key makes, good for nine minutes."""
        self.held.scope = evolve(self.held.scope, base_url="https://github.example/api/v3/")
        self.assertEqual(self.obtained(given()), f"Bearer {TOKEN}")
        (asked,) = self.held.asked
        self.assertEqual(asked.url, "https://github.example/api/v3/app/installations/678/access_tokens")
        self.assertEqual((asked.body, asked.private_network), (b"", False))
        signed = dict(asked.headers)["Authorization"].removeprefix("Bearer ")
        public = key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        claims = jwt.decode(signed, public, ["RS256"], options={"verify_exp": False, "verify_iat": False})
        now = int(NOW.timestamp())
        self.assertEqual(claims, {"iss": "12345", "iat": now - 60, "exp": now + 540})

    def test_for_an_hour(self) -> None:
        """A token is sent until a minute before its end, and another one obtained then."""
        self.obtained(given())
        self.held.pass_time(3539)
        self.authorized()
        self.assertEqual(len(self.held.asked), 1)
        self.held.pass_time(1)
        self.held.answers = [given("ghs_canary2", "2026-05-01T14:00:00Z")]
        self.assertEqual(self.authorized().secrets, ("ghs_canary2",))
        self.assertIs(self.status(), CredentialStatus.READY)

    def test_ended(self) -> None:
        """A key that is not accepted, and an app that is not installed, need a person."""
        for status in (401, 404):
            self.held.kept = document()
            self.held.answers = [given(status=status)]
            needs = self.failureResultOf(self.authorizing(), NeedsYou).value
            assert isinstance(needs, NeedsYou)
            self.assertEqual((self.status(), needs.is_new), (CredentialStatus.NEEDS_YOU, True))

    def test_transient(self) -> None:
        """What may pass, or gives no token, changes nothing."""
        self.held.kept = document()
        for answer in (
            *(given(status=status) for status in (302, 403, 422, 429, 500, 503)),
            given(token=7),
            given(token="a\r\nX: 1"),
            given(expires_at=None),
            given(expires_at="soon"),
            given(expires_at="2026-05-01T13:00:00"),
            TokenAnswer(201, b"[]"),
            TokenAnswer(201, b"\xff"),
        ):
            self.held.answers = [answer]
            failure = self.failureResultOf(self.authorizing(), NetworkError)
            self.assertNotIn("canary", str(failure.value))
        self.assertEqual(self.held.history, [])

    def test_key_stays(self) -> None:
        """The private key is in no request, and is kept as it was."""
        self.obtained(given())
        self.assertNotIn("PRIVATE KEY", repr([(each.headers, each.body) for each in self.held.asked]))
        kept = json.loads(self.held.kept)
        self.assertEqual((kept["private_key"], kept["access_token"]), (pem(key()), TOKEN))
        self.assertEqual(NOW + timedelta(hours=1), self.kind.state(self.held.kept, NOW).expires_at)
