"""The collaborators that the composition gives to the routes, and what they need of those that have no interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from attrs import Attribute, Factory, field, frozen
from attrs.validators import and_, max_len, min_len, optional
from twisted.internet.interfaces import IReactorTime
from zope.interface import Interface

from aileron.base.json import JSON, utc
from aileron.features import RunningFeatures
from aileron.model.actions import ActionFile
from aileron.model.audit import Checkpoint, Verdict
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.interfaces.connectors import IConnectors
from aileron.model.interfaces.governance import IGrantService, ILimitService, IReconciliation, ITrustService
from aileron.model.interfaces.runner import IDecisions, ISubmission
from aileron.model.interfaces.store import IAudit, IBindingFlags, ISessions
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.reactor import LongTurns
from aileron.model.usage import UsageSum

from ._logins import OperatorLogins
from ._sessions import Leases, Waits
from .channels.peer import Lookup, process_behind
from .tokens import AccessLog


class RecordSigner(Protocol):
    """Signs how far the record came, and verifies it.  Its properties are for showing."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the public key, or L{None}: there is none yet."""

    @property
    def latest(self) -> Checkpoint | None:
        """The newest checkpoint, or L{None}."""

    @property
    def head(self) -> tuple[int, str] | None:
        """The sequence and hash of the newest record that this life wrote, or else found when it began."""

    @property
    def tampered(self) -> int:
        """The number of signs of tampering that were put on record in this life."""

    async def tell_locked(self) -> None:
        """Hand the record over to the time in which nothing can be signed; before the vault is locked.  Twice is safe.

        :raises StoreUnavailable: some of it could not be written.
        """

    async def verify(self) -> Verdict:
        """Verify the whole record, slice by slice: others are served meanwhile.

        :raises StoreUnavailable: it cannot be read.
        """

    def export(self, since: datetime | None, until: datetime | None) -> AsyncIterator[bytes]:
        """Export the record of a time as lines of JSON, read as they are taken; in constant memory.

        :raises StoreUnavailable: (while it is taken) it cannot be read.
        """


class ActionFiles(Protocol):
    """Checks, reads and writes the user's action files.  It trusts none of them, and follows no link."""

    def check(self, text: str) -> ActionFile:
        """Judge a text as the file of an action."""

    def read(self, name: str) -> ActionFile | None:
        """Read the file of an action, sound or not; L{None}: there is none.

        :raises NotFound, Forbidden, InvalidRequest: no action can have this name; it is a link; it is too large.
        """

    def write(self, name: str, text: str, before: str | None) -> ActionFile:
        """Write the file of an action; a crash leaves the old one or the new one.

        :param before: the digest of what it replaces; L{None}: nothing, and it must be called as its action.
        :raises Conflict: something else is there; C{details["digest"]} is what.
        :raises InvalidRequest: the text has errors, each listed with its line, or another name.
        :raises NotFound, Forbidden, StoreUnavailable: as of L{read}; or it cannot be written.
        """


class PasskeyRegistry(Protocol):
    """Adds passkeys, forgets them, and makes what an authenticator is asked (WebAuthn, level 3)."""

    def passkeys(self) -> tuple[Passkey, ...]:
        """All, oldest first."""

    def passkey_rule(self) -> PasskeyRule:
        """Return what may not be approved without one."""

    def site(self) -> str | None:
        """Return for what passkeys are made at the present address (WebAuthn's rpId); L{None}: none can be."""

    def offer(self) -> Mapping[str, JSON]:
        """Offer what a page hands to C{navigator.credentials.create}, good for one answer within a minute.

        :raises Conflict: passkeys cannot be had: they need a site with a name, and what C{aileron[passkey]} installs.
        """

    def propose(self, name: str, credential: Mapping[str, JSON]) -> str:
        """Take what the page got for L{offer}; it counts once its words were confirmed in a terminal.

        :return: two words for the page to show, good for two minutes; what was proposed before is void.
        :raises InvalidRequest: it answers no offer, or not as a passkey of this site must.
        :raises Conflict: as of L{offer}; or it counts already.
        """

    def confirm(self, words: str) -> Passkey:
        """Let what was proposed count, if these are its words; there is one try.

        :raises Conflict: no passkey was proposed.
        :raises Forbidden: these are not the words.
        :raises VaultLocked, BindingFailed, StoreUnavailable: as of L{IPasskeyBook.keep_passkeys}.
        """

    def require(self, rule: PasskeyRule) -> None:
        """Ask for a passkey by this rule from now on.

        :raises Conflict: there is no passkey that could be asked for; or the present rule asks for more.
        """

    def reset(self) -> None:
        """Forget every passkey and the rule.  Twice is safe."""

    def ask(self, about: Mapping[str, JSON]) -> tuple[str, Mapping[str, JSON]]:
        """Make what a page hands to C{navigator.credentials.get}, for exactly this, once, within a minute.

        :return: the nonce to bring with the answer, and the options.
        :raises Conflict: as of L{offer}, or there is no passkey.
        """


class UsageReader(Protocol):
    """Sums up what calls to language models used."""

    async def of_sessions(self, session_ids: Sequence[str]) -> Mapping[str, UsageSum]:
        """Return the sums of these sessions; one without a call is left out."""

    async def daily(self, since: date) -> Mapping[date, UsageSum]:
        """Return the sums of the days from that one on; a day without a call is left out."""


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
    """Everything that the routes reach, through interfaces and protocols alone.

    :ivar launch_key_digest: L{token_digest} of the launch key in C{daemon.json}.
    :ivar local_key_digest: the same of the local key there.
    :ivar ids: fresh ULIDs.
    :ivar randomness: as many unpredictable bytes as asked for.
    :ivar review_url: the page where a run, by its id, is decided.
    :ivar instance: of this life of the daemon.
    :ivar process_behind: who is at the other end of a connection.
    :ivar metrics_token_digest: SHA-256 of the token by which a scraper gets the metrics; L{None}: there is none.
    :ivar features: the features that were started in this daemon.
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
    usage: UsageReader = field(validator=_has_all_of(UsageReader))
    connectors: IConnectors = field(validator=_provides(IConnectors))
    operators: OperatorLogins = field(validator=_has_all_of(OperatorLogins))
    passkeys: PasskeyRegistry = field(validator=_has_all_of(PasskeyRegistry))
    action_files: ActionFiles = field(validator=_has_all_of(ActionFiles))
    launch_key_digest: bytes = field(repr=False, validator=_SHA256)
    local_key_digest: bytes = field(repr=False, validator=_SHA256)
    clock: IReactorTime = field(validator=_provides(IReactorTime))
    ids: Callable[[], str]
    randomness: Callable[[int], bytes]
    version: str
    started_at: datetime
    review_url: Callable[[str], str]
    instance: str
    process_behind: Lookup = process_behind
    metrics_token_digest: bytes | None = field(default=None, repr=False, validator=optional(_SHA256))
    features: RunningFeatures = field(factory=RunningFeatures)
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
        self.waits.end(session_id)
        self.features.session_ended(session_id)
        self.forget_places(session_id)

    async def pending(self, session_id: str | None = None) -> int:
        """Return how many decisions wait for the operator, of all sessions or of one: runs, and those of features."""
        return await self.decisions.pending(session_id) + self.features.pending(session_id)

    def now(self) -> datetime:
        """Return the moment, by the clock."""
        return utc(self.clock.seconds())
