"""Obtains the first token of OAuth 2: with a browser, on another device, or by the client itself.

This module does no I/O. The command line sends the requests and passes the responses.
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Self
from urllib.parse import parse_qsl, urlencode

from attrs import evolve, field, frozen

from aileron.base.addresses import read_origin
from aileron.base.json import JSON

from ._discovery import JSON_HEADERS, AuthorizationServer, ProtectedResource
from ._kind import PRIVATE_NETWORK, SignInRefused, TokenAnswer, TokenExchange, TokenRequest
from ._oauth2 import (
    CLIENT,
    CODE,
    DEVICE,
    ISSUER,
    METHODS,
    NONE,
    OFFLINE,
    RESOURCE,
    OAuth2Document,
    token_request,
    with_tokens,
)
from ._renewal import token_of

_MOST_SHOWN, _LONGEST_ACCOUNT = 300, 200
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_ID_TOKEN = "id_token"
_METHOD = "token_endpoint_auth_method"
_LONGEST_SECONDS, _INTERVAL_SECONDS, _SLOWER_SECONDS = 1800, 5, 5


class NotOurCallback(Exception):
    """Raised if a request to the callback does not belong to the sign-in, which is not affected."""


@frozen
class SignInClient:
    """An OAuth client and the connector file's settings for the service.

    :ivar settings: the settings of the credential's scope.
    :ivar client_id: the client id, or empty if the client must be registered.
    :ivar server: the discovered server, or None if the settings name the endpoints.
    """

    settings: Mapping[str, str]
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    server: AuthorizationServer | None = None

    @property
    def scopes(self) -> tuple[str, ...]:
        """The OAuth scopes to request for the operations of the service."""
        return tuple(self.settings.get("scopes", "").split())

    @property
    def asked_scopes(self) -> tuple[str, ...]:
        """The scopes to request: L{scopes}, and OpenID's if the file names an account in the ID token."""
        token, _, claim = self.settings.get("account", "").partition(".")
        identity = ("openid", "email" if claim == "email" else "profile") if token == _ID_TOKEN else ()
        return tuple(dict.fromkeys((*self.scopes, *identity)))

    @property
    def needs_secret(self) -> bool:
        """C{True} if the client needs a secret that is not known yet."""
        return self.client_secret is None and self._document(CODE).token_endpoint_auth_method != NONE

    def request(self, grant: str, grant_type: str | None = None, **sent: object) -> TokenRequest:
        """Return the request for a first token, with the grant's parameters C{sent}."""
        private = PRIVATE_NETWORK in self.settings
        return token_request(self._document(grant), grant_type or grant, private_network=private, **sent)

    def read_tokens(self, grant: str, answer: TokenAnswer, now: datetime) -> OAuth2Document:
        """Return the document to store for a response.

        Without stated scopes, the requested ones were granted (RFC 6749, 5.1).

        :raises SignInRefused: if the response has no token.
        """
        told, document = read_answer(answer), self._document(grant)
        given = told.get("scope")
        if isinstance(given, str) and grant != CLIENT:  # CLIENT requests its scopes again at each renewal
            document = evolve(document, scopes=tuple(given.replace(",", " ").split()))
        try:
            return with_tokens(document, told, now)
        except ValueError as error:
            raise SignInRefused(f"The token endpoint {error}.") from None

    def read_account(self, answer: TokenAnswer) -> str | None:
        """Return the account that signed in, from the place in the response that the file's setting C{account} names.

        Return None if there is no such setting, or no short, printable ASCII text at that place.
        The account is only shown to people for comparison.
        """
        if "account" not in self.settings:
            return None
        found: JSON = {**answer.members}
        for name in self.settings["account"].split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
            found = self._read_claims(found) if name == _ID_TOKEN and isinstance(found, str) else found
        is_name = isinstance(found, str) and found.isascii() and found.isprintable() and len(found) <= _LONGEST_ACCOUNT
        return str(found).strip() or None if is_name else None

    def _read_claims(self, token: str) -> JSON:
        """Return an ID token's claims, or None if it is invalid (OpenID Connect Core, 3.1.3.7)."""
        import jwt

        try:
            claims: JSON = jwt.decode(
                token,
                options={"verify_signature": False, "verify_aud": True, "require": ["aud"]},
                audience=self.client_id,
            )
        except (jwt.InvalidTokenError, RecursionError):
            return None
        return claims

    def _document(self, grant: str) -> OAuth2Document:
        return OAuth2Document(
            grant=grant,
            client_id=self.client_id,
            client_secret=self.client_secret,
            token_url=self.settings["token_url"],
            scopes=self.scopes,
            token_endpoint_auth_method=self.settings.get("token_endpoint_auth_method", NONE),
            resource=self.settings.get(RESOURCE),
            issuer=None if self.server is None else self.server.issuer,
        )


