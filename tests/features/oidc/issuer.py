"""A sign-in provider in memory, which misbehaves as told: its metadata, keys, page and token endpoint."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from attrs import define, field
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as generate_rsa

from aileron.credentials import TokenAnswer, TokenRequest
from aileron.model.errors import NetworkError

CLIENT_ID = "aileron"
SECRET = "client-secret-f3a1"
_RSA = [generate_rsa(65537, 2048) for _ in range(2)]
_EC = generate_ec(SECP256R1())


def signing_keys() -> dict[str, Any]:
    """The keys that tests sign with, by their kids."""
    return {"one": _RSA[0], "two": _RSA[1], "curve": _EC}


def public_key(kid: str, key: Any) -> dict[str, Any]:
    """The entry of a key in the provider's document."""
    is_rsa = key in _RSA
    algorithm: Any = jwt.algorithms.RSAAlgorithm if is_rsa else jwt.algorithms.ECAlgorithm
    found: dict[str, Any] = json.loads(algorithm.to_jwk(key.public_key()))
    found.pop("key_ops", None)
    return {**found, "kid": kid, "use": "sig", "alg": "RS256" if is_rsa else "ES256"}


@define
class Issuer:
    """The provider, and who is signed in there.

    :ivar seconds: returns the provider's time.
    :ivar person: the claims about the person who signs in next.
    :ivar claims: claims that replace those of coming ID tokens. None leaves one out.
    :ivar header: members that replace those of the header of coming ID tokens.
    :ivar kid: the key that signs.
    :ivar published: the kids of the keys that are published.
    :ivar metadata: members that replace those of the metadata.
    :ivar replies: answers of the coming requests for a token, in place of tokens: status and body.
    :ivar is_down: whether nobody answers.
    :ivar revoked: whether refresh tokens are refused.
    :ivar gives_refresh: whether there are refresh tokens.
    :ivar sign: signs in place of the library, from the claims.
    :ivar asked: the paths of all requests, in order.
    :ivar forms: the forms of all requests for a token, in order.
    :ivar given: every secret that was given out.
    """

    url: str
    seconds: Callable[[], float]
    person: dict[str, Any] = field(factory=lambda: {"sub": "u-1", "preferred_username": "Alice", "groups": ["ops"]})
    claims: dict[str, Any] = field(factory=dict)
    header: dict[str, Any] = field(factory=dict)
    kid: str = "one"
    published: list[str] = field(factory=lambda: ["one", "curve"])
    metadata: dict[str, Any] = field(factory=dict)
    replies: list[tuple[int, bytes]] = field(factory=list)
    is_down: bool = False
    revoked: bool = False
    gives_refresh: bool = True
    sign: Callable[[dict[str, Any]], str] | None = None
    asked: list[str] = field(factory=list)
    forms: list[dict[str, str]] = field(factory=list)
    given: list[str] = field(factory=list)
    _codes: dict[str, dict[str, Any]] = field(factory=dict)
    _refresh: dict[str, dict[str, Any]] = field(factory=dict)
    _count: int = 0

    async def exchange(self, asked: TokenRequest) -> TokenAnswer:
        """Answer a request of the daemon."""
        headers = {name.lower(): value for name, value in asked.headers}
        if self.is_down:
            raise NetworkError("The provider could not be reached.")
        status, body = self.answer(urlsplit(asked.url).path, asked.body, headers)
        return TokenAnswer(status, body)

    def answer(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Answer a request by its path: the metadata, the keys, or the token endpoint."""
        self.asked.append(path)
        if path.endswith("/.well-known/openid-configuration"):
            return 200, json.dumps(self.describe()).encode()
        if path.endswith("/keys"):
            keys = signing_keys()
            return 200, json.dumps({"keys": [public_key(kid, keys[kid]) for kid in self.published]}).encode()
        if path.endswith("/token") and body is not None:
            return self._answer_token(dict(parse_qsl(body.decode())), headers)
        return 404, b"{}"

    def describe(self) -> dict[str, Any]:
        """The metadata."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            **self.metadata,
        }

    def visit(self, url: str, **changed: str | None) -> str:
        """Sign in at the provider's page, and return the query with which the browser is sent back.

        :param changed: members that replace those of the answer. None leaves one out.
        """
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}
        answer = {"code": self.make_code(asked), "state": asked["state"], **changed}
        return urlencode({name: value for name, value in answer.items() if value is not None})

    def make_code(self, asked: dict[str, str]) -> str:
        """Return a code for what was asked for."""
        code = self._make("code")
        self._codes[code] = {**asked, "person": dict(self.person)}
        self.given += [code, asked["state"]]
        return code

    def make_id_token(self, person: dict[str, Any], nonce: str | None, access_token: str) -> str:
        """Return an ID token, changed as told."""
        now = int(self.seconds())
        half = sha256(access_token.encode()).digest()[:16]
        claims = {
            "iss": self.url,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "at_hash": base64.urlsafe_b64encode(half).rstrip(b"=").decode(),
            **({} if nonce is None else {"nonce": nonce}),
            **person,
            **self.claims,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.sign is not None:
            return self.sign(claims)
        algorithm = "ES256" if self.kid == "curve" else "RS256"
        return jwt.encode(claims, signing_keys()[self.kid], algorithm, headers={"kid": self.kid, **self.header})

    def _answer_token(self, form: dict[str, str], headers: Mapping[str, str]) -> tuple[int, bytes]:
        self.forms.append(form)
        if self.replies:
            return self.replies.pop(0)
        pair = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
        if headers.get("authorization") != f"Basic {pair}" and form.get("client_secret") != SECRET:
            return 401, b'{"error": "invalid_client"}'
        if form.get("grant_type") == "refresh_token":
            held = self._refresh.pop(form.get("refresh_token", ""), None)
            is_good = held is not None and not self.revoked
        else:
            held = self._codes.pop(form.get("code", ""), None)
            is_good = held is not None and self._is_proved(held, form)
        if not is_good or held is None:
            return 400, b'{"error": "invalid_grant", "error_description": "<b>no</b>"}'
        return 200, json.dumps(self._make_tokens(held)).encode()

    def _is_proved(self, asked: dict[str, Any], form: dict[str, str]) -> bool:
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest())
        return (
            asked["redirect_uri"] == form.get("redirect_uri")
            and (asked["client_id"], asked["response_type"], asked["code_challenge_method"])
            == (CLIENT_ID, "code", "S256")
            and asked["code_challenge"] == challenge.rstrip(b"=").decode()
        )

    def _make_tokens(self, held: dict[str, Any]) -> dict[str, Any]:
        access, refresh = self._make("access"), self._make("refresh")
        person = {**held["person"], **({"groups": self.person["groups"]} if "groups" in self.person else {})}
        id_token = self.make_id_token(person, held.get("nonce"), access)
        self.given += [access, refresh, id_token]
        if self.gives_refresh:
            self._refresh[refresh] = held
        told = {"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": id_token}
        return {**told, **({"refresh_token": refresh} if self.gives_refresh else {})}

    def _make(self, what: str) -> str:
        self._count += 1
        return f"{what}-{self._count}-{sha256(f'{what}{self._count}{self.url}'.encode()).hexdigest()[:24]}"
