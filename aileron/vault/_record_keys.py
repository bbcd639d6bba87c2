"""The keys of the record, each sealed by itself in the vault's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from zope.interface import implementer

from aileron.errors import Conflict
from aileron.interfaces import IRecordKeys
from aileron.values import JSON, LockedPeriod, canonical

from ._document import RecordKeys, Stretch
from ._sealing import SIGNING, seal_part, unseal_part
from ._vault_file import OpenVault


@implementer(IRecordKeys)
class FileRecordKeys:
    """The record's keys in one vault file."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file

    def public_key(self) -> str | None:
        record = self._file.verified.record
        return None if record is None else record.public_key

    def make_key(self) -> str:
        key, document = self._file.opened()
        if document.record is not None:
            return document.record.public_key
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        secret = private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        sealed = seal_part(document, key, SIGNING, secret)
        self._file.change(record=RecordKeys(public, sealed))
        return public

    def endorse(self, statement: Mapping[str, JSON]) -> str:
        key, document = self._file.opened()
        private = unseal_part(document, key, SIGNING, _make(document.record).signing)
        return Ed25519PrivateKey.from_private_bytes(private).sign(canonical(statement)).hex()

    def locked_periods(self) -> tuple[LockedPeriod, ...]:
        key, document = self._file.opened()
        kept = () if document.record is None else document.record.stretches
        return tuple(LockedPeriod(each.id, unseal_part(document, key, each.id, each.sealed)) for each in kept)

    def put_locked_periods(self, periods: Sequence[LockedPeriod]) -> None:
        key, document = self._file.opened()
        sealed = tuple(Stretch(each.id, seal_part(document, key, each.id, each.key)) for each in periods)
        self._file.change(record=evolve(_make(document.record), stretches=sealed))


def _make(record: RecordKeys | None) -> RecordKeys:
    if record is None:
        raise Conflict("The record has no key yet.")
    return record
