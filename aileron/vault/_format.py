"""The contents of a vault file, as values and as JSON: every member of one type, all of them there and none unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.converter import INLINE, JsonConverter, Member
from aileron.base.json import JSON, compact, loads_strict
from aileron.model.actions import Cap
from aileron.model.authority import Grant, OwnCap, Passkey, PasskeyRule, Pause, Predicate
from aileron.model.errors import InvalidRequest, damaged
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import Binding, Scope

from ._cipher import KdfParameters, Sealed
from ._names import check_kept


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
class Seal:
    """The head of the record's chain at a seal."""

    sequence: int
    head: str


@frozen
class VaultDocument:
    """A whole vault.

    :ivar vault: its id, random, for good.
    :ivar data_key: sealed under the passphrase's key.
    :ivar revision: of the file; grows with every write.
    :ivar entry_revisions: the last revision that was given to an entry; never goes back.
    :ivar trust: by kind and name.
    :ivar sealed: how far the record had come at the last seal.
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
    sealed: Seal | None = None
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


VERSION = 1


def encode(document: VaultDocument) -> bytes:
    """Return the file's bytes."""
    return (json.dumps(_FORMAT.to_json(document), indent=2) + "\n").encode()


def body_json(document: VaultDocument) -> dict[str, JSON]:
    """Return all that the file says, but for its MAC."""
    return {name: value for name, value in _FORMAT.to_json(document).items() if name != "mac"}


def decode(data: bytes) -> VaultDocument:
    """Return what the file's bytes say; whether the key stands behind it is another question.

    :raises VaultDamaged: they are no vault of this version.
    """
    try:
        value = loads_strict(data)
        _check_version(value)
        document = _FORMAT.from_json(VaultDocument, value)
        _check(document)
    except (ValueError, InvalidRequest) as error:
        raise damaged(f"The vault file is damaged: {error}") from None
    return document


def version_of(data: bytes) -> int:
    """Return the version that the file's bytes name; it may be one that L{decode} refuses.

    :raises VaultDamaged: they name none.
    """
    try:
        version = _named_version(loads_strict(data))
    except ValueError as error:
        raise damaged(f"The vault file is damaged: {error}") from None
    if version is None:
        raise damaged("The vault file is damaged: it has no version.")
    return version


def _named_version(value: JSON) -> int | None:
    version = value.get("version") if isinstance(value, dict) else None
    return version if type(version) is int else None


def _check_version(value: JSON) -> None:
    version = _named_version(value)
    if version is not None and version != VERSION:
        raise ValueError(f"version {version} was written by another release; this one knows {VERSION}")


def _check(document: VaultDocument) -> None:
    for entry in document.entries:
        binding = entry.binding
        check_kept(binding)
        if binding.name != f"{binding.kind}/{binding.service}/{binding.identity}":
            raise ValueError("an entry's name does not say what it is")
    _check_each_once("entries", [entry.binding.name for entry in document.entries])
    _check_each_once("trust records", [trust_key(record) for record in document.trust])
    _check_each_once("grants", [grant.id for grant in document.grants])


def _check_each_once(what: str, names: list[str] | list[tuple[TrustKind, str]]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"two {what} have one name")


def _read_seconds(value: Any) -> float:
    if type(value) is not int:
        raise ValueError("is no whole number")
    return float(value)


def _read_text(value: Any) -> JSON:
    """Read JSON that is written as one text."""
    if type(value) is not str:
        raise ValueError("is no text")
    return loads_strict(value.encode())


def _read_object(value: Any) -> JSON:
    read = _read_text(value)
    if not isinstance(read, dict):
        raise ValueError("is no object as a text")
    return read


_FORMAT = JsonConverter()
_FORMAT.differ(VaultDocument, constants={"version": VERSION}, mac=Member())
_FORMAT.differ(KdfParameters, constants={"algorithm": "argon2id"}, salt=Member())
_FORMAT.differ(Sealed, nonce=Member(), ciphertext=Member())
_FORMAT.differ(Passkey, public_key=Member(), site=Member(optional=True))
_FORMAT.differ(Scope, settings=Member(optional=True))
_FORMAT.differ(VaultEntry, binding=INLINE, sealed=INLINE)
_FORMAT.differ(Stretch, sealed=INLINE)
_FORMAT.differ(OwnCap, cap=INLINE)
_FORMAT.differ(Cap, seconds=Member(write=int, read=_read_seconds))
_FORMAT.differ(
    Grant,
    session_id=Member("session"),
    run_id=Member("run"),
    exact=Member(write=compact, read=_read_object),
)
_FORMAT.differ(Predicate, given=Member(write=compact, read=_read_text))

part_json = _FORMAT.to_json
"""Return the JSON of a part of the file: of a binding, all that its entry says but for its secret."""
