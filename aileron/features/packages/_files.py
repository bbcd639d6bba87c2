"""Reads the files of a package from an untrusted directory or archive.

Nothing is unpacked to disk: files are read into memory, with limits that apply during decompression.
"""

from __future__ import annotations

import os
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from unicodedata import normalize

from attrs import define, field

from aileron.base.files import Unreadable, read_file
from aileron.model.errors import InvalidRequest

MOST_ARCHIVE_BYTES = 16 * 1024 * 1024
_MOST_BYTES, _MOST_FILES, _MOST_ENTRIES = 8 * 1024 * 1024, 500, 2000
_MOST_CHARACTERS, _MOST_PARTS = 200, 9
_BLOCK = 512
_OCTAL = re.compile(rb" *([0-7]{1,12})[ \0]*")
_LONGER = (b" path=", b" size=", b" linkpath=", b" GNU.sparse")
_GZIP = 31


@define
class FileSet:
    """The files of one package, within limits. Hidden files (C{.name}) and hidden directories are checked but not kept.

    :ivar files: the contents by path.
    :ivar left: how many bytes may still be added.
    """

    files: dict[str, bytes] = field(factory=dict)
    left: int = _MOST_BYTES
    _names: set[str] = field(factory=set)

    def add(self, path: str, data: bytes) -> None:
        """Check a file and add it unless it is hidden.

        :raises InvalidRequest: if the path is invalid or a duplicate, or the limits are exceeded.
        """
        parts = path.split("/")
        plain = path.isprintable() and "\\" not in path and {"", ".", ".."}.isdisjoint(parts)
        if not plain or len(path) > _MOST_CHARACTERS or len(parts) > _MOST_PARTS:
            raise InvalidRequest(f"The package has a file whose name is not allowed: {path[:_MOST_CHARACTERS]!a}.")
        name = normalize("NFD", normalize("NFD", path).casefold())
        if name in self._names:
            raise InvalidRequest(f"The package has two files whose names differ only in case or accents: {path!a}.")
        self._names.add(name)
        self.left -= len(data)
        if self.left < 0 or len(self._names) > _MOST_FILES:
            raise InvalidRequest(f"The package has more than {_MOST_BYTES} bytes or {_MOST_FILES} files.")
        if not any(part.startswith(".") for part in parts):
            self.files[path] = data


def read_directory(path: Path) -> Mapping[str, bytes]:
    """Return the files below a directory, without hidden ones.

    :raises InvalidRequest: if there are links or other special files, or the limits of a package are exceeded.
    """
    found = FileSet()
    for place, directories, names in os.walk(path):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        links = [name for name in directories if os.path.islink(os.path.join(place, name))]
        for name in (*links, *sorted(names)):
            whole = os.path.join(place, name)
            found.add(os.path.relpath(whole, path), read_local(whole, found.left))
    return found.files


def read_local(path: str, most_bytes: int) -> bytes:
    """Return the bytes of a file. If it is larger than C{most_bytes}, return only one byte more than that.

    :raises InvalidRequest: if the file is unreadable, a link or another special file.
    """
    try:
        return read_file(path, most_bytes).data
    except Unreadable as error:
        raise InvalidRequest(f"{error.path} is refused: {error.problem}.") from None


def read_archive(name: str, data: bytes) -> Mapping[str, bytes]:
    """Return the files in a C{.zip}, C{.tar}, C{.tar.gz} or C{.tgz}. A directory around all files is stripped.

    :raises InvalidRequest: if the archive is invalid or too large, or contains a file that a package must not have.
    """
    if len(data) > MOST_ARCHIVE_BYTES:
        raise _refuse(f"it has more than {MOST_ARCHIVE_BYTES} bytes")
    found = FileSet()
    if name.endswith(".zip"):
        _read_zip(data, found)
    else:
        _read_tar(data if name.endswith(".tar") else _gunzip(data), found)
    tops = {path.partition("/")[0] for path in found.files}
    if len(tops) == 1 and tops.isdisjoint(found.files):
        return {path.partition("/")[2]: content for path, content in found.files.items()}
    return found.files


def _refuse(what: str) -> InvalidRequest:
    return InvalidRequest(f"The archive is refused: {what}.")


def _read_zip(data: bytes, found: FileSet) -> None:
    if data.count(b"PK\1\2") > _MOST_ENTRIES:  # the signature of each entry; zipfile reads all entries at once
        raise _refuse(f"it has more than {_MOST_ENTRIES} entries")
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            for each in archive.infolist():
                kind = stat.S_IFMT(each.external_attr >> 16)
                compressed = each.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # can be bounded
                if each.filename.endswith("/"):
                    continue
                if kind not in (0, stat.S_IFREG) or compressed or each.flag_bits & 1:
                    raise _refuse(f"{each.filename!a} is a link, a special file, encrypted, or in another compression")
                if each.filename != each.orig_filename:
                    raise _refuse("a name has a null character")
                with archive.open(each) as file:
                    found.add(each.filename, file.read(found.left + 1))
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OverflowError, NotImplementedError):
        raise _refuse("it is damaged") from None


def _gunzip(data: bytes) -> bytes:
    inflate = zlib.decompressobj(_GZIP)
    try:
        content = inflate.decompress(data, MOST_ARCHIVE_BYTES)
    except zlib.error:
        raise _refuse("it is not a .tar.gz file") from None
    if not inflate.eof or inflate.unused_data:
        raise _refuse(f"it is damaged, has data after its end, or unpacks to more than {MOST_ARCHIVE_BYTES} bytes")
    return content


def _read_tar(data: bytes, found: FileSet) -> None:
    at = 0
    while (head := data[at : at + _BLOCK]).strip(b"\0"):
        name, size, kind = _read_head(head)
        at += _BLOCK
        content = data[at : at + size]
        if len(content) != size:
            raise _refuse("it is cut off")
        at += -(-size // _BLOCK) * _BLOCK
        if kind in (b"0", b"\0"):
            found.add(name, content)
        elif kind in (b"g", b"x") and any(each in content for each in _LONGER):
            raise _refuse("it has a name that is too long, or not in ASCII")
        elif kind not in (b"5", b"g", b"x"):
            raise _refuse(f"{name!a} is a link, a device, or another special file")
    if len(head) != _BLOCK or data[at:].strip(b"\0"):
        raise _refuse("it is cut off, or has data after its end")


def _read_head(head: bytes) -> tuple[str, int, bytes]:
    """Return the name, size and type in the header of an entry, if it is valid in the oldest tar format too.

    :raises InvalidRequest: if the header is invalid.
    """
    size, check = _OCTAL.fullmatch(head[124:136]), _OCTAL.fullmatch(head[148:156])
    actual = sum(head[:148]) + 8 * ord(" ") + sum(head[156:])
    if len(head) != _BLOCK or size is None or check is None or int(check[1], 8) != actual:
        raise _refuse("it is damaged, or not a .tar file")
    before = head[345:500].partition(b"\0")[0] if head[257:263] == b"ustar\0" else b""
    name = b"/".join(filter(None, (before, head[:100].partition(b"\0")[0])))
    return name.decode("ascii", "surrogateescape").removeprefix("./"), int(size[1], 8), head[156:157]
