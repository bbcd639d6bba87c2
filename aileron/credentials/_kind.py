"""The interface of a kind of credential, and the values that it is given and returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import ClassVar, Protocol

from attrs import field, frozen

from aileron.errors import NetworkError
from aileron.values import Authorization, CredentialState, CredentialStatus, Request, Scope

PRIVATE_NETWORK = "private_network"
"""The setting that says that its token endpoint may be on loopback or a private address."""

READY = CredentialState(CredentialStatus.READY)


class NeedsYou(Exception):
    """Only a person can make the credential work again.

    :ivar reason: why, in a sentence of ours: nothing that a service wrote is in it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@frozen
class TokenRequest:
    """A request to a token endpoint, by POST.

    :ivar private_network: whether it may be on loopback or a private address.
    """

    url: str
    private_network: bool
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


@frozen
class TokenAnswer:
    """The answer of a token endpoint."""

    status: int
    body: bytes = field(repr=False)


TokenExchange = Callable[[TokenRequest], Awaitable[TokenAnswer]]
"""Asks a token endpoint, once, following no redirect.

It raises L{NetworkError} where no whole answer came, and L{BindingFailed} where the URL may not be asked.
"""


async def no_exchange(asked: TokenRequest) -> TokenAnswer:
    """Reach no token endpoint, for who has no network."""
    raise NetworkError("No token endpoint can be asked here.")


@frozen
class CredentialUse:
    """One use of a credential.

    :ivar scope: where it goes and in which place of a request, as it was sealed.
    :ivar kept: what is kept of it.
    :ivar keep: has something else kept from now on, durably: before it is relied upon.
    """

    scope: Scope
    kept: bytes = field(repr=False)
    keep: Callable[[bytes], None] = field(repr=False)
    now: Callable[[], datetime] = field(repr=False)
    exchange: TokenExchange = field(repr=False)


@frozen
class SettingRule:
    """A key of a connector file's C{[credential]} that only some kinds know.

    :ivar read: makes the setting of what the file says; its C{ValueError} ends the sentence of the fault.
    :ivar several: whether the file says it as an array of texts, which are kept with a blank between.
    """

    read: Callable[[str], str]
    required: bool = False
    several: bool = False


class CredentialKind(Protocol):
    """One kind of credential.

    It is asked for one thing at a time for each binding, so that what runs out is renewed once.
    """

    name: ClassVar[str]
    """In the vault, in connectors' files and at the beginning of a binding's name."""
    header: ClassVar[str]
    """Where it goes unless the file says otherwise; empty: the file must."""
    format: ClassVar[str]
    placed: ClassVar[bool]
    """Whether a file may say by which header and format it goes."""
    settings: ClassVar[Mapping[str, SettingRule]]
    reserved: ClassVar[frozenset[str]]
    """Headers that it sets beside, in lower case: no operation may."""
    exchanges: ClassVar[bool]
    """Whether it asks a token endpoint."""

    def check(self, kept: bytes) -> None:
        """Refuse what cannot be kept.

        :raises ValueError: and why, without repeating it.
        """

    async def reveal(self, use: CredentialUse) -> bytes:
        """Make what stands for C{{key}}, now.

        :raises NeedsYou: nothing can be made of it any more.
        :raises BindingFailed: this kind has no such thing.
        :raises NetworkError: it could not be renewed this time.
        """

    async def authorize(self, use: CredentialUse, request: Request) -> Authorization:
        """Make what C{request} is sent with; raises as L{reveal}."""

    async def make_ready(self, use: CredentialUse) -> None:
        """Renew it, if it is due; raises as L{reveal}."""

    def refused(self, use: CredentialUse, sent: Authorization) -> bool:
        """Note that the service did not accept what was sent; whether the next use sends something else."""

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Tell whether it can be used."""


class FixedKind:
    """The part that all kinds share that never run out."""

    header: ClassVar[str] = "Authorization"
    placed: ClassVar[bool] = True
    settings: ClassVar[Mapping[str, SettingRule]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset()
    exchanges: ClassVar[bool] = False

    async def make_ready(self, use: CredentialUse) -> None:
        """Nothing is ever due."""

    def refused(self, use: CredentialUse, sent: Authorization) -> bool:
        """Sent again, it would be the same."""
        return False

    def state(self, kept: bytes, now: datetime) -> CredentialState:
        """Nothing is known against it."""
        return READY


def place(key: str, scope: Scope, *secrets: str) -> Authorization:
    """Put C{key} where its scope says.

    :param secrets: what is secret beside it.
    """
    query = scope.settings.get("query")
    if query is not None:
        return Authorization(query=((query, key),), secrets=(key, *secrets))
    return Authorization(headers=((scope.header, scope.format.replace("{key}", key)),), secrets=(key, *secrets))
