"""What an ID token must be."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

import jwt
from attrs import evolve
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from twisted.trial.unittest import SynchronousTestCase

from aileron.credentials import SignInRefused
from aileron.features.oidc._id_token import (
    LEEWAY_SECONDS,
    ExpectedToken,
    TokenHeader,
    check_claims,
    find_key,
    read_header,
    read_keys,
    verify_signature,
)
from tests.features.oidc.issuer import CLIENT_ID, public_key, signing_keys

NOW = 1_700_000_000.0
ISSUER = "https://login.example.org"
EXPECTED = ExpectedToken(ISSUER, CLIENT_ID, "nonce-1", "access-1")
CLAIMS: Mapping[str, Any] = {
    "iss": ISSUER,
    "aud": CLIENT_ID,
    "sub": "u-1",
    "exp": NOW + 300,
    "iat": NOW,
    "nonce": "nonce-1",
}
RSA, EC = public_key("one", signing_keys()["one"]), public_key("curve", signing_keys()["curve"])


def part(value: Any) -> str:
    """A part of a token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims: Mapping[str, Any] = CLAIMS, kid: str = "one", **header: Any) -> str:
    """A token signed with a key of the tests."""
    algorithm = "ES256" if kid == "curve" else "RS256"
    return jwt.encode({**claims}, signing_keys()[kid], algorithm, headers={"kid": kid, **header})


class HeaderTests(SynchronousTestCase):
    """The header of a token."""

    def test_read(self) -> None:
        """The algorithm and the key's name are read."""
        self.assertEqual(read_header(signed()), TokenHeader("RS256", "one"))
        self.assertEqual(read_header(signed(kid="curve")), TokenHeader("ES256", "curve"))

    def test_algorithms(self) -> None:
        """No token without a signature counts, nor one with a shared secret or another algorithm."""
        names = ("none", "None", "NONE", "", "HS256", "HS512", "RS512", "PS256", "EdDSA", "ES384")
        refused: tuple[Any, ...] = (*names, None, 5, [])
        for algorithm in refused:
            token = f"{part({'alg': algorithm, 'kid': 'one'})}.{part(dict(CLAIMS))}."
            self.assertRaises(SignInRefused, read_header, token)

    def test_critical(self) -> None:
        """A token that demands what is not understood here is refused."""
        for crit in (["exp"], ["b64"], [], None):
            token = f"{part({'alg': 'RS256', 'crit': crit})}.{part({})}.{part(b'x')}"
            self.assertIn("not supported", str(self.assertRaises(SignInRefused, read_header, token)))

    def test_malformed(self) -> None:
        """Anything else is refused."""
        deep, twice = "[" * 5000, b'{"alg": "RS256", "alg": "none"}'
        for token in (
            "",
            "a",
            "a.b.c",
            "a.b.c.d.e",
            f"{part(twice)}.{part({})}.",
            f"{part([])}.{part({})}.",
            f"{part(deep.encode())}.{part({})}.",
            f"{part({'alg': 'RS256', 'kid': 5})}.{part({})}.{part(b'x')}",
            "x" * 40_000,
            "é.é.é",
        ):
            self.assertRaises(SignInRefused, read_header, token)


class KeyTests(SynchronousTestCase):
    """The provider's keys."""

    def test_found(self) -> None:
        """A key is found by its name; without a name, if there is only one that suits."""
        keys = [RSA, EC]
        self.assertIs(find_key(keys, TokenHeader("RS256", "one")), RSA)
        self.assertIs(find_key(keys, TokenHeader("ES256", None)), EC)
        self.assertIsNone(find_key(keys, TokenHeader("RS256", "two")))
        self.assertIsNone(find_key([*keys, {**RSA, "kid": "two"}], TokenHeader("RS256", None)))
        self.assertIsNone(find_key([RSA, RSA], TokenHeader("RS256", "one")))

    def test_other_use(self) -> None:
        """A key of another type or curve, for encryption, or for another algorithm, is not found."""
        for key, algorithm in (
            ({**RSA, "use": "enc"}, "RS256"),
            ({**RSA, "alg": "RSA-OAEP"}, "RS256"),
            ({**RSA, "kty": "oct", "k": "AAAA"}, "RS256"),
            ({**EC, "kid": "one", "alg": None}, "RS256"),
            ({**EC, "crv": "P-384"}, "ES256"),
            ({**EC, "crv": "secp256k1"}, "ES256"),
        ):
            self.assertIsNone(find_key([key], TokenHeader(algorithm, str(key["kid"]))), key)

    def test_weak(self) -> None:
        """A key with too few bits is refused, and so is a private one."""
        weak = rsa.generate_private_key(65537, 1024)
        token = jwt.encode({**CLAIMS}, weak, "RS256", headers={"kid": "weak"})
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(weak.public_key()))
        self.assertRaises(SignInRefused, verify_signature, token, TokenHeader("RS256", "weak"), {**key, "kid": "weak"})
        private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(signing_keys()["one"]))
        private.pop("key_ops", None)
        self.assertRaises(SignInRefused, verify_signature, signed(), TokenHeader("RS256", "one"), private)

    def test_document(self) -> None:
        """A document without a list of keys, or with too many, is refused. What is no object in it is skipped."""
        documents: tuple[Mapping[str, Any], ...] = ({}, {"keys": {}}, {"keys": None}, {"keys": [{}] * 201})
        for document in documents:
            self.assertRaises(SignInRefused, read_keys, document)
        self.assertEqual(read_keys({"keys": [1, RSA, "x"]}), (RSA,))


