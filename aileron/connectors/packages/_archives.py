"""Reads the archives of packages in memory: C{.tar.gz}, C{.crate} and C{.whl}. Nothing is written to disk.

Programs read unusual archives in different ways. So an archive that is not quite regular is refused: what would be
shown of it might not be what is installed.
"""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from io import BytesIO
from itertools import pairwise

from attrs import define, field, frozen

MOST_MEMBERS = 10_000
MOST_UNPACKED_BYTES = 64 * 1024 * 1024
"""The most bytes of all files of an archive, and of the tar file in a C{.tar.gz}."""

MOST_TEXT_BYTES = 256 * 1024
"""The longest file that is compared line by line."""

_MOST_TEXTS_BYTES = 16 * 1024 * 1024
_MOST_NAME_BYTES = 1024
_MOST_RECORDS_BYTES = 64 * 1024
_GZIP = 31  # of zlib: the header and trailer of gzip
_BLOCK = 512
_FILES, _DIRECTORY, _LINKS = (b"0", b"\0"), b"5", {b"1": "hard link", b"2": "link"}
_RECORDS, _GLOBAL_RECORDS, _LONG_NAME, _LONG_TARGET = b"x", b"g", b"L", b"K"
_EXTENSIONS = (_RECORDS, _GLOBAL_RECORDS, _LONG_NAME, _LONG_TARGET)
_TOLD = ("path", "linkpath", "size")
_USTAR = b"ustar\x0000"
_UNICODE_PATH = b"\x75\x70"  # the extra field of zip with another name
_OCTAL = re.compile(rb"[0-7]*")
_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ([^=\n]{1,100})=")
_SIZE = re.compile(rb"[0-9]{1,12}")
_LOCAL_HEAD_BYTES, _MOST_EXTRA_BYTES, _MOST_DESCRIPTOR_BYTES = 30, 64, 24
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_UNPLAIN = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")


class RefusedArchive(Exception):
    """The error for an archive that is refused. The message is a clause that begins with C{it}."""


@frozen
class PackageFile:
    """A file or link in an archive.

    :ivar name: the path as the archive has it.
    :ivar size: the file's size in bytes.
    :ivar digest: the SHA-256 of its content in hexadecimal, or the target of a link.
    :ivar text: the content if it is a short text, else None.
    :ivar link: the kind of link with its target, or empty if it is a file.
    """

    name: str
    size: int
    digest: str
    text: bytes | None = field(default=None, repr=False)
    link: str = ""


@define
class _PackageFiles:
    """The members of an archive, while it is read.

    :ivar check: raises an error if the time is up.
    """

    check: Callable[[], object]
    found: list[PackageFile] = field(factory=list)
    unpacked: int = 0
    _texts: int = 0

    def count(self) -> None:
        """Check that one more entry may be read.

        :raises RefusedArchive: if there would be too many.
        """
        self.check()
        # guard of own tools: an archive of very many files ends the reading
        #    -> connectors.packages.test_archives.TarTests.test_many
        if len(self.found) >= MOST_MEMBERS:
            raise RefusedArchive(f"it has more than {MOST_MEMBERS} files")

    def add(self, name: str, content: bytes) -> None:
        """Add a file."""
        is_text = len(content) <= MOST_TEXT_BYTES and not _CONTROL.search(content) and _is_unicode(content)
        text = content if is_text and self._texts + len(content) <= _MOST_TEXTS_BYTES else None
        self._texts += 0 if text is None else len(text)
        self.found.append(PackageFile(name, len(content), sha256(content).hexdigest(), text))

    def add_link(self, name: str, kind: str, target: str) -> None:
        """Add a link."""
        self.found.append(PackageFile(name, 0, target, link=f"{kind} to {target}"))


