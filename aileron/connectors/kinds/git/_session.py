"""An SSH session with Twisted's client: checks the host key, logs in with one key, and runs one command.

The user's SSH configuration is ignored: no SSH agent, no file of C{~/.ssh}. Import this module only where it is used,
because it needs the extra C{ssh}.
"""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

from attrs import field, frozen
from twisted.conch.ssh.channel import SSHChannel
from twisted.conch.ssh.common import NS, getNS
from twisted.conch.ssh.connection import SSHConnection
from twisted.conch.ssh.keys import Key
from twisted.conch.ssh.service import SSHService
from twisted.conch.ssh.transport import SSHClientTransport
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.protocol import Factory
from twisted.logger import ILogObserver, Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.connectors._answer import Flight, TooLarge
from aileron.connectors._conversation import HungUp, NotUnderstood, Rejected
from aileron.credentials import load_private_key

from ._remote import HostKeyDiffers, NotGit, find_end
from ._spec import HostKey, algorithms_of


@implementer(ILogObserver)
def _ignore(event: Mapping[str, Any]) -> None:
    """Discard log events, because their text may come from the server."""


_QUIET = Logger(observer=_ignore)
_WINDOW, _MOST_SAID = 1024 * 1024, 1000
_LEAST_PACKET = 1024
_REQUEST = 50  # MSG_USERAUTH_REQUEST
_REPLY, _GROUP_REPLY = 31, 33  # replies of a key exchange, and of a group exchange, which is not offered
_OVERHEAD = 1024 * 1024  # bytes of key exchange and packet heads, in addition to the response


@frozen
class SshLogin:
    """The user, the server's host key, and the private key of one login.

    :ivar private_key: the private key, as the vault stores it.
    """

    user: str
    host_key: HostKey
    private_key: str = field(repr=False)


class CommandChannel(SSHChannel):
    """The channel on which the remote command reads and writes.

    :ivar failure: the reason why the channel has ended, or None while the channel is open.
    """

    name = b"session"
    conn: Any
    _log = _QUIET

    def __init__(self, command: bytes) -> None:
        super().__init__(localWindow=_WINDOW)
        self.failure: Exception | None = None
        self._command, self._flight, self._rest = command, Flight(), memoryview(b"")
        self._heard, self._errors = bytearray(), bytearray()
        self._more: Deferred[None] | None = None

    @property
    def said(self) -> str:
        """The first bytes of the server's error stream, such as the reason of a refusal."""
        return self._errors.decode("utf-8", "replace").strip()

    def end(self, why: Exception) -> None:
        """Record the reason why the channel has ended, unless there is one already, and wake up L{packets}."""
        self.failure = self.failure or why
        self._wake()

    def say(self, data: bytes, flight: Flight) -> None:
        """Send C{data} as fast as the server's window allows.

        C{flight.sent} becomes true when the last part is about to be sent.
        """
        self._flight, self._rest = flight, memoryview(data)
        self._say_more()

    async def packets(self) -> bytes:
        """Wait for a list of packets that ends with a flush packet, and return the bytes of the list.

        :raises NotUnderstood: if the server sends something that is not made of packets.
        :raises Exception: C{failure}, if the channel ends before the list does.
        """
        at, is_whole = 0, False
        while not is_whole:
            try:
                at, is_whole = find_end(self._heard, at)
            except NotGit:
                raise NotUnderstood from None
            if is_whole:
                break
            if self.failure is not None:
                raise self.failure
            self._more = Deferred()
            await self._more
        taken = bytes(self._heard[:at])
        del self._heard[:at]
        return taken

    def addWindowBytes(self, data: int) -> None:
        self.remoteWindowLeft += data
        self._say_more()

    def _say_more(self) -> None:
        if self.remoteMaxPacket < _LEAST_PACKET:
            self.end(NotUnderstood())
            return
        while self._rest and self.remoteWindowLeft:
            part = bytes(self._rest[: min(self.remoteWindowLeft, self.remoteMaxPacket)])
            self._rest = self._rest[len(part) :]
            self.remoteWindowLeft -= len(part)
            self._flight.sent = self._flight.sent or not self._rest
            self.conn.sendData(self, part)

    def channelOpen(self, specificData: bytes) -> None:
        asked = self.conn.sendRequest(self, b"exec", NS(self._command), wantReply=True)
        asked.addErrback(lambda _: self.end(Rejected("the command", self.said)))

    def openFailed(self, reason: Any) -> None:
        self.end(Rejected("a session"))

    def requestReceived(self, requestType: bytes, data: bytes) -> bool:
        return False  # an exit status, which adds nothing to the report

    def dataReceived(self, data: bytes) -> None:
        self._heard += data
        self._wake()

    def extReceived(self, dataType: int, data: bytes) -> None:
        self._errors += data[: _MOST_SAID - len(self._errors)]

    def eofReceived(self) -> None:
        """Keep waiting until the channel is closed, since a reason may still follow on the error stream."""

    def closed(self) -> None:
        self.end(HungUp())

    def _wake(self) -> None:
        more, self._more = self._more, None
        if more is not None and not more.called:
            more.callback(None)


class _Channels(SSHConnection):
    _log = _QUIET

    def __init__(self, channel: CommandChannel) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._channel = channel

    def serviceStarted(self) -> None:
        super().serviceStarted()  # type: ignore[no-untyped-call]
        self.openChannel(self._channel)  # type: ignore[no-untyped-call]


