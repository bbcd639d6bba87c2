"""The collaborators of the routes, and protocols for those without an interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from attrs import Attribute, Factory, field, frozen
from attrs.validators import and_, max_len, min_len, optional
from twisted.internet.interfaces import IReactorTime
from zope.interface import Interface

from aileron.base.json import JSON, utc
from aileron.features import RunningFeatures
from aileron.model.actions import ActionFile, Offer, Offering
from aileron.model.audit import Checkpoint, Event, Verdict
from aileron.model.authority import EnrolledSshKey, NewGrant, Passkey, PasskeyRule
from aileron.model.daemons import ServingDaemon
from aileron.model.interfaces.connectors import IConnectors
from aileron.model.interfaces.governance import IGrantService, ILimitService, IReconciliation, ITrustService
from aileron.model.interfaces.runner import IDecisions, ISubmission
from aileron.model.interfaces.store import IAudit, IBindingFlags, ISessions
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.people import AccountLogin, Owner, Role
from aileron.model.reactor import LongTurns
from aileron.model.runs import Decision, Run
from aileron.model.sessions import LapsedLogin, Session, SignIn
from aileron.model.signing import EnrolledKey
from aileron.model.usage import UsageSum

from ._logins import OperatorLogins
from ._sessions import Leases, Waits
from .channels.peer import Lookup, process_behind
from .tokens import AccessLog


class RecordSigner(Protocol):
    """The object that signs and verifies the audit log."""

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the key that signs the audit log, or None if there is no key yet."""

    @property
    def latest(self) -> Checkpoint | None:
        """The newest checkpoint, which is a signed statement of the audit log's end, or None if there is none yet."""

    @property
    def head(self) -> tuple[int, str] | None:
        """The sequence number and hash of the newest audit record that this process wrote, or found at its start.

        None if there was no record yet.
        """

    @property
    def tampered(self) -> int:
        """The number of signs of tampering with the audit log that were recorded since the daemon's start."""

    async def record_lock(self) -> None:
        """Record that the vault locks, so that the following records cannot be signed. Call before locking. Idempotent.

        :raises StoreUnavailable: if a record could not be written.
        """

    async def verify(self) -> Verdict:
        """Verify the whole audit log in slices, so that other requests are served in between.

        :raises StoreUnavailable: if the audit log cannot be read.
        """

    def export(self, since: datetime | None, until: datetime | None) -> AsyncIterator[bytes]:
        """Export the audit log of a period as lines of JSON, read on demand in constant memory.

        :raises StoreUnavailable: during the iteration, if the audit log cannot be read.
        """


class ActionFiles(Protocol):
    """The checks, reads and writes of the user's action files. It trusts none of them and follows no link."""

    def check(self, text: str) -> ActionFile:
        """Parse a text as an action file and return the action or its faults."""

    def read(self, name: str) -> ActionFile | None:
        """Read the file of an action, valid or not, or return None if there is no file.

        :raises NotFound, Forbidden, InvalidRequest: if the name is invalid, or the file is a link or too large.
        """

    def write(self, name: str, text: str, before: str | None) -> ActionFile:
        """Write the file of an action atomically, and return it.

        :param before: the digest of the file to replace, or None for a new file, which must have its action's name.
        :raises Conflict: if the file on disk has another digest, in C{details["digest"]}.
        :raises InvalidRequest: if the text has errors, each listed with its line, or declares another name.
        :raises NotFound, Forbidden: if the name is invalid, or the file is a link.
        :raises StoreUnavailable: if the file cannot be written.
        """


