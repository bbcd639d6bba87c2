"""The double of a mail account: SMTP and IMAP servers that can fail at every command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field
from twisted.internet.interfaces import IProtocol
from twisted.protocols.basic import LineReceiver

from aileron.base.json import JSON
from aileron.connectors import MailSpec, Specimen

from ._bench import Bench
from ._double import Case, Double, DoubleConnection, Move
from ._network import IMAP, SMTP
from ._trials import LATE_SECONDS, Rig, Trial, controls, written

_CONTENT, _END, _APPENDED = "content", "end", "appended"
"""Stages without a command: the first line of a message, the end of a message, and the end of a saved message."""

_USUAL = {
    "EHLO": b"250-proof\r\n250 AUTH PLAIN XOAUTH2",
    "AUTH": b"235 welcome",
    "MAIL": b"250 good",
    "RCPT": b"250 good",
    "DATA": b"354 go on",
    _CONTENT: b"",
    _END: b"250 taken",
    "QUIT": b"221 bye",
}
_QUOTED = re.compile(rb'"([^"]*)"')
_SIZE = re.compile(rb"\{([0-9]{1,9})\}$")
_LETTER = b"From: Ada <ada@example.org>\r\nSubject: Sample\r\nMessage-ID: <another@example.org>\r\n\r\nSample\r\n"
_IMPLICIT, _STARTTLS = "implicit", "starttls"
_SEND, _DRAFT = "send_mail", "save_draft"
_COUNTED = {_SEND: _END, _DRAFT: _APPENDED, "search_mail": "SEARCH", "read_mail": "FETCH", "list_mailboxes": "LIST"}
"""For each operation, the stage at which the double performs the effect."""

_STAGES = {
    _SEND: ("EHLO", "AUTH", "MAIL", "RCPT", "DATA"),
    _DRAFT: ("AUTHENTICATE", "LIST", "APPEND"),
    "search_mail": ("AUTHENTICATE", "EXAMINE", "SEARCH", "FETCH"),
    "read_mail": ("AUTHENTICATE", "EXAMINE", "FETCH"),
    "list_mailboxes": ("AUTHENTICATE", "LIST"),
}
"""For each operation, the stages before the effect."""

_REFUSALS = (b"NO no", b"550 no")


def _at(stage: str, says: bytes = b"", does: int = 1, ends: str = "stay", **more: Any) -> Move:
    """Return an instruction to the double of a mail account for one stage of a conversation.

    In IMAP, the tag is written before C{says}.
    """
    return Move(says, does, ends, stage=stage, **more)


@define(eq=False, repr=False)
class MailDouble(Double):
    """The double of both servers of a mail account.

    :ivar mailboxes: the messages of each mailbox. A sent message is saved in C{Sent}, as most servers do.
    """

    mailboxes: dict[bytes, list[bytes]] = field(factory=dict)

    def begin(self, case: Case, moves: Sequence[Any], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test.

        Each mailbox then contains one message that is unrelated to the run.
        """
        super().begin(case, moves, shows, twist)
        self.mailboxes = {name: [_LETTER] for name in (b"INBOX", b"Sent", b"Drafts")}

    def speak(self, speech: str) -> IProtocol:
        """Return the protocol for a new connection, which speaks SMTP or IMAP.

        :param speech: which of the two.
        """
        found: Any = {SMTP: SmtpConnection, IMAP: ImapConnection}[speech](self)
        return found  # type: ignore[no-any-return]

    def turn(self, stage: str, mailbox: bytes = b"", message: bytes = b"") -> Move:
        """Remove the first instruction for a stage from the script and return it.

        Without one, return the usual instruction.

        If the instruction performs the effect, save C{message}. At the stage that performs the effect, count it, but
        not during a lookup.
        """
        turn: Move = next((each for each in self.script if each.stage == stage), _at(stage))
        if turn in self.script:
            self.script.remove(turn)
        if stage == _COUNTED[self.case.operation.name] and not self.looking:
            self.asked += 1
            self.done += turn.does
        if message and turn.does:
            self.mailboxes.setdefault(mailbox, []).append(message)
        return turn

    def search(self, mailbox: bytes, criteria: bytes) -> Sequence[int]:
        """Return the numbers of the messages with the identifier in C{criteria}, or of all messages."""
        wanted = _QUOTED.findall(criteria)[-1:] if b"MESSAGE-ID" in criteria.upper() else [b""]
        if self.looking and self.shows is not None:
            return [1] if self.shows else []
        kept = self.mailboxes.get(mailbox, ())
        return [number for number, each in enumerate(kept, 1) if all(word in each for word in wanted)]


