"""OAuth 2: when a token is renewed, how, and what comes of what the endpoint answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import parse_qs

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.credentials import KINDS, NeedsYou, TokenAnswer
from aileron.model.errors import AileronError, NetworkError
from aileron.model.vault import CredentialStatus
from tests.credentials.kind import NOW, REQUEST, Held, KindCase, KindContract, scope_of

URL = "https://login.example/oauth/token"
ACCESS, REFRESH, SECRET = "canary-access-1", "canary-refresh-1", "canary-client-s3cret"


def document(**more: Any) -> bytes:
    """What is kept after a sign-in, an hour before its token runs out; what is given as L{None} is left out."""
    whole = {
        "grant": "authorization_code",
        "client_id": "cl:ient",
        "client_secret": SECRET,
        "token_url": URL,
        "scopes": ["read", "write"],
        "access_token": ACCESS,
        "refresh_token": REFRESH,
        "expires_at": at(3600),
        **more,
    }
    return json.dumps({name: value for name, value in whole.items() if value is not None}).encode()


def at(seconds: float) -> str:
    """A moment from now, as it is kept."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def told(status: int = 200, **members: JSON) -> TokenAnswer:
    """An answer of the endpoint."""
    return TokenAnswer(status, json.dumps(members).encode())


GIVEN = told(access_token="canary-access-2", refresh_token="canary-refresh-2", expires_in=3600, token_type="bearer")


class OAuth2Case(KindCase):
    """A credential that was signed in."""

    name = "oauth2"
    good = document()

    def keeps(self, **more: Any) -> None:
        """Have something else kept."""
        self.held.kept = document(**more)

    def kept(self) -> Mapping[str, Any]:
        """What is kept now."""
        found: Mapping[str, Any] = json.loads(self.held.kept)
        return found

    def token(self) -> str:
        """The token that is sent."""
        ((_, value),) = self.authorized().headers
        return value.removeprefix("Bearer ")

    def fails(self, error: type[Exception]) -> Exception:
        """Why nothing can be sent."""
        found = self.failureResultOf(self.authorizing(), error).value
        assert isinstance(found, Exception)
        self.assertNotIn("canary", f"{found!r} {found} {getattr(found, 'details', '')}")
        return found

    def asked(self, at_index: int = -1) -> dict[str, str]:
        """What the endpoint was asked."""
        return {name: value for name, (value,) in parse_qs((self.held.asked[at_index].body or b"").decode()).items()}


class KindTests(OAuth2Case, KindContract):
    """The contract of every kind."""

    bad = (
        b"",
        b"canary",
        b"[]",
        b'{"grant": "canary"}',
        document(grant="implicit"),
        document(token_url="ftp://canary.example"),
        document(access_token="canary\r\nX-Evil: 1"),
        document(access_token=None, refresh_token=None),
        document(grant="client_credentials", client_secret=None),
        document(canary="canary"),
        document(expires_at="tomorrow"),
        document(token_endpoint_auth_method="private_key_jwt"),
        document(access_token="canary" * 6000),
        document()[:-1] + b', "grant": "authorization_code"}',
    )
    sent_secrets = (ACCESS, REFRESH, SECRET)


