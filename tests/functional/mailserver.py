"""A real mail server on loopback, of twisted.mail: SMTP with a login, and IMAP with mailboxes in memory."""

from __future__ import annotations

from io import BytesIO
from typing import Any, cast

import attrs
from twisted.cred.checkers import InMemoryUsernamePasswordDatabaseDontUse
from twisted.cred.portal import IRealm, Portal
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory
from twisted.mail import imap4, smtp
from twisted.protocols.policies import WrappingFactory
from zope.interface import implementer

from tests.functional.reactor import IKitReactor, until

USER, PASSWORD = "ada@mail.example", "app-passw0rd-canary"


@implementer(smtp.IMessage)
class _Incoming:
    """A message as it comes in, line by line."""

    def __init__(self, host: MailServer, recipient: str) -> None:
        self.host, self.recipient, self.lines = host, recipient, list[bytes]()

    def lineReceived(self, line: bytes) -> None:
        self.lines.append(line)

    def eomReceived(self) -> Deferred[None]:
        self.host.take(self.recipient, b"\r\n".join(self.lines) + b"\r\n")
        return self.host.acknowledge()

    def connectionLost(self) -> None:
        self.lines = []


@implementer(smtp.IMessageDelivery)
@attrs.define
class _Delivery:
    """Takes whatever is sent by somebody who is logged in."""

    host: MailServer

    def receivedHeader(self, helo: Any, origin: Any, recipients: Any) -> bytes:
        return b"Received: here"

    def validateFrom(self, helo: Any, origin: Any) -> Any:
        return origin

    def validateTo(self, user: Any) -> Any:
        return lambda: _Incoming(self.host, str(user.dest))


@implementer(imap4.IMessage, imap4.IMessageFile)
@attrs.define
class _Message:
    """One message of a mailbox."""

    uid: int
    source: bytes
    flags: tuple[str, ...]

    def getUID(self) -> int:
        return self.uid

    def getFlags(self) -> list[str]:
        return [*self.flags]

    def getInternalDate(self) -> bytes:
        return b"01-May-2026 12:00:00 +0000"

    def getSize(self) -> int:
        return len(self.source)

    def getHeaders(self, negate: bool, *names: Any) -> dict[str, str]:
        wanted = {name.decode().lower() if isinstance(name, bytes) else name.lower() for name in names}
        head = self.source.partition(b"\r\n\r\n")[0].decode().replace("\r\n ", " ")
        pairs = (line.partition(": ") for line in head.split("\r\n"))
        return {name.lower(): text for name, _, text in pairs if (name.lower() in wanted) != negate}

    def getBodyFile(self) -> BytesIO:
        return BytesIO(self.source.partition(b"\r\n\r\n")[2])

    def isMultipart(self) -> bool:
        return False

    def getSubPart(self, part: int) -> Any:
        raise IndexError(part)

    def open(self) -> BytesIO:
        return BytesIO(self.source)


@implementer(imap4.IMailbox, imap4.ISearchableMailbox)
@attrs.define(eq=False)
class _Mailbox:
    """One mailbox."""

    use: str
    messages: list[_Message] = attrs.Factory(list)

    def getFlags(self) -> list[str]:
        return [self.use] if self.use else []

    def getHierarchicalDelimiter(self) -> str:
        return "/"

    def getUIDValidity(self) -> int:
        return 1

    def getUIDNext(self) -> int:
        return len(self.messages) + 1

    def getUID(self, message: int) -> int:
        return self.messages[message - 1].uid

    def getMessageCount(self) -> int:
        return len(self.messages)

    def getRecentCount(self) -> int:
        return 0

    def getUnseenCount(self) -> int:
        return 0

    def isWriteable(self) -> bool:
        return True

    def addListener(self, listener: Any) -> None:
        """Nobody is told of anything."""

    def removeListener(self, listener: Any) -> None:
        """Likewise."""

    def addMessage(self, message: Any, flags: Any = (), date: Any = None) -> Deferred[None]:
        self.messages.append(_Message(len(self.messages) + 1, message.read(), tuple(flags)))
        return succeed(None)

    def destroy(self) -> None:
        """Nothing is ever destroyed."""

    def expunge(self) -> list[int]:
        return []

    def requestStatus(self, names: Any) -> dict[str, int]:
        return {}

    def store(self, messages: Any, flags: Any, mode: Any, uid: Any) -> dict[int, Any]:
        return {}

    def search(self, query: list[Any], uid: bool) -> list[int]:
        wanted = query[-1] if query[0] == b"HEADER" else b""  # twisted.mail's own looks for bytes in texts
        return [each.uid for each in self.messages if wanted in each.source]

    def fetch(self, messages: Any, uid: bool) -> list[tuple[int, _Message]]:
        messages.last = len(self.messages)
        return [(number, self.messages[number - 1]) for number in messages if 0 < number <= len(self.messages)]


