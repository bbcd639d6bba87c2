"""The contents of a vault file, as values and as JSON with exact types and without missing or unknown members."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve, field, frozen

from aileron.base.converter import INLINE, JsonConverter, Member
from aileron.base.json import JSON, compact, digest_of_bytes, loads_strict
from aileron.model.actions import Cap
from aileron.model.authority import EnrolledSshKey, Grant, OwnCap, Passkey, PasskeyRule, Pause, Predicate
from aileron.model.errors import Conflict, InvalidRequest, damaged
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import Binding, KeySource, Scope

from ._cipher import KdfParameters, Sealed
from ._names import check_kept


@frozen
class VaultEntry:
    """A binding as the vault stores it, with its encrypted credential."""

    binding: Binding
    sealed: Sealed


@frozen
class Stretch:
    """The first key of a locked period, encrypted.

    A locked period is a time in which the vault was locked, so that the audit log could not be signed.
    """

    id: str
    sealed: Sealed


@frozen
class RecordKeys:
    """The keys of the audit log.

    :ivar public_key: the Ed25519 public key in hexadecimal.
    :ivar signing: the private key, encrypted.
    :ivar stretches: the first keys of the locked periods that are not over.
    """

    public_key: str
    signing: Sealed
    stretches: tuple[Stretch, ...] = ()


@frozen
class KeySourceEntry:
    """A key source with the vault's data key, encrypted to its public key.

    :ivar ephemeral: the public key that was made for this encryption, in hexadecimal.
    """

    source: KeySource
    ephemeral: str
    sealed: Sealed


@frozen
class Seal:
    """The sequence and hash of the newest record of the audit log, as last stored in the vault."""

    sequence: int
    head: str


@frozen
class VaultDocument:
    """The complete contents of a vault.

    :ivar vault: the random, permanent id.
    :ivar data_key: the data key, encrypted with the passphrase's key.
    :ivar revision: the revision of the file, incremented with every write.
    :ivar entry_revisions: the last revision assigned to an entry, which never decreases.
    :ivar trust: the trust records, sorted by kind and name.
    :ivar sealed: the end of the record at the last seal, or None.
    :ivar spent: the used marks of decisions, in hexadecimal, and the runs whose decisions were withdrawn, each with the
        time until which it is stored.
    :ivar forgotten: the latest such time of a removed entry. A mark that expired by then may have been used.
    :ivar grants: the grants, oldest first.
    :ivar pauses: the pauses by the operator, and by agents of their own sessions.
    :ivar caps: the operator's own caps, sorted by name.
    :ivar record: the keys of the record, or None if there are none yet.
    :ivar passkeys: the passkeys, oldest first.
    :ivar passkey_rule: the approvals that require a passkey.
    :ivar ssh_keys: the enrolled SSH keys, oldest first.
    :ivar key_sources: the sources that unlock the vault beside the passphrase, oldest first.
    :ivar people: the digests of the accounts in force, by the account's ID.
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
    ssh_keys: tuple[EnrolledSshKey, ...] = ()
    key_sources: tuple[KeySourceEntry, ...] = ()
    people: Mapping[str, str] = field(factory=dict)
    mac: bytes = field(default=b"", repr=False)

    def find(self, name: str) -> VaultEntry | None:
        """Return the entry with this name, or None if there is none."""
        return next((entry for entry in self.entries if entry.binding.name == name), None)

    def with_entry(self, entry: VaultEntry) -> VaultDocument:
        """Return a copy of the vault's contents with one more entry."""
        entries = sorted((*self.entries, entry), key=lambda each: each.binding.name)
        return evolve(self, entries=tuple(entries), entry_revisions=max(self.entry_revisions, entry.binding.revision))

    def without(self, name: str) -> VaultDocument:
        """Return a copy of the vault's contents without the entry C{name}.

        If there is no such entry, they are equal.
        """
        return evolve(self, entries=tuple(entry for entry in self.entries if entry.binding.name != name))

    def remembering(self, now: datetime, fresh: Iterable[str]) -> VaultDocument:
        """Return a copy without the entries of used decisions that have expired by C{now}, except for C{fresh}.

        C{forgotten} becomes the latest expiry of a removed entry, in case the clock is set back later.
        """
        kept = {used: until for used, until in self.spent.items() if until > now or used in fresh}
        gone = [until for used, until in self.spent.items() if used not in kept]
        return evolve(self, spent=kept, forgotten=max(filter(None, (self.forgotten, *gone)))) if gone else self


