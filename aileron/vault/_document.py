"""The vault file's contents: what it says, how it is written, and what each part is bound to."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import cast

from attrs import evolve, frozen

from aileron.errors import InvalidRequest
from aileron.values import JSON, Binding, Scope, from_timestamp, loads_strict, timestamp

from ._cipher import DataKey, Sealed, seal, unseal
from ._errors import VaultDamaged
from ._kdf import KdfParameters
from ._names import check_binding

VERSION = 1
_ALGORITHM = "argon2id"
_ENTRY_TEXTS = ("name", "kind", "service", "identity", "connector")
_ENTRY_OPTIONAL = ("base_url", "account")


@frozen
class Entry:
    """One binding with its sealed secret."""

    binding: Binding
    sealed: Sealed


@frozen
class Document:
    """A whole vault.

    :ivar vault: its id, random, for good.
    :ivar data_key: sealed under the passphrase's key.
    :ivar check: nothing, sealed under the data key: tells whether a key belongs to this vault.
    :ivar revisions: the last revision that was given to an entry; never goes back.
    """

    vault: str
    kdf: KdfParameters
    data_key: Sealed
    check: Sealed
    revisions: int = 0
    entries: tuple[Entry, ...] = ()

    def find(self, name: str) -> Entry | None:
        """The entry of that name."""
        return next((entry for entry in self.entries if entry.binding.name == name), None)

    def with_entry(self, entry: Entry) -> Document:
        """The same vault with one entry more."""
        entries = sorted((*self.entries, entry), key=lambda each: each.binding.name)
        return evolve(self, entries=tuple(entries), revisions=max(self.revisions, entry.binding.revision))

    def without(self, name: str) -> Document:
        """The same vault without one entry."""
        return evolve(self, entries=tuple(entry for entry in self.entries if entry.binding.name != name))


def wrapping_context(vault: str, kdf: KdfParameters) -> JSON:
    """What the wrapped data key is bound to."""
    return {"tag": "aileron.vault.data-key.v1", "vault": vault, "kdf": _kdf_json(kdf)}


def belongs(document: Document, key: DataKey) -> bool:
    """Whether C{key} is this vault's."""
    try:
        unseal(key.subkey("aileron vault check v1"), document.check, _check_context(document.vault))
    except VaultDamaged:
        return False
    return True


def make_check(vault: str, key: DataKey) -> Sealed:
    """Proof for later that C{key} is this vault's."""
    return seal(key.subkey("aileron vault check v1"), b"", _check_context(vault))


def seal_entry(document: Document, key: DataKey, binding: Binding, secret: bytes) -> Entry:
    """Keep a secret so that it opens only as this binding of this vault."""
    return Entry(binding, seal(_entry_key(key), secret, _entry_context(document.vault, binding)))


def unseal_entry(document: Document, key: DataKey, entry: Entry) -> bytes:
    """The secret of an entry.

    :raises VaultDamaged: the entry or anything it is bound to was altered.
    """
    return unseal(_entry_key(key), entry.sealed, _entry_context(document.vault, entry.binding))


def _entry_key(key: DataKey) -> bytes:
    return key.subkey("aileron vault entries v1")


def _check_context(vault: str) -> JSON:
    return {"tag": "aileron.vault.check.v1", "vault": vault}


def _entry_context(vault: str, binding: Binding) -> JSON:
    return {"tag": "aileron.vault.entry.v1", "vault": vault, "entry": _binding_json(binding)}


def encode(document: Document) -> bytes:
    """The file's bytes."""
    value = {
        "version": VERSION,
        "vault": document.vault,
        "kdf": _kdf_json(document.kdf),
        "data_key": _sealed_json(document.data_key),
        "check": _sealed_json(document.check),
        "revisions": document.revisions,
        "entries": [_binding_json(entry.binding) | _sealed_json(entry.sealed) for entry in document.entries],
    }
    return (json.dumps(value, indent=2) + "\n").encode()


def _binding_json(binding: Binding) -> dict[str, JSON]:
    return {
        "name": binding.name,
        "kind": binding.kind,
        "service": binding.service,
        "identity": binding.identity,
        "connector": binding.connector,
        "base_url": binding.base_url,
        "account": binding.account,
        "revision": binding.revision,
        "created_at": timestamp(binding.created_at),
        "scope": None if binding.scope is None else binding.scope.as_json(),
    }