@implementer(IRealm)
@attrs.define
class _Realm:
    host: MailServer

    def requestAvatar(self, avatarId: Any, mind: Any, *interfaces: Any) -> Any:
        if imap4.IAccount in interfaces:
            return imap4.IAccount, self.host.account, lambda: None
        return smtp.IMessageDelivery, _Delivery(self.host), lambda: None


class _Smtp(smtp.ESMTP):
    """Accepts the mechanism PLAIN."""

    portal: Any

    def __init__(self, portal: Portal) -> None:
        super().__init__({b"PLAIN": imap4.PLAINCredentials})  # type: ignore[no-untyped-call]
        self.portal = portal
        self.host = b"mail.example"


@attrs.define
class MailServer:
    """Both servers, from `listen` until `stop`.

    :ivar received: recipient and message of whatever was taken.
    :ivar drops: how many acknowledgements to come are lost with their connections.
    :ivar saves: whether what is sent is put into the mailbox of sent messages.
    """

    _reactor: IKitReactor
    received: list[tuple[str, bytes]] = attrs.Factory(list)
    drops: int = 0
    saves: bool = False
    account: Any = None
    _ports: list[IListeningPort] = attrs.Factory(list)
    _factories: list[WrappingFactory[Any]] = attrs.Factory(list)

    @classmethod
    def listen(cls, reactor: IKitReactor) -> MailServer:
        """Serve on free ports of 127.0.0.1."""
        server = cls(reactor)
        server.account = imap4.MemoryAccount(USER)
        for name, use in (("INBOX", ""), ("Gesendet", r"\Sent"), ("Drafts", r"\Drafts")):
            server.account.addMailbox(name, _Mailbox(use))
        database = InMemoryUsernamePasswordDatabaseDontUse()
        database.addUser(USER.encode(), PASSWORD.encode())
        portal = Portal(_Realm(server), [database])
        for protocol in (lambda: _Smtp(portal), lambda: server._imap(portal)):
            factory: WrappingFactory[Any] = WrappingFactory(Factory.forProtocol(protocol))
            server._factories.append(factory)
            server._ports.append(reactor.listenTCP(0, cast(Any, factory), interface="127.0.0.1"))
        return server

    @property
    def places(self) -> tuple[str, str]:
        """Where SMTP and IMAP are."""
        smtp_port, imap_port = (cast(IPv4Address, each.getHost()).port for each in self._ports)
        return f"127.0.0.1:{smtp_port}", f"127.0.0.1:{imap_port}"

    def mailbox(self, name: str) -> list[bytes]:
        """The messages in one."""
        return [each.source for each in self.account.mailboxes[name.upper()].messages]

    def take(self, recipient: str, source: bytes) -> None:
        """Take a message that was sent."""
        self.received.append((recipient, source))
        if self.saves:
            self.account.mailboxes["GESENDET"].addMessage(BytesIO(source))

    def put(self, source: bytes) -> None:
        """Let a message come in."""
        self.account.mailboxes["INBOX"].addMessage(BytesIO(source))

    def acknowledge(self) -> Deferred[None]:
        """Say that a message was taken, or lose the connection that waits for that."""
        if self.drops:
            self.drops -= 1
            for connection in list(self._factories[0].protocols):
                connection.abortConnection()
        return succeed(None)

    async def stop(self) -> None:
        """Close the ports and every connection, and return when they are gone."""
        for port in self._ports:
            await maybeDeferred(port.stopListening)
        for factory in self._factories:
            for connection in list(factory.protocols):
                connection.abortConnection()
        await until(
            self._reactor, lambda: not any(each.protocols for each in self._factories), 30, "connections closed"
        )

    def _imap(self, portal: Portal) -> Any:
        server: Any = imap4.IMAP4Server({b"PLAIN": imap4.PLAINCredentials})
        server.portal = portal
        return server