def found_client(settings: Mapping[str, str], resource: ProtectedResource, server: AuthorizationServer) -> SignInClient:
    """Return the client for a discovered server.

    Its id is that in the connector file. Else, if the server supports this, it is the URL of a document about the
    client, which the file names. Else the id is empty: the client must be registered, or the operator must enter an id.

    Only the scopes of the connector file are requested, or if it names none, those that the resource requires.  A
    client that is not a document authenticates as the file states, else as the server supports.
    """
    scopes = tuple(settings.get("scopes", "").split()) or resource.scopes
    if scopes and server.gives_offline:
        scopes = tuple(dict.fromkeys((*scopes, OFFLINE)))
    document = settings.get("client_metadata_url", "") if server.reads_clients else ""
    client_id = settings.get("client_id", "") or document
    found = {
        **({} if client_id and client_id == document else {_METHOD: server.method}),
        **settings,
        "authorize_url": server.authorize_url,
        "token_url": server.token_url,
        "scopes": " ".join(scopes),
        ISSUER: server.issuer,
        RESOURCE: resource.name,
    }
    return SignInClient(found, client_id, server=server)


async def register(client: SignInClient, redirect_uri: str, exchange: TokenExchange) -> SignInClient:
    """Register a client that has no id yet, for one redirect URI (RFC 7591).

    Return the client unchanged if it has an id or the server has no registration.  The credentials for changing the
    registration later are not stored.

    :raises SignInRefused: if the server refuses, or registers something else.
    :raises NetworkError, BindingFailed: if the server cannot be reached.
    """
    server = client.server
    if client.client_id or server is None or server.registration_url is None:
        return client
    scopes = " ".join(client.asked_scopes)
    asked: dict[str, JSON] = {
        "client_name": "Aileron",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
        _METHOD: server.method,
        **({"scope": scopes} if scopes else {}),
    }
    private, body = PRIVATE_NETWORK in client.settings, json.dumps(asked).encode()
    request = TokenRequest(server.registration_url, private, JSON_HEADERS, body, "registration endpoint")
    answered = read_answer(await exchange(request))
    told = {**asked, **{name: value for name, value in answered.items() if value not in (None, "")}}
    if told["redirect_uris"] != [redirect_uri]:
        raise SignInRefused("The authorization server registered a different redirect URI.")
    return _registered(client, told)


def _registered(client: SignInClient, told: Mapping[str, JSON]) -> SignInClient:
    """Return the client as the server registered it.

    :raises SignInRefused: if the registration has no id, no secret or an unsupported method.
    """
    method = told[_METHOD]
    try:
        client_id = token_of(told.get("client_id"))
        secret = None if method == NONE else token_of(told.get("client_secret"))
    except ValueError:
        raise SignInRefused("The authorization server registered a client without an ID or a secret.") from None
    if not isinstance(method, str) or method not in METHODS:
        raise SignInRefused("The authorization server registered a client with an unsupported authentication method.")
    return evolve(client, client_id=client_id, client_secret=secret, settings={**client.settings, _METHOD: method})