class RenewalTests(OAuth2Case):
    """When it is renewed, and by what request."""

    def test_not_before(self) -> None:
        """A token is sent as it is until a minute before it runs out, and renewed then."""
        self.held.pass_time(3539)
        self.assertEqual(self.token(), ACCESS)
        self.held.pass_time(1)
        self.held.answers = [GIVEN]
        self.assertEqual(self.token(), "canary-access-2")
        self.assertEqual(self.token(), "canary-access-2")
        self.assertEqual(len(self.held.asked), 1)

    def test_kept_first(self) -> None:
        """What was given is kept before any of it is used: without that, it is not sent."""
        self.held.pass_time(3600)
        self.held.answers = [GIVEN]
        refusing = evolve(self.held.use(), keep=self._refuse)
        self.failureResultOf(Deferred.fromCoroutine(self.kind.authorize(refusing, REQUEST)), OSError)
        self.held.answers = [GIVEN]
        self.authorized()
        kept = self.kept()
        self.assertEqual((kept["access_token"], kept["refresh_token"]), ("canary-access-2", "canary-refresh-2"))
        self.assertEqual(kept["expires_at"], at(7200))

    @staticmethod
    def _refuse(renewed: bytes) -> None:
        raise OSError("no space")

    def test_request(self) -> None:
        """The endpoint is asked for a refresh, by POST, with the client's credentials in the body."""
        self.keeps(access_token=None)
        self.held.answers = [GIVEN]
        self.authorized()
        (asked,) = self.held.asked
        self.assertEqual((asked.url, asked.private_network), (URL, False))
        self.assertIn(("Content-Type", "application/x-www-form-urlencoded"), asked.headers)
        self.assertEqual(
            self.asked(),
            {"grant_type": "refresh_token", "refresh_token": REFRESH, "client_id": "cl:ient", "client_secret": SECRET},
        )

    def test_basic(self) -> None:
        """The client's credentials may go in the header, each encoded (RFC 6749 2.3.1)."""
        self.keeps(access_token=None, token_endpoint_auth_method="client_secret_basic")
        self.held.answers = [GIVEN]
        self.authorized()
        (asked,) = self.held.asked
        (sent,) = (value for name, value in asked.headers if name == "Authorization")
        self.assertEqual(base64.b64decode(sent.removeprefix("Basic ")), f"cl%3Aient:{SECRET}".encode())
        self.assertEqual(self.asked().keys(), {"grant_type", "refresh_token"})

    def test_public_client(self) -> None:
        """A client without a secret names itself alone."""
        self.keeps(access_token=None, client_secret=None, token_endpoint_auth_method="none")
        self.held.answers = [GIVEN]
        self.authorized()
        self.assertEqual(self.asked()["client_id"], "cl:ient")

    def test_private_network(self) -> None:
        """An endpoint on the private network is allowed where the connector's file allows that."""
        self.held.scope = scope_of(self.kind, private_network="true")
        self.keeps(access_token=None)
        self.held.answers = [GIVEN]
        self.authorized()
        self.assertTrue(self.held.asked[0].private_network)

    def test_not_rotated(self) -> None:
        """A refresh token that is not replaced stays."""
        self.keeps(access_token=None)
        self.held.answers = [told(access_token="canary-access-2", expires_in="60")]
        self.authorized()
        self.assertEqual((self.kept()["refresh_token"], self.kept()["expires_at"]), (REFRESH, at(60)))

    def test_by_itself(self) -> None:
        """A client that asks for itself gets its first token at its first use, and another when that runs out."""
        self.held.kept = document(grant="client_credentials", access_token=None, refresh_token=None, expires_at=None)
        self.held.answers = [told(access_token="canary-own-1", expires_in=120), told(access_token="canary-own-2")]
        self.assertEqual(self.token(), "canary-own-1")
        expected = {"grant_type": "client_credentials", "scope": "read write", "client_id": "cl:ient"}
        self.assertEqual(self.asked(), {**expected, "client_secret": SECRET})
        self.held.pass_time(61)
        self.assertEqual(self.token(), "canary-own-2")

    def test_ready(self) -> None:
        """Making it ready renews it, and the use that follows asks nobody."""
        self.keeps(access_token=None)
        self.held.answers = [GIVEN]
        self.successResultOf(Deferred.fromCoroutine(self.kind.make_ready(self.held.use())))
        self.assertEqual((self.token(), len(self.held.asked)), ("canary-access-2", 1))

    def test_reveal(self) -> None:
        """A connector written in Python gets the token."""
        revealed = Deferred.fromCoroutine(self.kind.reveal(self.held.use()))
        self.assertEqual(self.successResultOf(revealed), ACCESS.encode())


