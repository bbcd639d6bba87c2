"""Decides for each host whether a sandboxed session may reach it, asks the operator about other hosts, and records all.

Decisions are kept in memory until the session or the daemon ends. Only the operator's file lasts longer. Agents decide
nothing here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any, Protocol, cast

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.addresses import covers_host
from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Actor, Event
from aileron.model.errors import Conflict, NotFound, StoreUnavailable
from aileron.model.failures import log_failure
from aileron.model.interfaces.authority import IOperatorLimits
from aileron.model.interfaces.governance import ITrustService
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery
from aileron.model.sessions import Session
from aileron.model.tool_claims import NO_CALLER, ToolCaller
from aileron.model.trust import TrustKind

from ._file import NAME, EgressFile
from .values import EgressDecision, EgressHost, EgressState, TunnelOpener, read_egress

MOST_TUNNELS = 64
"""The number of connections that one session may have open."""

MOST_PENDING = 20
"""The number of hosts of one session that may wait for a decision. Further hosts are refused without a question."""

_MOST_HOSTS = 500
_MOST_TOLD = 2 * _MOST_HOSTS
_MOST_TICKETS = 256
_TICKET_SECONDS = 30.0
_FOR_THE_SESSION = "allowed for this session"
_PROJECTS_FILE = NAME
_ENDED = "the session has ended"
_BOUND = (
    "This session's hosts were named when it first asked for access, and other hosts are not added to them. To allow "
    "another host, use: aileron network allow HOST"
)

_NOT_ANSWERED = (
    "This daemon does not answer in the place of {host}, because Aileron was restarted after the agent was launched, "
    "or the agent was launched at another daemon: launch the agent again"
)

_log = Logger()


class Tunnel(Protocol):
    """An open connection to a host."""

    host: str

    def cut(self) -> None:
        """Close the connection to the host at once."""


@frozen
class EgressRefused(Exception):
    """The error for a host to which a session may not connect.

    :ivar why: the reason and what to do, as a sentence without its full stop and without secrets.
    """

    why: str


@define(eq=False)
class Access:
    """The hosts that one sandboxed session may reach, and its connections to them.

    :ivar project: the session's directory, as the launcher claims.
    :ivar words: for each host that the launcher allowed: the preset or name by which it was allowed.
    :ivar answered: the hosts in whose place the daemon answered when the access was first opened. They are never
        connected to. One may begin with C{*.}.
    :ivar hosts: the hosts that the session requested.
    :ivar tunnels: the open connections.
    :ivar reported: the recorded events of the connections: type, host, and the reason or basis. Each is recorded once.
    :ivar lock: held while a host is admitted or decided.
    """

    session_id: str
    project: str
    words: Mapping[str, str]
    answered: frozenset[str] = frozenset()
    hosts: dict[str, EgressHost] = field(factory=dict)
    tunnels: set[Tunnel] = field(factory=set)
    reported: set[tuple[str, str, str]] = field(factory=set)
    lock: DeferredLock = field(factory=DeferredLock)

    def count(self, host: str, *, sent: int = 0, received: int = 0) -> None:
        """Add to the bytes that passed to and from a host."""
        found = self.hosts[host]
        self.hosts[host] = evolve(found, sent=found.sent + sent, received=found.received + received)

    def pending(self) -> int:
        """Return how many of the session's hosts wait for a decision of the operator."""
        return sum(each.state is EgressState.PENDING for each in self.hosts.values())


@frozen
class Redeemed:
    """The access that a ticket gave to a connection.

    :ivar caller: the process that opened the connection, as the launcher claims.
    """

    access: Access
    caller: ToolCaller


@frozen
class _Ticket:
    """A ticket for one connection of a session, which can be used until a point in time."""

    session_id: str
    until: float
    caller: ToolCaller


