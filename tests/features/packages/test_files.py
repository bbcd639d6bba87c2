"""Of directories and archives that somebody made to do harm."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from struct import pack

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.packages._files import FileSet, read_archive, read_directory
from aileron.model.errors import InvalidRequest
from tests.features.packages.kit import package, write

Change = Callable[[tarfile.TarInfo], object]


def tar(*members: tuple[str, bytes], change: Change = lambda _: None, form: int = tarfile.USTAR_FORMAT) -> bytes:
    """An archive of files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=form) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            change(member)
            archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def zipped(*members: tuple[str, bytes], mode: int = stat.S_IFREG | 0o644, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The same as a zip."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", kind) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = mode << 16, kind
            archive.writestr(info, content)
    return data.getvalue()


def _becoming(kind: bytes) -> Change:
    """Have an entry be of another type."""

    def change(member: tarfile.TarInfo) -> None:
        member.type = kind

    return change


def _far(offset: int) -> bytes:
    """A zip whose directory says that its file is this far away."""
    whole = zipped(("a.md", b"x"))
    start, end = whole.index(b"PK\1\2"), whole.index(b"PK\5\6")
    entry = bytearray(whole[start:end])
    entry[30:32], entry[42:46] = pack("<H", 12), b"\xff" * 4
    entry += pack("<HHQ", 1, 8, offset)
    return whole[:start] + entry + whole[end : end + 12] + pack("<L", len(entry)) + whole[end + 16 :]