class RefusedTests(OAuth2Case):
    """What a 401 of the service comes to."""

    def refused(self) -> bool:
        """Tell of a refusal of what is sent now."""
        return self.kind.refused(self.held.use(), self.authorized())

    def test_without_expiry(self) -> None:
        """A token of which nobody said when it runs out is renewed after the service has refused it, and not before."""
        self.keeps(expires_at=None)
        self.held.pass_time(10**8)
        self.assertEqual((self.token(), self.held.asked), (ACCESS, []))
        self.assertTrue(self.refused())
        self.assertEqual(self.held.asked, [])
        self.held.answers = [told(access_token="canary-access-2")]
        self.assertEqual(self.token(), "canary-access-2")

    def test_another_by_now(self) -> None:
        """A refusal of a token that was replaced meanwhile says nothing about the one that is there."""
        old = self.authorized()
        self.held.pass_time(3600)
        self.held.answers = [GIVEN]
        self.authorized()
        before = self.held.kept
        self.assertTrue(self.kind.refused(self.held.use(), old))
        self.assertEqual(self.held.kept, before)

    def test_given_just_now(self) -> None:
        """A service that refuses every token does not have one renewed at each request."""
        self.keeps(access_token=None)
        self.held.answers = [GIVEN]
        self.authorized()
        self.held.pass_time(59)
        self.assertFalse(self.refused())
        self.held.pass_time(1)
        self.assertTrue(self.refused())

    def test_not_renewable(self) -> None:
        """Where no other can be had, only a person can help: that is told once, and nothing is sent before."""
        for end in (None, at(3600)):
            self.keeps(refresh_token=None, expires_at=end)
            sent = self.authorized()
            with self.assertRaises(NeedsYou) as raised:
                self.kind.refused(self.held.use(), sent)
            self.assertTrue(raised.exception.is_new)
            self.assertFalse(self.kind.refused(self.held.use(), sent))
            self.assertIs(self.status(), CredentialStatus.NEEDS_YOU)
            needs = self.fails(NeedsYou)
            assert isinstance(needs, NeedsYou)
            self.assertEqual((needs.reason, needs.is_new, self.held.asked), (raised.exception.reason, False, []))

    def test_not_renewable_just_now(self) -> None:
        """A token that was given just now is not taken for spent by a first refusal, as one that can be renewed."""
        self.keeps(refresh_token=None, obtained_at=at(-59))
        self.assertFalse(self.refused())
        self.assertEqual((self.held.history, self.status()), ([], CredentialStatus.EXPIRES))
        self.held.pass_time(1)
        with self.assertRaises(NeedsYou):
            self.refused()


class ResourceTests(OAuth2Case):
    """Tokens that are for one resource alone, of an authorization server that was found."""

    settings: ClassVar[dict[str, str]] = {"discover": "true", "resource": "https://api.example/mcp"}
    good = document(resource="https://api.example/", issuer="https://login.example")
    found: ClassVar[dict[str, str]] = {"resource": "https://api.example/mcp", "issuer": "https://login.example"}

    def test_renewed(self) -> None:
        """A renewal asks the endpoint that was found when the person signed in, for this resource."""
        self.keeps(**self.found, access_token=None)
        self.held.answers = [GIVEN]
        self.assertEqual(self.token(), "canary-access-2")
        self.assertEqual((self.held.asked[0].url, self.asked()["resource"]), (URL, "https://api.example/mcp"))
        self.assertEqual(self.kept()["resource"], "https://api.example/mcp")

    def test_above(self) -> None:
        """A token for the whole origin is sent to what lies below."""
        self.assertEqual(self.token(), ACCESS)

    def test_other_resource(self) -> None:
        """A token for another resource, or for none, is not sent, and a person is told once."""
        for resource in (
            "https://other.example/mcp",
            "https://api.example/mcp/more",
            "https://api.example/mc",
            "x",
            None,
        ):
            self.keeps(resource=resource)
            first, again = self.fails(NeedsYou), self.fails(NeedsYou)
            assert isinstance(first, NeedsYou) and isinstance(again, NeedsYou)
            self.assertEqual((first.is_new, again.is_new, self.held.asked), (True, False, []))
            self.assertEqual(self.status(), CredentialStatus.NEEDS_YOU)

    def test_moved(self) -> None:
        """An endpoint that is not where it was is looked for by a person: no redirect, no second discovery."""
        for status in (301, 308, 404, 410):
            self.keeps(**self.found, access_token=None)
            self.held.asked.clear()
            self.held.answers = [TokenAnswer(status, b"")]
            self.fails(NeedsYou)
            self.assertEqual((len(self.held.asked), self.status()), (1, CredentialStatus.NEEDS_YOU))
        self.keeps(**self.found, access_token=None)
        for status in (302, 307, 500, 503):
            self.held.answers = [TokenAnswer(status, b"")]
            self.fails(NetworkError)
        self.assertEqual(self.status(), CredentialStatus.READY)