@define(eq=False)
class EgressSessions:
    """The sessions with network access.

    :param file: the hosts that projects may reach.
    :param trust: stores the digest of the file that the operator trusts.
    :param operator_limits: the pauses, during which no connection is admitted.
    :param ids: returns a fresh ULID at each call.
    :param listen: starts the proxy unless it listens already, and returns its port.
    """

    _file: EgressFile
    _trust: ITrustService
    _audit: IAudit
    _operator_limits: IOperatorLimits
    _clock: IReactorTime
    _ids: Callable[[], str]
    _listen: Callable[[], int]
    _open: dict[str, Access] = field(init=False, factory=dict)
    _tickets: dict[bytes, _Ticket] = field(init=False, factory=dict)
    _opening: DeferredLock = field(init=False, factory=DeferredLock)
    _writing: set[Deferred[Any]] = field(init=False, factory=set)
    _opener: TunnelOpener | None = field(init=False, default=None)

    def register_opener(self, opener: TunnelOpener) -> None:
        """Register the part of the daemon that answers connections to some hosts itself."""
        self._opener = opener

    def find_opener(self, access: Access, host: str) -> TunnelOpener | None:
        """Return the part of the daemon that answers a session's connections to a host, or None if the host does."""
        opener = self._opener
        return opener if opener is not None and opener.find_basis(access.session_id, host) else None

    async def open(self, session: Session, words: tuple[str, ...], caller: ToolCaller = NO_CALLER) -> tuple[int, str]:
        """Open network access for a session, and return the proxy's port and a ticket for one connection to it.

        The first call for a session fixes its hosts, so that a later holder of the launch key cannot add hosts.

        :param caller: the process that opened the connection, as the launcher claims.
        :raises ValueError: if a word is no preset and no host, as a sentence.
        :raises Conflict: if other hosts were named for this session, or too many connections are being opened.
        :raises StoreUnavailable: if the audit log cannot be read or written.
        """
        named = read_egress(words)
        async with self._opening:
            access = self._open.get(session.id)
            if access is None and self._opener is not None:
                await self._opener.recall(session.id)
            here = frozenset[str]() if self._opener is None else self._opener.list_hosts(session.id)
            if not words and not here:
                raise ValueError("Name at least one host or preset.")
            before = await self._find_recorded(session) if access is None else access
            if before is not None and before.words != named:
                raise Conflict(_BOUND)
            if access is None:
                answered = here if before is None else here | before.answered
                await self._record_opened(session, words, answered)
                self._open[session.id] = Access(session.id, session.working_dir, named, answered)
        return self._listen(), self._mint(session.id, caller)

    async def _record_opened(self, session: Session, words: tuple[str, ...], answered: frozenset[str]) -> None:
        """Record that network access was opened for a session.

        :param answered: see L{Access.answered}.
        :raises StoreUnavailable: if the audit log cannot be written.
        """
        more: dict[str, JSON] = {"answered": sorted(answered)} if answered else {}
        event = self._event("egress.opened", session.id, DAEMON, allow=list(words), project=session.working_dir, **more)
        await self._audit.append(event)

    async def _find_recorded(self, session: Session) -> Access | None:
        """Return the access that a session had before the daemon restarted, or None if it had none.

        :raises StoreUnavailable: if the audit log cannot be read.
        """
        query = AuditQuery(type="egress.opened", session_id=session.id, limit=1)
        for record in (await self._audit.list(query)).items:
            named = read_egress(cast("tuple[str, ...]", record.event.payload["allow"]))
            answered = frozenset(cast("list[str]", record.event.payload.get("answered", [])))
            return Access(session.id, session.working_dir, named, answered)
        return None

    def redeem(self, ticket: str) -> Redeemed | None:
        """Return the access of a ticket's session and the caller of its connection, and invalidate the ticket.

        Return None if the ticket is unknown, expired or used, or the session's access is closed.
        """
        found = self._tickets.pop(_digest(ticket), None)
        access = None if found is None or found.until < self._clock.seconds() else self._open.get(found.session_id)
        return None if found is None or access is None else Redeemed(access, found.caller)

    async def admit(self, access: Access, host: str) -> bool:
        """Record that a session requests a host, and return True if the host may have private addresses.

        :raises EgressRefused: if the session may not connect to the host, or the audit log cannot be written. If
            nothing allows or denies the host, it waits for the operator's decision from then on, and the session may
            try again.
        """
        async with access.lock:
            if self._has_ended(access):  # while the lock was awaited
                raise EgressRefused(_ENDED)
            allowed = self._judge(access, host)
            with _on_record():
                await self._note(access, host, allowed)
            if allowed is None:
                raise EgressRefused("it waits for approval; see aileron network list")
            if self._has_ended(access):
                self.report("egress.failed", access, host, _ENDED)
                raise EgressRefused(_ENDED)
        return allowed[1]

    def _has_ended(self, access: Access) -> bool:
        return self._open.get(access.session_id) is not access

    async def confirm(self, access: Access, host: str) -> None:
        """Record that a session is connected to a host. Must be called before any byte is sent to the host.

        :raises EgressRefused: if the audit log cannot be written.
        """
        basis = access.hosts[host].basis
        told = ("egress.connected", host, basis)
        if told not in access.reported:
            with _on_record():
                await self._audit.append(self._event_of(access, host, told[0], basis=basis))
            access.reported.add(told)

    def hosts(self) -> tuple[EgressHost, ...]:
        """Return the hosts that live sessions requested, pending ones first, then the newest first."""
        found = [each for access in self._open.values() for each in access.hosts.values()]
        newest = sorted(found, key=lambda each: (each.asked_at, each.id), reverse=True)
        return tuple(sorted(newest, key=lambda each: each.state is not EgressState.PENDING))

    def pending(self, session_id: str | None = None) -> int:
        """Return how many hosts wait for a decision of the operator, for all sessions or for one."""
        return sum(each.pending() for each in self._open.values() if session_id in (None, each.session_id))

    async def decide(self, host_id: str, decision: EgressDecision, seen: EgressState, actor: Actor) -> EgressHost:
        """Record the operator's decision about a host. If the host is denied, close its connections.

        Return the host as it is then.

        :param seen: the state of the host that the operator was shown.
        :raises NotFound: if no live session requested the host.
        :raises Conflict: if the state of the host is not C{seen}, or the file on disk is not trusted.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the decision could not be stored; nothing was changed.
        :raises InvalidRequest: if C{egress.toml} cannot express the entry.
        """
        access, host = self._find(host_id)
        async with access.lock:
            if access.hosts[host].state is not seen:
                present = access.hosts[host].state.value
                raise Conflict(f"This host is {present} by now. Look at it again.", {"state": present})
            if decision is EgressDecision.ALWAYS:
                with self._file.adding(access.project, host) as candidate:
                    await self._trust.trust([(TrustKind.CONFIG, NAME, candidate.digest)], actor)
            denied = decision is EgressDecision.DENY
            type_ = "egress.denied" if denied else "egress.allowed"
            await self._audit.append(self._event_of(access, host, type_, actor, decision=decision.value))
            state = EgressState.DENIED if denied else EgressState.ALLOWED
            basis = {EgressDecision.DENY: "", EgressDecision.ALWAYS: _PROJECTS_FILE}.get(decision, _FOR_THE_SESSION)
            access.hosts[host] = evolve(access.hosts[host], state=state, basis=basis)
        if denied:
            _cut(access, host)
        return access.hosts[host]

    def end(self, session_id: str) -> None:
        """End the network access of a session, and record the bytes that passed. Idempotent."""
        access = self._open.pop(session_id, None)
        if access is None:
            return
        _cut(access)
        reached = (each for each in access.hosts.values() if each.sent)
        hosts: list[JSON] = [{"host": each.host, "sent": each.sent, "received": each.received} for each in reached]
        self._record(self._event("egress.ended", session_id, hosts=hosts))

    def report(self, type_: str, access: Access, host: str, why: str) -> None:
        """Record why an admitted connection to a host failed.

        A reason already recorded for the host is skipped, and so is every further reason of a session with very many.
        """
        told = (type_, host, why)
        if told not in access.reported and len(access.reported) < _MOST_TOLD:
            access.reported.add(told)
            self._record(self._event_of(access, host, type_, why=why))

    async def stop(self) -> None:
        """End the network access of all sessions, and return when this is recorded."""
        for session_id in tuple(self._open):
            self.end(session_id)
        while self._writing:
            await next(iter(self._writing))

    def _record(self, event: Event) -> None:
        """Write an event to the audit log in the background. A failure is logged."""
        writing = Deferred.fromCoroutine(self._audit.append(event))
        self._writing.add(writing)
        writing.addErrback(lambda why: log_failure(_log, "recording {type}", why, type=event.type))
        writing.addBoth(lambda _: self._writing.discard(writing))

    def _judge(self, access: Access, host: str) -> tuple[str, bool] | None:
        """Return why a host is allowed and whether it may have private addresses, or None if the operator must decide.

        :raises EgressRefused: if everything or the session is paused, the host is denied for the session, or too many
            hosts of the session wait for a decision.
        """
        if any(pause.session_id in (None, access.session_id) for pause in self._operator_limits.pauses()):
            raise EgressRefused("Aileron is paused")
        known = access.hosts.get(host)
        if known is not None and known.state is EgressState.DENIED:
            raise EgressRefused("it was denied for this session")
        opened = self._judge_opened(access, host)
        if opened:
            return opened, False
        rule = self._file.find(access.project, host)
        private = rule is not None and rule.private_network
        if host in access.words:
            return access.words[host], private
        if rule is not None:
            return _PROJECTS_FILE, private
        if known is not None and known.basis == _FOR_THE_SESSION:
            return _FOR_THE_SESSION, False
        if known is None and (access.pending() >= MOST_PENDING or len(access.hosts) >= _MOST_HOSTS):
            raise EgressRefused("too many hosts of this session wait for approval")
        return None

    def _judge_opened(self, access: Access, host: str) -> str:
        """Return why this daemon answers connections to a host itself, or an empty text if it does not.

        :raises EgressRefused: if the session may not connect to the host.
        """
        opener = self._opener
        problem = "" if opener is None else opener.find_problem(access.session_id, host)
        basis = "" if opener is None else opener.find_basis(access.session_id, host)
        # guard of own tools: where they are off after a restart, no placeholder is sent to the real host
        #    -> features.egress.test_sessions.OpenerTests.test_off
        if not basis and any(covers_host(each, host) for each in access.answered):
            problem = problem or _NOT_ANSWERED.format(host=host)
        # guard of own tools: no word of the launcher opens a host that its opener refuses
        #    -> features.egress.test_sessions.OpenerTests.test_problem
        if problem:
            self.report("egress.failed", access, host, problem)
            raise EgressRefused(problem)
        return basis

    async def _note(self, access: Access, host: str, allowed: tuple[str, bool] | None) -> None:
        """Count a session's request for a host. If the host's state or basis has changed, record the change first.

        :raises StoreUnavailable: if the audit log cannot be written.
        """
        state = EgressState.PENDING if allowed is None else EgressState.ALLOWED
        basis = "" if allowed is None else allowed[0]
        known = access.hosts.get(host)
        if known is None or (known.state, known.basis) != (state, basis):
            type_ = "egress.refused" if allowed is None else "egress.admitted"
            await self._audit.append(self._event_of(access, host, type_, basis=basis))
        known = access.hosts.get(host) or EgressHost(
            id=self._ids(),
            session_id=access.session_id,
            project=access.project,
            host=host,
            state=state,
            basis=basis,
            asked_at=utc(self._clock.seconds()),
            times=0,
        )
        access.hosts[host] = evolve(known, state=state, basis=basis, times=known.times + 1)

    def _find(self, host_id: str) -> tuple[Access, str]:
        for access in self._open.values():
            for host, each in access.hosts.items():
                if each.id == host_id:
                    return access, host
        raise NotFound("No running session asked for this host.")

    def _mint(self, session_id: str, caller: ToolCaller) -> str:
        now = self._clock.seconds()
        self._tickets = {key: each for key, each in self._tickets.items() if each.until >= now}
        if sum(each.session_id == session_id for each in self._tickets.values()) >= _MOST_TICKETS:
            raise Conflict("This session opens too many connections at once.")
        ticket = secrets.token_urlsafe(32)
        self._tickets[_digest(ticket)] = _Ticket(session_id, now + _TICKET_SECONDS, caller)
        return ticket

    def _event_of(self, access: Access, host: str, type_: str, actor: Actor = DAEMON, **more: JSON) -> Event:
        return self._event(type_, access.session_id, actor, host=host, project=access.project, **more)

    def _event(self, type_: str, session_id: str, actor: Actor = DAEMON, **payload: JSON) -> Event:
        return Event(self._ids(), type_, utc(self._clock.seconds()), actor, payload, session_id=session_id)


@contextmanager
def _on_record() -> Iterator[None]:
    try:
        yield
    except StoreUnavailable:
        raise EgressRefused("the audit log cannot be written; see aileron doctor") from None


def _cut(access: Access, host: str | None = None) -> None:
    for tunnel in tuple(access.tunnels):
        if host in (None, tunnel.host):
            tunnel.cut()


def _digest(ticket: str) -> bytes:
    return sha256(ticket.encode("utf-8")).digest()
