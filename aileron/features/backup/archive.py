"""Encrypts and decrypts a backup with a passphrase, piece by piece.

The first line is unencrypted JSON: the format, the time of the backup, and the parameters of the key derivation. Pieces
of one MiB follow, each encrypted by AES-256-GCM. A piece's nonce is its number and whether it is the last, and its
associated data is the first line, so a file with altered, moved, missing or truncated pieces does not decrypt (the
STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár, 2015). Each file has its own salt, and so its own key.
"""

from __future__ import annotations

import json
import secrets
from datetime import datetime
from io import BufferedIOBase, RawIOBase
from typing import IO, Any

from attrs import frozen
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from aileron.base.converter import JsonConverter, Member
from aileron.base.json import timestamp
from aileron.model.errors import InvalidRequest, VaultDamaged, WrongPassphrase
from aileron.vault.keys import SALT_BYTES, KdfParameters, Randomness, stretch

__all__ = ["ArchiveDamaged", "SealingWriter", "UnsealingReader"]

_FORMAT = "aileron-backup-1"
_PIECE_BYTES = 1024 * 1024
_TAG_BYTES = 16
_HEADER_BYTES = 4096


class ArchiveDamaged(InvalidRequest):
    """Raised if a file is not a backup of this version, was altered, or is truncated."""


class SealingWriter(BufferedIOBase):
    """A writable file that encrypts its content into another file. L{close} completes the archive.

    :param target: a file open for writing. It is not closed.
    """

    def __init__(
        self, target: IO[bytes], passphrase: str, made_at: datetime, *, randomness: Randomness = secrets.token_bytes
    ) -> None:
        kdf = KdfParameters(randomness(SALT_BYTES))
        self._target = target
        self._header = _encode_header(kdf, made_at)
        self._cipher = AESGCM(stretch(passphrase, kdf))
        self._held = bytearray()
        self._number = 0
        target.write(self._header)

    def writable(self) -> bool:
        """Return True, since the file is written to."""
        return True

    def write(self, data: Any) -> int:
        """Buffer bytes, and encrypt and write each complete piece. Return the number of bytes in C{data}."""
        self._held += data
        while len(self._held) > _PIECE_BYTES:  # the last piece is never empty, unless it is the only one
            self._put(bytes(self._held[:_PIECE_BYTES]), last=False)
            del self._held[:_PIECE_BYTES]
        return len(data)

    def close(self) -> None:
        """Encrypt and write the remaining content. Idempotent."""
        if not self.closed:
            self._put(bytes(self._held), last=True)
            super().close()

    def _put(self, piece: bytes, *, last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._number, last), piece, self._header))
        self._number += 1


class UnsealingReader(RawIOBase):
    """Decrypts an archive of L{SealingWriter}. It returns no byte of a piece before the whole piece is authenticated.

    :param source: a file open for reading, at its beginning.
    :raises ArchiveDamaged: if the file is not an archive. Reading raises this error too, if a piece was altered or is
        missing.
    :raises WrongPassphrase: if the passphrase does not decrypt the first piece.
    """

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        self._source = source
        self._header = source.readline(_HEADER_BYTES)
        header = _decode_header(self._header)
        self.made_at = header.made_at
        self._cipher = AESGCM(stretch(passphrase, header.argon2id))
        self._number = 0
        self._ended = False
        self._ahead = source.read(_PIECE_BYTES + _TAG_BYTES)
        try:
            self._piece = self._next()
        except ArchiveDamaged:
            raise WrongPassphrase("This passphrase does not open the backup, or the backup is damaged.") from None

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy decrypted bytes into the buffer and return how many, or 0 at the end.

        :raises ArchiveDamaged: if the next piece is not authentic, or the file ends before its last piece.
        """
        if not self._piece and not self._ended:
            self._piece = self._next()
        given = self._piece[: len(buffer)]
        buffer[: len(given)] = given
        self._piece = self._piece[len(given) :]
        return len(given)

    def _next(self) -> memoryview:
        sealed, self._ahead = self._ahead, self._source.read(_PIECE_BYTES + _TAG_BYTES)
        self._ended = not self._ahead
        try:
            piece = self._cipher.decrypt(_nonce(self._number, self._ended), sealed, self._header)
        except (InvalidTag, ValueError):
            raise ArchiveDamaged("The backup is damaged: it was altered, or its end is missing.") from None
        self._number += 1
        return memoryview(piece)


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


@frozen
class _Header:
    """The first line of an archive: the format, the time and the parameters of the key derivation."""

    format: str
    made_at: str
    argon2id: KdfParameters


_HEADER = JsonConverter()
_HEADER.differ(KdfParameters, salt=Member())


def _encode_header(kdf: KdfParameters, made_at: datetime) -> bytes:
    header = _HEADER.to_json(_Header(_FORMAT, timestamp(made_at), kdf))
    return json.dumps(header, separators=(",", ":")).encode("ascii") + b"\n"


def _decode_header(line: bytes) -> _Header:
    try:
        header = json.loads(line)
        if header["format"] != _FORMAT:
            raise ArchiveDamaged("The file is no backup that this version of Aileron can read.")
        return _HEADER.from_json(_Header, header)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ArchiveDamaged("The file is no backup of Aileron.") from None
    except VaultDamaged as error:
        raise ArchiveDamaged(f"The backup cannot be opened. {error.message}") from None
