"""Mail servers at the other end of memory transports: SMTP and IMAP as far as they are spoken, and as a test wants."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory
from twisted.protocols.basic import LineReceiver

from aileron.connectors._schema import read_file
from aileron.connectors.kinds.mail.connector import MailConnector
from aileron.connectors.kinds.mail.spec import MailSpec
from tests.connectors.certificate import Certificate
from tests.connectors.service import NOW, Service

FILE = """
[connector]
name = "local://me/mail"
version = "1.0.0"
kind = "mail"

[mail]
from = "Ada Example <ada@mail.example>"

[smtp]
host = "mail.example"
port = 465

[imap]
host = "mail.example"
port = 993

[credential]
kind = "basic"
"""
ADDRESS = "203.0.114.9"
USER, PASSWORD = "ada@mail.example", "app-passw0rd-canary"
PAIR = base64.b64encode(f"{USER}:{PASSWORD}".encode())

HANG = object()
"""In place of an answer: none ever comes."""
CUT = object()
"""In place of an answer: the connection breaks."""

Answer = bytes | object | Callable[[], Any]


def mail_spec(text: str = FILE) -> MailSpec:
    """The specification in a connector file's text, which must be without fault."""
    spec = read_file(text.encode("utf-8"), "mail.toml").spec
    assert isinstance(spec, MailSpec), read_file(text.encode("utf-8"), "mail.toml").problems
    return spec


@define
class MailHost:
    """Both servers of one account, and the network.

    :ivar answers: by the beginning of what a client says: what is answered instead.
    :ivar accepted: what was taken: sender, recipients and message.
    :ivar boxes: the mailboxes, each with its messages; C{uses} their attributes.
    :ivar heard: every line that a client said; C{in_clear}: those before STARTTLS.
    :ivar listed: how often the mailboxes were listed.
    """

    service: Service = field(factory=Service)
    answers: dict[bytes, Answer] = field(factory=dict)
    accepted: list[tuple[str, tuple[str, ...], bytes]] = field(factory=list)
    boxes: dict[str, list[bytes]] = field(factory=lambda: {"INBOX": [], "Sent": [], "Drafts": []})
    uses: dict[str, str] = field(factory=lambda: {"Sent": r"\Sent", "Drafts": r"\Drafts"})
    heard: list[bytes] = field(factory=list)
    in_clear: list[bytes] = field(factory=list)
    listed: int = 0
    offers: list[bytes] = field(factory=lambda: [b"SIZE 5000000", b"AUTH PLAIN XOAUTH2"])
    capabilities: bytes = b"IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2"
    secrets: tuple[str, ...] = (PASSWORD, "s3cret-value")

    def __attrs_post_init__(self) -> None:
        certificate = Certificate.made("mail.example")
        self.service.names["mail.example"] = [ADDRESS]
        self.service.certificate = self.service.trusted = certificate
        self.service.serve = self._serve

    def connector(self, text: str = FILE) -> MailConnector:
        """A connector whose servers these are."""
        return MailConnector(mail_spec(text), self.service.opener, self.service.reactor, lambda: NOW)

    def knows(self, message: bytes) -> bool:
        """Whether somebody who logs in so is known."""
        return any(secret.encode() in base64.b64decode(message) for secret in self.secrets)

    def _serve(self, port: int) -> IProtocol:
        kind: Callable[[], LineReceiver] = {
            465: lambda: SmtpPeer(self),
            587: lambda: StartTlsPeer(self, "smtp"),
            993: lambda: ImapPeer(self),
            143: lambda: StartTlsPeer(self, "imap"),
            25: lambda: SmtpPeer(self),
        }[port]
        factory: Any = Factory.forProtocol(kind)
        assert self.service.certificate is not None
        if port in {465, 993}:
            factory = self.service.certificate.serving(factory, self.service.reactor)
        server: IProtocol = factory.buildProtocol(None)
        return server

    def inside(self, protocol: str) -> Any:
        """What serves behind STARTTLS."""
        peer = SmtpPeer(self, greets=False) if protocol == "smtp" else ImapPeer(self, greets=False)
        assert self.service.certificate is not None
        return self.service.certificate.serving(Factory.forProtocol(lambda: peer), self.service.reactor)