class ArchiveTests(SynchronousTestCase):
    """Archives."""

    def refused(self, name: str, data: bytes, why: str) -> None:
        """Have one refused."""
        self.assertIn(why, self.assertRaises(InvalidRequest, read_archive, name, data).message)

    def test_each_form(self) -> None:
        """Every form gives the same files, with or without a directory around them; hidden ones are left out."""
        files = package()
        members = [*files.items(), (".hidden", b"x"), ("a/.git/config", b"x")]
        inside = [(f"kit-1.0/{name}", data) for name, data in members]
        for each in (members, inside):
            plain = tar(*each)
            self.assertEqual(read_archive("a.tar", plain), files)
            self.assertEqual(read_archive("a.tar.gz", gzip.compress(plain)), files)
            self.assertEqual(read_archive("a.tgz", gzip.compress(tar(*each, form=tarfile.GNU_FORMAT))), files)
            self.assertEqual(read_archive("a.zip", zipped(*each)), files)
            self.assertEqual(read_archive("a.zip", zipped(*each, kind=zipfile.ZIP_STORED)), files)

    def test_kinds(self) -> None:
        """Links, devices, pipes and sparse files are refused; directories and remarks are passed over."""
        kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE)
        for kind in (*kinds, tarfile.GNUTYPE_SPARSE, tarfile.CONTTYPE, b"V"):
            self.refused("a.tar", tar(("a.md", b""), change=_becoming(kind)), "link")
        for mode in (stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK):
            self.refused("a.zip", zipped(("a.md", b"/etc/passwd"), mode=mode | 0o777), "a link, a special file")

        def remark(member: tarfile.TarInfo) -> None:
            member.pax_headers = {"comment": "x", "mtime": "1.5"}

        found = read_archive("a.tar", tar(("a.md", b"x"), change=remark, form=tarfile.PAX_FORMAT))
        self.assertEqual(found, {"a.md": b"x"})
        made = tar(("a", b""), change=_becoming(tarfile.DIRTYPE))
        self.assertEqual(read_archive("a.tar", made), {})

    def test_names(self) -> None:
        """A path that leads elsewhere, or that some system reads in another way, is refused in every form."""
        for name in (
            "/etc/passwd",
            "../a.md",
            "a/../../b.md",
            "a//b.md",
            "a\\b.md",
            "a\nb",
            "x" * 99 + "/" + "y" * 120,
        ):
            self.refused("a.zip", zipped((name, b"x")), "not allowed")
            if len(name) < 100:
                self.refused("a.tar", tar((name, b"x")), "not allowed")
        data = io.BytesIO()
        tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"path": "b.md"}).close()
        self.refused("a.tar", data.getvalue(), "too long, or not in ASCII")
        self.refused("a.tar", tar(("ü.md", b"x"), form=tarfile.PAX_FORMAT), "not in ASCII")
        self.refused("a.zip", zipped(("a.mdXhidden", b"x")).replace(b"a.mdXhidden", b"a.md\0hidden"), "null character")
        self.refused("a.zip", zipped(("a/" * 9 + "b", b"x")), "not allowed")

    def test_twice(self) -> None:
        """Names that are the same on some file system are refused."""
        self.refused("a.zip", zipped(("a.md", b"x"), ("b.md", b"y")).replace(b"b.md", b"a.md"), "differ only in case")
        for one, other in (("a.md", "A.MD"), ("stra\u00dfe", "STRASSE"), ("\u00e9", "e\u0301")):
            self.refused("a.zip", zipped((one, b"x"), (other, b"y")), "differ only in case")
        self.refused("a.tar", tar(("a/b.md", b"x"), ("./a/b.md", b"y")), "differ only in case")

    def test_bombs(self) -> None:
        """What would become large, or is many, ends at the bound, whatever the archive says of itself."""
        zeros = bytes(9 * 1024 * 1024)
        self.refused("a.zip", zipped(("a", zeros)), "more than")
        self.refused("a.tar", tar(("a", zeros)), "more than")
        self.refused("a.tar.gz", gzip.compress(bytes(20 * 1024 * 1024)), "unpacks to more than")
        lie = zipped(("a", zeros))
        self.refused("a.zip", lie.replace(len(zeros).to_bytes(4, "little"), (5).to_bytes(4, "little")), "")
        many = [(f"{each}", b"") for each in range(501)]
        self.refused("a.zip", zipped(*many), "500 files")
        self.refused("a.zip", zipped(*((f"{each}/", b"") for each in range(2001))), "2000 entries")
        self.refused("a.tar", tar(*many), "500 files")
        self.refused("a.zip", bytes(16 * 1024 * 1024 + 1), "it has more than")
        for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            self.refused("a.zip", zipped(("a", zeros), kind=kind), "another compression")

    def test_damaged(self) -> None:
        """A damaged archive, or what is none, is refused."""
        whole = tar(("a.md", b"x" * 2000))
        for name, data in (
            ("a.zip", b"PK"),
            ("a.zip", zipped(("a", b"x" * 1000), kind=zipfile.ZIP_STORED).replace(b"xxxx", b"yyyy")),
            ("a.tar", whole[:1024]),
            ("a.tar", whole[:100]),
            ("a.tar", whole.replace(b"a.md", b"b.md")),
            ("a.tar", b"\x80" * 2048),
            ("a.tar.gz", whole),
            ("a.tar.gz", gzip.compress(whole)[:-9]),
            ("a.tar.gz", gzip.compress(whole) * 2),
            ("a.tar", whole * 2),
            ("a.tar", whole[: 512 + 2048]),
            ("a.zip", zipped(("x", b"")).replace(b"\1\0\0\0", b"\0\0\0\0")),
            ("a.zip", _far(2**64 - 100)),
            ("a.zip", zipped(("a.md", b"x")).replace(b"a.md", b"b.md", 1)),
        ):
            self.refused(name, data, "")

    @given(st.sampled_from((".zip", ".tar", ".tar.gz")), st.data())
    def test_any_byte(self, suffix: str, chosen: st.DataObject) -> None:
        """An archive with any byte changed is read or refused, and no file gets a name that leads out."""
        members = [("kit/a.md", b"one"), ("kit/b.toml", b"two" * 100)]
        whole = zipped(*members) if suffix == ".zip" else tar(*members)
        data = bytearray(gzip.compress(whole, mtime=0) if suffix == ".tar.gz" else whole)
        data[chosen.draw(st.integers(0, min(len(data), 2000) - 1))] = chosen.draw(st.integers(0, 255))
        try:
            found = read_archive(f"a{suffix}", bytes(data))
        except InvalidRequest:
            return
        for name in found:
            self.assertTrue({"", ".", ".."}.isdisjoint(name.split("/")), name)


class DirectoryTests(SynchronousTestCase):
    """Directories."""

    def test_directory(self) -> None:
        """Files are read at every level, but for hidden ones."""
        directory = write(Path(self.mktemp()), {"a.md": b"x", "b/c.toml": b"y", ".git/config": b"z", ".x": b"z"})
        self.assertEqual(read_directory(directory), {"a.md": b"x", "b/c.toml": b"y"})

    def test_links(self) -> None:
        """A link to a file or a directory, and a pipe, are refused."""
        for make in (
            lambda path: path.symlink_to("/etc/passwd"),
            lambda path: path.symlink_to("/etc"),
            os.mkfifo,
        ):
            directory = write(Path(self.mktemp()), {"a.md": b"x"})
            make(directory / "b")
            self.assertIn("is refused", self.assertRaises(InvalidRequest, read_directory, directory).message)

    def test_large(self) -> None:
        """One that is too large is refused, also when it grows as it is read."""
        directory = write(Path(self.mktemp()), {"a": bytes(8 * 1024 * 1024 + 1)})
        self.assertRaises(InvalidRequest, read_directory, directory)
        found = FileSet()
        found.add("a", bytes(found.left))
        self.assertRaises(InvalidRequest, found.add, "b", b"x")
