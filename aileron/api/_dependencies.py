"""The collaborators that the composition gives to the routes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from attrs import Attribute, Factory, field, frozen
from attrs.validators import and_, max_len, min_len, optional
from twisted.internet.interfaces import IReactorTime
from zope.interface import Interface

from aileron.interfaces import (
    IAudit,
    IBindingFlags,
    IBindings,
    IConnectors,
    IDecisions,
    IGrantService,
    ILimitService,
    IMcp,
    INotifier,
    IOperators,
    IReconciliation,
    ISessions,
    ISubmission,
    ITotals,
    ITrustService,
    IUsage,
    IVault,
)
from aileron.values import GatewaySettings, LongTurns, NoticeSettings, RelayedPath, utc

from ._credentials import AccessLog
from ._sessions import Leases, Waits
from ._shapes import ActionFiles, PasskeyRegistry, RecordSigner
from .channels.peer import Lookup, process_behind


def _provides(interface: type[Interface]) -> Callable[[Any, Attribute[Any], object], None]:
    def check(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if not interface.providedBy(value):
            raise TypeError(f"{attribute.name} must provide {interface.__name__}")

    return check


def _has_all_of(protocol: type) -> Callable[[Any, Attribute[Any], object], None]:
    """Compare names alone: on the class, so that no property is evaluated, then on what passes them on."""
    names = [name for name in vars(protocol) if not name.startswith("_")]

    def check(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if not all(hasattr(type(value), name) or hasattr(value, name) for name in names):
            raise TypeError(f"{attribute.name} must be a {protocol.__name__}")

    return check


_SHA256: Any = and_(min_len(32), max_len(32))


@frozen
class Dependencies:
    """Everything that the routes reach, through interfaces alone.

    :ivar launch_key_digest: L{token_digest} of the launch key in C{daemon.json}.
    :ivar ids: fresh ULIDs.
    :ivar randomness: as many unpredictable bytes as asked for.
    :ivar review_url: the page where a run, by its id, is decided.
    :ivar instance: of this life of the daemon.
    :ivar process_behind: who is at the other end of a connection.
    :ivar gateway: as the operator has it.
    :ivar relayed: what of the agent site the gateway takes, asked when the site's document is first written.
    :ivar metrics_token_digest: SHA-256 of the token by which a scraper gets the metrics; L{None}: there is none.
    :ivar totals: what the gateway counted; L{None}: nobody counts.
    :ivar notices: the operator's notification channels, as configured.
    :ivar notifier: tells them; L{None}: nobody does.
    :ivar mcp: serves C{/mcp} of the agent site; L{None}: nobody does.
    :ivar clients: names of those who may open a session for themselves, as the operator has them.
    :ivar long_turns: of the reactor; it answers L{None}: nobody measures them.
    :ivar forget_places: is told the owner of each credential that opens nothing any more.
    :ivar access_log: the record of logins.
    :ivar leases: who stands behind which session.
    :ivar waits: the long polls of agents.
    """

    submission: ISubmission = field(validator=_provides(ISubmission))
    decisions: IDecisions = field(validator=_provides(IDecisions))
    trust: ITrustService = field(validator=_provides(ITrustService))
    grants: IGrantService = field(validator=_provides(IGrantService))
    limits: ILimitService = field(validator=_provides(ILimitService))
    reconciliation: IReconciliation = field(validator=_provides(IReconciliation))
    sessions: ISessions = field(validator=_provides(ISessions))
    audit: IAudit = field(validator=_provides(IAudit))
    signer: RecordSigner = field(validator=_has_all_of(RecordSigner))
    vault: IVault = field(validator=_provides(IVault))
    bindings: IBindings = field(validator=_provides(IBindings))
    flags: IBindingFlags = field(validator=_provides(IBindingFlags))
    usage: IUsage = field(validator=_provides(IUsage))
    connectors: IConnectors = field(validator=_provides(IConnectors))
    operators: IOperators = field(validator=_provides(IOperators))
    passkeys: PasskeyRegistry = field(validator=_has_all_of(PasskeyRegistry))
    action_files: ActionFiles = field(validator=_has_all_of(ActionFiles))
    launch_key_digest: bytes = field(repr=False, validator=_SHA256)
    clock: IReactorTime = field(validator=_provides(IReactorTime))
    ids: Callable[[], str]
    randomness: Callable[[int], bytes]
    version: str
    started_at: datetime
    review_url: Callable[[str], str]
    instance: str
    process_behind: Lookup = process_behind
    gateway: GatewaySettings = field(factory=GatewaySettings)
    relayed: Callable[[], Sequence[RelayedPath]] = tuple
    metrics_token_digest: bytes | None = field(default=None, repr=False, validator=optional(_SHA256))
    totals: ITotals | None = field(default=None, validator=optional(_provides(ITotals)))
    notices: NoticeSettings = field(factory=NoticeSettings)
    notifier: INotifier | None = field(default=None, validator=optional(_provides(INotifier)))
    mcp: IMcp | None = field(default=None, validator=optional(_provides(IMcp)))
    clients: frozenset[str] = frozenset()
    long_turns: Callable[[], LongTurns | None] = lambda: None
    forget_places: Callable[[str], object] = lambda _: None
    access_log: AccessLog = field(
        init=False, default=Factory(lambda deps: AccessLog(deps.audit, deps.clock, deps.ids), takes_self=True)
    )
    waits: Waits = field(init=False, factory=Waits)
    leases: Leases = field(
        init=False,
        default=Factory(lambda deps: Leases(deps.sessions, deps.clock, deps.ids, deps.session_ended), takes_self=True),
    )

    @property
    def cookie(self) -> bytes:
        """Name of the browser's cookie: every port of a host sees the cookies of all, so each daemon has its own."""
        return f"aileron_{self.instance}".encode("ascii")

    def session_ended(self, session_id: str) -> None:
        """Tell the MCP endpoint that the agent's session is over, and end what waits of it."""
        if self.mcp is not None:
            self.mcp.ended(session_id)
        self.waits.end(session_id)
        self.forget_places(session_id)

    def now(self) -> datetime:
        """Return the moment, by the clock."""
        return utc(self.clock.seconds())