class _Peer(LineReceiver):
    """One connection."""

    MAX_LENGTH = 1_000_000
    transport: Any

    def __init__(self, host: MailHost, *, greets: bool = True) -> None:
        self.host = host
        self.greets = greets

    def connectionMade(self) -> None:
        if self.greets:
            self.answer(b"CONNECT", self.greeting)

    greeting = b""

    def lineReceived(self, line: bytes) -> None:
        self.host.heard.append(line)
        self.took(line)

    def took(self, line: bytes) -> None:
        raise NotImplementedError

    def answer(self, said: bytes, usual: bytes | Callable[[], bytes | None]) -> None:
        """Answer as the test wants it, else as usual."""
        key = next((each for each in self.host.answers if said.upper().startswith(each)), None)
        wanted = usual if key is None else self.host.answers[key]
        if wanted is CUT:
            self.transport.loseConnection()
        elif wanted is not HANG:
            answer = wanted() if callable(wanted) else wanted
            if isinstance(answer, bytes):
                self.transport.write(answer)


class SmtpPeer(_Peer):
    """One connection to the SMTP server."""

    greeting = b"220 mail.example ready\r\n"
    sender = ""
    recipients: tuple[str, ...] = ()
    content: list[bytes] | None = None

    def took(self, line: bytes) -> None:
        if self.content is not None:
            if line != b".":
                self.content.append(line[1:] if line.startswith(b"..") else line)
                return
            message, self.content = b"".join(each + b"\r\n" for each in self.content), None
            self.answer(b"DOT", lambda: self.deliver(message))
            return
        verb = line.split(b" ")[0].upper()
        usual: dict[bytes, Callable[[], bytes | None]] = {
            b"EHLO": self.ehlo,
            b"AUTH": lambda: self.auth(line),
            b"MAIL": lambda: self.mail(line),
            b"RCPT": lambda: self.rcpt(line),
            b"DATA": self.data,
            b"QUIT": lambda: b"221 bye\r\n",
        }
        self.answer(line, usual.get(verb, lambda: b"502 what?\r\n"))

    def ehlo(self) -> bytes:
        lines = [b"mail.example", *self.host.offers]
        return b"".join(b"250%b%b\r\n" % (b" " if each is lines[-1] else b"-", each) for each in lines)

    def auth(self, line: bytes) -> bytes:
        return b"235 ok\r\n" if self.host.knows(line.split(b" ")[2]) else b"535 5.7.8 no: %b\r\n" % line

    def mail(self, line: bytes) -> bytes:
        self.sender = line.decode()[len("MAIL FROM:") :].strip("<>")
        return b"250 ok\r\n"

    def rcpt(self, line: bytes) -> bytes:
        self.recipients = (*self.recipients, line.decode()[len("RCPT TO:") :].strip("<>"))
        return b"250 ok\r\n"

    def data(self) -> bytes:
        self.content = []
        return b"354 go on\r\n"

    def deliver(self, message: bytes) -> bytes:
        self.host.accepted.append((self.sender, self.recipients, message))
        return b"250 taken\r\n"


