"""The collaborators of the pages, and where their files lie."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from attrs import frozen
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IRequest
from twisted.web.template import Element, Flattenable, Tag, XMLString

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
    """The record of who comes to the door."""

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
    """The collaborators of the pages, through interfaces alone.

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
        """Return the moment, by the clock."""
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
    """A drawing that may take long, since others wrote what it shows: it is drawn beside the reactor.

    :ivar draw: needs nothing but frozen values, and waits for nothing.
    """

    draw: Callable[[], Flattenable]


Place: TypeAlias = bool | str | Tag | Element | Mapping[str, Flattenable] | list[Mapping[str, Flattenable]]
"""What stands in a place of a template: see L{Fragment}."""


class Fragment(Element):
    """A template and what stands in the places that it names with C{t:render}.

    A place is shown or not (a L{bool}), shown with its slots filled (a mapping), shown once for each mapping of a list,
    replaced by a text, tag or element, or by what a function makes of its tag.  A name that nobody gave fails.
    """

    def __init__(self, loader: XMLString, **places: Place | Callable[[Tag], Flattenable]) -> None:
        super().__init__(loader)
        self._places = places

    def lookupRenderMethod(self, name: str) -> Callable[[IRequest | None, Tag], Flattenable]:
        place = self._places[name]
        return lambda request, tag: _render_place(place, tag)


def _render_place(place: Place | Callable[[Tag], Flattenable], tag: Tag) -> Flattenable:
    match place:
        case bool():
            return tag if place else ""
        case Mapping():
            return tag.fillSlots(**place)
        case list():
            return [tag.clone().fillSlots(**slots) for slots in place]
        case str() | Tag() | Element():
            return place
        case _:
            return place(tag)


def titled(title: str, said: str) -> Callable[[Tag], Tag]:
    """Make the root of a page: its title, and what is read aloud when that changes."""
    return lambda tag: tag(**{"data-title": title, "data-said": said})


def template(name: str) -> XMLString:
    """Load a fragment's template."""
    return XMLString((_TEMPLATES / name).read_text(encoding="utf-8"))
