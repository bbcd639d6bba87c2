"""Opens sessions with the two servers of an account, each on a new connection, and describes the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Factory

from aileron.base.json import JSON
from aileron.base.waiting import given_up_at_once
from aileron.connectors._answer import Flight, ServiceUnreachable
from aileron.connectors._connection import ConnectionOpener, ServiceConnection
from aileron.connectors._conversation import LineConversation, NotUnderstood, Rejected
from aileron.connectors._sending import FAILURES, describe_failure, wait_in_time
from aileron.model.connectors import Outcome
from aileron.model.errors import CapabilityDenied
from aileron.redaction import Redactor

from . import imap, smtp
from .imap import ImapSession
from .reading import MOST_MESSAGE_BYTES
from .smtp import Envelope, LoginRefused, MailLogin
from .spec import STARTTLS, MailServer, MailSpec

T = TypeVar("T")

SENT, DRAFTS = "sent", "drafts"
"""The special uses of a mailbox, as a server marks them (RFC 6154)."""

_FLAGS = {SENT: r"\Seen", DRAFTS: r"\Draft"}
_MOST_BYTES = MOST_MESSAGE_BYTES + 4 * 1024 * 1024  # that a server says in one session
_FIRST_WORDS = {"smtp": (smtp.welcome, smtp.ask_for_tls), "imap": (imap.welcome, imap.ask_for_tls)}


@frozen
class MailServers:
    """The servers of one account.

    Methods raise L{AddressRefused} or L{ServiceUnreachable} if there is no connection, and L{Rejected}, L{HungUp} or
    L{NotUnderstood} for failures on one. Cancelling closes the connection.

    :ivar opener: opens the connections.
    """

    spec: MailSpec
    opener: ConnectionOpener = field(repr=False)

    async def submit(self, envelope: Envelope, login: MailLogin | None, flight: Flight) -> None:
        """Send a message. C{flight.sent} becomes true right before the message itself is sent.

        :raises AddressRefused, ServiceUnreachable: if there is no connection.
        :raises Rejected, HungUp, NotUnderstood: if the server refuses, hangs up, or sends what is not valid.
        """
        server = self.spec.account.smtp
        await self._open(server, lambda conversation: smtp.submit(conversation, envelope, login, flight))

    def imap(self, login: MailLogin | None, work: Callable[[ImapSession], Awaitable[T]]) -> Deferred[T]:
        """Do C{work} in a logged-in IMAP session, and return its result. The session logs out afterwards.

        :raises CapabilityDenied: if the connector declares no IMAP server.
        :raises AddressRefused, ServiceUnreachable: if there is no connection.
        :raises Rejected, HungUp, NotUnderstood: if the server refuses, hangs up, or sends what is not valid.
        """

        async def converse(conversation: LineConversation) -> T:
            session = ImapSession(conversation)
            if login is not None:
                await session.log_in(login)
            result = await work(session)
            conversation.say(b"z LOGOUT\r\n")
            return result

        server = self.spec.account.imap
        if server is None:
            raise CapabilityDenied(f"{self.spec.description.name} declares no IMAP server.")
        return self._open(server, converse)

    async def find(self, session: ImapSession, use: str) -> str:
        """Return the mailbox for C{sent} messages or C{drafts}: the one that the server marks, else the file's.

        :param use: C{sent} or C{drafts}.
        :raises AddressRefused, ServiceUnreachable: if there is no connection.
        :raises Rejected, HungUp, NotUnderstood: if the server refuses, hangs up, or sends what is not valid.
        """
        account = self.spec.account
        named = {SENT: account.sent, DRAFTS: account.drafts}[use]
        return next((each.name for each in await session.mailboxes() if use in each.uses), named)

    def save(self, login: MailLogin | None, use: str, content: bytes, flight: Flight) -> Deferred[str]:
        """Append a message to the mailbox for C{use}, and return the mailbox.

        :raises CapabilityDenied: if the connector declares no IMAP server.
        :raises AddressRefused, ServiceUnreachable: if there is no connection.
        :raises Rejected, HungUp, NotUnderstood: if the server refuses, hangs up, or sends what is not valid.
        """

        async def work(session: ImapSession) -> str:
            mailbox = await self.find(session, use)
            await session.append(mailbox, content, _FLAGS[use], flight)
            return mailbox

        return self.imap(login, work)

    def _open(self, server: MailServer, work: Callable[[LineConversation], Awaitable[T]]) -> Deferred[T]:
        welcome, ask_for_tls = _FIRST_WORDS[server.protocol]
        upgraded = server.tls == STARTTLS
        connection = ServiceConnection(Flight(), self.spec.private_network, ask_for_tls if upgraded else None)

        async def converse() -> T:
            speakers = Factory.forProtocol(lambda: LineConversation(_MOST_BYTES))
            try:
                opened: Any = await self.opener.open(server.origin, connection, speakers)
                if not upgraded:
                    await welcome(opened)
                return await work(opened)
            except ServiceUnreachable:
                if isinstance(connection.reason, Rejected | NotUnderstood):
                    raise connection.reason from None
                raise
            finally:
                connection.drop()

        return given_up_at_once(Deferred.fromCoroutine(converse()), connection.give_up)


@define
class MailAttempt:
    """One attempt of an operation.

    :ivar name: the connector's name, for messages.
    :ivar echo: redacts secrets in the server's texts.
    :ivar flight: whether the message, or the request, was sent.
    :ivar login_refused: whether the server refused the credential.
    """

    name: str
    clock: IReactorTime
    echo: Redactor
    flight: Flight = field(factory=Flight)
    login_refused: bool = False

    async def outcome(self, work: Deferred[JSON], seconds: float, late_seconds: float) -> Outcome:
        """Wait for C{work}, and return its outcome.

        A failure is returned as an outcome. If the server refused the credential, set C{login_refused}.

        :param seconds: if nothing was sent by then, the work is cancelled.
        :param late_seconds: how much longer to wait for the response.
        """
        try:
            answered = await wait_in_time(work, self.clock, self.flight, seconds=seconds, late_seconds=late_seconds)
        except Rejected as error:  # a refusal means that nothing was done
            self.login_refused = isinstance(error, LoginRefused)
            error.text = self.echo.text(error.text)
            return self._fail(error, seconds, classified=True)
        except FAILURES as error:
            return self._fail(error, seconds)
        return self.echo.outcome(Outcome(answered))

    def _fail(self, error: BaseException, seconds: float, *, classified: bool = False) -> Outcome:
        fault = describe_failure(self.name, error, self.flight, seconds=seconds, most_bytes=0)
        return self.echo.outcome(Outcome(fault=fault, sent=self.flight.sent, classified=classified))


Work = Callable[[MailLogin | None, MailAttempt], Coroutine[Deferred[Any], Any, JSON]]
"""The work of an attempt, called with the login."""