@frozen
class BrowserSignIn:
    """A sign-in by the authorization code grant, with PKCE (RFC 7636) and a loopback callback (RFC 8252).

    :ivar state: identifies this sign-in to the callback, once.
    :ivar verifier: proves to the token endpoint that this process requested the code.
    """

    client: SignInClient
    redirect_uri: str
    state: str = field(repr=False)
    verifier: str = field(repr=False)

    @classmethod
    def begin(cls, client: SignInClient, redirect_uri: str, randomness: Callable[[int], bytes]) -> Self:
        """Return a new sign-in, with 256 random bits each for state and verifier."""
        return cls(client, redirect_uri, _encode(randomness(32)), _encode(randomness(32)))

    @property
    def authorize_url(self) -> str:
        """The URL of the sign-in page."""
        url, scopes = self.client.settings["authorize_url"], " ".join(self.client.asked_scopes)
        asked = {
            "response_type": "code",
            "client_id": self.client.client_id,
            "redirect_uri": self.redirect_uri,
            **({"scope": scopes} if scopes else {}),
            "state": self.state,
            "code_challenge": _encode(sha256(self.verifier.encode("ascii")).digest()),
            "code_challenge_method": "S256",
            **({RESOURCE: resource} if (resource := self.client.settings.get(RESOURCE)) else {}),
        }
        return f"{url}{'&' if '?' in url else '?'}{urlencode(asked)}"

    def read_callback(self, query: str) -> str:
        """Return the code in the callback's query.

        :raises NotOurCallback: if the request does not belong to this sign-in.
        :raises SignInRefused: if the service refused, there is no code, or the response is from another server (RFC
            9207).
        """
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True, max_num_fields=32, errors="strict")
        except ValueError:
            raise NotOurCallback from None
        found = dict(pairs)
        given = found.get("state", "").encode("utf-8")
        if len(found) != len(pairs) or not hmac.compare_digest(given, self.state.encode("ascii")):
            raise NotOurCallback
        if not self._is_issuer(found.get("iss")):
            which = "that you signed in at" if self.client.server else "of the connector file"
            advice = "" if self.client.server else " If the server is right, set issuer in the connector file."
            raise SignInRefused(
                f"The answer names another authorization server than the one {which}, or none (iss).{advice}"
            )
        if "error" in found:
            raise _refusal(found)
        if not found.get("code"):
            raise SignInRefused("The service sent the browser back without a code.")
        return found["code"]

    def token_request(self, code: str) -> TokenRequest:
        """Return the request that exchanges the code for tokens."""
        return self.client.request(CODE, code=code, redirect_uri=self.redirect_uri, code_verifier=self.verifier)

    def _is_issuer(self, told: str | None) -> bool:
        """Return True if C{told}, the issuer in the response, is the server that was asked.

        It must be the issuer in the settings. Without one there, it must have the origin of the sign-in page. If
        C{told} is None, return True only if no issuer is expected.
        """
        declared, server = self.client.settings.get(ISSUER), self.client.server
        if told is None and server is not None:
            return not server.names_itself
        if declared is not None or told is None:
            return told == declared
        try:
            return read_origin(told) == read_origin(self.client.settings["authorize_url"])
        except ValueError:
            return False


@frozen
class DeviceSignIn:
    """A sign-in on another device (RFC 8628).

    :ivar page: the page where the person enters C{user_code}.
    :ivar expires_in: the lifetime of the codes in seconds.
    :ivar interval: the seconds between two polls.
    """

    client: SignInClient
    device_code: str = field(repr=False)
    user_code: str
    page: str
    expires_in: int
    interval: int

    @staticmethod
    def request(client: SignInClient) -> TokenRequest:
        """Return the request that starts a sign-in."""
        scopes = " ".join(client.asked_scopes)
        form = urlencode({"client_id": client.client_id, **({"scope": scopes} if scopes else {})})
        request = client.request(DEVICE, _DEVICE_GRANT)
        return evolve(request, url=client.settings["device_url"], body=form.encode("ascii"))

    @classmethod
    def from_answer(cls, client: SignInClient, answer: TokenAnswer) -> Self:
        """Return the sign-in that a response describes.

        :raises SignInRefused: if the response has no codes.
        """
        told = read_answer(answer)
        code, shown, page = (told.get(name) for name in ("device_code", "user_code", "verification_uri"))
        if not (isinstance(code, str) and isinstance(shown, str) and isinstance(page, str)):
            raise SignInRefused(f"The service gave no code for a device; it answered with status {answer.status}.")
        lifetime = _seconds(told.get("expires_in"), _LONGEST_SECONDS)
        return cls(client, code, shown, page, lifetime, _seconds(told.get("interval"), _INTERVAL_SECONDS))

    def token_request(self) -> TokenRequest:
        """Return the request that polls whether the person has signed in."""
        return self.client.request(DEVICE, _DEVICE_GRANT, device_code=self.device_code)

    def go_on(self, answer: TokenAnswer) -> Self | None:
        """Return the sign-in for the next poll, with a longer interval if the server asked for it.

        Return None if the response is final.
        """
        error = answer.members.get("error")
        if error == "slow_down":
            return evolve(self, interval=self.interval + _SLOWER_SECONDS)
        return self if error == "authorization_pending" else None


def _seconds(told: JSON, otherwise: int) -> int:
    if isinstance(told, int) and not isinstance(told, bool) and 0 < told <= _LONGEST_SECONDS:
        return told
    return otherwise


def read_answer(answer: TokenAnswer) -> Mapping[str, JSON]:
    """Return the members of a successful response.

    :raises SignInRefused: if the response is an error.
    """
    told = answer.members
    if isinstance(told.get("error"), str):
        raise _refusal(told)
    if not 200 <= answer.status <= 299:
        raise SignInRefused(f"The service answered with status {answer.status}.")
    return told


def _refusal(told: Mapping[str, JSON]) -> SignInRefused:
    more = told.get("error_description")
    words = f"{told['error']}{f' ({more})' if isinstance(more, str) and more else ''}"
    return SignInRefused(f"The service refused: {words[:_MOST_SHOWN]}")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