class _KeyLogin(SSHService):
    """A login with one key that is tried once; no other method is used (RFC 4252, 7)."""

    name = b"ssh-userauth"
    transport: Any
    _log = _QUIET
    protocolMessages: Any = {51: "MSG_USERAUTH_FAILURE", 52: "MSG_USERAUTH_SUCCESS", 53: "MSG_USERAUTH_BANNER"}  # noqa: RUF012  (as in the base class)

    def __init__(self, login: SshLogin, channel: CommandChannel) -> None:
        self._login, self._channel = login, channel

    def serviceStarted(self) -> None:
        key = Key(load_private_key(self._login.private_key.encode("ascii"), is_kept=True))
        algorithm = self._choose_algorithm(key)
        asked = (
            self._login.user.encode("ascii"),
            b"ssh-connection",
            b"publickey",
            None,
            algorithm,
            key.public().blob(),
        )
        request = b"".join(b"\1" if each is None else NS(each) for each in asked)
        signature = key.sign(NS(self.transport.sessionID) + bytes([_REQUEST]) + request, algorithm)
        self.transport.sendPacket(_REQUEST, request + NS(signature))

    def _choose_algorithm(self, key: Key) -> bytes:
        """Return the best signature algorithm that the server announces, or else the key's best one (RFC 8308, 3.1)."""
        kind: bytes = key.sshType()
        possible = algorithms_of(kind)
        named = self.transport.peerExtensions.get(b"server-sig-algs", b"").split(b",")
        return next((each for each in possible if each in named), possible[0])

    def ssh_USERAUTH_SUCCESS(self, packet: bytes) -> None:
        """Open an SSH channel and run the command in it: the server accepted the key."""
        self.transport.setService(_Channels(self._channel))

    def ssh_USERAUTH_FAILURE(self, packet: bytes) -> None:
        """End the connection with an error: the server rejected the key."""
        self._channel.end(Rejected("the key"))

    def ssh_USERAUTH_BANNER(self, packet: bytes) -> None:
        """Ignore the server's banner, which is meant for people."""


class _SshClient(SSHClientTransport):
    """The client side of an SSH connection."""

    transport: Any

    _log = _QUIET

    def __init__(self, login: SshLogin, channel: CommandChannel, most_bytes: int) -> None:
        self.supportedPublicKeys, self.supportedCompressions = [*algorithms_of(login.host_key.kind)], [b"none"]
        # In finite-field exchanges the server chooses the prime; testing a large prime blocks the reactor for a minute.
        self.supportedKeyExchanges = [each for each in self.supportedKeyExchanges if b"diffie-hellman" not in each]
        self.supportedCiphers = [each for each in self.supportedCiphers if each.endswith(b"-ctr")]
        self.supportedMACs = [each for each in self.supportedMACs if each.startswith(b"hmac-sha2-")]
        self._login, self._channel = login, channel
        self._bytes_left = most_bytes + _OVERHEAD
        self._is_verified = self._is_begun = False

    def dataReceived(self, data: bytes) -> None:
        self._bytes_left -= len(data)
        if self._bytes_left < 0:
            self._end(TooLarge(None))
            return
        try:
            super().dataReceived(data)  # type: ignore[no-untyped-call]
        except Exception:  # noqa: BLE001  (Twisted's client raises many errors for malformed input)
            self._end(NotUnderstood())

    def dispatchMessage(self, messageNum: int, payload: bytes) -> None:
        """Reject a host signature by another algorithm than the negotiated one, such as RSA with SHA-1.

        The connection then ends with L{NotUnderstood}.
        """
        is_unsigned = messageNum == _REPLY and getNS(getNS(payload, 3)[2])[0] != self.keyAlg
        if is_unsigned or messageNum == _GROUP_REPLY:
            self._end(NotUnderstood())
            return
        super().dispatchMessage(messageNum, payload)  # type: ignore[no-untyped-call]

    def verifyHostKey(self, hostKey: bytes, fingerprint: bytes) -> Deferred[bool]:
        self._is_verified = compare_digest(hostKey, self._login.host_key.blob)
        if self._is_verified:
            return succeed(True)
        self._end(HostKeyDiffers())
        return fail(HostKeyDiffers())

    def connectionSecure(self) -> None:
        """Log in after the first key exchange; later key exchanges change nothing."""
        if self._is_verified and not self._is_begun:
            self._is_begun = True
            self.requestService(_KeyLogin(self._login, self._channel))

    def receiveError(self, reasonCode: int, description: bytes) -> None:
        """Ignore the reason that the server gives for disconnecting."""

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._channel.end(HungUp())
        super().connectionLost(reason)

    def _end(self, why: Exception) -> None:
        self._channel.end(why)
        self.transport.abortConnection()


def open_session(login: SshLogin, command: bytes, most_bytes: int) -> tuple[IProtocolFactory, CommandChannel]:
    """Return a factory for the connection's protocol, and the channel on which C{command} will run.

    Nothing is connected yet.

    :param most_bytes: the size limit of the server's response.
    """
    channel = CommandChannel(command)
    return Factory.forProtocol(lambda: _SshClient(login, channel, most_bytes)), channel