_Lines: Any = LineReceiver


class MailConnection(DoubleConnection, _Lines):  # type: ignore[misc]
    """The mail server's side of a connection."""

    dataReceived = LineReceiver.dataReceived
    MAX_LENGTH = 2**20
    greeting = b"* OK proof"

    def connectionMade(self) -> None:
        """Register the connection, and send the greeting."""
        super().connectionMade()
        self.sendLine(self.greeting)

    def take(self, turn: Move, usual: bytes) -> None:
        """Carry out an instruction. If it has nothing to write, write C{usual}.

        :param turn: the instruction.
        :param usual: the reply of a server that works.
        """
        said = turn.writes or usual
        self.act(evolve(turn, writes=said + b"\r\n" if said and turn.ends != "hold" else b""))


class SmtpConnection(MailConnection):
    """The SMTP server's side of a connection."""

    greeting = b"220 proof"
    _message: list[bytes] | None = None

    def lineReceived(self, line: bytes) -> None:
        """Handle a command, or a line of a message."""
        if self._message is None:
            verb = line[:4].decode("ascii", "replace").upper()
            turn = self._take_stage(verb)
            if verb == "DATA" and not turn.writes:
                self._message = []
        elif line == b".":
            message, self._message = b"\r\n".join(self._message), None
            self._take_stage(_END, message)
        else:
            self._message.append(line)
            if len(self._message) == 1:
                self._take_stage(_CONTENT)

    def _take_stage(self, stage: str, message: bytes = b"") -> Move:
        turn: Move = self._service.turn(stage, b"Sent", message)
        self.take(turn, _USUAL.get(stage, b"500 what"))
        return turn


class ImapConnection(MailConnection):
    """The IMAP server's side of a connection."""

    _tag, _mailbox = b"", b""
    _literal = 0

    def lineReceived(self, line: bytes) -> None:
        """Handle a command, or the continuation that the server requested."""
        tag, _, command = line.partition(b" ")
        words = command.upper().split()
        if not words:  # the client's continuation after "+"
            self._end(self._service.turn("AUTHENTICATE"), self._tag)
            return
        verb = words[1 if words[0] == b"UID" and len(words) > 1 else 0].decode("ascii", "replace")
        if verb == "AUTHENTICATE":
            self._tag = tag
            self.sendLine(b"+ ")
        elif verb == "APPEND":
            self._begin_message(tag, command)
        else:
            turn = self._service.turn(verb)
            if turn.ends == "stay":
                for each in self._untagged(verb, command, turn.shows):
                    self.sendLine(each)
            self._end(turn, tag)

    def _begin_message(self, tag: bytes, command: bytes) -> None:
        turn, size = self._service.turn("APPEND"), _SIZE.search(command)
        if turn.ends != "stay" or turn.writes or size is None:
            self._end(turn, tag)
            return
        self._tag, self._mailbox, self._literal = tag, _QUOTED.findall(command)[0], int(size[1])
        self.sendLine(b"+ go on")
        self.setRawMode()
        self._kept = b""

    def rawDataReceived(self, data: bytes) -> None:
        """Collect a message to save, until it is complete."""
        self._kept += data
        if len(self._kept) >= self._literal + 2:
            turn = self._service.turn(_APPENDED, self._mailbox, self._kept[: self._literal])
            self._end(turn, self._tag)
            self.setLineMode(self._kept[self._literal + 2 :])

    def _end(self, turn: Move, tag: bytes) -> None:
        self.take(evolve(turn, writes=tag + b" " + (turn.writes or b"OK done")), b"")

    def _untagged(self, verb: str, command: bytes, shown: bytes) -> Iterator[bytes]:
        if verb == "CAPABILITY":
            yield b"* CAPABILITY IMAP4rev1 AUTH=PLAIN AUTH=XOAUTH2"
        elif verb == "LIST":
            yield from (b'* LIST (\\%b) "/" "%b"' % (name, name) for name in (b"Sent", b"Drafts", b"INBOX"))
            yield from [b'* LIST () "/" "%b"' % shown] * bool(shown)
        elif verb == "EXAMINE":
            self._mailbox = (_QUOTED.findall(command) or command.split()[1:])[0]
            yield b"* 1 EXISTS"
        elif verb == "SEARCH":
            yield b" ".join([b"* SEARCH", *(b"%d" % each for each in self._service.search(self._mailbox, command))])
        elif verb == "FETCH":
            letter = _LETTER.replace(b"Sample", shown or b"Sample")
            size = len(letter)
            yield b"* 1 FETCH (UID 1 FLAGS () RFC822.SIZE %d BODY[] {%d}\r\n%b)" % (size, size, letter)