class PasskeyRegistry(Protocol):
    """The operator's passkeys, and the options for authenticators (WebAuthn, level 3)."""

    def passkeys(self) -> tuple[Passkey, ...]:
        """Return all passkeys, oldest first."""

    def has_usable(self) -> bool:
        """Return whether there is a passkey for the present address, and passkeys are available."""

    def passkey_rule(self) -> PasskeyRule:
        """Return the rule of approvals that need a passkey."""

    def site(self) -> str | None:
        """Return the WebAuthn rpId for passkeys at the present address, or None if it allows none."""

    def offer(self) -> Mapping[str, JSON]:
        """Return the options for C{navigator.credentials.create}, valid once for one minute.

        :raises Conflict: if passkeys are unavailable: they need a site with a name, and the extra C{aileron[passkey]}.
        """

    def is_proposed(self) -> bool:
        """Return whether a new passkey waits to be confirmed with its two words."""

    def propose(self, name: str, credential: Mapping[str, JSON], words: str = "") -> str:
        """Store the page's answer to L{offer} as a proposal, which must be confirmed with its words in a terminal.

        :param words: the two words that the page shows already, or empty to make new ones.
        :return: two words for the page to show, valid for two minutes. An earlier proposal is discarded.
        :raises InvalidRequest: if the credential answers no offer, or is not a valid passkey of this site.
        :raises Conflict: if passkeys are unavailable, as for L{offer}, or the passkey is already registered.
        """

    def confirm(self, words: str) -> Passkey:
        """Confirm the proposed passkey with its two words. A wrong answer discards the proposal.

        :raises Conflict: if no passkey was proposed.
        :raises Forbidden: if the words are wrong.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """

    def require(self, rule: PasskeyRule) -> None:
        """Store a rule that requires passkeys from now on.

        :raises Conflict: if there is no passkey, or the current rule requires more.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """

    def remove(self, passkey_id: str) -> Passkey:
        """Remove one passkey and return it. What it approved and has not started must be approved again.

        The rule stays: if no other passkey is left, what needs one cannot be approved.

        :raises NotFound: if there is no passkey with this id.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """

    def reset(self) -> None:
        """Remove every passkey and the rule. Idempotent.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """

    def key_of(self, passkey_id: str) -> EnrolledKey | None:
        """Return the public key of a registered passkey, or None if there is none with this id."""


class SessionRestrictions(Protocol):
    """Restricts which actions an agent's session may use."""

    def open(self, session: Session) -> Session:
        """Return the session with the profile that restricts its actions, if one applies.

        Call before the session is stored.

        :raises InvalidRequest: if the session names an unknown profile, or nothing can apply its restriction.
        """

    def narrow(self, session: Session | None, offering: Offering) -> Offering:
        """Return C{offering}, the actions that agents can call, with only those that the session may use.

        If C{session} is None, return it unchanged.
        """

    def check(self, session: Session | None, offer: Offer) -> None:
        """Check that the session may use the action in C{offer}. If C{session} is None, do nothing.

        :raises Forbidden: if the session may not use the action.
        """


