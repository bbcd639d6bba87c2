"""Verifies ID tokens (OpenID Connect Core, 3.1.3.7). Nothing here does I/O, and the time is passed in.

No message repeats anything of a token.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import jwt
from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from aileron.base.json import JSON, loads_strict
from aileron.base.signatures import read_base64url, write_base64url
from aileron.credentials import LEAST_RSA_BITS, SignInRefused

LEEWAY_SECONDS = 30
"""How much the provider's clock may differ from the daemon's."""

_KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
"""The signature algorithms that are accepted, each with the type of its keys. There is no other."""

_MOST_TOKEN, _MOST_SUBJECT, _MOST_KEYS = 32 * 1024, 255, 200


@frozen
class TokenHeader:
    """The header of an ID token, which is not verified yet.

    :ivar kid: the name of the key, or None if the token names none.
    """

    algorithm: str
    kid: str | None


@frozen
class ExpectedToken:
    """The contents that an ID token must have.

    :ivar nonce: the nonce of the attempt.
    :ivar is_renewed: True for a token that a refresh token was exchanged for. It may have no nonce.
    :ivar access_token: the access token that came with it.
    """

    issuer: str
    client_id: str
    nonce: str = field(repr=False)
    access_token: str = field(repr=False)
    is_renewed: bool = False


def read_header(token: str) -> TokenHeader:
    """Return the header of an ID token.

    :raises SignInRefused: if it is malformed, has another algorithm, or demands what is not supported.
    """
    if len(token) > _MOST_TOKEN:
        raise SignInRefused("The provider's ID token is too long.")
    found = _read_part(token.partition(".")[0])
    algorithm, kid = found.get("alg"), found.get("kid")
    # guard of sign-in: only a signature with a public key counts, never `none` or a shared secret
    #    -> features.oidc.test_id_token.HeaderTests.test_algorithms, instead if not isinstance(algorithm, str)
    if not isinstance(algorithm, str) or algorithm not in _KEY_TYPES:
        raise SignInRefused("The provider's ID token is not signed with RS256 or ES256.")
    # guard of sign-in: an extension that must be understood is refused
    #    -> features.oidc.test_id_token.HeaderTests.test_critical
    if "crit" in found:
        raise SignInRefused("The provider's ID token has extensions that are not supported.")
    if kid is not None and not isinstance(kid, str):
        raise SignInRefused("The provider's ID token is malformed.")
    return TokenHeader(algorithm, kid)


def _read_part(text: str) -> Mapping[str, JSON]:
    """Return the JSON object in a part of a token.

    :raises SignInRefused: if there is none.
    """
    try:
        found = loads_strict(read_base64url(text))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        raise SignInRefused("The provider's ID token is malformed.")
    return found


def find_key(keys: Sequence[Mapping[str, JSON]], header: TokenHeader) -> Mapping[str, JSON] | None:
    """Return the one key that may have signed a token with this header, or None if there is none or more than one."""
    suited = [each for each in keys if _suits(each, header.algorithm)]
    if header.kid is not None:
        suited = [each for each in suited if each.get("kid") == header.kid]
    return suited[0] if len(suited) == 1 else None


def _suits(key: Mapping[str, JSON], algorithm: str) -> bool:
    # guard of sign-in: a key for encryption, or for another algorithm, signs nothing
    #    -> features.oidc.test_id_token.KeyTests.test_other_use, instead return key.get("kty") == _KEY_TYPES[algorithm]
    return (
        key.get("kty") == _KEY_TYPES[algorithm]
        and key.get("use") in (None, "sig")
        and key.get("alg") in (None, algorithm)
        and (algorithm != "ES256" or key.get("crv") == "P-256")
    )


def read_keys(members: Mapping[str, JSON]) -> tuple[Mapping[str, JSON], ...]:
    """Return the keys of a provider's key document (RFC 7517).

    :raises SignInRefused: if it is malformed, or has too many.
    """
    found = members.get("keys")
    if not isinstance(found, list) or len(found) > _MOST_KEYS:
        raise SignInRefused("The provider's keys are malformed.")
    return tuple(each for each in found if isinstance(each, Mapping))


def verify_signature(token: str, header: TokenHeader, key: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the claims of a token that this key has signed.

    :raises SignInRefused: if it has not, the key is too weak, or the claims are no JSON object.
    """
    try:
        public: Any = jwt.PyJWK({**key}, algorithm=header.algorithm).key
        # guard of sign-in: a weak key, or a private one, proves nothing
        #    -> features.oidc.test_id_token.KeyTests.test_weak
        if not _is_strong(public):
            raise SignInRefused("The provider's key is too weak.")
        # guard of sign-in: the signature is verified
        #    -> features.oidc.test_id_token.SignatureTests.test_altered,
        #    instead data = jwt.PyJWS(options={"verify_signature": False}).decode(token, public, [header.algorithm])
        data = jwt.PyJWS().decode(token, public, algorithms=[header.algorithm])
        claims = loads_strict(data)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise SignInRefused("The provider's ID token is not signed with the provider's key.") from None
    if not isinstance(claims, Mapping):
        raise SignInRefused("The provider's ID token is malformed.")
    return claims


