"""Speaks IMAP (RFC 3501) to a mail server: one command at a time. Mailboxes are opened read-only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, frozen
from twisted.mail import imap4

from aileron.connectors._answer import Flight
from aileron.connectors._conversation import HungUp, LineConversation, NotUnderstood, Rejected

from .smtp import LoginRefused, MailLogin

_TOKEN = re.compile(
    rb'\s+|(?P<open>\()|(?P<close>\))|"(?P<quoted>(?:[^"\\]|\\.)*)"|\{(?P<size>[0-9]{1,10})\}\r\n'
    rb"|(?P<word>(?:[^\s()\"\[\]{}]|\[[^\]]*\])+)"
)
_ESCAPED = re.compile(rb"\\(.)")
_LITERAL = re.compile(rb"\{([0-9]{1,10})\}\Z")
_MOST_PARSED_BYTES = 128 * 1024  # limit of one command's parsed responses, without literals
_MOST_PLAIN_BYTES = 2 * 1024 * 1024  # the same for any command's responses: the UIDs of 250,000 messages
_MOST_RESPONSES, _MOST_LITERALS = 20_000, 1000
_MOST_DIGITS = 20  # of 64 bits
_PASSING = ("[UNAVAILABLE]", "[INUSE]", "[LIMIT]", "[SERVERBUG]")
"""Response codes for a temporary refusal of every login (RFC 5530)."""


@frozen
class Mailbox:
    """One mailbox of an account.

    :ivar uses: its attributes, in lower case and without backslashes, such as C{sent} (RFC 6154).
    """

    name: str
    uses: frozenset[str]


@frozen
class Response:
    """One untagged response.

    :ivar text: the response as received, with its literals.
    :ivar plain_bytes: its size without literals.
    """

    text: bytes
    plain_bytes: int


async def welcome(conversation: LineConversation) -> None:
    """Wait for the server's greeting.

    :raises Rejected: if the greeting is not OK, such as the greeting of a session that is already logged in.
    :raises HungUp: if the connection ends before.
    :raises NotUnderstood: if the reply is not valid.
    """
    if not (await conversation.line()).upper().startswith(b"* OK"):
        raise Rejected("the connection")


async def ask_for_tls(conversation: LineConversation) -> None:
    """Wait for the server's greeting, and request TLS by STARTTLS (RFC 3501, 6.2.1).

    :raises Rejected: if the greeting is not OK, or the server does not offer or refuses TLS.
    """
    await welcome(conversation)
    await ImapSession(conversation).command("an encrypted connection", b"STARTTLS")


def quoted(text: str, encode: Callable[[str], bytes] = str.encode) -> bytes:
    """Encode a text as a quoted string.

    :raises ValueError: if the text has line breaks or control characters.
    """
    if any(ord(each) < 0x20 or ord(each) == 0x7F for each in text):
        raise ValueError("must not contain line breaks or control characters")
    return b'"' + encode(text).replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _mailbox(name: str) -> bytes:
    """Encode the name of a mailbox (RFC 3501, 5.1.3).

    :raises NotUnderstood: if the name, which a server sent, has control characters.
    """
    try:
        return quoted(name, lambda text: bytes(imap4.encoder(text)[0]))
    except ValueError:  # the server sent this name: names from inputs were checked
        raise NotUnderstood from None


@define
class ImapSession:
    """An IMAP client's connection to a server, after the server's greeting or after TLS has begun."""

    conversation: LineConversation
    _number: int = 0

    async def command(
        self, step: str, command: bytes, more: bytes | None = None, flight: Flight | None = None
    ) -> Sequence[Response]:
        """Send one command, and return the server's responses before its completion.

        :param step: the purpose in words.
        :param more: data that the server requests to continue.
        :param flight: marked C{sent} right before C{more} is sent.
        :raises Rejected: if the server refused.
        :raises NotUnderstood: if the command completed without a request for C{more}, or the responses are too long.
        :raises HungUp: if the connection ends.
        """
        self._number += 1
        tag = b"a%d" % self._number
        self.conversation.say(tag + b" " + command + b"\r\n")
        found: list[Response] = []
        left = _MOST_PLAIN_BYTES
        for _ in range(_MOST_RESPONSES):
            response = await self._response()
            left -= response.plain_bytes
            if left < 0:
                break
            mark, _, rest = response.text.partition(b" ")
            if mark == b"*":
                found.append(Response(rest, response.plain_bytes))
            elif mark == b"+":
                if more is not None and flight is not None:
                    flight.sent = True
                self.conversation.say((more or b"") + b"\r\n")
                more = None
            else:
                _check_done(step, rest if mark == tag else b"")
                if more is not None:
                    raise NotUnderstood
                return found
        raise NotUnderstood

    async def log_in(self, login: MailLogin) -> None:
        """Log in, by the best mechanism that the server offers.

        :raises Rejected: if the server offers no mechanism for this credential, or is unavailable.
        :raises LoginRefused: if the server refused the credential.
        :raises NotUnderstood: if a response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        offers = set[bytes]()
        for each in await self.command("the connection", b"CAPABILITY"):
            offers.update(each.text.upper().split()[1:])
        if login.is_token and b"AUTH=XOAUTH2" in offers:
            command, more = b"AUTHENTICATE XOAUTH2", login.xoauth2
        elif not login.is_token and b"AUTH=PLAIN" in offers:
            command, more = b"AUTHENTICATE PLAIN", login.plain
        elif not login.is_token and b"LOGINDISABLED" not in offers:
            command, more = b"LOGIN " + quoted(login.user) + b" " + quoted(login.secret), None
        else:
            raise Rejected("the login: the server offers none that this credential can be used for")
        try:
            await self.command("the login", command, more)
        except Rejected as error:
            if error.text.upper().startswith(_PASSING):
                raise
            raise LoginRefused(error.step, error.text) from None

    async def mailboxes(self) -> Sequence[Mailbox]:
        """List all mailboxes.

        :raises Rejected: if the server refused.
        :raises NotUnderstood: if the response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        return list(_read_mailboxes(await self.command("the list of mailboxes", b'LIST "" "*"')))

    async def examine(self, mailbox: str) -> int:
        """Open a mailbox read-only, and return its number of messages, or 0 if the server does not send it.

        :raises Rejected: if there is no such mailbox.
        :raises NotUnderstood: if a response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        responses = await self.command(f"the mailbox {mailbox}", b"EXAMINE " + _mailbox(mailbox))
        counts = (each.text.split() for each in responses)
        return next((read_number(words[0]) for words in counts if _is_count(words, b"EXISTS")), 0)

    async def search(self, criteria: bytes) -> Sequence[int]:
        """Search the open mailbox, and return the UIDs in rising order.

        :raises Rejected: if the server refused.
        :raises NotUnderstood: if the response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        found = set[int]()
        for each in await self.command("the search", b"UID SEARCH " + criteria):
            name, *words = each.text.split()
            if name.upper() == b"SEARCH":
                found.update(read_number(word) for word in words if word.isdigit())
        return sorted(found)

    async def fetch(self, uids: Sequence[int], items: bytes) -> Mapping[int, Mapping[bytes, Any]]:
        """Return C{items} of messages of the open mailbox, by their UIDs. Messages that do not exist are left out.

        No message is marked as read.

        :raises Rejected: if the server refused.
        :raises NotUnderstood: if the response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        which = b",".join(b"%d" % each for each in uids)
        responses = await self.command("the messages", b"UID FETCH " + which + b" (UID " + items + b")")
        found = {}
        for parts in _parse([each for each in responses if _is_count(each.text.split(b" ", 2), b"FETCH")]):
            pairs = dict(_read_pairs(parts[-1]))
            uid = pairs.get(b"UID", b"")
            if isinstance(uid, bytes) and uid.isdigit() and read_number(uid) in uids:
                found[read_number(uid)] = pairs
        return found

    async def append(self, mailbox: str, content: bytes, flag: str, flight: Flight) -> None:
        r"""Append a message to a mailbox.

        :param flag: a flag of the message, such as C{\Seen}.
        :param flight: marked C{sent} right before the message is sent.
        :raises Rejected: if the server refused.
        :raises NotUnderstood: if the response is not valid or too long.
        :raises HungUp: if the connection ends.
        """
        command = b"APPEND %b (%b) {%d}" % (_mailbox(mailbox), flag.encode("ascii"), len(content))
        await self.command(f"the message, in {mailbox}", command, content, flight)

    async def _response(self) -> Response:
        """Wait for a response with all its literals.

        :raises NotUnderstood: if there are too many literals, or the response is too long.
        :raises HungUp: if the server ends the session or the connection.
        """
        text, plain_bytes = bytearray(), 0
        for _ in range(_MOST_LITERALS):
            line = await self.conversation.line()
            if not text and line.upper().startswith(b"* BYE"):
                raise HungUp
            text += line
            plain_bytes += len(line)
            literal = _LITERAL.search(line)
            if literal is None:
                return Response(bytes(text), plain_bytes)
            text += b"\r\n" + await self.conversation.exactly(int(literal[1]))
        raise NotUnderstood