class ImapPeer(_Peer):
    """One connection to the IMAP server."""

    greeting = b"* OK ready\r\n"
    selected = "INBOX"
    pending: tuple[bytes, str, int] | None = None
    challenged: bytes | None = None

    def took(self, line: bytes) -> None:
        if self.challenged is not None:
            tag, self.challenged = self.challenged, None
            self.transport.write(tag + (b" OK in\r\n" if self.host.knows(line) else b" NO wrong\r\n"))
            return
        tag, _, command = line.partition(b" ")
        verb = command.upper().removeprefix(b"UID ").split(b" ")[0].decode()
        self.answer(command, lambda: getattr(self, f"do_{verb}")(tag, command))

    def rawDataReceived(self, data: bytes) -> None:
        assert self.pending is not None
        tag, mailbox, size = self.pending
        self.literal += data
        if len(self.literal) >= size + 2:
            message, rest = self.literal[:size], self.literal[size + 2 :]
            self.answer(b"LITERAL", lambda: self.keep(tag, mailbox, message))
            self.pending = None
            self.setLineMode(rest)

    def keep(self, tag: bytes, mailbox: str, message: bytes) -> bytes:
        self.host.boxes[mailbox].append(message)
        return tag + b" OK kept\r\n"

    def do_CAPABILITY(self, tag: bytes, command: bytes) -> bytes:
        return b"* CAPABILITY %b\r\n%b OK\r\n" % (self.host.capabilities, tag)

    def do_AUTHENTICATE(self, tag: bytes, command: bytes) -> bytes:
        self.challenged = tag
        return b"+ \r\n"

    def do_LOGIN(self, tag: bytes, command: bytes) -> bytes:
        known = any(secret.encode() in command for secret in self.host.secrets)
        return tag + (b" OK in\r\n" if known else b" NO wrong\r\n")

    def do_LOGOUT(self, tag: bytes, command: bytes) -> bytes:
        return b"* BYE\r\n" + tag + b" OK\r\n"

    def do_LIST(self, tag: bytes, command: bytes) -> bytes:
        self.host.listed += 1
        uses = self.host.uses
        lines = (f'* LIST (\\HasNoChildren {uses.get(name, "")}) "/" "{name}"\r\n' for name in self.host.boxes)
        return "".join(lines).encode() + tag + b" OK\r\n"

    def do_EXAMINE(self, tag: bytes, command: bytes) -> bytes:
        self.selected = command.partition(b'"')[2].strip(b'"').decode("imap4-utf-7")
        if self.selected not in self.host.boxes:
            return tag + b" NO no such mailbox\r\n"
        return b"* %d EXISTS\r\n%b OK [READ-ONLY]\r\n" % (len(self.host.boxes[self.selected]), tag)

    def do_SEARCH(self, tag: bytes, command: bytes) -> bytes:
        wanted = re.search(rb'(?:HEADER Message-ID|TEXT|SUBJECT) "(.*)"', command)
        found = (
            b"%d" % (10 + number)
            for number, each in enumerate(self.host.boxes[self.selected])
            if wanted is None or wanted[1] in each
        )
        return b"* SEARCH " + b" ".join(found) + b"\r\n" + tag + b" OK\r\n"

    def do_FETCH(self, tag: bytes, command: bytes) -> bytes:
        lines = []
        for word in command.split(b" ")[2].split(b","):
            number = int(word) - 10
            if 0 <= number < len(self.host.boxes[self.selected]):
                lines.append(self.described(number, self.host.boxes[self.selected][number], command))
        return b"".join(lines) + tag + b" OK\r\n"

    def described(self, number: int, message: bytes, command: bytes) -> bytes:
        items = b"UID %d FLAGS (\\Seen) RFC822.SIZE %d" % (10 + number, len(message))
        if b"HEADER.FIELDS" in command:
            head = message.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            items += b" BODY[HEADER.FIELDS (FROM TO)] {%d}\r\n%b" % (len(head), head)
        elif b"BODY.PEEK[]" in command:
            items += b" BODY[] {%d}\r\n%b" % (len(message), message)
        return b"* %d FETCH (%b)\r\n" % (number + 1, items)

    def do_APPEND(self, tag: bytes, command: bytes) -> bytes:
        mailbox, size = re.findall(rb'"(.*?)" \(.*\) \{(\d+)\}', command)[0]
        if mailbox.decode("imap4-utf-7") not in self.host.boxes:
            return tag + b" NO [TRYCREATE] no such mailbox\r\n"
        self.pending, self.literal = (tag, mailbox.decode("imap4-utf-7"), int(size)), b""
        self.setRawMode()
        return b"+ go on\r\n"


class StartTlsPeer(_Peer):
    """A connection that begins in the clear."""

    after: Any = None

    def __init__(self, host: MailHost, protocol: str) -> None:
        super().__init__(host)
        self.protocol = protocol
        self.greeting = SmtpPeer.greeting if protocol == "smtp" else ImapPeer.greeting

    def took(self, line: bytes) -> None:
        self.host.in_clear.append(line)
        if line.startswith(b"EHLO"):
            self.answer(b"PLAIN EHLO", b"250-mail.example\r\n250 STARTTLS\r\n")
        elif b"STARTTLS" in line:
            tag = b"" if self.protocol == "smtp" else line.split(b" ")[0]
            self.answer(b"STARTTLS", b"220 go\r\n" if self.protocol == "smtp" else tag + b" OK go\r\n")
            self.after = self.host.inside(self.protocol).buildProtocol(None)
            self.after.makeConnection(self.transport)
        else:
            self.answer(line, b"500 too early\r\n")

    def dataReceived(self, data: bytes) -> None:
        if self.after is None:
            super().dataReceived(data)  # type: ignore[no-untyped-call]
        else:
            self.after.dataReceived(data)
