"""How a vault is written and read: JSON, every field of one type, none unknown."""

from __future__ import annotations

import base64
import json

from aileron.errors import InvalidRequest
from aileron.values import JSON, Binding, Cap, OwnCap, Pause, Scope, Trusted, TrustKind, loads_strict, timestamp

from ._authority_format import grant_json, grant_of, passkey_json, passkey_of, rule_json, rule_of
from ._cipher import KdfParameters, Sealed
from ._document import Entry, RecordKeys, VaultDocument, trust_key
from ._errors import damaged
from ._fields import Fields
from ._names import check_kept

VERSION = 1
_ALGORITHM = "argon2id"
_ENTRY_TEXTS = ("name", "kind", "service", "identity", "connector")
_ENTRY_OPTIONAL = ("base_url", "account")


def encode(document: VaultDocument) -> bytes:
    """The file's bytes."""
    return (json.dumps({**body_json(document), "mac": _text_of(document.mac)}, indent=2) + "\n").encode()


def body_json(document: VaultDocument) -> dict[str, JSON]:
    """All that the file says, but for its MAC."""
    return {
        "version": VERSION,
        "vault": document.vault,
        "revision": document.revision,
        "kdf": kdf_json(document.kdf),
        "data_key": _sealed_json(document.data_key),
        "entry_revisions": document.entry_revisions,
        "entries": [{**binding_json(entry.binding), **_sealed_json(entry.sealed)} for entry in document.entries],
        "trust": [_trusted_json(record) for record in document.trust],
        "sealed": None if document.sealed is None else dict(zip(("sequence", "head"), document.sealed, strict=True)),
        "spent": {used: timestamp(until) for used, until in document.spent.items()},
        "forgotten": None if document.forgotten is None else timestamp(document.forgotten),
        "grants": [grant_json(grant) for grant in document.grants],
        "pauses": [pause.as_json() for pause in document.pauses],
        "caps": [_cap_json(own) for own in document.caps],
        "record": None if document.record is None else _record_json(document.record),
        "passkeys": [passkey_json(key, _text_of(key.public_key)) for key in document.passkeys],
        "passkey_rule": rule_json(document.passkey_rule),
    }


def binding_json(binding: Binding) -> dict[str, JSON]:
    """All that an entry says, but for its secret."""
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


def kdf_json(kdf: KdfParameters) -> dict[str, JSON]:
    """How the passphrase is stretched."""
    return {
        "algorithm": _ALGORITHM,
        "iterations": kdf.iterations,
        "memory_kib": kdf.memory_kib,
        "lanes": kdf.lanes,
        "salt": _text_of(kdf.salt),
    }


def _trusted_json(record: Trusted) -> dict[str, JSON]:
    return {
        "kind": record.kind.value,
        "name": record.name,
        "digest": record.digest,
        "enabled": record.enabled,
        "changed_at": timestamp(record.changed_at),
        "changed_by": record.changed_by,
    }


def _cap_json(own: OwnCap) -> dict[str, JSON]:
    return {
        "action": own.action,
        "argument": own.cap.argument,
        "per_session": own.cap.per_session,
        "most": own.cap.most,
        "seconds": int(own.cap.seconds),
        "set_at": timestamp(own.set_at),
        "set_by": own.set_by,
    }


def _record_json(record: RecordKeys) -> dict[str, JSON]:
    return {
        "public_key": record.public_key,
        "signing": _sealed_json(record.signing),
        "stretches": [{"id": name, **_sealed_json(sealed)} for name, sealed in record.stretches],
    }


def _sealed_json(sealed: Sealed) -> dict[str, JSON]:
    return {"nonce": _text_of(sealed.nonce), "ciphertext": _text_of(sealed.ciphertext)}


