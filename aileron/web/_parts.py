"""What the pages reach, and where their files lie."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IRequest
from twisted.web.template import Flattenable, XMLString

from aileron.interfaces import (
    IAudit,
    IBindingFlags,
    IBindings,
    ICheckpointSigner,
    IConnectors,
    IDecisions,
    IGrantService,
    ILimitService,
    INotifier,
    IOperators,
    IPasskeys,
    IReconciliation,
    ISessions,
    ISubmission,
    ITotals,
    ITrustService,
    IVault,
)
from aileron.values import JSON, Actor, GatewaySettings, OperatorSession, SignedRequest, utc

STATIC = Path(__file__).with_name("static")
_TEMPLATES = Path(__file__).with_name("templates")


class DoorRecord(Protocol):
    """Where it is put on record who comes to the door."""

    async def record(self, kind: str, actor: Actor, payload: Mapping[str, JSON]) -> None:
        """Put one thing on record; durable when it returns."""

    async def refuse(self) -> None:
        """Count a refused login."""


@frozen
class KnownBy:
    """By what a browser is known, and what it does by itself.

    :ivar cookie: its name.
    :ivar poll: the header by which a page says that nobody asked it to ask.
    :ivar told: the header, and its value, by which a page that is refused learns which life of the daemon refused it.
    :ivar signed: what a request asks for, and what shows who asks, given the cookie's name.
    :ivar keep_place: keeps the place of a request's connection while the site is flooded, for the owner that is given.
    """

    cookie: bytes
    poll: str
    told: tuple[str, str]
    signed: Callable[[IRequest, bytes], SignedRequest]
    keep_place: Callable[[IRequest, str], None]


@frozen
class PageParts:
    """What the pages reach, through interfaces alone.

    :ivar gateway: as the operator has it.
    :ivar totals: what the gateway counted; L{None}: nobody counts.
    :ivar notifier: tells the operator elsewhere of what waits; L{None}: nobody does.
    :ivar in_thread: calls a function in another thread, and answers what it returns.
    :ivar clock: says how late it is.
    :ivar version: Aileron's.
    :ivar started_at: when this life of the daemon began.
    """

    submission: ISubmission
    decisions: IDecisions
    trust: ITrustService
    grants: IGrantService
    limits: ILimitService
    reconciliation: IReconciliation
    sessions: ISessions
    operators: IOperators
    passkeys: IPasskeys
    access_log: DoorRecord
    known_by: KnownBy
    audit: IAudit
    signer: ICheckpointSigner
    vault: IVault
    bindings: IBindings
    flags: IBindingFlags
    connectors: IConnectors
    gateway: GatewaySettings
    totals: ITotals | None
    notifier: INotifier | None
    clock: IReactorTime
    version: str
    started_at: datetime
    in_thread: Callable[..., Awaitable[Any]]

    def now(self) -> datetime:
        """The moment, by the clock."""
        return utc(self.clock.seconds())


@frozen
class Visit:
    """One look at a page.

    :ivar operator: whose login it is.
    :ivar query: what stands behind the question mark, each name once.
    """

    operator: OperatorSession
    query: Mapping[str, str]


@frozen
class Drawing:
    """What may take long to draw, since others wrote what it shows: it is drawn beside the reactor.

    :ivar draw: needs nothing but frozen values, and waits for nothing.
    """

    draw: Callable[[], Flattenable]


def template(name: str) -> XMLString:
    """A fragment's template."""
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))
