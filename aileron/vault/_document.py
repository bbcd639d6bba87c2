"""The contents of a vault file: values alone; L{_format} reads and writes them, L{_sealing} puts them under the key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import evolve, field, frozen

from aileron.values import Binding, Grant, OwnCap, Passkey, PasskeyRule, Pause, Trusted, TrustKind

from ._cipher import KdfParameters, Sealed


@frozen
class VaultEntry:
    """One binding with its sealed secret."""

    binding: Binding
    sealed: Sealed


@frozen
class Stretch:
    """The first key of a stretch of the record, sealed."""

    id: str
    sealed: Sealed


@frozen
class RecordKeys:
    """The keys of the record.

    :ivar public_key: Ed25519, in hexadecimal.
    :ivar signing: the private one, sealed.
    :ivar stretches: of each that is not over.
    """

    public_key: str
    signing: Sealed
    stretches: tuple[Stretch, ...] = ()


@frozen
class VaultDocument:
    """A whole vault.

    :ivar vault: its id, random, for good.
    :ivar data_key: sealed under the passphrase's key.
    :ivar revision: of the file; grows with every write.
    :ivar entry_revisions: the last revision that was given to an entry; never goes back.
    :ivar trust: by kind and name.
    :ivar sealed: how far the record had come at the last seal, sequence and hash.
    :ivar spent: what was used, and until when each is remembered: marks of decisions, in hexadecimal, and runs.
    :ivar forgotten: until when the latest of those held that are remembered no more: what ended by then is not known.
    :ivar grants: oldest first.
    :ivar pauses: what the operator has stopped, and agents for themselves.
    :ivar caps: the operator's own, by their name.
    :ivar record: the keys of the record, once there are any.
    :ivar passkeys: oldest first.
    :ivar passkey_rule: what may not be approved without one.
    :ivar mac: over all the rest, under the data key.
    """

    vault: str
    kdf: KdfParameters
    data_key: Sealed
    revision: int = 1
    entry_revisions: int = 0
    entries: tuple[VaultEntry, ...] = ()
    trust: tuple[Trusted, ...] = ()
    sealed: tuple[int, str] | None = None
    spent: Mapping[str, datetime] = field(factory=dict)
    forgotten: datetime | None = None
    grants: tuple[Grant, ...] = ()
    pauses: tuple[Pause, ...] = ()
    caps: tuple[OwnCap, ...] = ()
    record: RecordKeys | None = None
    passkeys: tuple[Passkey, ...] = ()
    passkey_rule: PasskeyRule = field(factory=PasskeyRule)
    mac: bytes = field(default=b"", repr=False)

    def find(self, name: str) -> VaultEntry | None:
        """Find the entry of that name."""
        return next((entry for entry in self.entries if entry.binding.name == name), None)

    def with_entry(self, entry: VaultEntry) -> VaultDocument:
        """Return the same vault with one entry more."""
        entries = sorted((*self.entries, entry), key=lambda each: each.binding.name)
        return evolve(self, entries=tuple(entries), entry_revisions=max(self.entry_revisions, entry.binding.revision))

    def without(self, name: str) -> VaultDocument:
        """Return the same vault without one entry."""
        return evolve(self, entries=tuple(entry for entry in self.entries if entry.binding.name != name))

    def remembering(self, now: datetime, fresh: Iterable[str]) -> VaultDocument:
        """Return the same vault without what was used and has ended by now, but for the C{fresh}.

        The clock may be set back after that, so it is kept what can no longer be told.
        """
        kept = {used: until for used, until in self.spent.items() if until > now or used in fresh}
        gone = [until for used, until in self.spent.items() if used not in kept]
        return evolve(self, spent=kept, forgotten=max(filter(None, (self.forgotten, *gone)))) if gone else self


def trust_key(record: Trusted) -> tuple[TrustKind, str]:
    """Return the kind and name that a trust record is kept under."""
    return record.kind, record.name
