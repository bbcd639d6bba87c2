"""Contents that are too long for the arguments of a run. Each is kept in a private file until its run is settled."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from attrs import define, field, frozen

from aileron.base.json import digest_of_bytes

from .private_files import open_new, open_private, read_private, sync_directory

MOST_CONTENT_BYTES = 100 * 1024 * 1024
"""The longest content."""

MOST_READ_BYTES = 24 * 1024 * 1024
"""The longest content that is read into memory as a whole."""

DIRECTORY = "tool-contents"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[0-9a-f]{64}")
_PRIVATE = 0o700


@define(eq=False)
class UnfinishedContent:
    """A content that is being written. It has no digest as its name yet, so no sweep finds it.

    The methods are called one after the other, each in a thread.

    :ivar size: the bytes that were written.
    """

    _directory: Path
    _path: Path
    _file: BinaryIO
    size: int = field(default=0, init=False)
    _hash: Any = field(factory=sha256, init=False)

    @property
    def digest(self) -> str:
        """The digest of the bytes that were written, as C{sha256:<64 hex>}."""
        return f"sha256:{self._hash.hexdigest()}"

    def add(self, piece: bytes) -> None:
        """Write further bytes.

        :raises OSError: if they cannot be written.
        """
        self._file.write(piece)
        self._hash.update(piece)
        self.size += len(piece)

    def read(self) -> bytes:
        """Return the bytes that were written, before they are stored.

        :raises OSError: if they cannot be written or read.
        """
        self._file.flush()
        return self._path.read_bytes()

    def store(self) -> str:
        """Make the content durable under its digest, and return that. A content with this digest is replaced by it.

        :raises OSError: if it cannot be written. It is unfinished as before.
        """
        self._file.flush()
        os.fsync(self._file.fileno())
        self._path.rename(self._directory / self._hash.hexdigest())
        sync_directory(self._directory)
        self._file.close()
        return self.digest

    def discard(self) -> None:
        """Delete the content, unless it was stored. Idempotent."""
        self._file.close()
        self._path.unlink(missing_ok=True)


@frozen
class StoredContents:
    """The contents, each in a file that is named by its SHA-256.

    :ivar directory: the directory of the files. It is made when the first content is stored.
    """

    directory: Path

    @classmethod
    def of_home(cls, root: str | Path) -> StoredContents:
        """Return the contents of the state directory C{root}."""
        return cls(Path(root) / DIRECTORY)

    def begin(self) -> UnfinishedContent:
        """Begin a new content.

        :raises OSError: if its file cannot be made.
        """
        self.directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        path = self.directory / f".{secrets.token_hex(16)}"
        return UnfinishedContent(self.directory, path, open_new(path))

    def read(self, digest: str) -> bytes | None:
        """Return a content, or None if there is none of this digest.

        :raises AileronError: if the file is not a private file of this user, or is longer than L{MOST_READ_BYTES}.
        """
        if not _DIGEST.fullmatch(digest):
            return None
        content = read_private(self._path(digest), MOST_READ_BYTES)
        # guard of own tools: a stored content that was changed is not sent
        #    -> test_stored_contents.StoredContentsTests.test_changed, instead return content
        return content if content is not None and digest_of_bytes(content) == digest else None

    def open(self, digest: str) -> BinaryIO | None:
        """Return the file of a content, at its beginning, or None if there is none of this digest.

        The caller must compare the digest, and close the file.

        :raises Forbidden: if the file is not a private file of this user.
        """
        return open_private(self._path(digest)) if _DIGEST.fullmatch(digest) else None

    def remove(self, digest: str) -> None:
        """Delete a content. Idempotent."""
        self._path(digest).unlink(missing_ok=True)

    def list_sizes(self) -> Mapping[str, int]:
        """Return the size of each content in bytes, by digest."""
        found = {}
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if _NAME.fullmatch(path.name):
                found[f"sha256:{path.name}"] = path.lstat().st_size
        return found

    def remove_unfinished(self) -> None:
        """Delete the files that a crash left unfinished. Call it before anything is stored."""
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if not _NAME.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def _path(self, digest: str) -> Path:
        found = _DIGEST.fullmatch(digest)
        if found is None:
            raise ValueError("a digest is sha256: and 64 hexadecimal digits")
        return self.directory / found[1]
