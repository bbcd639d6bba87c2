"""Archives of packages: what is in them, and those that are refused."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import stat
import tarfile
import zipfile

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors.packages import _archives
from aileron.connectors.packages._archives import PackageFile, RefusedArchive, find_odd_names, read_archive

from .kit import tar, targz, wheel


def read(data: bytes, *, is_zip: bool = False) -> tuple[PackageFile, ...]:
    """Read an archive that is in time."""
    return read_archive(data, is_zip=is_zip, check=lambda: None)


def change(head: bytes, at: int, new: bytes) -> bytes:
    """Return the head of an entry with other bytes at a place, and the checksum of them."""
    changed = head[:at] + new + head[at + len(new) :]
    total = sum(changed[:148]) + 8 * 32 + sum(changed[156:])
    return changed[:148] + b"%06o\0 " % total + changed[156:]


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    """Return a link."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry


class ArchiveCase(SynchronousTestCase):
    """Refused archives."""

    def refused(self, data: bytes, why: str, *, is_zip: bool = False) -> None:
        """Check that an archive is refused, and why."""
        self.assertIn(why, str(self.assertRaises(RefusedArchive, read, data, is_zip=is_zip)))


class TarTests(ArchiveCase):
    """C{.tar.gz} and C{.crate}."""

    def test_read(self) -> None:
        """Each file has its name, size and digest, and its content if that is a short text."""
        long = "package/" + "x" * 200 + "/é.js"
        members = read(targz({"package/a.txt": b"one\n", "package/b": b"\0", long: b"\xff"}))
        self.assertEqual(
            [(each.name, each.size) for each in members], [("package/a.txt", 4), ("package/b", 1), (long, 1)]
        )
        self.assertEqual([each.text for each in members], [b"one\n", None, None])
        self.assertEqual(members[0].digest, hashlib.sha256(b"one\n").hexdigest())

    def test_gnu(self) -> None:
        """Long names in the form of GNU are read too, and directories are left out."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            directory = tarfile.TarInfo("app-1")
            directory.type = tarfile.DIRTYPE
            archive.addfile(directory)
            archive.addfile(tarfile.TarInfo("app-1/" + "y" * 150))
        (member,) = read(gzip.compress(buffer.getvalue()))
        self.assertEqual(member.name, "app-1/" + "y" * 150)

    def test_links(self) -> None:
        """Links are told with their targets."""
        members = read(targz({}, link("p/a", "/etc/passwd"), link("p/b", "p/c", tarfile.LNKTYPE)))
        self.assertEqual([each.link for each in members], ["link to /etc/passwd", "hard link to p/c"])
        self.refused(targz({}, link("p/device", "", tarfile.CHRTYPE)), "neither a file")

    def test_bomb(self) -> None:
        """A file that unpacks to very much is refused before that is in memory."""
        self.patch(_archives, "MOST_UNPACKED_BYTES", 1024 * 1024)
        self.refused(targz({"p/a": bytes(1024 * 1024 + 1)}), "unpacks to more than")

    def test_many(self) -> None:
        """Very many files are refused."""
        self.patch(_archives, "MOST_MEMBERS", 3)
        self.assertEqual(len(read(targz({f"p/{number}": b"" for number in range(3)}))), 3)
        self.refused(targz({f"p/{number}": b"" for number in range(4)}), "more than 3 files")

    def test_second(self) -> None:
        """A second compressed file behind the first, which some programs read, is refused."""
        one = targz({"p/a": b"one"})
        self.assertEqual(len(read(one + bytes(100))), 1)
        self.refused(one + targz({"p/b": b"two"}), "data after its end")

    def test_hidden(self) -> None:
        """Files behind the end of the tar file, which some programs read, are refused."""
        one, two = tar({"p/a": b"one"}), tar({"p/b": b"two"})
        self.refused(gzip.compress(one + two), "data after its end")
        self.refused(gzip.compress(one[:1024] + bytes(512) + two), "data after its end")

    def test_other_records(self) -> None:
        """Sparse files, names in other sets of characters, and names for all files are refused."""
        entry = tarfile.TarInfo("p/a")
        for name, why in (("GNU.sparse.name", "sparse"), ("hdrcharset", "another set of characters")):
            entry.pax_headers = {name: "x"}
            self.refused(targz({}, entry), why)
        buffer = io.BytesIO()
        with tarfile.open(
            fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"path": "p/other"}
        ) as archive:
            archive.addfile(tarfile.TarInfo("p/a"))
        self.refused(gzip.compress(buffer.getvalue()), "for all files")

    def test_number(self) -> None:
        """A size that begins with a null character, which some programs read as zero, is refused."""
        whole, hidden = tar({"p/a": bytes(512)}), tar({"p/evil": b""})[:512]
        self.assertEqual(len(read(gzip.compress(whole))), 1)
        inside = change(whole[:512], 124, b"\x0000000001000") + hidden + whole[1024:]
        self.refused(gzip.compress(inside), "damaged")

    def test_prefix(self) -> None:
        """The first part of a name is read only in the one form in which all programs read it."""
        whole = tar({"package/evil.js": b""})
        for magic, is_refused in (
            (b"ustar\x0000", False),
            (b"ustar\x0099", True),
            (b"ustar  \0", True),
            (bytes(8), True),
        ):
            head = change(change(whole[:512], 345, b"package/docs"), 257, magic)
            data = gzip.compress(head + whole[512:])
            if is_refused:
                self.refused(data, "different ways")
            else:
                self.assertEqual(read(data)[0].name, "package/docs/package/evil.js")

    def test_two_names(self) -> None:
        """An entry that two extensions name is refused: programs take the first or the last. So is an empty name."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            archive.addfile(tarfile.TarInfo("p/" + "y" * 150))
        entry = tarfile.TarInfo("p/a")
        entry.pax_headers = {"path": "p/shown"}
        self.refused(gzip.compress(tar({}, entry)[:1024] + buffer.getvalue()), "two names")
        entry.pax_headers = {"linkpath": ""}
        self.refused(targz({}, entry), "damaged")

    def test_two_sizes(self) -> None:
        """An entry of which an extension says another size is refused: programs take one or the other."""
        entry = tarfile.TarInfo("p/a")
        entry.pax_headers = {"size": "512"}
        whole = tar({}, entry)
        self.refused(gzip.compress(whole[:1536] + tar({"p/evil": b""})), "two sizes")

    def test_damaged(self) -> None:
        """What is no tar file, is cut off or has a wrong checksum is refused."""
        whole = tar({"p/a": b"one" * 1000})
        self.refused(b"nothing", "not compressed")
        self.refused(gzip.compress(whole)[:-20], "cut off")
        self.refused(gzip.compress(whole[:1000]), "cut off")
        self.refused(gzip.compress(b"x" + whole[1:]), "damaged")

    def test_slow(self) -> None:
        """Reading ends when the time is up."""
        self.assertRaises(ZeroDivisionError, lambda: read_archive(targz({}), is_zip=False, check=lambda: 1 // 0))

    @given(st.binary(max_size=3000), st.booleans(), st.booleans())
    def test_any(self, data: bytes, compressed: bool, is_zip: bool) -> None:
        """Whatever bytes come, they are read or refused."""
        with contextlib.suppress(RefusedArchive):
            read(gzip.compress(data) if compressed else data, is_zip=is_zip)

    @given(st.data())
    def test_changed(self, data: st.DataObject) -> None:
        """An archive in which bytes were changed is read or refused."""
        is_zip = data.draw(st.booleans())
        whole = bytearray(
            wheel({"a": b"one", "b": b"two"}) if is_zip else tar({"p/" + "x" * 120: b"one", "p/b": b"two"})
        )
        for at, byte in data.draw(st.lists(st.tuples(st.integers(0, len(whole) - 1), st.integers(0, 255)), max_size=5)):
            whole[at] = byte
        with contextlib.suppress(RefusedArchive):
            read(bytes(whole) if is_zip else gzip.compress(bytes(whole)), is_zip=is_zip)


class ZipTests(ArchiveCase):
    """C{.whl}."""

    def test_read(self) -> None:
        """Each file has its name, size and digest."""
        (one, two) = read(wheel({"a/b.py": b"x = 1\n", "a-1.dist-info/METADATA": b"\0"}), is_zip=True)
        self.assertEqual(
            (one.name, one.text, two.name, two.text), ("a/b.py", b"x = 1\n", "a-1.dist-info/METADATA", None)
        )

    def test_bomb(self) -> None:
        """A file that unpacks to very much is refused, whatever size it claims."""
        self.patch(_archives, "MOST_UNPACKED_BYTES", 1024 * 1024)
        self.refused(wheel({"a": bytes(600 * 1024), "b": bytes(600 * 1024)}), "unpacks to more than", is_zip=True)

    def test_many(self) -> None:
        """Very many files are refused."""
        self.patch(_archives, "MOST_MEMBERS", 3)
        self.refused(wheel({f"{number}": b"" for number in range(4)}), "more than 3 files", is_zip=True)

    def test_hidden(self) -> None:
        """Data before, between or behind the files, in which other files can hide, is refused."""
        one, two = wheel({"a": b"one"}), wheel({"b": b"two"})
        self.refused(b"x" * 40 + one, "before its first file", is_zip=True)
        self.refused(one + two, "before its first file", is_zip=True)
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a", b"one")
            archive.writestr("hidden", b"x" * 500)
            archive.writestr("b", b"two")
            archive.filelist.pop(1)
        self.refused(buffer.getvalue(), "between its files", is_zip=True)
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a", b"one")
            archive.comment = b"PK"
        self.refused(buffer.getvalue(), "a comment", is_zip=True)

    def test_second_name(self) -> None:
        """A file with an extra field that has another name, which some programs take, is refused."""
        buffer, entry = io.BytesIO(), zipfile.ZipInfo("a.py")
        entry.extra = b"\x75\x70\x09\x00\x01" + bytes(4) + b"b.py"
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(entry, b"x")
        self.assertRaises(RefusedArchive, read, buffer.getvalue(), is_zip=True)

    def test_links(self) -> None:
        """A link is told with its target, and special files are refused."""
        for mode, is_refused in ((stat.S_IFLNK, False), (stat.S_IFCHR, True)):
            buffer, entry = io.BytesIO(), zipfile.ZipInfo("a")
            entry.external_attr = (mode | 0o777) << 16
            with zipfile.ZipFile(buffer, "w") as archive:
                archive.writestr(entry, b"/etc/passwd")
            if is_refused:
                self.refused(buffer.getvalue(), "neither a file", is_zip=True)
            else:
                self.assertEqual([each.link for each in read(buffer.getvalue(), is_zip=True)], ["link to /etc/passwd"])

    def test_other_compression(self) -> None:
        """A compression whose size is not limited is refused."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("a", b"one")
        self.refused(buffer.getvalue(), "in a compression", is_zip=True)
        self.refused(b"", "damaged", is_zip=True)


class OddTests(SynchronousTestCase):
    """Names that a person must know of."""

    def odd(self, *names: str) -> str:
        """Return what is odd about an archive with these files."""
        return " ".join(find_odd_names(read(targz([(name, b"x") for name in names]))))

    def test_plain(self) -> None:
        """Plain names are not odd."""
        self.assertEqual(self.odd("p/a", "p/b/c..d"), "")

    def test_twice(self) -> None:
        """Two files of one name are told."""
        self.assertIn("several files of the same name, and the last one counts: p/a.", self.odd("p/a", "p/b", "p/a"))

    def test_outside(self) -> None:
        """Names that lead out of the package, or that systems read in different ways, are told."""
        for name in ("p/../../x", "p/./a", "p//a", "/etc/x", "p\\x", "c:/x", "p/\x1b"):
            self.assertIn("lead out of the package", self.odd("p/a", name), name)
        self.assertIn("x, and 5 more", self.odd(*(f"/{number}x" for number in range(15))))

    def test_links(self) -> None:
        """Links are told."""
        members = read(targz({}, link("p/a", "/etc/passwd")))
        self.assertIn("p/a (link to /etc/passwd)", " ".join(find_odd_names(members)))
