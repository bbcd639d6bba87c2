"""The vault and its bindings, as far as they may be known without opening them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from aileron.base.addresses import base_url_problem
from aileron.base.converter import Member, differ


class VaultState(StrEnum):
    """C{lost}: there is history, but no vault file."""

    MISSING = "missing"
    LOCKED = "locked"
    UNLOCKED = "unlocked"
    LOST = "lost"


@frozen
class Scope:
    """The scope of a credential: where it may go, and in which place of a request; it opens for nothing else.

    :ivar hosts: C{host:port}, as the connector declares.
    :ivar base_url: the one in use: the binding's own, or the connector's.
    :ivar header: the request's header that carries it; empty: none does.
    :ivar format: the header's value, with C{{key}} in it.
    :ivar settings: what else its kind goes by, such as the query parameter that carries it, or a region.
    """

    hosts: tuple[str, ...]
    base_url: str
    header: str
    format: str
    settings: Mapping[str, str] = field(factory=dict, hash=False)


@frozen
class Binding:
    """One credential bound to one connector, without the credential.

    :ivar name: C{<kind>/<service>/<identity>}.
    :ivar revision: grows with each change of the entry.
    :ivar base_url: chosen for this binding, or L{None}: the connector's own.
    :ivar scope: what it was sealed for; L{None}: for nothing, so that it opens nowhere until it is rebound.
    """

    name: str
    kind: str
    service: str
    identity: str
    connector: str
    created_at: datetime
    revision: int = 1
    base_url: str | None = None
    account: str | None = None
    scope: Scope | None = None

    @property
    def address_problem(self) -> str | None:
        """Why it opens nowhere, whatever its scope is: what its base URL must be; L{None}: nothing is wrong with it."""
        return None if self.base_url is None else base_url_problem(self.base_url)


@frozen
class NewBinding:
    """The request of C{binding setup}; the secret travels here once and shows in no repr.

    :ivar scope: what the operator was shown; L{None}: none, and it opens nowhere until it is rebound.
    """

    kind: str
    service: str
    identity: str
    connector: str
    secret: bytes = field(repr=False)
    base_url: str | None = None
    account: str | None = None
    scope: Scope | None = None


@frozen
class BindingFlag:
    """A flag on one revision of a binding that must be known before it is used on: its secret came back, say.

    :ivar reason: a whole sentence, for people.
    """

    binding: str
    revision: int
    since: datetime
    reason: str


@frozen
class Authorization:
    """The parts that a credential adds to one request, opened: they go to the service and nowhere else.

    :ivar headers: name and value.
    :ivar query: parameters, not encoded yet.
    :ivar prefix: what stands between the host and the path, encoded.
    :ivar private_key: what logs in over SSH, in OpenSSH's format; nothing that speaks HTTP reads it.
    :ivar secrets: everything secret in it, to be found in what comes back.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    query: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    prefix: str = field(default="", repr=False)
    private_key: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


class CredentialStatus(StrEnum):
    """The status of a credential.

    C{NEEDS_YOU}: only a person can make it work again.  C{LOCKED}: that cannot be told while the vault is locked.
    C{REVOKED}: it is gone.
    """

    READY = "ready"
    EXPIRES = "expires"
    NEEDS_YOU = "needs_you"
    LOCKED = "locked"
    REVOKED = "revoked"


@frozen
class CredentialState:
    """The state of a credential: whether it can be used.

    :ivar expires_at: when what is sent runs out; it is renewed before, unless a person is needed for that.
    :ivar reason: why a person is needed, in a sentence; where it can be used all the same, what it is not good for.
    :ivar surplus: what it is good for beyond what is needed, in a sentence.
    :ivar wanted: scopes to ask for when a person signs in again; none: as the first time.
    :ivar issuer: the authorization server where a person signed in; L{None}: the connector file names its endpoints.
    :ivar token_url: where it is renewed; L{None}: it is not renewed, or that cannot be told now.
    """

    status: CredentialStatus
    expires_at: datetime | None = None
    reason: str | None = None
    surplus: str | None = None
    wanted: tuple[str, ...] = ()
    issuer: str | None = None
    token_url: str | None = None


_OPTIONAL = Member(optional=True)
differ(CredentialState, wanted=_OPTIONAL, issuer=_OPTIONAL, token_url=_OPTIONAL)
differ(Scope, settings=_OPTIONAL)