class SignatureTests(SynchronousTestCase):
    """The signature of a token."""

    def test_verified(self) -> None:
        """A token that the key has signed has these claims."""
        for key in (RSA, EC):
            token = signed(kid=str(key["kid"]))
            self.assertEqual(verify_signature(token, read_header(token), key), CLAIMS)

    def test_altered(self) -> None:
        """A token with other claims, another signature or none is refused."""
        head, claims, signature = signed().split(".")
        other = part({**CLAIMS, "sub": "u-2"})
        empty = part(b"")
        for token in (
            f"{head}.{other}.{signature}",
            f"{head}.{claims}.{empty}",
            f"{head}.{claims}.{part(b'x' * 256)}",
            jwt.encode({**CLAIMS}, signing_keys()["two"], "RS256", headers={"kid": "one"}),
        ):
            self.assertRaises(SignInRefused, verify_signature, token, TokenHeader("RS256", "one"), RSA)

    def test_public_key_as_secret(self) -> None:
        """A token signed with the public key as a shared secret is refused, whatever its header says."""
        pem = (
            signing_keys()["one"]
            .public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        for algorithm in ("HS256", "RS256"):
            head = f"{part({'alg': algorithm, 'kid': 'one'})}.{part(dict(CLAIMS))}"
            token = f"{head}.{part(hmac.digest(pem, head.encode(), 'sha256'))}"
            self.assertRaises(SignInRefused, verify_signature, token, TokenHeader("RS256", "one"), RSA)

    def test_other_curve(self) -> None:
        """A key of another curve verifies nothing."""
        key = ec.generate_private_key(ec.SECP384R1())
        found = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
        token = signed(kid="curve")
        self.assertRaises(SignInRefused, verify_signature, token, read_header(token), {**found, "crv": "P-256"})

    def test_no_object(self) -> None:
        """Claims that are no JSON object, or name a member twice, are refused."""
        for data in (b"[]", b"5", b"", b"{", b'{"iss": "a", "iss": "b"}', b"\xff", b'{"exp": NaN}'):
            token = jwt.PyJWS().encode(data, signing_keys()["one"], "RS256", headers={"kid": "one"})
            self.assertRaises(SignInRefused, verify_signature, token, TokenHeader("RS256", "one"), RSA)


class ClaimsTests(SynchronousTestCase):
    """What a token says."""

    def check(self, now: float = NOW, expected: ExpectedToken = EXPECTED, **changed: Any) -> str:
        """Check the claims, changed; None leaves one out."""
        claims = {name: value for name, value in {**CLAIMS, **changed}.items() if value is not None}
        return check_claims(claims, expected, now)

    def refused(self, words: str, *values: Any, name: str) -> None:
        """Check that each value of a claim is refused with these words."""
        for value in values:
            self.assertIn(words, str(self.assertRaises(SignInRefused, self.check, **{name: value})), value)

    def test_subject(self) -> None:
        """The subject of a valid token is returned."""
        self.assertEqual(self.check(), "u-1")
        self.refused("names nobody", None, "", 5, "x" * 256, [], name="sub")

    def test_issuer(self) -> None:
        """Only the very text of the configured issuer counts."""
        self.refused("another issuer", None, f"{ISSUER}/", ISSUER.upper(), "https://evil.example", [ISSUER], name="iss")

    def test_audience(self) -> None:
        """Only a token for this client counts, and for no other beside it."""
        self.assertEqual(self.check(aud=[CLIENT_ID]), "u-1")
        values: tuple[Any, ...] = (
            None,
            "other",
            ["other"],
            [CLIENT_ID, "other"],
            [],
            [[CLIENT_ID]],
            {CLIENT_ID: 1},
            f"{CLIENT_ID} ",
        )
        self.refused("another application", *values, name="aud")

    def test_party(self) -> None:
        """A token that was given to another client is refused."""
        self.assertEqual(self.check(azp=CLIENT_ID), "u-1")
        self.refused("to another application", "other", [CLIENT_ID], 5, name="azp")

    def test_expired(self) -> None:
        """A token counts until it expires, with a small leeway."""
        self.assertEqual(self.check(NOW + 300 + LEEWAY_SECONDS - 1), "u-1")
        self.assertRaises(SignInRefused, self.check, NOW + 300 + LEEWAY_SECONDS)

    def test_future(self) -> None:
        """A token that was issued later, or is valid later, is refused."""
        self.assertEqual(self.check(iat=NOW + LEEWAY_SECONDS), "u-1")
        for name in ("iat", "nbf"):
            self.refused("not valid yet", NOW + LEEWAY_SECONDS + 1, name=name)

    def test_no_times(self) -> None:
        """Times must be numbers."""
        for name in ("exp", "iat"):
            self.refused("when it is valid", None, "1700000300", True, [], 1e300, 10**400, name=name)

    def test_nonce(self) -> None:
        """Only the nonce of the attempt counts. A renewed token may have none, and no other."""
        self.refused("another sign-in", None, "", "nonce-2", 5, "\ud800", name="nonce")
        renewed = evolve(EXPECTED, is_renewed=True)
        self.assertEqual(self.check(expected=renewed, nonce=None), "u-1")
        self.assertRaises(SignInRefused, self.check, expected=renewed, nonce="nonce-2")

    def test_access_token(self) -> None:
        """The hash of the access token is checked if there is one."""
        self.assertEqual(self.check(at_hash=part(hashlib.sha256(b"access-1").digest()[:16])), "u-1")
        self.refused("another access token", "AAAA", "", 5, name="at_hash")
