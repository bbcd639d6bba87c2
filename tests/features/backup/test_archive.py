"""A file sealed under a passphrase opens whole, or not at all."""

from __future__ import annotations

import io
import json

from hypothesis import given, settings
from hypothesis.strategies import integers
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import from_timestamp
from aileron.features.backup.archive import ArchiveDamaged, SealingWriter, UnsealingReader
from aileron.model.errors import WrongPassphrase

_PASSPHRASE = "Blaue Wiese 47 Kuchen Turm"
_MADE_AT = from_timestamp("2026-01-02T03:04:05.000000Z")
_PIECE = 1024 * 1024
_TAG = 16


def sealed(content: bytes, step: int = 700_001) -> bytes:
    """An archive of C{content}, written in steps."""
    target = io.BytesIO()
    with SealingWriter(target, _PASSPHRASE, _MADE_AT) as writer:
        for start in range(0, len(content), step):
            writer.write(content[start : start + step])
    return target.getvalue()


def opened(archive: bytes, passphrase: str = _PASSPHRASE) -> bytes:
    """What an archive holds."""
    return UnsealingReader(io.BytesIO(archive), passphrase).readall() or b""


class ArchiveTests(SynchronousTestCase):
    """L{SealingWriter} and L{UnsealingReader}."""

    def test_round_trip(self) -> None:
        """Contents of any length come back: none, less than a piece, exactly pieces, and more."""
        for size in (0, 1, _PIECE - 1, _PIECE, _PIECE + 1, 2 * _PIECE, 2 * _PIECE + 7):
            content = bytes(number % 251 for number in range(1000)) * (size // 1000 + 1)
            archive = sealed(content[:size])
            self.assertEqual(opened(archive), content[:size])
            self.assertNotIn(content[:64], archive)

    def test_header(self) -> None:
        """The first line says in the clear when it was made; two archives share neither salt nor bytes."""
        archive, again = sealed(b"same"), sealed(b"same")
        header = json.loads(archive.split(b"\n")[0])
        self.assertEqual((header["format"], header["made_at"]), ("aileron-backup-1", "2026-01-02T03:04:05.000000Z"))
        self.assertNotEqual(archive.split(b"\n", 1)[1], again.split(b"\n", 1)[1])
        self.assertEqual(UnsealingReader(io.BytesIO(archive), _PASSPHRASE).made_at, header["made_at"])

    def test_wrong_passphrase(self) -> None:
        """Another passphrase opens nothing."""
        self.assertRaises(WrongPassphrase, opened, sealed(b"x"), "Rote Wiese 48 Kuchen Turm")

    def test_pieces(self) -> None:
        """Pieces that are missing, exchanged or repeated do not pass; what is before them may have been read."""
        archive = sealed(b"a" * _PIECE + b"b" * _PIECE + b"c" * _PIECE + b"d")
        header, body = archive.split(b"\n", 1)
        size = _PIECE + _TAG
        one, two, three, last = body[:size], body[size : 2 * size], body[2 * size : 3 * size], body[3 * size :]
        for pieces in (
            (one, two, three),
            (one, three, last),
            (one, three, two, last),
            (one, two, two, three, last),
            (one, two, three, last, last),
        ):
            changed = header + b"\n" + b"".join(pieces)
            self.assertRaises(ArchiveDamaged, opened, changed)

    @settings(max_examples=20, deadline=None)
    @given(integers(min_value=0), integers(1, 255))
    def test_altered(self, at: int, by: int) -> None:
        """Wherever one byte is altered, it is refused."""
        archive = bytearray(_SMALL)
        archive[at % len(archive)] ^= by
        self.assertRaises((ArchiveDamaged, WrongPassphrase), opened, bytes(archive))

    def test_no_archive(self) -> None:
        """What is no archive, or asks for more memory than is accepted, is refused before a passphrase is stretched."""
        header, body = _SMALL.split(b"\n", 1)
        cases: tuple[dict[str, object], ...] = (
            {"format": "aileron-backup-2"},
            {"argon2id": {}},
            {"argon2id": {"salt": "A", "iterations": 3, "memory_kib": 65536, "lanes": 4}},
            {"argon2id": {"salt": "A" * 24, "iterations": "3", "memory_kib": 65536, "lanes": 4}},
            {"argon2id": {"salt": "A" * 24, "iterations": 3, "memory_kib": 1 << 40, "lanes": 4}},
        )
        for changes in cases:
            changed = json.dumps({**json.loads(header), **changes}).encode() + b"\n" + body
            self.assertRaises(ArchiveDamaged, opened, changed)
        for text in (b"", b"\n", b"[]\n", b"[" * 5000, b"PK\3\4"):
            self.assertRaises(ArchiveDamaged, opened, text)


_SMALL = sealed(b"small")
