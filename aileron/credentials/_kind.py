"""The base of every kind of credential, and the values that it is given and returns."""

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
"""The setting that says that its token endpoint may be on loopback or a private address."""


class NeedsYou(Exception):
    """Only a person can make the credential work again.

    :ivar reason: why, in a sentence of ours: nothing that a service wrote is in it.
    :ivar is_new: whether that was found out just now.
    """

    def __init__(self, reason: str, *, is_new: bool = True) -> None:
        super().__init__(reason)
        self.reason, self.is_new = reason, is_new


class SignInRefused(Exception):
    """The sign-in is over, and came to nothing; why is a sentence, which may hold words of the service."""


@frozen
class TokenRequest:
    """A request to a token endpoint, by POST, or for metadata, by GET.

    :ivar private_network: whether it may be on loopback or a private address.
    :ivar body: L{None}: it is a GET.
    :ivar place: what is asked, for people.
    """

    url: str
    private_network: bool
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    place: str = "token endpoint"


@frozen
class TokenAnswer:
    """The answer of a token endpoint.

    :ivar challenge: its C{WWW-Authenticate}; empty: it has none.
    """

    status: int
    body: bytes = field(repr=False)
    challenge: str = field(default="", repr=False)

    @property
    def members(self) -> Mapping[str, JSON]:
        """Those of the JSON object that it is; none: it is no such object."""
        try:
            told = loads_strict(self.body)
        except (ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}


TokenExchange = Callable[[TokenRequest], Awaitable[TokenAnswer]]
"""Asks a token endpoint, once, following no redirect.

It raises L{NetworkError} where no whole answer came, and L{BindingFailed} where the URL may not be asked.
"""


async def no_exchange(asked: TokenRequest) -> TokenAnswer:
    """Reach no token endpoint, for who has no network."""
    raise NetworkError("No token endpoint can be asked here.")


@define
class CredentialUse:
    """One use of a credential.

    :ivar scope: where it goes and in which place of a request, as it was sealed.
    :ivar kept: what is kept of it.
    :ivar is_certain: whether a refusal is known to be of the credential, and not of one operation alone.
    """

    scope: Scope
    kept: bytes = field(repr=False)
    _keep: Callable[[bytes], None] = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    exchange: TokenExchange = field(repr=False)
    is_certain: bool = True

    def keep(self, renewed: bytes) -> None:
        """Have C{renewed} kept from now on, durably: before it is relied upon."""
        self._keep(renewed)
        self.kept = renewed


def only(holds: Callable[[str], object], problem: str) -> Callable[[str], str]:
    """Make a reader of a setting that takes only texts of which C{holds} says anything true."""

    def read(text: str) -> str:
        if not holds(text):
            raise ValueError(problem)
        return text

    return read


@frozen
class SettingRule:
    """A key of a connector file's C{[credential]} that only some kinds know.

    :ivar read: makes the setting of what the file says; its C{ValueError} ends the sentence of the fault.
    :ivar several: whether the file says it as an array of texts, which are kept with a blank between.
    :ivar flag: whether the file says it as true or false; true is kept as a text, and false not at all.
    """

    read: Callable[[str], str] = str
    several: bool = False
    flag: bool = False


class CredentialKind(ABC):
    """One kind of credential; unless it says otherwise, it never runs out, and fills one header or parameter.

    It is asked for one thing at a time for each binding, so that what runs out is renewed once.

    :cvar name: in the vault, in connectors' files and at the beginning of a binding's name.
    :cvar header: where it goes unless the file says otherwise; empty: the file must.
    :cvar placed: whether a file may say by which header and format it goes.
    :cvar settings: the keys of a file that are its own.
    :cvar reserved: headers that it sets beside, in lower case: no operation may.
    :cvar exchanges: whether it asks a token endpoint.
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
        """Refuse what cannot be kept.

        :raises ValueError: and why, without repeating it.
        """

    @abstractmethod
    def make_sample(self, secret: str) -> bytes | None:
        """Make what is kept of one in a proof, which sends C{secret} or signs with it; L{None}: none can be made."""

    async def reveal(self, use: CredentialUse) -> bytes:
        """Make what stands for C{{key}}, now; unless a kind says otherwise, it is never sent itself.

        :raises NeedsYou: nothing can be made of it any more.
        :raises BindingFailed: this kind has no such thing.
        :raises NetworkError: it could not be renewed this time.
        """
        raise BindingFailed(f"A credential of the kind {self.name} is never sent itself.")

    def secrets(self, kept: bytes) -> tuple[str, ...]:
        """Return what is secret beside what L{reveal} makes."""
        return ()

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Make what C{request} is sent with; raises as L{reveal}."""
        key = (await self.reveal(use)).decode("ascii")
        return place(key, use.scope, *self.secrets(use.kept))

    async def make_ready(self, use: CredentialUse) -> None:
        """Renew it, if it is due; raises as L{reveal}."""
        return  # what never runs out is ready

    def refused(self, use: CredentialUse, sent: Authorization, challenge: str = "") -> bool:
        """Note that the service did not accept what was sent; whether the next use sends something else.

        :param challenge: of a 403: what was sent is good, and not for what it was sent for.
        :raises NeedsYou: a person can have it do that.
        """
        return False

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Refuse settings of a connector file that do not go together, by a C{ValueError} that says which."""
        return

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Tell whether it can be used."""
        return CredentialState(CredentialStatus.READY)

    def limit(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Say which of the C{scopes} that are needed it lacks, in a sentence; L{None}: none is known."""
        return None

    def surplus(self, kept: bytes, scopes: Sequence[str]) -> str | None:
        """Say which scopes it has beside the C{scopes} that are needed, in a sentence; L{None}: none is known."""
        return None


def place(key: str, scope: Scope, *secrets: str) -> Authorization:
    """Put C{key} where its scope says; secret are it and C{secrets}.

    :raises BindingFailed: it would be no part of a path.
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
