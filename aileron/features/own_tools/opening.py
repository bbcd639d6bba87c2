"""Opens the connections of sessions to the hosts of their services."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from attrs import define, field, frozen
from twisted.internet.interfaces import IProtocol, IReactorTime, ITransport

from aileron.base.json import utc
from aileron.features.egress.values import HTTPS_PORT
from aileron.model.errors import Conflict

from ._authority import SessionAuthority
from ._connection import ToolSession, serve_tool
from .values import ToolDoor, ToolService

_OTHERS = (
    "This session's services were named when its tools were first opened, and others are not added to them. Launch the "
    "agent again."
)


@frozen
class OpenedTools:
    """The services that are open for one session.

    :ivar names: the names of the services, sorted.
    """

    names: tuple[str, ...]
    services: tuple[ToolService, ...]
    authority: SessionAuthority

    def find_service(self, host: str) -> ToolService | None:
        """Return the service of a host, given with its port unless that is 443, or None if there is none."""
        return next((each for each in self.services if host in each.hosts), None)


@define(eq=False)
class ToolSessions:
    """The sessions whose tools may use services. It implements the proxy's L{TunnelOpener}.

    Everything is in memory: after a restart of the daemon a session's tools reach the services only if the agent is
    launched again.

    :param report: records that a request of a session to a host was refused because of its form, with the reason.
    """

    _door: ToolDoor
    _clock: IReactorTime
    _report: Callable[[str, str, str], object]
    _opened: dict[str, OpenedTools] = field(factory=dict, init=False)
    _numbers: count[int] = field(factory=lambda: count(1), init=False)

    def open(self, session_id: str, names: tuple[str, ...]) -> OpenedTools:
        """Open services for a session. The first call fixes them, and equal later calls return the same.

        :raises NotFound: if there is no such service.
        :raises BindingRequired: if no credential is bound to it.
        :raises Conflict: if other services were opened for the session.
        """
        wanted = tuple(sorted(set(names)))
        known = self._opened.get(session_id)
        if known is None:
            services = self._door.find_services(wanted)
            hosts = {host.partition(":")[0] for each in services for host in each.hosts}
            known = OpenedTools(wanted, services, SessionAuthority(hosts, utc(self._clock.seconds())))
            self._opened[session_id] = known
        # guard of own tools: who has the launch key adds no service to a session
        #    -> own_tools.test_opening.OpeningTests.test_others
        if known.names != wanted:
            raise Conflict(_OTHERS)
        return known

    def end(self, session_id: str) -> None:
        """Forget what was opened for a session, and the key of its authority. Idempotent."""
        self._opened.pop(session_id, None)

    def has_hosts(self, session_id: str) -> bool:
        """Return whether services are open for a session."""
        return session_id in self._opened

    def find_basis(self, session_id: str, host: str) -> str:
        found = self._find(session_id, host)
        return "" if found is None else f"own tools: {found[1].name}"

    def serve(self, session_id: str, host: str, transport: ITransport) -> IProtocol | None:
        found = self._find(session_id, host)
        if found is None:
            return None
        name = _shorten(host)

        def report(why: str) -> None:
            self._report(session_id, name, why)

        session = ToolSession(session_id, next(self._numbers), name, self._door, report)
        context = found[0].authority.make_context(name.partition(":")[0])
        return serve_tool(session, context, transport, self._clock)

    def _find(self, session_id: str, host: str) -> tuple[OpenedTools, ToolService] | None:
        opened = self._opened.get(session_id)
        # guard of own tools: a session opens the hosts of its own services alone
        #    -> own_tools.test_opening.OpeningTests.test_other_session
        service = None if opened is None else opened.find_service(_shorten(host))
        return None if opened is None or service is None else (opened, service)


def _shorten(host: str) -> str:
    """Return a host, given with its port, without the port if that is 443."""
    return host.removesuffix(f":{HTTPS_PORT}")