class DeniedTests(OAuth2Case):
    """What a 403 of the service comes to."""

    def denied(self, challenge: str) -> NeedsYou | None:
        """Tell of it."""
        try:
            self.assertFalse(self.kind.refused(self.held.use(), self.authorized(), challenge))
        except NeedsYou as needs:
            return needs
        return None

    def test_more_scopes(self) -> None:
        """Scopes that the service wants beside those given are asked for at the next sign-in, with those given."""
        needs = self.denied('Bearer error="insufficient_scope", scope="read admin", error_description="canary"')
        self.assertEqual((needs and needs.is_new, needs and "admin" in needs.reason), (True, False))
        state = self.kind.state(self.held.kept, NOW)
        self.assertEqual((state.status, state.wanted), (CredentialStatus.NEEDS_YOU, ("read", "write", "admin")))
        self.fails(NeedsYou)
        self.assertEqual(self.kept()["access_token"], ACCESS)

    def test_nothing_to_ask_for(self) -> None:
        """Another error, no scopes, those that it has, and a challenge that is none change nothing."""
        for challenge in (
            'Bearer error="invalid_token", scope="admin"',
            'Bearer error="insufficient_scope"',
            'Bearer error="insufficient_scope", scope="write"',
            'Bearer error="insufficient_scope", scope="admin \x1b"',
            'Basic error="insufficient_scope", scope="admin"',
        ):
            self.assertIsNone(self.denied(challenge), challenge)
        self.assertEqual(self.held.history, [])

    def test_another_by_now(self) -> None:
        """What was said of a token that was replaced meanwhile says nothing about the one that is there."""
        old = self.authorized()
        self.keeps(access_token="canary-access-2")
        self.kind.refused(self.held.use(), old, 'Bearer error="insufficient_scope", scope="admin"')
        self.assertEqual(self.held.history, [])


class AnswerTests(OAuth2Case):
    """What comes of what the endpoint answers."""

    def setUp(self) -> None:
        super().setUp()
        self.keeps(access_token=None)

    def test_ended(self) -> None:
        """What can be renewed no more needs a person, who is told once why; the endpoint is asked no more."""
        for code, status in (
            ("invalid_grant", 400),
            ("invalid_client", 401),
            ("unauthorized_client", 400),
            ("invalid_scope", 400),
            ("bad_refresh_token", 200),
        ):
            self.keeps(access_token=None)
            self.held.asked.clear()
            self.held.answers = [told(status, error=code, error_description=f"no {REFRESH}")]
            needs = self.fails(NeedsYou)
            assert isinstance(needs, NeedsYou)
            self.assertEqual(
                (needs.reason, needs.is_new), (f"The authorization server refused to renew it ({code}).", True)
            )
            again = self.fails(NeedsYou)
            assert isinstance(again, NeedsYou)
            self.assertEqual((again.reason, again.is_new, len(self.held.asked)), (needs.reason, False, 1))
            state = self.kind.state(self.held.kept, NOW)
            self.assertEqual((state.status, state.reason), (CredentialStatus.NEEDS_YOU, needs.reason))
            self.assertEqual(self.kept()["refresh_token"], REFRESH)

    def test_transient(self) -> None:
        """What may pass changes nothing that is kept, and may be tried again."""
        for answer in (
            *(TokenAnswer(status, b"busy") for status in (408, 429, 500, 502, 503, 302, 404)),
            told(503, error="invalid_grant"),
            told(429, error="slow_down"),
            told(400, error="temporarily_unavailable"),
            told(400, error="invalid_request"),
            told(400, error=["invalid_grant"]),
        ):
            self.held.answers = [answer]
            error = self.fails(NetworkError)
            assert isinstance(error, AileronError)
            self.assertTrue(error.fault().retriable)
        self.held.answers = [NetworkError("No connection.")]
        self.fails(NetworkError)
        self.assertEqual(self.held.history, [])

    def test_time_left(self) -> None:
        """A renewal that fails within the last minute does not keep a token from being sent that is still good."""
        self.keeps(expires_at=at(30))
        self.held.answers = [TokenAnswer(503, b"")]
        self.assertEqual((self.token(), self.held.history), (ACCESS, []))
        self.held.pass_time(30)
        self.held.answers = [TokenAnswer(503, b"")]
        self.fails(NetworkError)

    def test_unusable(self) -> None:
        """An answer that gives no token that could be sent is none, and changes nothing."""
        for answer in (
            b"",
            b"\xff",
            b"null",
            b"[]",
            b'"x"',
            b"{}",
            b"access_token=x",
            b'{"access_token": ""}',
            b'{"access_token": 7}',
            b'{"access_token": "a\\r\\nX: 1"}',
            b'{"access_token": "a", "refresh_token": ["b"]}',
            b'{"access_token": "a", "access_token": "b"}',
            b"[" * 60000,
        ):
            self.held.answers = [TokenAnswer(200, answer)]
            self.fails(NetworkError)
        self.assertEqual(self.held.history, [])

    def test_lifetimes(self) -> None:
        """How long a token is good is read as it is usually written; what cannot be believed is not."""
        for said, kept in (
            (60, at(60)),
            ("60", at(60)),
            (60.9, at(60)),
            (0, None),
            (-5, None),
            ("", None),
            ("soon", None),
            (True, None),
            (None, None),
            ([], None),
            (10**12, None),
        ):
            self.keeps(access_token=None)
            self.held.answers = [told(access_token="x", expires_in=said)]
            self.authorized()
            self.assertEqual(self.kept().get("expires_at"), kept, said)


