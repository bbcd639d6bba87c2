"""The contents of a vault file, as values and as JSON with exact types and without missing or unknown members."""

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
    """A binding with its sealed secret."""

    binding: Binding
    sealed: Sealed


@frozen
class Stretch:
    """The first key of a locked period, sealed."""

    id: str
    sealed: Sealed


@frozen
class RecordKeys:
    """The keys of the audit record.

    :ivar public_key: the Ed25519 public key in hexadecimal.
    :ivar signing: the private key, sealed.
    :ivar stretches: the first keys of the locked periods that are not over.
    """

    public_key: str
    signing: Sealed
    stretches: tuple[Stretch, ...] = ()


@frozen
class Seal:
    """The end of the record's chain at the last seal."""

    sequence: int
    head: str


@frozen
class VaultDocument:
    """The complete contents of a vault.

    :ivar vault: the random, permanent id.
    :ivar data_key: the data key, sealed under the passphrase's key.
    :ivar revision: the revision of the file, incremented with every write.
    :ivar entry_revisions: the last revision assigned to an entry, which never decreases.
    :ivar trust: the trust records, sorted by kind and name.
    :ivar sealed: the end of the record at the last seal, or None.
    :ivar spent: the used marks of decisions, in hexadecimal, and runs, each with the time until which it is stored.
    :ivar forgotten: the latest such time of the removed ones. Use of a mark that ended by then is unknown.
    :ivar grants: the grants, oldest first.
    :ivar pauses: what the operator has paused, and agents for themselves.
    :ivar caps: the operator's own caps, sorted by name.
    :ivar record: the keys of the record, or None if there are none yet.
    :ivar passkeys: the passkeys, oldest first.
    :ivar passkey_rule: the approvals that require a passkey.
    :ivar mac: the MAC of everything else, under the data key.
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
        """Return the entry with this name, or None if there is none."""
        return next((entry for entry in self.entries if entry.binding.name == name), None)

    def with_entry(self, entry: VaultEntry) -> VaultDocument:
        """Return a copy with one more entry."""
        entries = sorted((*self.entries, entry), key=lambda each: each.binding.name)
        return evolve(self, entries=tuple(entries), entry_revisions=max(self.entry_revisions, entry.binding.revision))

    def without(self, name: str) -> VaultDocument:
        """Return a copy without the entry C{name}."""
        return evolve(self, entries=tuple(entry for entry in self.entries if entry.binding.name != name))

    def remembering(self, now: datetime, fresh: Iterable[str]) -> VaultDocument:
        """Return a copy without the marks and runs that have ended by C{now}, except for C{fresh}.

        C{forgotten} records the latest removed end, in case the clock is set back later.
        """
        kept = {used: until for used, until in self.spent.items() if until > now or used in fresh}
        gone = [until for used, until in self.spent.items() if used not in kept]
        return evolve(self, spent=kept, forgotten=max(filter(None, (self.forgotten, *gone)))) if gone else self


def trust_key(record: Trusted) -> tuple[TrustKind, str]:
    """Return the kind and name that identify a trust record."""
    return record.kind, record.name


VERSION = 1


def encode(document: VaultDocument) -> bytes:
    """Return the bytes of the file."""
    return (json.dumps(_FORMAT.to_json(document), indent=2) + "\n").encode()


def body_json(document: VaultDocument) -> dict[str, JSON]:
    """Return the JSON of the file without its MAC."""
    return {name: value for name, value in _FORMAT.to_json(document).items() if name != "mac"}


def decode(data: bytes) -> VaultDocument:
    """Parse the bytes of a file.  The MAC is not verified.

    :raises VaultDamaged: the bytes are not a vault of this version.
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
    """Return the format version that the bytes name, even one that L{decode} refuses.

    :raises VaultDamaged: the bytes name no version.
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
    """Parse JSON that is stored as one text."""
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
"""Return the JSON of a part of the file.  For a binding, that is its entry without the secret."""
