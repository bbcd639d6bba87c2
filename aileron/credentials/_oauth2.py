"""OAuth 2 (RFC 6749): an access token that the authorization server renews."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar
from urllib.parse import quote

from attrs import evolve, field, frozen

from aileron.addresses import read_origin
from aileron.errors import NetworkError
from aileron.values import JSON, loads_strict

from ._kind import PRIVATE_NETWORK, CredentialUse, NeedsYou, SettingRule, TokenAnswer, TokenRequest
from ._renewal import FORM, Renewable, RenewedKind, optional_members, token_of

_CODE, _CLIENT, _DEVICE = "authorization_code", "client_credentials", "device_code"
_POST, _BASIC, _NONE = "client_secret_post", "client_secret_basic", "none"
_MOST_SECONDS = 10 * 365 * 86400
_ENDED = frozenset(
    {
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        "invalid_scope",
        "unsupported_grant_type",
        # GitHub's and Slack's words for the same, with status 200.
        "bad_refresh_token",
        "incorrect_client_credentials",
        "invalid_refresh_token",
        "token_revoked",
    }
)


@frozen(kw_only=True)
class OAuth2Document(Renewable):
    """All that renewal needs.

    :ivar grant: by which the first token came: C{authorization_code}, C{device_code} or C{client_credentials}.
    :ivar token_endpoint_auth_method: C{client_secret_post}, C{client_secret_basic} or C{none} (RFC 7591).
    """

    grant: str
    client_id: str
    token_url: str
    client_secret: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    token_endpoint_auth_method: str = _POST


FORM.differ(
    OAuth2Document,
    **optional_members("client_secret", "refresh_token", "scopes", "token_endpoint_auth_method"),
)


def _read_url(text: str) -> str:
    read_origin(text)
    return text


def _read_scope(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        raise ValueError("must be scopes of visible ASCII")
    return text


class OAuth2(RenewedKind[OAuth2Document]):
    """A token of an authorization server, renewed by a refresh token or by the client's own credentials."""

    name: ClassVar[str] = "oauth2"
    format: ClassVar[str] = "Bearer {key}"
    document = OAuth2Document
    settings: ClassVar[Mapping[str, SettingRule]] = {
        "token_url": SettingRule(_read_url),
        "authorize_url": SettingRule(_read_url),
        "device_url": SettingRule(_read_url),
        "scopes": SettingRule(_read_scope, several=True),
    }

    def problem(self, found: OAuth2Document) -> str | None:
        """Return what cannot be right."""
        if found.grant not in {_CODE, _CLIENT, _DEVICE}:
            return f"must have a grant that is {_CODE}, {_CLIENT} or {_DEVICE}"
        if found.token_endpoint_auth_method not in {_POST, _BASIC, _NONE}:
            return f"must have a token_endpoint_auth_method that is {_POST}, {_BASIC} or {_NONE}"
        if found.grant == _CLIENT and not found.client_secret:
            return "must have a client_secret for client_credentials"
        if found.grant != _CLIENT and not (found.access_token or found.refresh_token):
            return "must have an access_token or a refresh_token"
        try:
            read_origin(found.token_url)
        except ValueError as error:
            return f"has a token_url that {error}"
        return None

    def is_renewable(self, found: OAuth2Document) -> bool:
        """Tell whether there is a refresh token, or the client asks for itself."""
        return found.grant == _CLIENT or found.refresh_token is not None

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the refresh token and the client's secret: the service may be the one that gave them out."""
        found = self.read(kept)
        return tuple(each for each in (found.refresh_token, found.client_secret) if each)

    async def renew(self, found: OAuth2Document, use: CredentialUse) -> OAuth2Document:
        """Ask the token endpoint once."""
        answer = await use.exchange(_request(found, private_network=PRIVATE_NETWORK in use.scope.settings))
        told = _read_answer(answer)
        try:
            lifetime = _lifetime(told.get("expires_in"))
            refresh = token_of(told["refresh_token"]) if told.get("refresh_token") else found.refresh_token
            access = token_of(told.get("access_token"))
        except ValueError as error:
            raise NetworkError(f"The token endpoint {error}.") from None
        now = use.now()
        return evolve(
            found,
            access_token=access,
            refresh_token=refresh,
            expires_at=None if lifetime is None else now + lifetime,
            obtained_at=now,
            spent=False,
        )


def _request(found: OAuth2Document, *, private_network: bool) -> TokenRequest:
    from oauthlib.oauth2 import BackendApplicationClient, WebApplicationClient  # loads slowly, and most need none

    headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
    secret = found.client_secret or ""
    in_header = secret != "" and found.token_endpoint_auth_method == _BASIC
    if in_header:
        pair = f"{quote(found.client_id, safe='')}:{quote(secret, safe='')}"
        headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"))
    in_body = secret != "" and found.token_endpoint_auth_method == _POST
    more = {"client_secret": secret} if in_body else {}
    if found.grant == _CLIENT:
        asks = BackendApplicationClient(found.client_id)
        body = asks.prepare_request_body(scope=list(found.scopes) or None, include_client_id=not in_header, **more)
    else:
        named = {} if in_header else {"client_id": found.client_id}
        client = WebApplicationClient(found.client_id)
        body = client.prepare_refresh_body(refresh_token=found.refresh_token or "", **named, **more)
    return TokenRequest(found.token_url, private_network, tuple(headers), body.encode("ascii"))


def _read_answer(answer: TokenAnswer) -> Mapping[str, JSON]:
    """Read what the endpoint gave.

    :raises NeedsYou: it says in so many words that it will give no more.
    :raises NetworkError: it gives no token now, and may another time.
    """
    try:
        told = loads_strict(answer.body)
    except (ValueError, RecursionError):
        told = None
    found: Mapping[str, JSON] = told if isinstance(told, dict) else {}
    code = found.get("error")
    if isinstance(code, str) and code in _ENDED and answer.status < 500:
        raise NeedsYou(f"The authorization server refused to renew it ({code}).")
    if not 200 <= answer.status <= 299 or "access_token" not in found or "error" in found:
        message = f"The token endpoint gave no token; it answered with status {answer.status}."
        raise NetworkError(message, {"status": answer.status})
    return found


def _lifetime(told: JSON) -> timedelta | None:
    """Read for how long a token is good; what says nothing of use is L{None}."""
    seconds = int(told) if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 12 else told
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _MOST_SECONDS:
        return None
    return timedelta(seconds=int(seconds))