def trust_key(record: Trusted) -> tuple[TrustKind, str]:
    """Return the kind and name that identify a trusted file."""
    return record.kind, record.name


def authority_of(document: VaultDocument) -> str:
    """Return the digest of what the operator decided: everything but secrets, used decisions, counts and seals."""
    decided = evolve(
        document,
        revision=1,
        entry_revisions=0,
        entries=tuple(evolve(entry, sealed=Sealed(b"", b"")) for entry in document.entries),
        sealed=None,
        spent={},
        forgotten=None,
        grants=tuple(evolve(grant, used=0, used_at=None) for grant in document.grants),
        record=None,
    )
    return digest_of_bytes(compact(body_json(decided)).encode("ascii"))


def merge(base: VaultDocument, ours: VaultDocument, theirs: VaultDocument) -> VaultDocument | None:
    """Return C{theirs} with what C{ours} changed in C{base}, or None if both changed the same part.

    :raises Conflict: if both used the same decision.
    """
    changes: dict[str, Any] = {
        "sealed": max(filter(None, (ours.sealed, theirs.sealed)), key=lambda seal: seal.sequence, default=None),
        "spent": _merge_spent(base, ours, theirs),
        "forgotten": max(filter(None, (ours.forgotten, theirs.forgotten)), default=None),
        "entry_revisions": max(ours.entry_revisions, theirs.entry_revisions),
        "entries": _merge_entries(base, ours, theirs),
    }
    for name in _PARTS:
        changes[name] = _choose(getattr(base, name), getattr(ours, name), getattr(theirs, name))
    return None if any(each is _BOTH for each in changes.values()) else evolve(theirs, **changes)


_BOTH = object()
# guard of roles: an account that is removed while another daemon writes the vault stays removed
#    -> vault.test_shared.SharedTests.test_people, instead _PARTS = ("trust", "grants", "pauses", "caps", "record")
_PARTS = (
    *("trust", "grants", "pauses", "caps", "record"),
    *("passkeys", "passkey_rule", "ssh_keys", "key_sources", "people"),
)


def _choose(base: Any, ours: Any, theirs: Any) -> Any:
    """Return the value that one side changed, or C{_BOTH} if both changed it, even alike: each may have counted one."""
    # guard of several daemons: two uses of a grant at once count as two -> vault.test_shared.SharedTests.test_uses,
    #    instead if ours in (base, theirs)
    if ours == base:
        return theirs
    return ours if theirs == base else _BOTH


def _merge_spent(base: VaultDocument, ours: VaultDocument, theirs: VaultDocument) -> Mapping[str, datetime]:
    fresh = {used: until for used, until in ours.spent.items() if base.spent.get(used) != until}
    # guard of several daemons: a decision is used on one daemon alone -> vault.test_shared.SharedTests.test_spent_once
    if any(used in theirs.spent and used not in base.spent and not used.startswith("run ") for used in fresh):
        raise Conflict("This decision was used.")
    kept = {used: max(until, theirs.spent.get(used, until)) for used, until in fresh.items()}
    return {**theirs.spent, **kept}


def _merge_entries(base: VaultDocument, ours: VaultDocument, theirs: VaultDocument) -> Any:
    names = sorted({entry.binding.name for each in (base, ours, theirs) for entry in each.entries})
    chosen = [_choose(base.find(name), ours.find(name), theirs.find(name)) for name in names]
    return _BOTH if any(each is _BOTH for each in chosen) else tuple(each for each in chosen if each is not None)


VERSION = 2
"""The newest version of the format. A file has the oldest version that has all its parts, so that earlier releases of
Aileron open it until it has a part that they do not know.
"""

_VERSION_BEFORE = 1
"""The version of a file without the parts that version 2 added."""


def _needed_version(document: VaultDocument) -> int:
    owned = any(each.binding.owner for each in document.entries) or any(each.owner for each in document.grants)
    parts = document.ssh_keys or document.key_sources or document.people
    return VERSION if parts or owned else _VERSION_BEFORE


def _to_json(document: VaultDocument) -> dict[str, JSON]:
    return {"version": _needed_version(document), **_FORMAT.to_json(document)}


def encode(document: VaultDocument) -> bytes:
    """Return the bytes of a vault file with these contents."""
    return (json.dumps(_to_json(document), indent=2) + "\n").encode()


def body_json(document: VaultDocument) -> dict[str, JSON]:
    """Return the JSON of a vault file with these contents, without its MAC."""
    return {name: value for name, value in _to_json(document).items() if name != "mac"}


