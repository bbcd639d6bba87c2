"""OAuth 2 (RFC 6749): an access token that is renewed by the authorization server."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from attrs import evolve, field, frozen

from aileron.base.addresses import is_loopback, read_origin, read_url
from aileron.base.json import JSON
from aileron.model.errors import NetworkError
from aileron.model.vault import Authorization, CredentialState

from ._challenge import wanted_scopes
from ._kind import PRIVATE_NETWORK, CredentialUse, NeedsYou, SettingRule, TokenAnswer, TokenRequest, only
from ._renewal import FORM, Renewable, RenewedKind, optional_members, token_of, write

CODE, CLIENT, DEVICE = "authorization_code", "client_credentials", "device_code"
POST, BASIC, NONE = "client_secret_post", "client_secret_basic", "none"
METHODS = (NONE, POST, BASIC)
DISCOVER, RESOURCE, ISSUER = "discover", "resource", "issuer"
"""Settings: whether the server names the sign-in page, the resource (not a key of a file), and the issuer."""

OFFLINE = "offline_access"
"""The scope that requests a refresh token.  Not every service that grants one lists this scope as granted."""

_GOOGLE = "https://www.googleapis.com/auth/userinfo."
_IDENTITY = frozenset({OFFLINE, "openid", "profile", "email", f"{_GOOGLE}email", f"{_GOOGLE}profile"})
_MOVED = frozenset({301, 308, 404, 410})
_OTHER_RESOURCE = "It was obtained for another resource than the connector has now."
_MORE_SCOPES = "The service wants more scopes than it was given."
_MOST_SECONDS = 10 * 365 * 86400
_ENDED = frozenset(
    {
        "invalid_grant",
        "invalid_client",
        "unauthorized_client",
        "invalid_scope",
        "invalid_target",
        "unsupported_grant_type",
        # The error codes of GitHub and Slack, sent with status 200.
        "bad_refresh_token",
        "incorrect_client_credentials",
        "invalid_refresh_token",
        "token_revoked",
    }
)


@frozen(kw_only=True)
class OAuth2Document(Renewable):
    """A token with everything that its renewal needs.

    :ivar grant: the grant of the first token: C{authorization_code}, C{device_code} or C{client_credentials}.
    :ivar scopes: the granted scopes. For C{client_credentials}, the requested ones.
    :ivar token_endpoint_auth_method: C{client_secret_post}, C{client_secret_basic} or C{none} (RFC 7591).
    :ivar resource: the only resource that the tokens are for (RFC 8707).
    :ivar issuer: the issuer of a discovered server, or None if the connector file names the endpoints.
    :ivar wanted: the scopes to request at the next sign-in, because the service requires more than were granted.
    """

    grant: str
    client_id: str
    token_url: str
    client_secret: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ()
    token_endpoint_auth_method: str = POST
    resource: str | None = None
    issuer: str | None = None
    wanted: tuple[str, ...] = ()


FORM.differ(
    OAuth2Document,
    **optional_members(
        *("client_secret", "refresh_token", "scopes", "token_endpoint_auth_method", "resource", "issuer", "wanted")
    ),
)


def read_endpoint(text: str) -> str:
    origin = read_origin(text)
    if origin.scheme == "http" and not is_loopback(origin.host):
        raise ValueError("must begin with https:// (plain http is for loopback)")
    if "#" in text:
        raise ValueError("must have no fragment")
    return text


_read_ascii = only(lambda text: text.isascii() and text.isprintable(), "must be visible ASCII")
_read_account = only(
    lambda text: all(part.isidentifier() for part in text.split(".")),
    "must be a dotted path into the token endpoint's answer, such as id_token.email",
)
_read_method = only(METHODS.__contains__, f"must be {POST}, {BASIC} or {NONE}")


def _read_document_url(text: str) -> str:
    url = read_url(read_endpoint(text))
    if url.origin.scheme != "https" or url.path in {"", "/"} or url.query is not None or url.user_info is not None:
        raise ValueError("must be the https:// address of a document about the client, with a path and no query")
    return text


class OAuth2(RenewedKind[OAuth2Document]):
    """A token of an authorization server, renewed by a refresh token or by the client's own credentials."""

    name: ClassVar[str] = "oauth2"
    format: ClassVar[str] = "Bearer {key}"
    document = OAuth2Document
    settings: ClassVar[Mapping[str, SettingRule]] = {
        "token_url": SettingRule(read_endpoint),
        "authorize_url": SettingRule(read_endpoint),
        "device_url": SettingRule(read_endpoint),
        "scopes": SettingRule(_read_ascii, several=True),
        ISSUER: SettingRule(read_endpoint),
        "account": SettingRule(_read_account),
        "token_endpoint_auth_method": SettingRule(_read_method),
        DISCOVER: SettingRule(flag=True),
        "client_id": SettingRule(_read_ascii),
        "client_metadata_url": SettingRule(_read_document_url),
    }

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Check that the settings of discovery fit together.

        :raises ValueError: if discovery has no resource or is combined with endpoints, or there is a metadata URL
            without discovery.
        """
        named = [name for name in ("token_url", "authorize_url", "device_url") if name in settings]
        if DISCOVER not in settings:
            if "client_metadata_url" in settings:
                raise ValueError("`client_metadata_url` needs `discover = true`")
        elif RESOURCE not in settings:
            raise ValueError("`discover` is for connectors of the kind mcp")
        elif named:
            raise ValueError(f"`{named[0]}` must not stand beside `discover`")

    def problem(self, found: OAuth2Document) -> str | None:
        """Return the fault of a document, as the end of a sentence, or None if the document is valid."""
        if found.grant not in {CODE, CLIENT, DEVICE}:
            return f"must have a grant that is {CODE}, {CLIENT} or {DEVICE}"
        if found.token_endpoint_auth_method not in METHODS:
            return f"must have a token_endpoint_auth_method that is {POST}, {BASIC} or {NONE}"
        if found.grant == CLIENT and not found.client_secret:
            return "must have a client_secret for client_credentials"
        if found.grant != CLIENT and not (found.access_token or found.refresh_token):
            return "must have an access_token or a refresh_token"
        try:
            read_origin(found.token_url)
        except ValueError as error:
            return f"has a token_url that {error}"
        return None

    def make_sample(self, secret: str) -> bytes:
        """Return a document with C{secret} as its token, which cannot be renewed, for C{aileron connector prove}."""
        return write(OAuth2Document(access_token=secret, grant=CODE, client_id="prove", token_url="https://as.example"))

    def is_renewable(self, found: OAuth2Document) -> bool:
        """Return True if there is a refresh token or the grant is C{client_credentials}."""
        return found.grant == CLIENT or found.refresh_token is not None

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return the refresh token and the client secret. The service may have issued them and could return them.

        :raises ValueError: if the stored document cannot be read.
        """
        found = self.read(kept)
        return tuple(each for each in (found.refresh_token, found.client_secret) if each)

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Return the state, with the scopes to request and the issuer and token endpoint of the sign-in.

        :raises ValueError: if the stored document cannot be read.
        """
        found = self.read(kept)
        return evolve(super().state(kept, now), wanted=found.wanted, issuer=found.issuer, token_url=found.token_url)

    def refused(self, use: CredentialUse, sent: Authorization, challenge: str = "") -> bool:
        """If a 403 names scopes that were not granted, store that a person must sign in again (RFC 6750, 3.1).

        Otherwise, mark the sent token as spent, as for every renewed kind.

        :return: True if the next use sends another token, so that a retry may succeed.
        :raises NeedsYou: if a person must sign in again.
        :raises ValueError: if the stored document cannot be read.
        """
        found, scopes = self.read(use.kept), wanted_scopes(challenge) or ()
        is_news = not found.needs_you and found.access_token in sent.secrets
        if is_news and not {*scopes} <= {*found.scopes}:  # otherwise another sign-in would not help
            wanted = tuple(dict.fromkeys((*found.scopes, *scopes)))
            use.keep(write(evolve(found, needs_you=_MORE_SCOPES, wanted=wanted)))
            raise NeedsYou(_MORE_SCOPES)
        return super().refused(use, sent, challenge)

    async def _current(self, use: CredentialUse) -> OAuth2Document:
        """Return the document with a token for the connector's resource.

        :raises NeedsYou: if the stored tokens are for another resource, which is stored, or for the reasons of the base
            class.
        :raises NetworkError: if the token has expired and could not be renewed this time.
        :raises ValueError: if the stored document cannot be read.
        """
        found, resource = self.read(use.kept), use.scope.settings.get(RESOURCE)
        if resource is not None and not found.needs_you and not covers(found.resource or "", resource):
            use.keep(write(evolve(found, needs_you=_OTHER_RESOURCE)))
            raise NeedsYou(_OTHER_RESOURCE)
        return await super()._current(use)

    def limit(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Return a sentence that names the C{scopes} that were not granted, or None if all were or it is unknown.

        :raises ValueError: if the stored document cannot be read.
        """
        missing = missing_scopes(self.read(kept), scopes)
        return f"It was not given: {', '.join(missing)}." if missing else None

    def surplus(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Return a sentence that names granted scopes that are not in C{scopes}, or None if there are none.

        Scopes that only identify the person are ignored.

        :raises ValueError: if the stored document cannot be read.
        """
        given = (each for each in self.read(kept).scopes if each.lower() not in _IDENTITY)
        more = [each for each in given if not any(_is_same(one, each) for one in scopes)]
        return f"It was given more than your trusted actions need: {', '.join(more)}." if more else None

    async def renew(self, found: OAuth2Document, use: CredentialUse) -> OAuth2Document:
        """Request a new token from the token endpoint, and return the document with it.

        :raises NeedsYou: if the server reports a permanent error, or a discovered token endpoint has moved.
        :raises NetworkError: if the endpoint gave no token this time, or cannot be reached.
        :raises BindingFailed: if the endpoint's address is not permitted.
        """
        private_network = PRIVATE_NETWORK in use.scope.settings
        if found.grant == CLIENT:
            request = token_request(found, CLIENT, private_network=private_network, scope=list(found.scopes) or None)
        else:
            request = token_request(
                found, "refresh_token", private_network=private_network, refresh_token=found.refresh_token
            )
        answer = await use.exchange(request)
        if found.issuer is not None and answer.status in _MOVED:
            raise NeedsYou("The token endpoint is not where it was when you signed in.")
        told = _read_answer(answer)
        try:
            return with_tokens(found, told, use.now())
        except ValueError as error:
            raise NetworkError(f"The token endpoint {error}.") from None


def covers(resource: str, url: str) -> bool:
    """Return True if C{url} is the resource or below it on the same origin.

    If one of the two is not a URL, return False.
    """
    try:
        read_origin(resource)
        above, below = read_url(resource), read_url(url)
    except ValueError:
        return False
    is_plain = above.query is None and above.fragment is None
    return is_plain and above.origin == below.origin and f"{below.path}/".startswith(f"{above.path.rstrip('/')}/")


def missing_scopes(found: OAuth2Document, asked: Sequence[str]) -> tuple[str, ...]:
    """Return the requested scopes that the server did not grant. If its response named no scopes, return none."""
    if not found.scopes:
        return ()
    given = (*found.scopes, *((OFFLINE,) if found.refresh_token else ()))
    return tuple(each for each in asked if not any(_is_same(each, one) for one in given))


def _is_same(one: str, other: str) -> bool:
    """Return True if two scopes are equal. Case, and a URL before the scope's name, are ignored."""
    short, long = sorted((one.lower(), other.lower()), key=len)
    return short == long or long.endswith(f"/{short}")


def with_tokens(found: OAuth2Document, told: Mapping[str, JSON], now: datetime) -> OAuth2Document:
    """Return the document with the tokens of a response.  If the response has no refresh token, the old one is kept.

    :raises ValueError: if the response has no token that can be sent.
    """
    lifetime = _lifetime(told.get("expires_in"))
    return evolve(
        found,
        access_token=token_of(told.get("access_token")),
        refresh_token=token_of(told["refresh_token"]) if told.get("refresh_token") else found.refresh_token,
        expires_at=None if lifetime is None else now + lifetime,
        obtained_at=now,
        spent=False,
    )


def token_request(found: OAuth2Document, grant_type: str, *, private_network: bool, **sent: Any) -> TokenRequest:
    """Return the request for a token by a grant with the parameters C{sent}, including the client's authentication."""
    from oauthlib.oauth2.rfc6749.parameters import prepare_token_request  # slow to load, and rarely needed

    headers = [("Accept", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")]
    secret, method = found.client_secret or "", found.token_endpoint_auth_method
    in_header = secret != "" and method == BASIC
    if in_header:
        pair = f"{quote(found.client_id, safe='')}:{quote(secret, safe='')}"
        headers.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"))
    if secret != "" and method == POST:
        sent["client_secret"] = secret
    if found.resource is not None:
        sent[RESOURCE] = found.resource
    body = prepare_token_request(grant_type, client_id=found.client_id, include_client_id=not in_header, **sent)
    return TokenRequest(found.token_url, private_network, tuple(headers), body.encode("ascii"))


def _read_answer(answer: TokenAnswer) -> Mapping[str, JSON]:
    """Return the members of a token endpoint's response.

    :raises NeedsYou: if the server reports a permanent error.
    :raises NetworkError: if there is no token, but a later request may succeed.
    """
    found = answer.members
    code = found.get("error")
    if isinstance(code, str) and code in _ENDED and answer.status < 500:
        raise NeedsYou(f"The authorization server refused to renew it ({code}).")
    if not 200 <= answer.status <= 299 or "access_token" not in found or "error" in found:
        message = f"The token endpoint gave no token; it answered with status {answer.status}."
        raise NetworkError(message, {"status": answer.status})
    return found


def _lifetime(told: JSON) -> timedelta | None:
    """Return the lifetime of a token from C{expires_in} of a response, or None if it is missing or invalid."""
    seconds = int(told) if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 12 else told
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= _MOST_SECONDS:
        return None
    return timedelta(seconds=int(seconds))
