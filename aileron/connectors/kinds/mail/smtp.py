"""Sends one message by SMTP (RFC 5321, 6409): to all of its recipients, or to none."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from attrs import field, frozen

from aileron.connectors._answer import Flight
from aileron.connectors._conversation import LineConversation, NotUnderstood, Rejected

_REPLY = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?")
_SIZE = re.compile(r"[0-9]{1,20}")  # other values of SIZE are ignored (RFC 1870)
_DOT = re.compile(rb"^\.", re.MULTILINE)
_MOST_LINES, _MOST_LINE_BYTES = 100, 8192
_HELLO = b"EHLO [127.0.0.1]"  # an address literal, as mail programs send it: the machine's name stays private
_CLOSING = 421


@frozen
class Reply:
    """An SMTP server's reply to one command."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the reply, in one line."""
        return " ".join(self.lines)


@frozen
class MailLogin:
    """A user with a password, or with a token.

    :ivar is_token: whether the secret is an OAuth 2 access token.
    """

    user: str
    secret: str = field(repr=False)
    is_token: bool = False

    @property
    def plain(self) -> bytes:
        """The message of the mechanism PLAIN (RFC 4616), in base64."""
        return base64.b64encode(f"\0{self.user}\0{self.secret}".encode())

    @property
    def xoauth2(self) -> bytes:
        """The message of the mechanism XOAUTH2, in base64."""
        return base64.b64encode(f"user={self.user}\1auth=Bearer {self.secret}\1\1".encode())


class LoginRefused(Rejected):
    """The error for a credential that the server refused."""


@frozen
class Envelope:
    """A message with its sender and its recipients for SMTP.

    :ivar content: lines that end in CRLF.
    """

    sender: str
    recipients: tuple[str, ...]
    content: bytes = field(repr=False)


async def ask_for_tls(conversation: LineConversation) -> None:
    """Wait for the server's greeting, and request TLS by STARTTLS (RFC 3207).

    :raises Rejected: if the server does not offer or refuses TLS.
    :raises HungUp, NotUnderstood: if the connection ends, or a reply is not valid.
    """
    await _expect(conversation, "the connection", 220)
    if "STARTTLS" not in await _greet(conversation):
        raise Rejected("an encrypted connection: the server offers no STARTTLS")
    conversation.say(b"STARTTLS\r\n")
    await _expect(conversation, "STARTTLS", 220)


async def submit(conversation: LineConversation, envelope: Envelope, login: MailLogin | None, flight: Flight) -> Reply:
    """Send the message, after the server's greeting or STARTTLS, and return the server's reply to it.

    :param flight: marked C{sent} right before the message is sent.
    :raises Rejected: if the server refused a step, or one of the recipients. Nobody gets the message.
    :raises HungUp, NotUnderstood: if the connection ended, or the response is not valid. If C{flight.sent} is true, it
        is unknown whether the server accepted the message. Otherwise it did not.
    """
    offers = await _greet(conversation)
    if login is not None:
        await _log_in(conversation, offers, login)
    size = _SIZE.fullmatch(offers.get("SIZE", ""))
    if size and 0 < int(size[0]) < len(envelope.content):
        raise Rejected(f"the message: it has {len(envelope.content)} bytes, and the server takes {int(size[0])}")
    await _ask(conversation, f"MAIL FROM:<{envelope.sender}>", "the sender", 250)
    for each in envelope.recipients:
        await _ask(conversation, f"RCPT TO:<{each}>", f"the recipient {each}", 250, 251)
    await _ask(conversation, "DATA", "the message", 354)
    conversation.check_turn()
    flight.sent = True
    conversation.say(_stuffed(envelope.content) + b".\r\n")
    reply = await read_reply(conversation)
    if 400 <= reply.code != _CLOSING:
        raise Rejected("the message", reply.text, reply.code)
    if not 200 <= reply.code <= 299:
        raise NotUnderstood
    conversation.say(b"QUIT\r\n")
    return reply


async def welcome(conversation: LineConversation) -> None:
    """Wait for the server's greeting.

    :raises Rejected: if the server refuses.
    :raises HungUp, NotUnderstood: if the connection ends, or the reply is not valid.
    """
    await _expect(conversation, "the connection", 220)


async def read_reply(conversation: LineConversation) -> Reply:
    """Wait for a reply.

    :raises HungUp: if the connection ends before.
    :raises NotUnderstood: if the reply is malformed or too long.
    """
    code, lines = None, list[str]()
    while len(lines) < _MOST_LINES:
        line = await conversation.line()
        found = _REPLY.fullmatch(line) if len(line) <= _MOST_LINE_BYTES else None
        if found is None or code not in {None, int(found[1])}:
            break
        code = int(found[1])
        lines.append((found[3] or b"").decode("utf-8", "replace"))
        if found[2] != b"-":
            return Reply(code, tuple(lines))
    raise NotUnderstood


def _stuffed(content: bytes) -> bytes:
    """Escape dots at the beginning of lines, which would end the message (RFC 5321, 4.5.2)."""
    whole = content if content.endswith(b"\r\n") else content + b"\r\n"
    return _DOT.sub(b"..", whole)


async def _expect(conversation: LineConversation, step: str, *codes: int) -> Reply:
    reply = await read_reply(conversation)
    if reply.code not in codes:
        raise Rejected(step, reply.text, reply.code)
    return reply


async def _ask(conversation: LineConversation, command: str, step: str, *codes: int) -> Reply:
    conversation.say(command.encode("ascii") + b"\r\n")
    return await _expect(conversation, step, *codes)


async def _greet(conversation: LineConversation) -> Mapping[str, str]:
    """Send EHLO, and return the server's extensions in upper case with their parameters.

    :raises Rejected: if the server refuses.
    """
    conversation.say(_HELLO + b"\r\n")
    reply = await _expect(conversation, "the greeting", 250)
    words = (each.upper().partition(" ") for each in reply.lines[1:])
    return {name: parameters for name, _, parameters in words}


async def _log_in(conversation: LineConversation, offers: Mapping[str, str], login: MailLogin) -> None:
    mechanisms = offers.get("AUTH", "").split()
    if login.is_token and "XOAUTH2" in mechanisms:
        commands = [b"AUTH XOAUTH2 " + login.xoauth2, b""]
    elif not login.is_token and "PLAIN" in mechanisms:
        commands = [b"AUTH PLAIN " + login.plain]
    elif not login.is_token and "LOGIN" in mechanisms:
        words = (base64.b64encode(each.encode()) for each in (login.user, login.secret))
        commands = [b"AUTH LOGIN", *words]
    else:
        raise Rejected("the login: the server offers none that this credential can be used for")
    for command in commands:
        conversation.say(command + b"\r\n")
        reply = await read_reply(conversation)
        if reply.code != 334:
            break
    if reply.code != 235:
        refused = Rejected("the login", reply.text, reply.code)
        raise refused if refused.may_pass else LoginRefused(refused.step, refused.text, refused.code)
