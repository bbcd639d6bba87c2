"""Opens the services and the connections of a session whose requests go through the daemon's proxy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import field, frozen

from aileron.base.addresses import WILDCARD
from aileron.client import Daemon, DaemonUnreachable
from aileron.features.egress.client import open_connection
from aileron.features.egress.hello import HelloRefused, read_hello
from aileron.features.own_tools.client import OpenedServices, list_configured, open_services
from aileron.features.sandbox.direct import DirectHosts
from aileron.model.tool_claims import ToolCaller

from .access import SandboxAccess

_OPENED = (
    "Own tools: {services}. Requests to {hosts} go through Aileron, which adds your credential. Those that change "
    "something wait for your approval."
)
_PLACEHOLDERS = " {place} {names} {contain}{stays}."


@frozen
class SessionServices:
    """Opens what a session may reach.

    :ivar access: the hosts and services that the user names.
    :ivar environment: the user's environment.
    :ivar find_daemon: returns a client of the running daemon, with the launch key, or None if none runs.
    :ivar say: shows the user one line.
    """

    access: SandboxAccess
    environment: Mapping[str, str] = field(repr=False)
    find_daemon: Callable[[], Daemon | None]
    say: Callable[[str], object]

    async def open(self, session_id: str, place: str) -> OpenedServices | None:
        """Open the services for the session's tools and tell the user, or return None if there are none.

        :param place: the beginning of the sentence that names the variables with placeholders.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        names = self.access.services
        if not names and self.access.configured:
            # guard of own tools: only the operator's trusted configuration opens services that nobody named
            #    -> features.launch.test_enclosing.LaunchSandboxTests.test_configured
            names = await list_configured(self._connect(), session_id)
        if not names:
            return None
        opened = await open_services(self._connect(), session_id, names)
        about = _OPENED.format(services=", ".join(opened.services), hosts=", ".join(opened.hosts))
        self.say(f"{about}{self._name_placeholders(opened, place)}")
        return opened

    def list_hosts(self, opened: OpenedServices | None) -> tuple[str, ...]:
        """Return the hosts that the session may reach, as the user reads them: none without a network."""
        hosts = () if opened is None else opened.hosts
        return (*self.access.egress, *(f"{host} (own tools)" for host in hosts))

    async def dial(self, session_id: str, caller: ToolCaller) -> tuple[int, bytes]:
        """Return the proxy's port, and the first bytes of one connection to it.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return await open_connection(self._connect(), session_id, self.access.egress, caller)

    def _connect(self) -> Daemon:
        daemon = self.find_daemon()
        if daemon is None:
            raise DaemonUnreachable("The daemon is not running.")
        return daemon

    def _name_placeholders(self, opened: OpenedServices, place: str) -> str:
        """Return a sentence that names the variables with placeholders, or an empty text if there are none."""
        if not opened.placeholders:
            return ""
        theirs = sorted(name for name in opened.placeholders if self.environment.get(name))
        stays = f"; your own {' and '.join(theirs)} stays outside" if theirs else ""
        names = sorted(opened.placeholders)
        contain = "contains a placeholder" if len(names) == 1 else "contain placeholders"
        return _PLACEHOLDERS.format(place=place, names=", ".join(names), contain=contain, stays=stays)


def find_direct(opened: OpenedServices | None) -> DirectHosts | None:
    """Return the hosts that programs in a sandbox reach even if they ignore the proxy, or None if there are none.

    These are the hosts of services at the port of HTTPS. Wildcards are left out: C{/etc/hosts} cannot have them.
    """
    hosts = () if opened is None else opened.hosts
    names = frozenset(each for each in hosts if ":" not in each and not each.startswith(WILDCARD))
    return DirectHosts(names, _read_name) if names else None


def _read_name(data: bytes) -> str | None:
    """Return the server's name in the first bytes of a TLS client, or None if more bytes are needed.

    :raises ValueError: if the bytes cannot be the beginning of a hello with exactly one visible name.
    """
    try:
        hello = read_hello(data)
    except HelloRefused as refused:
        raise ValueError(refused.why) from None
    return None if hello is None else hello.name