def _kdf_json(kdf: KdfParameters) -> dict[str, JSON]:
    return {
        "algorithm": _ALGORITHM,
        "iterations": kdf.iterations,
        "memory_kib": kdf.memory_kib,
        "lanes": kdf.lanes,
        "salt": _text_of(kdf.salt),
    }


def _sealed_json(sealed: Sealed) -> dict[str, JSON]:
    return {"nonce": _text_of(sealed.nonce), "ciphertext": _text_of(sealed.ciphertext)}


def _text_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decode(data: bytes) -> Document:
    """What the file's bytes say.

    :raises VaultDamaged: they are no vault of this version.
    """
    try:
        return _document(_Fields(loads_strict(data)))
    except (ValueError, InvalidRequest) as error:
        raise VaultDamaged(f"The vault file is damaged: {error}") from None


class _Fields:
    """An object of the file, each of its fields asked for by its type; nothing may be left over."""

    def __init__(self, value: JSON) -> None:
        if not isinstance(value, Mapping):
            raise ValueError("an object is missing")
        self._left = dict(value)

    def text(self, name: str) -> str:
        return cast("str", self._take(name, str))

    def optional_text(self, name: str) -> str | None:
        return cast("str | None", self._take(name, str, type(None)))

    def number(self, name: str) -> int:
        return cast("int", self._take(name, int))

    def data(self, name: str) -> bytes:
        return base64.b64decode(self.text(name), validate=True)

    def inner(self, name: str) -> _Fields:
        return _Fields(cast("JSON", self._take(name, dict)))

    def optional_inner(self, name: str) -> _Fields | None:
        value = self._take(name, dict, type(None))
        return None if value is None else _Fields(cast("JSON", value))

    def texts(self, name: str) -> tuple[str, ...]:
        values = cast("list[JSON]", self._take(name, list))
        if not all(type(value) is str for value in values):
            raise ValueError(f"{name} is of the wrong type")
        return tuple(cast("list[str]", values))

    def list(self, name: str) -> list[_Fields]:
        return [_Fields(item) for item in cast("list[JSON]", self._take(name, list))]

    def end(self) -> None:
        if self._left:
            raise ValueError(f"unknown fields: {', '.join(sorted(self._left))[:100]}")

    def _take(self, name: str, *types: type) -> object:
        value = self._left.pop(name, ...)
        # By exact type: True is an int to isinstance.
        if type(value) not in types:
            raise ValueError(f"{name} is missing or of the wrong type")
        return value


def _document(fields: _Fields) -> Document:
    version = fields.number("version")
    if version != VERSION:
        raise ValueError(f"version {version} was written by another release; this one knows {VERSION}")
    document = Document(
        fields.text("vault"),
        _kdf(fields.inner("kdf")),
        _whole_sealed(fields.inner("data_key")),
        _whole_sealed(fields.inner("check")),
        fields.number("revisions"),
        tuple(_entry(each) for each in fields.list("entries")),
    )
    fields.end()
    if len({entry.binding.name for entry in document.entries}) != len(document.entries):
        raise ValueError("two entries have one name")
    return document


def _kdf(fields: _Fields) -> KdfParameters:
    if fields.text("algorithm") != _ALGORITHM:
        raise ValueError(f"the key derivation is not {_ALGORITHM}")
    numbers = [fields.number(name) for name in ("iterations", "memory_kib", "lanes")]
    kdf = KdfParameters(fields.data("salt"), *numbers)
    fields.end()
    return kdf


def _whole_sealed(fields: _Fields) -> Sealed:
    sealed = _sealed(fields)
    fields.end()
    return sealed


def _sealed(fields: _Fields) -> Sealed:
    return Sealed(fields.data("nonce"), fields.data("ciphertext"))


def _entry(fields: _Fields) -> Entry:
    name, kind, service, identity, connector = (fields.text(each) for each in _ENTRY_TEXTS)
    base_url, account = (fields.optional_text(each) for each in _ENTRY_OPTIONAL)
    created_at, revision = from_timestamp(fields.text("created_at")), fields.number("revision")
    scope = _scope(fields.optional_inner("scope"))
    binding = Binding(name, kind, service, identity, connector, created_at, revision, base_url, account, scope)
    check_binding(binding)
    if binding.name != f"{kind}/{service}/{identity}":
        raise ValueError("an entry's name does not say what it is")
    entry = Entry(binding, _sealed(fields))
    fields.end()
    return entry


def _scope(fields: _Fields | None) -> Scope | None:
    if fields is None:
        return None
    scope = Scope(fields.texts("hosts"), *(fields.text(name) for name in ("base_url", "header", "format")))
    fields.end()
    return scope