def _text_of(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decode(data: bytes) -> VaultDocument:
    """What the file's bytes say; whether the key stands behind it is another question.

    :raises VaultDamaged: they are no vault of this version.
    """
    try:
        return _document(Fields(loads_strict(data)))
    except (ValueError, InvalidRequest) as error:
        raise damaged(f"The vault file is damaged: {error}") from None


def _document(fields: Fields) -> VaultDocument:
    version = fields.number("version")
    if version != VERSION:
        raise ValueError(f"version {version} was written by another release; this one knows {VERSION}")
    document = VaultDocument(
        vault=fields.text("vault"),
        kdf=_kdf(fields.inner("kdf")),
        data_key=_whole_sealed(fields.inner("data_key")),
        revision=fields.number("revision"),
        entry_revisions=fields.number("entry_revisions"),
        entries=tuple(_entry(each) for each in fields.list("entries")),
        trust=tuple(_trusted(each) for each in fields.list("trust")),
        sealed=_seal(fields.optional_inner("sealed")),
        spent=fields.moments("spent"),
        forgotten=fields.optional_moment("forgotten"),
        grants=tuple(grant_of(each) for each in fields.list("grants")),
        pauses=tuple(_pause(each) for each in fields.list("pauses")),
        caps=tuple(_cap(each) for each in fields.list("caps")),
        record=_record(fields.optional_inner("record")),
        passkeys=tuple(passkey_of(each) for each in fields.list("passkeys")),
        passkey_rule=rule_of(fields.inner("passkey_rule")),
        mac=fields.data("mac"),
    )
    fields.end()
    _each_once("entries", [entry.binding.name for entry in document.entries])
    _each_once("trust records", [trust_key(record) for record in document.trust])
    _each_once("grants", [grant.id for grant in document.grants])
    return document


def _each_once(what: str, names: list[str] | list[tuple[TrustKind, str]]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"two {what} have one name")


def _kdf(fields: Fields) -> KdfParameters:
    if fields.text("algorithm") != _ALGORITHM:
        raise ValueError(f"the key derivation is not {_ALGORITHM}")
    numbers = [fields.number(name) for name in ("iterations", "memory_kib", "lanes")]
    kdf = KdfParameters(fields.data("salt"), *numbers)
    fields.end()
    return kdf


def _whole_sealed(fields: Fields) -> Sealed:
    sealed = _sealed(fields)
    fields.end()
    return sealed


def _sealed(fields: Fields) -> Sealed:
    return Sealed(fields.data("nonce"), fields.data("ciphertext"))


def _entry(fields: Fields) -> Entry:
    name, kind, service, identity, connector = (fields.text(each) for each in _ENTRY_TEXTS)
    base_url, account = (fields.optional_text(each) for each in _ENTRY_OPTIONAL)
    created_at, revision = fields.moment("created_at"), fields.number("revision")
    scope = _scope(fields.optional_inner("scope"))
    binding = Binding(name, kind, service, identity, connector, created_at, revision, base_url, account, scope)
    check_kept(binding)
    if binding.name != f"{kind}/{service}/{identity}":
        raise ValueError("an entry's name does not say what it is")
    entry = Entry(binding, _sealed(fields))
    fields.end()
    return entry


def _scope(fields: Fields | None) -> Scope | None:
    if fields is None:
        return None
    scope = Scope(fields.texts("hosts"), *(fields.text(name) for name in ("base_url", "header", "format")))
    fields.end()
    return scope


def _trusted(fields: Fields) -> Trusted:
    record = Trusted(
        kind=TrustKind(fields.text("kind")),
        name=fields.text("name"),
        digest=fields.text("digest"),
        changed_at=fields.moment("changed_at"),
        changed_by=fields.text("changed_by"),
        enabled=fields.flag("enabled"),
    )
    fields.end()
    return record


def _pause(fields: Fields) -> Pause:
    since, by = fields.moment("since"), fields.text("by")
    pause = Pause(since, by, fields.optional_text("reason"), fields.optional_text("session_id"))
    fields.end()
    return pause


def _cap(fields: Fields) -> OwnCap:
    most, seconds = fields.number("most"), fields.number("seconds")
    cap = Cap(most, float(seconds), fields.optional_text("argument"), fields.flag("per_session"))
    own = OwnCap(cap, fields.moment("set_at"), fields.text("set_by"), fields.optional_text("action"))
    fields.end()
    return own


def _record(fields: Fields | None) -> RecordKeys | None:
    if fields is None:
        return None
    stretches = tuple((each.text("id"), _whole_sealed(each)) for each in fields.list("stretches"))
    record = RecordKeys(fields.text("public_key"), _whole_sealed(fields.inner("signing")), stretches)
    fields.end()
    return record


def _seal(fields: Fields | None) -> tuple[int, str] | None:
    if fields is None:
        return None
    found = fields.number("sequence"), fields.text("head")
    fields.end()
    return found
