"""Asks the sign-in provider: its metadata, its keys, and its token endpoint. Redirects are not followed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from attrs import field, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.defer import TimeoutError as Overdue
from twisted.internet.interfaces import IReactorTime

from aileron.base.addresses import read_url
from aileron.base.json import JSON, utc
from aileron.base.waiting import uncancelled
from aileron.credentials import (
    CODE,
    PRIVATE_NETWORK,
    AuthorizationServer,
    BrowserSignIn,
    SignInClient,
    SignInRefused,
    TokenAnswer,
    TokenExchange,
    TokenRequest,
    read_endpoint,
)
from aileron.model.errors import NetworkError

from ._attempts import ProviderAttempt
from ._id_token import ExpectedToken, check_claims, find_key, read_header, read_keys, verify_signature
from .values import OidcSettings

T = TypeVar("T")

KEPT_SECONDS = 3600.0
"""The time after which metadata and keys are fetched again."""

ANSWERED_SECONDS = 7.0
"""The longest time for the requests before, and again for those after, the person was at the provider's page.

Our page waits 15 seconds in all.
"""

BETWEEN_SECONDS = 10.0
"""The least time between two requests for the same document."""

_WELL_KNOWN = "/.well-known/openid-configuration"
_ACCEPT = (("Accept", "application/json"),)
_BASIC, _POST, _NONE = "client_secret_basic", "client_secret_post", "none"
_BUSY = 429
_SILENT = "The sign-in provider could not be reached, or sent no valid answer. Try again in a moment."
_LONGEST_CODE = 60


class FetchedDocument(Generic[T]):
    """A document of the provider that is fetched when it is needed, and kept for an hour.

    :param fetch: fetches and reads it.
    """

    def __init__(self, fetch: Callable[[], Awaitable[T]], clock: IReactorTime) -> None:
        self._fetch, self._clock = fetch, clock
        self._turns = DeferredLock()
        self._held: tuple[float, T] | None = None
        self._tried_at: float | None = None

    async def get(self, is_enough: Callable[[T], bool] = lambda _: True) -> T:
        """Return the document. If what is held is not enough, fetch it again, but not more often than every 10 seconds.

        :raises NetworkError, BindingFailed, SignInRefused: if it cannot be fetched or read.
        """
        found: T = await uncancelled(self._turns.run(self._get, is_enough))
        return found

    async def _get(self, is_enough: Callable[[T], bool]) -> T:
        held = self._held if self._held is not None and self._is_within(self._held[0], KEPT_SECONDS) else None
        if held is not None and is_enough(held[1]):
            return held[1]
        # guard of sign-in: strangers cannot have the provider asked all the time
        #    -> features.oidc.test_provider.KeyTests.test_rate
        if self._tried_at is not None and self._is_within(self._tried_at, BETWEEN_SECONDS):
            if held is None:
                raise NetworkError(_SILENT)
            return held[1]
        self._tried_at = self._clock.seconds()
        found = await self._fetch()
        self._held = (self._clock.seconds(), found)
        return found

    def _is_within(self, at: float, seconds: float) -> bool:
        return 0 <= self._clock.seconds() - at < seconds


@frozen
class Metadata:
    """The provider's metadata.

    :ivar server: its endpoints.
    :ivar keys_url: the address of its keys.
    """

    server: AuthorizationServer
    keys_url: str


@frozen
class ProviderTokens:
    """The tokens of one answer of the token endpoint."""

    id_token: str = field(repr=False)
    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)


@frozen
class VerifiedPerson:
    """A person for whom the provider vouches.

    :ivar claims: the claims of the ID token.
    """

    subject: str
    claims: Mapping[str, JSON] = field(repr=False)
    refresh_token: str | None = field(repr=False)


class SignInProvider:
    """The sign-in provider.

    :param exchange: sends requests to it.
    :param open_secret: returns the client secret, or None if there is none.
    """

    def __init__(
        self,
        settings: OidcSettings,
        exchange: TokenExchange,
        open_secret: Callable[[], Awaitable[str | None]],
        clock: IReactorTime,
    ) -> None:
        self._settings, self._exchange, self._open_secret, self._clock = settings, exchange, open_secret, clock
        self._metadata = FetchedDocument(self._fetch_metadata, clock)
        self._keys = FetchedDocument(self._fetch_keys, clock)

    async def open(self, attempt: ProviderAttempt, redirect_uri: str) -> BrowserSignIn:
        """Return the sign-in of an attempt: its page at the provider, and the request that exchanges its code.

        :raises NetworkError, BindingFailed, SignInRefused: if the provider cannot be asked, or does not permit it.
        :raises VaultLocked: if the client secret cannot be read.
        """
        client = await self._in_time(self._client())
        return BrowserSignIn(client, redirect_uri, attempt.state, attempt.verifier)

    async def redeem(self, sign_in: BrowserSignIn, code: str, nonce: str) -> VerifiedPerson:
        """Exchange a code for an ID token, and return the person that the verified token is about.

        :raises SignInRefused: if the provider refuses the code, or the ID token is not valid for this sign-in.
        :raises NetworkError, BindingFailed: if the provider cannot be asked.
        """

        async def ask() -> VerifiedPerson:
            answer = await self._exchange(sign_in.token_request(code))
            tokens = _read_tokens(sign_in.client, answer, self._now())
            return await self._verify(tokens, nonce, is_renewed=False)

        return await self._in_time(ask())

    async def refresh(self, refresh_token: str, nonce: str) -> VerifiedPerson:
        """Exchange a refresh token for a new ID token, and return the person that it is about.

        :raises SignInRefused: if the provider refuses, or sends no valid ID token. The person is not let in any more.
        :raises NetworkError, BindingFailed: if the provider cannot be asked now.
        :raises VaultLocked: if the client secret cannot be read.
        """

        async def ask() -> VerifiedPerson:
            client = await self._client()
            answer = await self._exchange(client.request(CODE, "refresh_token", refresh_token=refresh_token))
            return await self._verify(_read_tokens(client, answer, self._now()), nonce, is_renewed=True)

        return await self._in_time(ask())

    async def _in_time(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of requests to the provider, which a browser waits for.

        :raises NetworkError: if it is not there in time.
        """
        try:
            return await Deferred.fromCoroutine(work).addTimeout(ANSWERED_SECONDS, self._clock)
        except Overdue:
            raise NetworkError(_SILENT) from None

    async def _verify(self, tokens: ProviderTokens, nonce: str, *, is_renewed: bool) -> VerifiedPerson:
        header = read_header(tokens.id_token)
        keys = await self._keys.get(lambda found: find_key(found, header) is not None)
        key = find_key(keys, header)
        if key is None:
            raise SignInRefused("The ID token is signed with a key that the provider does not publish.")
        claims = verify_signature(tokens.id_token, header, key)
        expected = ExpectedToken(
            self._settings.issuer, self._settings.client_id, nonce, tokens.access_token, is_renewed=is_renewed
        )
        subject = check_claims(claims, expected, self._clock.seconds())
        return VerifiedPerson(subject, claims, tokens.refresh_token)

    async def _client(self) -> SignInClient:
        server, secret = (await self._metadata.get()).server, await self._open_secret()
        settings = {
            "authorize_url": server.authorize_url,
            "token_url": server.token_url,
            "scopes": " ".join(self._settings.scopes),
            "issuer": server.issuer,
            "token_endpoint_auth_method": _NONE if secret is None else _choose_method(server.methods),
            **({PRIVATE_NETWORK: "true"} if self._settings.private_network else {}),
        }
        return SignInClient(settings, self._settings.client_id, secret, server)

    async def _fetch_metadata(self) -> Metadata:
        issuer = self._settings.issuer
        members = await self._fetch(issuer.rstrip("/") + _WELL_KNOWN, "metadata")
        # guard of sign-in: metadata that names another issuer leads nowhere
        #    -> features.oidc.test_provider.MetadataTests.test_issuer
        if members.get("issuer") != issuer:
            raise SignInRefused("The provider's metadata names another issuer than the configured one.")
        methods = members.get("code_challenge_methods_supported")
        if isinstance(methods, list) and "S256" not in methods:
            raise SignInRefused("The provider does not support PKCE with S256.")
        server = AuthorizationServer(
            issuer=issuer,
            authorize_url=_read_address(members, "authorization_endpoint", issuer),
            token_url=_read_address(members, "token_endpoint", issuer),
            registration_url=None,
            methods=_read_methods(members),
            reads_clients=False,
            names_itself=members.get("authorization_response_iss_parameter_supported") is True,
            gives_offline=False,
        )
        return Metadata(server, _read_address(members, "jwks_uri", issuer))

    async def _fetch_keys(self) -> tuple[Mapping[str, JSON], ...]:
        metadata = await self._metadata.get()
        return read_keys(await self._fetch(metadata.keys_url, "keys"))

    async def _fetch(self, url: str, place: str) -> Mapping[str, JSON]:
        request = TokenRequest(url, self._settings.private_network, _ACCEPT, None, f"provider's {place}")
        answer = await self._exchange(request)
        if answer.status != 200 or not answer.members:
            raise NetworkError(_SILENT)
        return answer.members

    def _now(self) -> datetime:
        return utc(self._clock.seconds())


