"""One SSH session, by Twisted's client: the host key is known, one key logs in, and one command runs.

Nothing of this machine takes part: no agent, no file of C{~/.ssh}.  It is imported where it is used, because it needs
the extra C{git}.
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
    """Keep out of our log what a server says."""


_QUIET = Logger(observer=_ignore)
_WINDOW, _MOST_SAID = 1024 * 1024, 1000
_LEAST_PACKET = 1024
_REQUEST = 50  # MSG_USERAUTH_REQUEST
_REPLY, _GROUP_REPLY = 31, 33  # of a key exchange; of one with a group, which is not offered
_OVERHEAD = 1024 * 1024  # of key exchange and packets, beside an answer


@frozen
class SshLogin:
    """A user, the server, and the key to log in with.

    :ivar private_key: as it is kept.
    """

    user: str
    host_key: HostKey
    private_key: str = field(repr=False)


class CommandChannel(SSHChannel):
    """The channel that the command speaks on.

    :ivar failure: why it is over.
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
        """The beginning of what the server said beside the protocol, such as why it refuses."""
        return self._errors.decode("utf-8", "replace").strip()

    def end(self, why: Exception) -> None:
        """Note that nothing more is to be expected, unless that was known before."""
        self.failure = self.failure or why
        self._wake()

    def say(self, data: bytes, flight: Flight) -> None:
        """Say all of C{data} as fast as the server takes it; it counts as sent when its last part may leave."""
        self._flight, self._rest = flight, memoryview(data)
        self._say_more()

    async def packets(self) -> bytes:
        """Wait for a list of packets with its end; raises what ended the channel before."""
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
        return False  # an exit status, which says no more than the report does

    def dataReceived(self, data: bytes) -> None:
        self._heard += data
        self._wake()

    def extReceived(self, dataType: int, data: bytes) -> None:
        self._errors += data[: _MOST_SAID - len(self._errors)]

    def eofReceived(self) -> None:
        """Expect nothing more when it is closed, since reasons may follow on the other stream."""

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
    """Logs in with the one key, once, and in no other way (RFC 4252, 7)."""

    name = b"ssh-userauth"
    transport: Any
    _log = _QUIET
    protocolMessages: Any = {51: "MSG_USERAUTH_FAILURE", 52: "MSG_USERAUTH_SUCCESS", 53: "MSG_USERAUTH_BANNER"}  # noqa: RUF012  (as its base has it)

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
        """Return what to sign with: with RSA the best that the server names, if it names any (RFC 8308, 3.1)."""
        kind: bytes = key.sshType()
        possible = algorithms_of(kind)
        named = self.transport.peerExtensions.get(b"server-sig-algs", b"").split(b",")
        return next((each for each in possible if each in named), possible[0])

    def ssh_USERAUTH_SUCCESS(self, packet: bytes) -> None:
        """Go on to the command."""
        self.transport.setService(_Channels(self._channel))

    def ssh_USERAUTH_FAILURE(self, packet: bytes) -> None:
        """Give up."""
        self._channel.end(Rejected("the key"))

    def ssh_USERAUTH_BANNER(self, packet: bytes) -> None:
        """Take no notice of what people are told."""


class _SshClient(SSHClientTransport):
    """The client's side of the connection."""

    transport: Any

    _log = _QUIET

    def __init__(self, login: SshLogin, channel: CommandChannel, most_bytes: int) -> None:
        self.supportedPublicKeys, self.supportedCompressions = [*algorithms_of(login.host_key.kind)], [b"none"]
        # Of finite fields the server chooses the prime, and testing a large one takes the reactor a minute.
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
        except Exception:  # noqa: BLE001  (whatever the client makes of what no server should say)
            self._end(NotUnderstood())

    def dispatchMessage(self, messageNum: int, payload: bytes) -> None:
        """Refuse a host's signature by another algorithm than was agreed on, such as RSA with SHA-1."""
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
        """Log in, after the first key exchange of several."""
        if self._is_verified and not self._is_begun:
            self._is_begun = True
            self.requestService(_KeyLogin(self._login, self._channel))

    def receiveError(self, reasonCode: int, description: bytes) -> None:
        """Take no notice of why it hangs up."""

    def connectionLost(self, reason: Failure | None = None) -> None:
        self._channel.end(HungUp())
        super().connectionLost(reason)

    def _end(self, why: Exception) -> None:
        self._channel.end(why)
        self.transport.abortConnection()


def open_session(login: SshLogin, command: bytes, most_bytes: int) -> tuple[IProtocolFactory, CommandChannel]:
    """Make what speaks on a connection, and what its command will speak on.

    :param most_bytes: that the server may say.
    """
    channel = CommandChannel(command)
    return Factory.forProtocol(lambda: _SshClient(login, channel, most_bytes)), channel
