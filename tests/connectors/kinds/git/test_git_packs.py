"""Of the packs of a local repository, which an agent may have written, and may change while they are read."""

from __future__ import annotations

import os
import shutil
import zlib
from hashlib import sha1
from pathlib import Path
from struct import pack as packed

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors.kinds.git._objects import MOST_OBJECT_BYTES, Damaged
from aileron.connectors.kinds.git._packs import apply_delta
from aileron.connectors.kinds.git._repository import Deadline, LocalRepository
from aileron.model.errors import InvalidRequest, ResourceLimitExceeded
from tests.connectors.repository import Pair, git

A, B, C = (digit * 40 for digit in "abc")


class PackCase(SynchronousTestCase):
    """A repository all of whose objects are in one pack, some as differences from others."""

    def setUp(self) -> None:
        self.pair = Pair.made(Path(self.mktemp()).absolute())
        lines = [f"{number} {'x' * 60}\n" for number in range(300)]
        for number in range(6):
            lines[number * 40] = f"changed {number}\n"
            self.pair.commit("src/a.txt", "".join(lines), f"Change {number}")
        git(self.pair.work, "gc", "-q", "--prune=now")
        self.packs = self.pair.work / ".git" / "objects" / "pack"
        self.head = git(self.pair.work, "rev-parse", "HEAD")

    def open(self, seconds: float = 60) -> LocalRepository:
        """Open it."""
        here = LocalRepository.open(str(self.pair.work), Deadline.after(seconds))
        self.addCleanup(here.close)
        return here

    def write(self, entries: dict[str, bytes]) -> None:
        """Write a pack with these entries, and its index."""
        data, offsets = b"PACK" + packed(">LL", 2, len(entries)), {}
        for name, entry in entries.items():
            offsets[name] = len(data)
            data += entry
        names = sorted(entries)
        ends = [sum(int(name[:2], 16) <= first for name in names) for first in range(256)]
        index = b"\xfftOc" + packed(">L256L", 2, *ends) + b"".join(map(bytes.fromhex, names))
        index += bytes(4 * len(names)) + b"".join(packed(">L", offsets[name]) for name in names)
        (self.packs / "pack-x.pack").write_bytes(data + sha1(data).digest())
        (self.packs / "pack-x.idx").write_bytes(index + bytes(40))

    def refused(self, name: str, text: str) -> None:
        """An object is not read, with such a message."""
        self.assertIn(text, self.assertRaises(InvalidRequest, lambda: self.open().read(name)).message)


def number(value: int) -> bytes:
    """Write a number of seven bits a byte, the lowest first."""
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def entry(kind: int, size: int, content: bytes, base: bytes = b"") -> bytes:
    """Write an entry of a pack."""
    return number(size >> 4 << 7 | kind << 4 | size & 15 | (128 if size > 15 else 0)) + base + zlib.compress(content)


