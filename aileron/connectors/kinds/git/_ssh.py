"""Git over SSH: sends what the connector would send by HTTP, each request on a session of its own.

The programs at the other end are those that smart HTTP runs as well, so lists and reports have the same form.
"""

from __future__ import annotations

from attrs import field, frozen
from twisted.internet.defer import Deferred

from aileron.base.addresses import read_url
from aileron.base.waiting import given_up_at_once
from aileron.connectors._answer import Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable
from aileron.connectors._connection import ConnectionOpener, ServiceConnection
from aileron.connectors._conversation import HungUp, Rejected
from aileron.model.errors import InvalidRequest

from ._remote import write_packet
from ._spec import UPLOAD, HostKey

_OK = 200


@frozen
class SshTransport:
    """Keeps the promises of L{aileron.connectors._answer.Transport} over SSH.

    A request without a body is for the list of refs.  One with a body is an update, and its answer is the report, or
    it asks for a pack; C{flight} becomes sent when the last byte of the body may leave, since git does nothing with
    less.  It raises L{NotUnderstood} and L{Rejected} as well.

    :ivar opener: opens the connections.
    """

    opener: ConnectionOpener = field(repr=False)
    host_key: HostKey

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Run one command, on a connection that is dropped whatever happens."""
        connection = ServiceConnection(Flight(), message.private_network)
        return given_up_at_once(Deferred.fromCoroutine(self._run(message, flight, connection)), connection.give_up)

    async def _run(self, message: OutgoingRequest, flight: Flight, connection: ServiceConnection) -> ServiceAnswer:
        try:
            from ._session import SshLogin, open_session
        except ImportError:
            missing = "Git over SSH needs Twisted's conch. Install Aileron with its extra named ssh."
            raise InvalidRequest(missing) from None
        url, service = read_url(message.url, ssh=True), message.method
        login = SshLogin(url.origin.user, self.host_key, message.private_key)
        command = f"{service} '{url.path}'".encode("ascii")  # a base URL's path has nothing that a shell obeys
        speakers, channel = open_session(login, command, message.max_response_bytes)
        try:
            await self.opener.open(url.origin, connection, speakers)
            listed = await channel.packets()
            if message.body is None:
                head = write_packet(f"# service={service}\n".encode()) + b"0000"
                return ServiceAnswer(_OK, {"content-type": f"application/x-{service}-advertisement"}, head + listed)
            channel.say(message.body, flight)
            answer = await channel.packets()
            if service == UPLOAD:  # that was where history is cut off; what was asked for follows
                answer += await channel.packets()
            return ServiceAnswer(_OK, {}, answer)
        except HungUp:  # all else is raised as it is
            if channel.said and not flight.sent:
                raise Rejected(service, channel.said) from None
            raise ServiceUnreachable from None
        finally:
            connection.drop()
