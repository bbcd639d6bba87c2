"""Observes every stored event: makes MACs while the vault is locked, and notes which events need a checkpoint."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from hashlib import sha256

from attrs import define, field
from twisted.logger import Logger

from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable

from ._key_file import EvolvingKey, KeyFile

TAMPER = "tamper.detected"

_PERSON = "human"
_MAC = b"aileron.audit.mac.v1\n"
_log = Logger()


def mac_of(state: EvolvingKey, sealed: str) -> bytes:
    """Return the HMAC-SHA256 of a record's hash, with the key of the record's place in the locked period."""
    return hmac.digest(state.key, _MAC + sealed.encode("utf-8", "surrogatepass"), sha256)


@define(eq=False)
class CommitObserver:
    """An observer that makes MACs of records while the vault is locked, and notes events that need a checkpoint.

    The key of a record depends only on its sequence, counted from the last durable record. A record that is rolled back
    and written again gets an identical key.

    :ivar locked: whether records get MACs.
    :ivar due: whether a person's action or a sign of tampering is durable and not yet covered by a checkpoint.
    :ivar foreign_writes: whether another process wrote to the record since this one started.
    :ivar shared: whether other daemons write to the record as well. Then L{foreign_writes} stays False.
    :ivar end: the sequence and hash of the last durable record known to this process, or None if there is none.
    :ivar state: the key of the record after the last durable one, or None if there is no key.
    :ivar tampered: the number of C{tamper.detected} events stored by this process.
    """

    _file: KeyFile
    locked: bool = field(default=False, init=False)
    due: bool = field(default=False, init=False)
    foreign_writes: bool = field(default=False, init=False)
    shared: bool = field(default=False, init=False)
    end: tuple[int, str] | None = field(default=None, init=False)
    tampered: int = field(default=0, init=False)
    state: EvolvingKey | None = field(default=None, init=False)
    _next: int | None = field(default=None, init=False)  # the sequence for the key in C{state}
    _ahead: list[EvolvingKey] = field(factory=list, init=False)  # this key and the later ones used so far
    _seen: set[str] = field(factory=set, init=False)
    _put: set[tuple[int, str]] = field(factory=set, init=False)  # expected ends of transactions that may be rolled back

    def load(self) -> None:
        """Read the key of the next record from its file. If the file cannot be read, log that and have no key."""
        try:
            self.state = self._file.load()
        except OSError as error:
            _log.error("the key of the locked record cannot be read: {error}", error=error.strerror)

    def catch_up(self, index: int) -> None:
        """Advance the key to C{index}, the number of records that the database has in this locked period.

        After a crash, the file may have an earlier key than that.
        """
        if self.state is not None and index > self.state.index:
            self._keep(self.state.advance(index - self.state.index))

    def begin_period(self, period: str, key: bytes) -> None:
        """Start a new locked period, which has no records yet.

        :raises StoreUnavailable: if the key could not be written. The old period stays in use.
        """
        state = EvolvingKey(period, 0, key)
        try:
            self._file.save(state)
        except OSError as error:
            raise StoreUnavailable(f"The key of the locked record could not be written: {error.strerror}.") from error
        self.state, self._next, self._ahead = state, None, []

    @property
    def wants_commit(self) -> bool:
        """True if the vault is locked, so that records need MACs, or if written events wait for L{note_commit}."""
        return self.locked or bool(self._seen) or bool(self._put)

    def compare_end(self, end: tuple[int, str]) -> None:
        """Set L{foreign_writes} if the log in the database ends at C{end}, which is neither known nor expected."""
        if not self.shared and self.end is not None and end != self.end and end not in self._put:
            self.foreign_writes = True

    def expect_end(self, end: tuple[int, str]) -> None:
        """Add C{end}, a sequence and a hash, to the ends of the log that are expected until the next commit."""
        self._put.add(end)

    def note_events(self, events: Iterable[Event]) -> None:
        """Record the ids of tamper events, and whether a person caused any event."""
        for event in events:
            if event.type == TAMPER:
                self._seen.add(event.id)
            elif event.actor.type == _PERSON:
                self._seen.add("")

    def make_mac(self, sequence: int, sealed: str) -> tuple[str, bytes] | None:
        """Return the period and MAC of a record, or None if the vault is unlocked or there is no key for the record."""
        if not self.locked or self.state is None:
            return None
        if self._next is None:
            self._next, self._ahead = sequence, [self.state]
        place = sequence - self._next
        if place < 0:  # the database was restored meanwhile: the next unlock reports it
            return None
        while place >= len(self._ahead):
            self._ahead.append(self._ahead[-1].advance(1))
        return self.state.period, mac_of(self._ahead[place], sealed)

    def note_commit(self, end: tuple[int, str]) -> None:
        """Record that all records up to C{end} are durable.

        Count the noted events and advance the key in the file past C{end}.
        """
        self.compare_end(end)
        last, _ = self.end = end
        self._put.clear()
        if self._seen:
            self.tampered += len(self._seen - {""})
            self._seen.clear()
            self.due = True
        if self.locked and self.state is not None and self._next is not None and last >= self._next:
            self._keep(self.state.advance(last + 1 - self._next))
            self._next, self._ahead = last + 1, [self.state]

    def _keep(self, state: EvolvingKey) -> None:
        try:
            self._file.save(state)
        except OSError as error:  # the next start catches up from the database
            _log.error("the key of the locked record cannot be written: {error}", error=error.strerror)
        self.state = state
