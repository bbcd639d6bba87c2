"""The base class of the kinds of credential, and its parameter and result types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar
from urllib.parse import quote

from attrs import define, field, frozen

from aileron.base.json import JSON, loads_strict
from aileron.model.connectors import Request
from aileron.model.errors import BindingFailed, NetworkError
from aileron.model.vault import Authorization, CredentialState, CredentialStatus, Scope

PRIVATE_NETWORK = "private_network"
"""The setting that allows the token endpoint to be on loopback or a private address."""


class NeedsYou(Exception):
    """Raised if a person must act before the credential works again.

    :ivar reason: the reason in a sentence of Aileron's, without text from a service.
    :ivar is_new: whether the problem was discovered by this call.
    """

    def __init__(self, reason: str, *, is_new: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.is_new = reason, is_new


class SignInRefused(Exception):
    """Raised if a sign-in failed.  The reason is a sentence that may include text from the service."""


@frozen
class TokenRequest:
    """A request to a token endpoint, by POST, or for metadata, by GET.

    :ivar private_network: whether the address may be on loopback or private.
    :ivar body: the body, or None for a GET.
    :ivar place: the name of the endpoint, for people.
    """

    url: str
    private_network: bool
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    place: str = "token endpoint"


@frozen
class TokenAnswer:
    """The response of a token endpoint.

    :ivar challenge: the value of its C{WWW-Authenticate}, or empty if there is none.
    """

    status: int
    body: bytes = field(repr=False)
    challenge: str = field(default="", repr=False)

    @property
    def members(self) -> Mapping[str, JSON]:
        """The members of the JSON object in the body, empty if the body is not one."""
        try:
            told = loads_strict(self.body)
        except (ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}


TokenExchange = Callable[[TokenRequest], Awaitable[TokenAnswer]]
"""A function that sends one request to a token endpoint without following redirects.

It raises L{NetworkError} if no complete response arrived, and L{BindingFailed} if the URL is not allowed.
"""


async def no_exchange(asked: TokenRequest) -> TokenAnswer:
    """Raise L{NetworkError}, for callers without a network."""
    raise NetworkError("No token endpoint can be asked here.")


@define
class CredentialUse:
    """One use of a credential.

    :ivar scope: the scope that the credential was encrypted for: the hosts and the place in a request.
    :ivar kept: the stored credential.
    :ivar is_certain: whether a refusal certainly concerns the credential, and not only one operation.
    """

    scope: Scope
    kept: bytes = field(repr=False)
    _keep: Callable[[bytes], None] = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    exchange: TokenExchange = field(repr=False)
    is_certain: bool = True

    def keep(self, renewed: bytes) -> None:
        """Store the renewed credential in the vault durably. Call this before the credential is used."""
        self._keep(renewed)
        self.kept = renewed


def only(holds: Callable[[str], object], problem: str) -> Callable[[str], str]:
    """Return a reader of a setting that accepts only texts for which C{holds} returns a true value."""

    def read(text: str) -> str:
        if not holds(text):
            raise ValueError(problem)
        return text

    return read


@frozen
class SettingRule:
    """A key of a connector file's C{[credential]} that only some kinds support.

    :ivar read: returns the setting for a text in the file. Its C{ValueError} is the end of the error message.
    :ivar several: whether the file has an array of texts, which are stored joined by blanks.
    :ivar flag: whether the file has true or false. True is stored as a text, and false is not stored.
    """

    read: Callable[[str], str] = str
    several: bool = False
    flag: bool = False


class CredentialKind(ABC):
    """A kind of credential.  By default it never expires and fills one header or parameter.

    Calls are made one at a time for each binding, so that an expiring credential is renewed once.

    :cvar name: the kind's name in the vault, in connector files and at the beginning of a binding's name.
    :cvar header: the default header, or empty if the file must name one.
    :cvar placed: whether a file may choose the header and format.
    :cvar settings: the keys of a file that only this kind supports.
    :cvar reserved: other headers, in lower case, that the kind sets and operations must not set.
    :cvar exchanges: whether the kind uses a token endpoint.
    """

    name: ClassVar[str]
    header: ClassVar[str] = "Authorization"
    format: ClassVar[str]
    placed: ClassVar[bool] = True
    settings: ClassVar[Mapping[str, SettingRule]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset()
    exchanges: ClassVar[bool] = False

    @abstractmethod
    def check(self, kept: bytes) -> None:
        """Raise if C{kept} cannot be stored.

        :raises ValueError: if C{kept} is invalid. The message does not repeat it.
        """

    @abstractmethod
    def make_sample(self, secret: str) -> bytes | None:
        """Return what the vault would store for C{secret}, for C{aileron connector prove}, which uses made-up secrets.

        Return None if proofs do not cover this kind.
        """

    async def reveal(self, use: CredentialUse) -> bytes:
        """Return the value that replaces C{{key}} in requests.

        The default raises L{BindingFailed}, for kinds whose secret is never sent itself.

        :raises NeedsYou: if a person must act first.
        :raises BindingFailed: if this kind has no such value.
        :raises NetworkError: if the credential could not be renewed this time.
        """
        raise BindingFailed(f"A credential of the kind {self.name} is never sent itself.")

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return secrets in C{kept} that are never the result of L{reveal}, so that they can be redacted, too."""
        return ()

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Return the headers and parameters that authorize C{request}.

        :raises NeedsYou: if a person must act first.
        :raises BindingFailed: if this kind has no such value, or the stored credential cannot be read.
        :raises NetworkError: if it must be renewed, and the renewal failed this time.
        """
        key = (await self.reveal(use)).decode("ascii")
        return place(key, use.scope, *self.secrets(use.kept))

    async def make_ready(self, use: CredentialUse) -> None:
        """Renew the credential if it is due. A kind that is never renewed does nothing.

        :raises NeedsYou: if a person must act first.
        :raises BindingFailed: if the stored credential cannot be read.
        :raises NetworkError: if the renewal failed this time.
        """
        return  # a credential that never expires is ready

    def refused(self, use: CredentialUse, sent: Authorization, challenge: str = "") -> bool:
        """Record that the service refused the credential that was sent.

        :param challenge: the challenge of a 403, which means that the credential is valid, but not for this operation.
            Empty for any other refusal.
        :return: True if the next use sends another value, so that a retry may succeed.
        :raises NeedsYou: if a person must act first.
        """
        return False

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise C{ValueError} if settings of a connector file contradict each other."""
        return

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Return the credential's state at C{now}."""
        return CredentialState(CredentialStatus.READY)

    def limit(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Return a sentence that names the C{scopes} that were not granted, or None if all were or it is unknown."""
        return None

    def surplus(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Return a sentence that names granted scopes that are not in C{scopes}, or None if none are known."""
        return None


def place(key: str, scope: Scope, *secrets: str) -> Authorization:
    """Return the header or parameter that carries C{key}, at the place that its scope names.

    C{key} and C{secrets} are marked as secret.

    :raises BindingFailed: if the key would change the request's path.
    """
    query, path = scope.settings.get("query"), scope.settings.get("path")
    if query is not None:
        return Authorization(query=((query, key),), secrets=(key, *secrets))
    if path is not None:
        prefix = path.replace("{key}", quote(key, safe=":"))
        if {".", ".."} & {*prefix.split("/")}:
            raise BindingFailed("The credential would lead to another path.")
        return Authorization(prefix=prefix, secrets=(key, *secrets))
    return Authorization(headers=((scope.header, scope.format.replace("{key}", key)),), secrets=(key, *secrets))