class ReadingTests(PackCase):
    """What is in a pack is read as git reads it."""

    def test_every_object(self) -> None:
        """Each object is as git shows it, also where it is a difference, and where the index has long offsets."""
        listed = git(self.pair.work, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(deltabase)")
        names = dict(line.split(" ") for line in listed.splitlines())
        self.assertGreater(len(set(names.values())), 3, "there are deltas of deltas")
        (path,) = self.packs.glob("*.pack")
        for options in ((), ("--index-version=2,0x40",)):
            for other in self.packs.glob("pack-*.[ir]*"):
                other.unlink()
            git(self.pair.work, "index-pack", *options, str(path))
            for name in names:
                kind, content = self.open().read(name)
                head = b"%s %d\0" % ((b"", b"commit", b"tree", b"blob")[kind], len(content))
                self.assertEqual(sha1(head + content).hexdigest(), name)
        self.assertFalse(self.open().has(A))
        self.refused(A, "is not in the local repository")

    def test_differences_by_name(self) -> None:
        """A difference may name its base instead of saying how far back it is."""
        (path,) = self.packs.glob("*.pack")
        listed = git(self.pair.work, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
        git(self.pair.work, "pack-objects", "-q", str(self.packs / "other"), content=listed.encode())
        path.with_suffix(".idx").unlink()
        for name in listed.splitlines():
            self.open().read(name)

    @given(st.binary(max_size=40), st.integers(0, 300), st.binary(max_size=40))
    def test_any_difference(self, base: bytes, size: int, steps: bytes) -> None:
        """Any bytes are a difference of the size that they say, or none."""
        try:
            made = apply_delta(base, number(len(base)) + number(size) + steps, lambda: None)
        except Damaged:
            return
        self.assertEqual(len(made), size)


class HostileTests(PackCase):
    """Packs that are not what git writes."""

    def test_pipes(self) -> None:
        """A pipe that is made after the packs were listed is not waited for."""
        here = self.open()
        os.mkfifo(self.packs / "pack-x.idx")
        (self.packs / "pack-x.pack").write_bytes(b"PACK")
        self.assertFalse(here.has(A))
        self.refused(self.head, "no plain file of yours")

    def test_shrinks(self) -> None:
        """A pack or an index that shrinks while it is read does no more than fail the look."""
        for suffix in ("pack", "idx"):
            here = self.open()
            for path in self.packs.glob(f"*.{suffix}"):
                path.chmod(0o600)
                os.truncate(path, 0)
            self.assertRaises(InvalidRequest, here.read, self.head)
        self.refused(self.head, "damaged")

    def test_no_directory(self) -> None:
        """A file in the place of the directory of packs is told as one that was not read; none at all is none."""
        shutil.rmtree(self.packs)
        self.refused(self.head, "is not in the local repository")
        self.packs.write_text("x")
        self.refused(self.head, "in no directory of yours")

    def test_many(self) -> None:
        """With more packs than git leaves in a repository it is not read."""
        (path,) = self.packs.glob("*.pack")
        for count in range(64):
            for suffix in (".pack", ".idx"):
                shutil.copy(path.with_suffix(suffix), self.packs / f"pack-{count}{suffix}")
        self.refused(self.head, "more than 64 packs. Run `git gc`.")

    def test_circles(self) -> None:
        """Differences that lead to themselves, or to what is not there, are damage."""
        delta = number(1) + number(1) + b"\x01x"
        self.write(
            {
                A: entry(7, len(delta), delta, bytes.fromhex(B)),
                B: entry(7, len(delta), delta, bytes.fromhex(A)),
                C: entry(6, len(delta), delta, b"\0"),
                "d" * 40: entry(6, len(delta), delta, b"\xff\xff\x7f"),
                "e" * 40: entry(7, len(delta), delta, bytes.fromhex("0" * 40)),
                "f" * 40: entry(6, len(delta), delta, b"\xff" * 80),
            }
        )
        for name in (A, C, "d" * 40, "e" * 40, "f" * 40):
            self.refused(name, "damaged")

    def test_sizes(self) -> None:
        """An object is as large as it says, and not larger than is read, also one that a difference makes."""
        bomb, many = zlib.compress(bytes(MOST_OBJECT_BYTES + 1)), MOST_OBJECT_BYTES + 1
        grows = number(1) + number(many) + b"\x90\x01"
        self.write(
            {
                A: entry(3, many, b""),
                B: entry(1, 1 << 21, b""),
                C: entry(3, 1, b"x"),
                "d" * 40: entry(6, len(grows), grows, bytes([len(entry(3, 1, b"x"))])),
                "e" * 40: entry(3, 4, b"")[:1] + bomb,
                "f" * 40: entry(3, 4, b"abc"),
            }
        )
        for name, text in ((A, "too large"), (B, "too large"), ("d" * 40, "too large"), (C, "damaged")):
            self.refused(name, text)
        for name in ("e" * 40, "f" * 40):
            self.refused(name, "A pack of the local repository is damaged")

    def test_slow(self) -> None:
        """Asking whether an object is there takes no longer than there is time."""
        here = self.open(-1)
        self.assertRaises(ResourceLimitExceeded, here.has, A)
