"""Git over SSH: sends the connector's HTTP requests over SSH instead, each in a new session.

The remote runs the same programs as for smart HTTP, so lists and reports have the same form.
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
    """A L{aileron.connectors._answer.Transport} over SSH.

    A request without a body asks for the list of refs. A request with a body is an update, whose response is the
    report, or a request for a pack. C{flight.sent} becomes true when the last byte of the body may be sent, because git
    ignores an incomplete request. Requests may also fail with L{NotUnderstood} and L{Rejected}.

    :ivar opener: opens the connections.
    :ivar host_key: the expected host key of the server.
    """

    opener: ConnectionOpener = field(repr=False)
    host_key: HostKey

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Run one command on a new connection, which is closed afterwards in every case."""
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
        command = f"{service} '{url.path}'".encode("ascii")  # a base URL's path has no shell metacharacters
        speakers, channel = open_session(login, command, message.max_response_bytes)
        try:
            await self.opener.open(url.origin, connection, speakers)
            listed = await channel.packets()
            if message.body is None:
                head = write_packet(f"# service={service}\n".encode()) + b"0000"
                return ServiceAnswer(_OK, {"content-type": f"application/x-{service}-advertisement"}, head + listed)
            channel.say(message.body, flight)
            answer = await channel.packets()
            if service == UPLOAD:  # the first list is where history is cut off; the pack follows
                answer += await channel.packets()
            return ServiceAnswer(_OK, {}, answer)
        except HungUp:  # other errors are raised unchanged
            if channel.said and not flight.sent:
                raise Rejected(service, channel.said) from None
            raise ServiceUnreachable from None
        finally:
            connection.drop()