def _is_unicode(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def read_archive(data: bytes, *, is_zip: bool, check: Callable[[], object]) -> tuple[PackageFile, ...]:
    """Return the files and links in an archive, in its order.

    :param is_zip: whether it is a zip file, else it is a tar file in gzip.
    :param check: raises an error if the time is up.
    :raises RefusedArchive: if the archive is not regular, or is too large.
    """
    members = _PackageFiles(check)
    if is_zip:
        _read_zip(data, members)
    else:
        _read_tar(_gunzip(data, check), members)
    return tuple(members.found)


def find_odd_names(members: tuple[PackageFile, ...]) -> Iterator[str]:
    """Yield a sentence about each group of odd names in an archive."""
    names = [each.name for each in members]
    seen = set[str]()
    # guard of own tools: two files of one name are reported -> connectors.packages.test_archives.OddTests.test_twice
    twice = [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
    if twice:
        yield f"The archive has several files of the same name, and the last one counts: {_list(twice)}."
    # guard of own tools: names that lead out of the package are reported
    #    -> connectors.packages.test_archives.OddTests.test_outside
    outside = [name for name in names if _leads_out(name)]
    if outside:
        yield f"Names in the archive lead out of the package, or are no plain paths: {_list(outside)}."
    links = [f"{each.name} ({each.link})" for each in members if each.link]
    if links:
        yield f"The archive has links: {_list(links)}."


def _leads_out(name: str) -> bool:
    # guard of own tools: two spellings of one name are reported
    #    -> connectors.packages.test_archives.OddTests.test_outside, instead places = {".."}
    places = {"", ".", ".."}
    return (
        not places.isdisjoint(name.split("/"))
        or name.startswith("/")
        or _UNPLAIN.search(name) is not None
        or ":" in name[1:2]
    )


def _list(names: list[str], most: int = 10) -> str:
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(repr(each)[1:-1][:200] for each in names[:most]) + more


# tar -------------------------------------------------------------------------------------------


def _gunzip(data: bytes, check: Callable[[], object]) -> bytes:
    inflate, parts, size, rest = zlib.decompressobj(_GZIP), list[bytes](), 0, data
    while not inflate.eof:
        check()
        try:
            part = inflate.decompress(rest, 1024 * 1024)
        except zlib.error:
            raise RefusedArchive("it is not compressed with gzip, or damaged") from None
        if not part and not inflate.eof:
            raise RefusedArchive("it is cut off")
        size += len(part)
        # guard of own tools: a small archive that unpacks to very much ends the reading
        #    -> connectors.packages.test_archives.TarTests.test_bomb
        if size > MOST_UNPACKED_BYTES:
            raise RefusedArchive(f"it unpacks to more than {MOST_UNPACKED_BYTES // 1024 // 1024} MiB")
        parts.append(part)
        rest = inflate.unconsumed_tail
    # guard of own tools: no second archive hides behind the first
    #    -> connectors.packages.test_archives.TarTests.test_second
    if inflate.unused_data.strip(b"\0"):
        raise RefusedArchive("it has data after its end")
    return b"".join(parts)


def _read_tar(data: bytes, members: _PackageFiles) -> None:
    at, more = 0, dict[str, str]()
    while at < len(data):
        head = data[at : at + _BLOCK]
        if not head.strip(b"\0"):
            break
        members.count()
        kind, name, size, target = _read_head(head)
        # guard of own tools: an entry has one size -> connectors.packages.test_archives.TarTests.test_two_sizes
        if int(more.pop("size", size)) != size:
            raise RefusedArchive("it has an entry with two sizes")
        content = data[at + _BLOCK : at + _BLOCK + size]
        if len(content) != size:
            raise RefusedArchive("it is cut off")
        at += _BLOCK + -(-size // _BLOCK) * _BLOCK
        if kind in _EXTENSIONS:
            told = _read_extension(kind, content)
            # guard of own tools: of two names of an entry, programs take one or the other
            #    -> connectors.packages.test_archives.TarTests.test_two_names
            if more.keys() & told.keys():
                raise RefusedArchive("it has an entry with two names")
            more |= told
            continue
        _add_entry(members, kind, more.get("path", name), more.get("linkpath", target), content)
        more = {}
    # guard of own tools: no entry hides behind the end -> connectors.packages.test_archives.TarTests.test_hidden
    if more or data[at:].strip(b"\0"):
        raise RefusedArchive("it has data after its end")


def _add_entry(members: _PackageFiles, kind: bytes, name: str, target: str, content: bytes) -> None:
    if kind in _FILES and not name.endswith("/"):
        members.add(name, content)
    elif kind in _LINKS and not content:
        members.add_link(name, _LINKS[kind], target)
    elif content or kind not in (_DIRECTORY, *_FILES):
        raise RefusedArchive("it has an entry that is neither a file, a directory nor a link")


def _read_head(head: bytes) -> tuple[bytes, str, int, str]:
    """Return the kind, the name, the size and the target of an entry.

    :raises RefusedArchive: if the head is damaged.
    """
    if len(head) != _BLOCK or sum(head[:148]) + 8 * 32 + sum(head[156:]) != _read_number(head[148:156]):
        raise RefusedArchive("it is damaged")
    # guard of own tools: a name has no part that only some programs read
    #    -> connectors.packages.test_archives.TarTests.test_prefix
    if head[257:265] != _USTAR and head[345:500].strip(b"\0"):
        raise RefusedArchive("it has a name that programs read in different ways")
    prefix = _read_text(head[345:500])
    name = _read_text(head[:100])
    return head[156:157], f"{prefix}/{name}" if prefix else name, _read_number(head[124:136]), _read_text(head[157:257])


def _read_number(digits: bytes) -> int:
    # guard of own tools: a number that begins with a null character is zero for some programs
    #    -> connectors.packages.test_archives.TarTests.test_number
    plain = digits.rstrip(b" \0").lstrip(b" ")
    if not _OCTAL.fullmatch(plain):
        raise RefusedArchive("it is damaged, or has a file that is too large")
    return int(plain or b"0", 8)


def _read_text(text: bytes) -> str:
    return text.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _read_extension(kind: bytes, content: bytes) -> Mapping[str, str]:
    """Return the C{path}, C{linkpath} and C{size} that an extension entry gives for the entry after it.

    :raises RefusedArchive: if the extension cannot be read, or is for all entries.
    """
    if len(content) > _MOST_RECORDS_BYTES:
        raise RefusedArchive("it has a name that is too long")
    if kind in (_LONG_NAME, _LONG_TARGET):
        return {"path" if kind == _LONG_NAME else "linkpath": _read_text(content)}
    found = dict[str, str]()
    for name, value in _read_records(content):
        # guard of own tools: sparse files and other sets of characters are read by few programs alike
        #    -> connectors.packages.test_archives.TarTests.test_other_records
        if name.startswith("GNU.sparse") or name == "hdrcharset" or b"\0" in value:
            raise RefusedArchive("it has a sparse file, or names in another set of characters")
        if (name == "size" and not _SIZE.fullmatch(value)) or (name in _TOLD and not value):
            raise RefusedArchive("it is damaged")
        if name in _TOLD:
            found[name] = value.decode("utf-8", "backslashreplace")
    if kind == _GLOBAL_RECORDS and found:
        raise RefusedArchive("it has a name that is for all files")
    return found


def _read_records(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the records of an extension, as pairs of a name and a value.

    :raises RefusedArchive: if one is malformed.
    """
    at = 0
    while at < len(content):
        record = _RECORD.match(content, at)
        end = at + int(record[1]) if record else 0
        if record is None or end > len(content) or end <= record.end() or content[end - 1 : end] != b"\n":
            raise RefusedArchive("it is damaged")
        yield record[2].decode("utf-8", "backslashreplace"), content[record.end() : end - 1]
        at = end


# zip -------------------------------------------------------------------------------------------


def _read_zip(data: bytes, members: _PackageFiles) -> None:
    if data.count(b"PK\1\2") > MOST_MEMBERS:  # the signature of each entry; zipfile reads all entries at once
        raise RefusedArchive(f"it has more than {MOST_MEMBERS} files")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            _check_layout(archive, len(data))
            for each in archive.infolist():
                members.count()
                _read_entry(archive, each, members)
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OverflowError, NotImplementedError, RuntimeError):
        raise RefusedArchive("it is damaged") from None


def _read_entry(archive: zipfile.ZipFile, each: zipfile.ZipInfo, members: _PackageFiles) -> None:
    kind = stat.S_IFMT(each.external_attr >> 16)
    if each.flag_bits & 1 or each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise RefusedArchive("it has a file that is encrypted, or in a compression that is not supported")
    # guard of own tools: a file in a zip archive has one name
    #    -> connectors.packages.test_archives.ZipTests.test_second_name, instead has_other = False
    has_other = _UNICODE_PATH in each.extra
    if each.filename != each.orig_filename or has_other or len(each.filename) > _MOST_NAME_BYTES:
        raise RefusedArchive("it has a name that is too long, or has a null character, or a file with two names")
    left = MOST_UNPACKED_BYTES - members.unpacked
    with archive.open(each) as file:
        content = file.read(left + 1)
    members.unpacked += len(content)
    # guard of own tools: a small zip file that unpacks to very much ends the reading
    #    -> connectors.packages.test_archives.ZipTests.test_bomb
    if len(content) > left:
        raise RefusedArchive(f"it unpacks to more than {MOST_UNPACKED_BYTES // 1024 // 1024} MiB")
    if kind == stat.S_IFLNK:
        members.add_link(each.filename, "link", content[:_MOST_NAME_BYTES].decode("utf-8", "backslashreplace"))
    elif kind in (0, stat.S_IFREG) and not each.is_dir():
        members.add(each.filename, content)
    elif content or kind not in (0, stat.S_IFDIR):
        raise RefusedArchive("it has an entry that is neither a file, a directory nor a link")


def _check_layout(archive: zipfile.ZipFile, size: int) -> None:
    """Check that the entries follow each other, and that nothing is before, between or behind them.

    :raises RefusedArchive: if programs that read an archive from its start could find other files.
    """
    entries = sorted(archive.infolist(), key=lambda each: each.header_offset)
    starts = [each.header_offset for each in entries] + [archive.start_dir]
    # guard of own tools: no other file hides between the files of a zip archive
    #    -> connectors.packages.test_archives.ZipTests.test_hidden
    if starts[0] != 0 or archive.comment:
        raise RefusedArchive("it has data before its first file, or a comment")
    for each, (start, end) in zip(entries, pairwise(starts), strict=True):
        used = _LOCAL_HEAD_BYTES + len(each.orig_filename.encode("utf-8")) + each.compress_size
        most = used + _MOST_EXTRA_BYTES + (_MOST_DESCRIPTOR_BYTES if each.flag_bits & 8 else 0)
        if not start + used <= end <= start + most:
            raise RefusedArchive("it has data between its files, or files that overlap")
