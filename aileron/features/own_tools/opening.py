"""Opens the connections of sessions to the hosts of their services."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from attrs import define, field, frozen
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IProtocol, IReactorTime, ITransport

from aileron.base.addresses import covers_host
from aileron.base.json import utc
from aileron.features.egress.values import HTTPS_PORT
from aileron.model.errors import Conflict
from aileron.model.tool_claims import ToolCaller

from ._authority import SessionAuthority
from ._budget import HeldBytes
from ._connection import ToolSession, serve_tool
from ._recorder import ToolRecorder
from ._spool import BodySpools
from .values import ToolDoor, ToolService

_OTHERS = (
    "This session's services were named when its tools were first opened, and others are not added to them. Launch the "
    "agent again."
)
_RESTARTED = (
    "This agent's tools cannot use {what}, because Aileron was restarted after the agent was launched, or the agent "
    "was launched at another daemon: launch the agent again"
)


def _do_nothing() -> None:
    return None


@frozen
class OpenedTools:
    """The services that were opened for the tools of one session.

    :ivar names: the names of the services, sorted.
    """

    names: tuple[str, ...]
    services: tuple[ToolService, ...]
    authority: SessionAuthority

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts of all services, each with its port unless that is 443."""
        return frozenset(host for each in self.services for host in each.hosts)

    def find_services(self, host: str) -> tuple[ToolService, ...]:
        """Return the services at a host, given with its port unless that is 443."""
        return tuple(each for each in self.services if _covers(each.hosts, host))


@define(eq=False)
class ToolSessions:
    """The sessions whose tools may use services. It implements L{TunnelOpener}, by which the proxy finds it.

    The certificate authorities are in memory only: after a restart of the daemon, a session's connections to its
    services' hosts are refused, also if the session may reach these hosts otherwise.

    :param prepare: called when services are opened for a session, so that what its first request needs can be loaded.
    :param spools: stores long bodies. If it is None, none are accepted.
    """

    _door: ToolDoor
    _clock: IReactorTime
    _recorder: ToolRecorder
    _prepare: Callable[[], object] = _do_nothing
    _spools: BodySpools | None = None
    _opened: dict[str, OpenedTools] = field(factory=dict, init=False)
    _lost: dict[str, frozenset[str]] = field(factory=dict, init=False)
    _opening: DeferredLock = field(factory=DeferredLock, init=False)
    _held: HeldBytes = field(factory=HeldBytes, init=False)
    _numbers: count[int] = field(factory=lambda: count(1), init=False)

    async def open(self, session_id: str, names: tuple[str, ...]) -> OpenedTools:
        """Open services for a session. The first call fixes them, and equal later calls return the same.

        :raises NotFound: if there is no such service.
        :raises BindingRequired: if no credential is bound to it.
        :raises Conflict: if other services were opened for the session, or the daemon was restarted since.
        :raises StoreUnavailable: if the audit log cannot be read or written.
        """
        wanted = tuple(sorted(set(names)))
        async with self._opening:
            known = self._opened.get(session_id)
            if known is None:
                await self.recall(session_id)
                # guard of own tools: an authority that the agent's sandbox does not know is not made
                #    -> features.own_tools.test_opening.RestartTests.test_open
                if session_id in self._lost:
                    raise Conflict(f"{_RESTARTED.format(what='services')}.")
                known = self._make(wanted)
                await self._recorder.record_opened(session_id, wanted, known.hosts)
                self._opened[session_id] = known
                self._prepare()
        # guard of own tools: who has the launch key adds no service to a session
        #    -> features.own_tools.test_opening.OpeningTests.test_others
        # guard against attack: no service is added later -> test_own_tools_way.WayTests.test_services
        if known.names != wanted:
            raise Conflict(_OTHERS)
        return known

    def _make(self, names: tuple[str, ...]) -> OpenedTools:
        services = self._door.find_services(names)
        hosts = {host.partition(":")[0] for each in services for host in each.hosts}
        return OpenedTools(names, services, SessionAuthority(hosts, utc(self._clock.seconds())))

    def end(self, session_id: str) -> None:
        """Forget the services of a session that has ended, and the private key of its authority. Idempotent."""
        self._opened.pop(session_id, None)
        self._lost.pop(session_id, None)

    async def recall(self, session_id: str) -> None:
        if session_id not in self._opened and session_id not in self._lost:
            hosts = await self._recorder.find_opened_hosts(session_id)
            if hosts and session_id not in self._opened:
                self._lost[session_id] = hosts

    def find_problem(self, session_id: str, host: str) -> str:
        # guard of own tools: after a restart no placeholder is sent to the real host
        #    -> features.own_tools.test_opening.RestartTests.test_refused
        known = _covers(self._lost.get(session_id, ()), _shorten(host))
        return _RESTARTED.format(what=_shorten(host)) if known else ""

    def list_hosts(self, session_id: str) -> frozenset[str]:
        opened = self._opened.get(session_id)
        hosts = self._lost.get(session_id, frozenset()) if opened is None else opened.hosts
        return frozenset(each if ":" in each else f"{each}:{HTTPS_PORT}" for each in hosts)

    def find_basis(self, session_id: str, host: str) -> str:
        found = self._find(session_id, host)
        return "" if found is None else f"own tools: {', '.join(each.name for each in found[1])}"

    def serve(self, session_id: str, host: str, transport: ITransport, caller: ToolCaller) -> IProtocol | None:
        found = self._find(session_id, host)
        if found is None:
            return None
        name = _shorten(host)

        def report(why: str) -> None:
            self._recorder.record_unreadable(session_id, name, why)

        number = next(self._numbers)
        session = ToolSession(session_id, number, name, self._door, self._held, report, found[1], caller, self._spools)
        options = found[0].authority.make_options(name.partition(":")[0])
        return serve_tool(session, options, transport, self._clock)

    def _find(self, session_id: str, host: str) -> tuple[OpenedTools, tuple[ToolService, ...]] | None:
        opened = self._opened.get(session_id)
        # guard of own tools: a session opens the hosts of its own services alone
        #    -> features.own_tools.test_opening.OpeningTests.test_other_session
        services = () if opened is None else opened.find_services(_shorten(host))
        return (opened, services) if opened is not None and services else None


def _covers(hosts: Iterable[str], host: str) -> bool:
    return any(covers_host(each, host) for each in hosts)


def _shorten(host: str) -> str:
    """Return a host, given with its port, without the port if that is 443."""
    return host.removesuffix(f":{HTTPS_PORT}")