class Approving(Protocol):
    """Creates the texts and WebAuthn options with which a page lets a passkey sign decisions and logins."""

    def ask(self, run_id: str, decision: Decision, wish: NewGrant | None) -> tuple[str, Mapping[str, JSON]]:
        """Create WebAuthn request options that sign one decision, valid once for one minute.

        :return: the nonce to send with the answer, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """

    def offer(self) -> tuple[str, str, Mapping[str, JSON]]:
        """Return the values from which a page makes WebAuthn options, to have a passkey sign a list of decisions.

        They are valid for one minute.

        :return: the daemon's instance, a nonce, and the options without a challenge.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """

    def ask_sign_in(self, sign_in: SignIn) -> tuple[str, Mapping[str, JSON]]:
        """Create WebAuthn request options by which a passkey lets a browser in, valid once for one minute.

        :return: the nonce to send with the answer, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """

    def check_sign_in(self, sign_in: SignIn, nonce: str, credential: Mapping[str, JSON]) -> str:
        """Verify that a passkey lets exactly this browser in, and return the passkey's id.

        :raises Forbidden: if the answer is not valid, not fresh, or was used before.
        """

    def ask_raise(self, lapsed: LapsedLogin) -> tuple[str, Mapping[str, JSON]]:
        """Create WebAuthn request options by which a passkey lets a lapsed login decide again, valid for one minute.

        :return: the nonce to send with the answer, and the options for C{navigator.credentials.get}.
        :raises Conflict: if passkeys are unavailable, or there is none for the present address.
        """

    def check_raise(self, lapsed: LapsedLogin, nonce: str, credential: Mapping[str, JSON]) -> str:
        """Verify that a passkey lets exactly this login decide again, and return the passkey's id.

        :raises Forbidden: if the answer is not valid, not fresh, or was used before.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of the passkey cannot be recorded.
        """

    def make_nonce(self) -> str:
        """Return a nonce with which a passkey signs decisions within one minute."""

    def write(self, nonce: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        """Return the text that a passkey signs to approve or reject C{decisions} on this daemon."""

    def export(self, text: str, decisions: Sequence[Mapping[str, JSON]]) -> str:
        """Return the statement that an SSH key signs below C{text}, within an hour and for this run of the daemon."""

    def find_signer(self, signature: str) -> EnrolledSshKey | None:
        """Return the enrolled SSH key that a signature by C{ssh-keygen} names, or None. It is not verified.

        :raises InvalidRequest: if the signature is malformed.
        """

    def ssh_keys(self) -> tuple[EnrolledSshKey, ...]:
        """Return the enrolled SSH keys, oldest first."""

    def add_ssh_key(self, name: str, line: str) -> EnrolledSshKey:
        """Enrol an SSH key.

        :param line: the key as in a C{.pub} file.
        :raises InvalidRequest: if the line is no public key, or of a kind that is not supported.
        :raises Conflict: if the key is enrolled already, or there are too many.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """

    def remove_ssh_key(self, key_id: str) -> EnrolledSshKey:
        """Remove an SSH key. What it approved and was not carried out yet needs another approval.

        :raises NotFound: if there is no key with this id.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """


class UsageReader(Protocol):
    """Returns sums of the tokens and calls of language models."""

    async def of_sessions(self, session_ids: Sequence[str]) -> Mapping[str, UsageSum]:
        """Return the sum of the calls and tokens of each session, by its id. A session without calls is left out."""

    async def daily(self, since: date) -> Mapping[date, UsageSum]:
        """Return the sum of the calls and tokens of each day from C{since} on. A day without calls is left out."""


class Snoozes(Protocol):
    """The times until which the operator put pending requests aside.

    A snooze folds a request away in the inbox. The request still expires, can be withdrawn and can be decided.
    """

    async def all(self) -> Mapping[str, datetime]:
        """Return when each pending request that was put aside comes back into the inbox, by the run's id."""

    async def put(self, run_id: str, until: datetime | None, events: Sequence[Event]) -> bool:
        """Snooze a pending run, or end its snooze, and store the events that explain it, in one transaction.

        The snooze is deleted once the run is no longer pending. Cancelling ends only the wait.

        :param until: the end of the snooze, in place of an earlier one, or None to end it now.
        :returns: False if nothing was stored: the run is no longer pending, or there was no snooze to end.
        :raises StoreUnavailable: if the store failed. Nothing was stored.
        """


class DaemonList(Protocol):
    """Lists the daemons that use the database."""

    async def list(self) -> Sequence[ServingDaemon]:
        """Return all daemons that use the database, oldest first. This one is among them.

        :raises StoreUnavailable: if they cannot be read.
        """


def _provides(interface: type[Interface]) -> Callable[[Any, Attribute[Any], object], None]:
    def check(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if not interface.providedBy(value):
            raise TypeError(f"{attribute.name} must provide {interface.__name__}")

    return check


def _has_all_of(protocol: type) -> Callable[[Any, Attribute[Any], object], None]:
    """Return an attrs validator that raises C{TypeError} if a value lacks a public member of the protocol.

    Only the names are checked, on the value's class first, so that no property of the value is evaluated.
    """
    names = [name for name in vars(protocol) if not name.startswith("_")]

    def check(_instance: object, attribute: Attribute[Any], value: object) -> None:
        if not all(hasattr(type(value), name) or hasattr(value, name) for name in names):
            raise TypeError(f"{attribute.name} must be a {protocol.__name__}")

    return check


async def find_no_role(account: AccountLogin) -> Role | None:
    """Return None: where no feature serves accounts, no login of one is valid."""
    return None


_SHA256: Any = and_(min_len(32), max_len(32))


@frozen
class Dependencies:
    """All collaborators of the routes, as interfaces and protocols.

    :ivar launch_key_digest: L{token_digest} of the launch key in C{daemon.json}.
    :ivar local_key_digest: L{token_digest} of the local key in C{daemon.json}.
    :ivar ids: a function that makes ULIDs.
    :ivar randomness: a function that returns a number of unpredictable bytes.
    :ivar review_url: returns the URL of the page where a run, by its id, is decided.
    :ivar instance: the id of this daemon process.
    :ivar process_behind: finds the process at the other end of a connection.
    :ivar metrics_token_digest: SHA-256 of a scraper's token for the metrics, or None.
    :ivar features: the features that were started in this daemon.
    :ivar clients: the names of clients that may open their own sessions, as the operator configured.
    :ivar long_turns: returns the long turns of the reactor, or None if they are not measured.
    :ivar cookie_prefix: the beginning of the browser's cookie's name, such as C{__Host-}.
    :ivar several: whether other daemons serve the same sessions.
    :ivar is_stopping: returns whether the daemon stops and leaves new work to other daemons.
    :ivar forget_places: is called with the owner of each credential that becomes invalid.
    :ivar find_role: a coroutine function that returns the present role of a login's account, or None if the account was
        removed or changed since the login.
    :ivar is_removed: returns whether the account to which a session belongs was removed.
    :ivar access_log: the record of logins.
    :ivar leases: the leases of sessions.
    :ivar waits: the long polls of agents.
    """

    submission: ISubmission = field(validator=_provides(ISubmission))
    decisions: IDecisions = field(validator=_provides(IDecisions))
    trust: ITrustService = field(validator=_provides(ITrustService))
    grants: IGrantService = field(validator=_provides(IGrantService))
    limits: ILimitService = field(validator=_provides(ILimitService))
    filters: SessionRestrictions = field(validator=_has_all_of(SessionRestrictions))
    reconciliation: IReconciliation = field(validator=_provides(IReconciliation))
    sessions: ISessions = field(validator=_provides(ISessions))
    audit: IAudit = field(validator=_provides(IAudit))
    signer: RecordSigner = field(validator=_has_all_of(RecordSigner))
    vault: IVault = field(validator=_provides(IVault))
    bindings: IBindings = field(validator=_provides(IBindings))
    flags: IBindingFlags = field(validator=_provides(IBindingFlags))
    snoozes: Snoozes = field(validator=_has_all_of(Snoozes))
    usage: UsageReader = field(validator=_has_all_of(UsageReader))
    daemons: DaemonList = field(validator=_has_all_of(DaemonList))
    connectors: IConnectors = field(validator=_provides(IConnectors))
    operators: OperatorLogins = field(validator=_has_all_of(OperatorLogins))
    passkeys: PasskeyRegistry = field(validator=_has_all_of(PasskeyRegistry))
    approvers: Approving = field(validator=_has_all_of(Approving))
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
    cookie_prefix: str = ""
    find_role: Callable[[AccountLogin], Awaitable[Role | None]] = find_no_role
    several: bool = False
    is_stopping: Callable[[], bool] = lambda: False
    is_removed: Callable[[Owner], bool] = lambda _: True
    access_log: AccessLog = field(
        init=False, default=Factory(lambda deps: AccessLog(deps.audit, deps.clock, deps.ids), takes_self=True)
    )
    waits: Waits = field(init=False, factory=Waits)
    leases: Leases = field(
        init=False,
        default=Factory(
            lambda deps: Leases(
                deps.sessions, deps.clock, deps.ids, deps.session_ended, deps.several, is_removed=deps.is_removed
            ),
            takes_self=True,
        ),
    )

    @property
    def cookie(self) -> bytes:
        """The name of the browser's cookie. All ports of a host share cookies, so each daemon has its own name."""
        return f"{self.cookie_prefix}aileron_{self.instance}".encode("ascii")

    def session_ended(self, session_id: str) -> None:
        """Cancel the MCP streams and waiting requests of an ended session, and free the places of its connections."""
        self.waits.end(session_id)
        self.features.session_ended(session_id)
        self.forget_places(session_id)

    def note_told(self, run: Run, session: Session | None) -> None:
        """Notify the features that an agent is about to receive the outcome of its run.

        If the run is not settled, do nothing.

        :param session: the agent's session, or None for the operator, for whom nothing is done.
        """
        if session is not None and run.session_id is not None and run.state.settled:
            self.features.outcome_told(run.session_id, run.id)

    async def pending(self, session_id: str | None = None) -> int:
        """Return the number of pending decisions of one session or of all: approvals of runs, and those of features."""
        return await self.decisions.pending(session_id) + self.features.pending(session_id)

    async def count_waiting(self) -> int:
        """Return the number of pending decisions, without the runs that the operator has snoozed."""
        return max(0, await self.pending() - len(await self.snoozes.all()))

    def now(self) -> datetime:
        """Return the current time."""
        return utc(self.clock.seconds())
