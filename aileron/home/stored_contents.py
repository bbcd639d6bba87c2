"""Contents that are too long for the arguments of a run. Each is kept in a private file until its run is settled."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from aileron.base.json import digest_of_bytes

from .private_files import atomic_write, read_private

MOST_CONTENT_BYTES = 24 * 1024 * 1024
"""The longest content."""

DIRECTORY = "tool-contents"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[0-9a-f]{64}")
_PRIVATE = 0o700


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

    def add(self, content: bytes) -> str:
        """Store a content durably, and return its digest, as C{sha256:<64 hex>}. Storing it again changes nothing.

        :raises OSError: if it cannot be written.
        """
        self.directory.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        digest = digest_of_bytes(content)
        atomic_write(self._path(digest), content)
        return digest

    def read(self, digest: str) -> bytes | None:
        """Return a content, or None if there is none of this digest.

        :raises AileronError: if the file is not a private file of this user, or was made longer.
        """
        if not _DIGEST.fullmatch(digest):
            return None
        content = read_private(self._path(digest), MOST_CONTENT_BYTES)
        # guard of own tools: a stored content that was changed is not sent
        #    -> test_stored_contents.StoredContentsTests.test_changed, instead return content
        return content if content is not None and digest_of_bytes(content) == digest else None

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