class EndTests(OAuth2Case):
    """A token that nothing renews."""

    good = document(refresh_token=None)

    def test_until_then(self) -> None:
        """It is sent until it runs out; then a person is needed, and told once."""
        state = self.kind.state(self.held.kept, NOW)
        self.assertEqual((state.status, state.expires_at), (CredentialStatus.EXPIRES, NOW + timedelta(hours=1)))
        self.held.pass_time(3599)
        self.assertEqual(self.token(), ACCESS)
        self.held.pass_time(1)
        self.assertIs(self.status(), CredentialStatus.NEEDS_YOU)
        for is_new in (True, False):
            needs = self.fails(NeedsYou)
            assert isinstance(needs, NeedsYou)
            self.assertIs(needs.is_new, is_new)

    def test_without_end(self) -> None:
        """One without an end is ready for good."""
        self.keeps(refresh_token=None, expires_at=None)
        self.held.pass_time(10**8)
        self.assertEqual((self.token(), self.status()), (ACCESS, CredentialStatus.READY))


_WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
    max_leaves=10,
)
_MEMBERS = ("access_token", "refresh_token", "expires_in", "expires_at", "scope", "token_type", "error", "ok")
_ANSWERS = st.one_of(
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(_MEMBERS), _WILD | st.sampled_from(["invalid_grant", "3600", "canary-new"])).map(
        lambda members: json.dumps(members).encode()
    ),
)


class WildAnswerTests(SynchronousTestCase):
    """Whatever an endpoint answers."""

    @given(_ANSWERS, st.sampled_from([200, 201, 204, 302, 400, 401, 429, 500]))
    def test_any(self, body: bytes, status: int) -> None:
        """It gives a token that can be sent and is kept, or fails as it may, and loses no refresh token."""
        kind = KINDS["oauth2"]
        held = Held(document(access_token=None), scope_of(kind), [TokenAnswer(status, body)])
        revealing = Deferred.fromCoroutine(kind.reveal(held.use()))
        outcome: list[Any] = []
        revealing.addBoth(outcome.append)
        kind.check(held.kept)
        kept = json.loads(held.kept)
        self.assertIn("refresh_token", kept)
        if isinstance(outcome[0], bytes):
            self.assertEqual(kept["access_token"].encode(), outcome[0])
            self.assertEqual(len(held.history), 1)
        else:
            outcome[0].trap(NeedsYou, NetworkError)
            self.assertEqual((kept["refresh_token"], "access_token" in kept), (REFRESH, False))
            self.assertEqual(bool(held.history), outcome[0].check(NeedsYou) is not None)