def _is_strong(key: Any) -> bool:
    if isinstance(key, RSAPublicKey):
        return key.key_size >= LEAST_RSA_BITS
    return isinstance(key, EllipticCurvePublicKey)


def check_claims(claims: Mapping[str, JSON], expected: ExpectedToken, now: float) -> str:
    """Return the subject of an ID token that was issued for this sign-in.

    :param now: the time in seconds since 1970.
    :raises SignInRefused: if the token is from another issuer, for another client or attempt, or not valid now.
    """
    # guard of sign-in: only the configured issuer -> features.oidc.test_id_token.ClaimsTests.test_issuer
    if claims.get("iss") != expected.issuer:
        raise SignInRefused("The ID token is from another issuer than the configured one.")
    # guard of sign-in: only a token for us -> features.oidc.test_id_token.ClaimsTests.test_audience
    if claims.get("aud") not in (expected.client_id, [expected.client_id]):
        raise SignInRefused("The ID token is for another application.")
    # guard of sign-in: only a token that we asked for -> features.oidc.test_id_token.ClaimsTests.test_party
    if claims.get("azp", expected.client_id) != expected.client_id:
        raise SignInRefused("The ID token was given to another application.")
    _check_times(claims, now)
    nonce = claims.get("nonce", expected.nonce if expected.is_renewed else None)
    # guard of sign-in: only a token of this attempt -> features.oidc.test_id_token.ClaimsTests.test_nonce
    if not isinstance(nonce, str) or not _is_same(nonce, expected.nonce):
        raise SignInRefused("The ID token is from another sign-in.")
    _check_access_token(claims.get("at_hash"), expected.access_token)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MOST_SUBJECT:
        raise SignInRefused("The ID token names nobody.")
    return subject


def _check_times(claims: Mapping[str, JSON], now: float) -> None:
    ends, issued = _read_time(claims.get("exp")), _read_time(claims.get("iat"))
    begins = _read_time(claims.get("nbf", 0))
    if ends is None or issued is None or begins is None:
        raise SignInRefused("The ID token does not say when it is valid.")
    # guard of sign-in: an expired token is refused -> features.oidc.test_id_token.ClaimsTests.test_expired
    if not now < ends + LEEWAY_SECONDS:
        raise SignInRefused("The ID token has expired. If this happens again, compare the clocks of both machines.")
    # guard of sign-in: a token of the future is refused -> features.oidc.test_id_token.ClaimsTests.test_future
    if not max(issued, begins) <= now + LEEWAY_SECONDS:
        raise SignInRefused("The ID token is not valid yet. Compare the clocks of both machines.")


def _read_time(told: JSON) -> float | None:
    return float(told) if isinstance(told, int | float) and not isinstance(told, bool) and abs(told) < 1e12 else None


def _check_access_token(told: JSON, access_token: str) -> None:
    """Check C{at_hash} if there is one: the left half of the access token's SHA-256."""
    if told is None:
        return
    digest = sha256(access_token.encode()).digest()
    # guard of sign-in: the access token belongs to the ID token
    #    -> features.oidc.test_id_token.ClaimsTests.test_access_token
    if not isinstance(told, str) or not _is_same(told, write_base64url(digest[: len(digest) // 2])):
        raise SignInRefused("The ID token belongs to another access token.")


def _is_same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode())
