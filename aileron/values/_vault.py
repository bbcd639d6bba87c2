"""The vault and its bindings, as far as they may be known without opening them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from aileron.addresses import base_url_problem


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
    :ivar header: the request's header that carries it.
    :ivar format: the header's value, with C{{key}} in it.
    """

    hosts: tuple[str, ...]
    base_url: str
    header: str
    format: str


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