def decode(data: bytes) -> VaultDocument:
    """Parse the bytes of a file.  The MAC is not verified.

    :raises VaultDamaged: if the bytes are not a vault of this version.
    """
    try:
        value = loads_strict(data)
        version, body = _take_version(value)
        document = _FORMAT.from_json(VaultDocument, body)
        _check(document, version)
    except (ValueError, InvalidRequest) as error:
        raise damaged(f"The vault file is damaged: {error}") from None
    return document


def version_of(data: bytes) -> int:
    """Return the format version that the bytes name, even one that L{decode} refuses.

    :raises VaultDamaged: if the bytes name no version.
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


def _take_version(value: JSON) -> tuple[int, JSON]:
    """Return the version of a file, and its JSON without the version.

    :raises ValueError: if this release does not know the version.
    """
    version = _named_version(value)
    if version is not None and not _VERSION_BEFORE <= version <= VERSION:
        raise ValueError(f"version {version} was written by another release; this one knows {VERSION}")
    if not isinstance(value, dict) or version is None:
        raise ValueError("it has no version")
    return version, {name: each for name, each in value.items() if name != "version"}


def _check(document: VaultDocument, version: int) -> None:
    if _needed_version(document) != version:
        raise ValueError(f"it has parts that do not go with version {version}")
    for entry in document.entries:
        binding = entry.binding
        check_kept(binding)
        if binding.name != f"{binding.kind}/{binding.service}/{binding.identity}":
            raise ValueError("an entry's name does not say what it is")
    _check_each_once("entries", [entry.binding.name for entry in document.entries])
    _check_each_once("trust records", [trust_key(record) for record in document.trust])
    _check_each_once("grants", [grant.id for grant in document.grants])
    _check_each_once("SSH keys", [key.id for key in document.ssh_keys])
    _check_each_once("key sources", [entry.source.id for entry in document.key_sources])


def _check_each_once(what: str, names: list[str] | list[tuple[TrustKind, str]]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"two {what} have one name")


def _read_seconds(value: Any) -> float:
    if type(value) is not int:
        raise ValueError("is no whole number")
    return float(value)


def _read_text(value: Any) -> JSON:
    """Parse JSON that is stored as one text.

    :raises ValueError: if the value is not a text, or not valid JSON.
    """
    if type(value) is not str:
        raise ValueError("is no text")
    return loads_strict(value.encode())


def _read_object(value: Any) -> JSON:
    read = _read_text(value)
    if not isinstance(read, dict):
        raise ValueError("is no object as a text")
    return read


_FORMAT = JsonConverter()
_FORMAT.differ(
    VaultDocument,
    ssh_keys=Member(optional=True),
    key_sources=Member(optional=True),
    people=Member(optional=True),
    mac=Member(),
)
_FORMAT.differ(KeySourceEntry, source=INLINE, sealed=INLINE)
_FORMAT.differ(KeySource, security_key=Member(optional=True), settings=Member(optional=True))
_FORMAT.differ(KdfParameters, constants={"algorithm": "argon2id"}, salt=Member())
_FORMAT.differ(Sealed, nonce=Member(), ciphertext=Member())
_FORMAT.differ(Passkey, public_key=Member(), site=Member(optional=True), synced=Member(optional=True))
_FORMAT.differ(Scope, settings=Member(optional=True))
_FORMAT.differ(Binding, owner=Member(optional=True))
_FORMAT.differ(VaultEntry, binding=INLINE, sealed=INLINE)
_FORMAT.differ(Stretch, sealed=INLINE)
_FORMAT.differ(OwnCap, cap=INLINE)
_FORMAT.differ(Cap, seconds=Member(write=int, read=_read_seconds))
_FORMAT.differ(
    Grant,
    session_id=Member("session"),
    run_id=Member("run"),
    exact=Member(write=compact, read=_read_object),
    owner=Member(optional=True),
)
_FORMAT.differ(Predicate, given=Member(write=compact, read=_read_text))


def read_key_source(value: JSON) -> KeySourceEntry:
    """Parse the entry of a key source.

    :raises InvalidRequest: if it is malformed.
    """
    try:
        return _FORMAT.from_json(KeySourceEntry, value)
    except ValueError as error:
        raise InvalidRequest.listing("The key source is malformed.", ("/entry", str(error))) from None


part_json = _FORMAT.to_json
"""Return the JSON of a part of the file.  For a binding, that is its entry without the secret."""