def read_number(text: bytes) -> int:
    """Parse a number in a response, or raise L{NotUnderstood} if it is invalid or too long."""
    if len(text) > _MOST_DIGITS or not text.isdigit():
        raise NotUnderstood
    return int(text)


def _check_done(step: str, said: bytes) -> None:
    status, _, text = said.partition(b" ")
    if status.upper() in {b"NO", b"BAD"}:
        raise Rejected(step, text.decode("utf-8", "replace"))
    if status.upper() != b"OK":
        raise NotUnderstood


def _is_count(words: Sequence[bytes], name: bytes) -> bool:
    return len(words) > 1 and words[0].isdigit() and words[1].upper() == name


def _parse(responses: Sequence[Response]) -> Iterator[list[Any]]:
    if sum(each.plain_bytes for each in responses) > _MOST_PARSED_BYTES:
        raise NotUnderstood
    return (_parse_text(each.text) for each in responses)


def _parse_text(text: bytes) -> list[Any]:
    """Parse a response: words, quoted texts and literals become bytes, parentheses become lists.

    :raises NotUnderstood: if the response is malformed.
    """
    open_lists: list[list[Any]] = [[]]
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None or (token["close"] and len(open_lists) == 1):
            raise NotUnderstood
        position = token.end() + int(token["size"] or 0)
        if token["open"]:
            open_lists.append([])
        elif token["close"]:
            closed = open_lists.pop()
            open_lists[-1].append(closed)
        elif token["size"]:
            open_lists[-1].append(text[token.end() : position])
        elif token.lastgroup:
            open_lists[-1].append(token["word"] or _ESCAPED.sub(rb"\1", token["quoted"]))
    if len(open_lists) > 1:
        raise NotUnderstood
    return open_lists[0]


def _read_mailboxes(responses: Sequence[Response]) -> Iterator[Mailbox]:
    for parts in _parse([each for each in responses if each.text.upper().startswith(b"LIST ")]):
        if len(parts) == 4 and isinstance(parts[1], list) and isinstance(parts[3], bytes):
            uses = (flag.decode("ascii", "replace").lower() for flag in parts[1] if isinstance(flag, bytes))
            yield Mailbox(_decoded(parts[3]), frozenset(each.lstrip("\\") for each in uses))


def _decoded(name: bytes) -> str:
    """Decode the name of a mailbox (RFC 3501, 5.1.3). If it cannot be decoded, read it as UTF-8."""
    try:
        return str(imap4.decoder(name)[0])
    except Exception:  # noqa: BLE001  (the codec raises many kinds of errors: the name is shown undecoded)
        return name.decode("utf-8", "replace")


def _read_pairs(items: object) -> Iterator[tuple[bytes, Any]]:
    """Yield each name with its value. The section of a message, in brackets, is removed from its name."""
    rest: Iterator[Any] = iter(items if isinstance(items, list) else ())
    for name in rest:
        if isinstance(name, bytes):
            yield name.partition(b"[")[0].upper(), next(rest, b"")