def set_up_mail(specimen: Specimen, bench: Bench) -> Rig:
    """Set up the test of a mail account's connector against a double of its servers, without TLS."""
    spec: MailSpec = specimen.spec
    smtp, imap = spec.account.smtp, spec.account.imap
    origins = {smtp.origin: SMTP} if imap is None else {smtp.origin: SMTP, imap.origin: IMAP}
    if imap is not None and imap.tls == _STARTTLS:
        imap = evolve(imap, tls=_IMPLICIT)
    smtp = evolve(smtp, tls=_IMPLICIT) if smtp.tls == _STARTTLS else smtp
    letter: Mapping[str, JSON] = {"to": "ada@example.org", "subject": "Sample", "text": "Sample"}
    inputs: Mapping[str, Mapping[str, JSON]] = {
        _SEND: letter,
        _DRAFT: letter,
        "search_mail": {"mailbox": "INBOX"},
        "read_mail": {"mailbox": "INBOX", "uid": 1},
        "list_mailboxes": {},
    }
    cases = {
        name: Case(each.operation, inputs[name], looks=each.operation.reconcilable)
        for name, each in spec.operations.items()
    }
    here = evolve(spec, account=evolve(spec.account, smtp=smtp, imap=imap))
    return Rig(here, specimen.base_url, MailDouble(bench.clock), origins, cases, _list_trials, _list_controls)


def _list_trials(case: Case, secret: str) -> Iterator[Trial]:
    name, does = case.operation.name, _COUNTED[case.operation.name]
    yield Trial("answers well", for_actions=True)
    yield Trial("is not there", refusing=True)
    for stage in _STAGES[name]:
        yield Trial(f"hangs up at {stage}", (_at(stage, does=0, ends="abort"),))
        yield Trial(f"refuses at {stage}", (_at(stage, _REFUSALS[name == _SEND], 0),))
    yield from _list_echoes(case, secret)
    if case.reads:
        return
    within = case.operation.timeout_seconds
    again = b"250 taken\r\n554 no" if name == _SEND else b"OK done\r\na9 NO again"
    yield Trial("takes it, and hangs up before it says so", (_at(does, ends="abort"),), for_actions=True)
    yield Trial("hangs up when it has all, and does not take it", (_at(does, does=0, ends="abort"),))
    yield Trial("refuses it when it has all", (_at(does, _REFUSALS[name == _SEND], 0),))
    for does_it, times in (("takes it", 1), ("does not take it", 0)):
        yield Trial(f"{does_it}, and answers in another form", (_at(does, b"<h1>", times),))
    yield Trial("takes it, loses the copy, and hangs up", (_at(does, ends="abort"),), shows=False)
    yield Trial("takes it, and answers twice", (_at(does, again),))
    yield Trial("takes it, and answers slowly", (_at(does, after=within / 2),))
    yield Trial("takes it, and answers too late", (_at(does, after=within + LATE_SECONDS),))
    yield Trial("takes it, and never answers", (_at(does, ends="hold"),))
    yield Trial("never answers", (_at(does, does=0, ends="hold"),))
    if name == _SEND:
        yield Trial("hangs up within the message", (_at(_CONTENT, does=0, ends="abort"),))
        yield Trial("takes it, and says that it is closing", (_at(does, b"421 closing"),))
        yield Trial("does not take it, and says that it is closing", (_at(does, b"421 closing", 0),))
        yield Trial("takes it, and saves no copy", (_at("APPEND", b"NO no", 0),))


def _list_echoes(case: Case, secret: str) -> Iterator[Trial]:
    text, name = " ".join(written(secret)).encode(), case.operation.name
    refusal, good = _REFUSALS[name == _SEND] + b" " + text, (b"250 " if name == _SEND else b"OK ") + text
    for stage in _STAGES[name]:
        yield Trial(f"refuses at {stage} with the secret", (_at(stage, refusal, 0),))
    yield Trial("repeats the secret in its answer", (_at(_COUNTED[name], good, shows=text),), for_actions=True)


def _list_controls(case: Case, decoy: str) -> Iterator[tuple[str, Trial]]:
    stage = _COUNTED[case.operation.name]
    idle, lost, twice = _at(stage, does=0), (_at(stage, does=0, ends="abort"),), _at(stage, does=2)
    yield from controls(case, decoy, _list_echoes(case, decoy), idle=idle, twice=twice, lost=lost)