def _read_tokens(client: SignInClient, answer: TokenAnswer, now: datetime) -> ProviderTokens:
    """Return the tokens of an answer.

    :raises SignInRefused: if the provider refuses for good, or sends no ID token.
    :raises NetworkError: if there is no such answer now, but there may be one later.
    """
    members = answer.members
    if answer.status >= 500 or answer.status == _BUSY or not members:
        raise NetworkError(_SILENT)
    error = members.get("error")
    if error is not None or not 200 <= answer.status <= 299:
        shown = (
            error if isinstance(error, str) and error.replace("_", "").isalnum() and error.isascii() else "no reason"
        )
        raise SignInRefused(f"The sign-in provider refused ({shown[:_LONGEST_CODE]}).")
    document, id_token = client.read_tokens(CODE, answer, now), members.get("id_token")
    if not isinstance(id_token, str):
        raise SignInRefused("The provider sent no ID token.")
    return ProviderTokens(id_token, document.access_token or "", document.refresh_token)


def _read_methods(members: Mapping[str, JSON]) -> tuple[str, ...]:
    found = members.get("token_endpoint_auth_methods_supported")
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else (_BASIC,)


def _choose_method(methods: tuple[str, ...]) -> str:
    """Return the way in which the client secret is sent.

    :raises SignInRefused: if the provider supports none of ours.
    """
    found = next((each for each in (_BASIC, _POST) if each in methods), None)
    if found is None:
        raise SignInRefused("The provider accepts no client secret (token_endpoint_auth_methods_supported).")
    return found


def _read_address(members: Mapping[str, JSON], name: str, issuer: str) -> str:
    """Return an address that the provider's metadata names.

    :raises SignInRefused: if it is invalid, or is plain http although the issuer is not.
    """
    told = members.get(name)
    try:
        url = read_url(read_endpoint(told if isinstance(told, str) and len(told) <= 2048 else ""))
    except ValueError:
        raise SignInRefused(f"The provider's metadata has no valid address: {name}.") from None
    # guard of sign-in: metadata does not lead to plain http
    #    -> features.oidc.test_provider.MetadataTests.test_plain
    if url.user_info is not None or (url.origin.scheme == "http" and issuer.startswith("https:")):
        raise SignInRefused(f"The provider's metadata has no valid address: {name}.")
    return str(told)
