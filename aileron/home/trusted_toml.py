"""A TOML file in the home (the directory of the daemon's files) that has no effect until the operator trusts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from attrs import frozen
from zope.interface import implementer

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable
from aileron.base.toml import NotToml, read_toml
from aileron.model.errors import Conflict, Forbidden, InvalidRequest
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import Candidate, TrustKind

from .private_files import atomic_write, read_private

_BOUNDARY = "user"
_T = TypeVar("_T")


@frozen
class TomlVersion(Generic[_T]):
    """One version of the file.

    :ivar data: the bytes, or None if there is no file or the file cannot be read.
    :ivar candidate: the file as the operator can trust it, or None if there is no file or the file has errors.
    :ivar contents: the parsed contents. They are empty if C{candidate} is None.
    :ivar errors: the errors of the file, in the order of lines.
    """

    data: bytes | None
    candidate: Candidate | None
    contents: _T
    errors: tuple[LoadError, ...] = ()


@implementer(IConfigFile)
class TrustedToml(Generic[_T]):
    """A TOML file on disk, and whether the operator trusts the file as it is there.

    Each method reads the file again. The file is parsed only if its bytes have changed.

    :param path: the file. Its name is the name that the operator trusts.
    :param trust: the digests that the operator trusts.
    :param parse: returns the contents of the file's top table, and adds errors to the table.
    :param empty: the contents of a missing file.
    :param untrusted: the problem to report if the file is not trusted.
    """

    def __init__(self, path: Path, trust: ITrust, parse: Callable[[FileTable], _T], empty: _T, untrusted: str) -> None:
        self._path, self._trust = path, trust
        self._parse_table, self._untrusted = parse, untrusted
        self._missing: TomlVersion[_T] = TomlVersion(None, None, empty)
        self._last = self._missing

    def candidates(self) -> tuple[Candidate, ...]:
        found = self.read_version().candidate
        return () if found is None else (found,)

    def problems(self) -> tuple[LoadError, ...]:
        found = self.read_version()
        if found.candidate is None or self.is_trusted(found):
            return found.errors
        return (LoadError("untrusted", self._untrusted, str(self._path), None, _BOUNDARY),)

    def read_version(self) -> TomlVersion[_T]:
        """Read the file, and return its version on disk.

        If it cannot be read, the version has an error and no bytes.
        """
        try:
            data = read_private(self._path)
        except (Forbidden, InvalidRequest) as error:
            return self._make_invalid(None, self._fault(error.message))
        if data != self._last.data:
            self._last = self._missing if data is None else self.parse_version(data)
        return self._last

    def find_trusted_digest(self) -> str | None:
        """Return the digest of the version of the file that the operator trusts, or None if no version is trusted."""
        word = self._trust.find(TrustKind.CONFIG, self._path.name)
        return None if word is None else word.digest

    def is_trusted(self, version: TomlVersion[_T]) -> bool:
        """Return whether the operator trusts C{version}. A version with errors is never trusted."""
        return version.candidate is not None and version.candidate.digest == self.find_trusted_digest()

    def parse_version(self, data: bytes) -> TomlVersion[_T]:
        """Return the version of the file that has these bytes. Nothing is read or written."""
        try:
            text = data.decode("utf-8")
            toml = read_toml(text)
        except UnicodeDecodeError:
            return self._make_invalid(data, self._fault("it is not UTF-8"))
        except NotToml as error:
            return self._make_invalid(data, self._fault(f"it {error.problem}", error.line))
        faults = FileFaults(str(self._path), toml, _BOUNDARY)
        table = FileTable(toml.values, (), faults)
        contents = self._parse_table(table)
        table.close()
        if faults.found:
            return self._make_invalid(data, *faults.in_order())
        digest = digest_of_bytes(data)
        candidate = Candidate(TrustKind.CONFIG, self._path.name, digest, str(self._path), text)
        return TomlVersion(data, candidate, contents)

    def require_trusted(self, refusal: str) -> TomlVersion[_T]:
        """Read the file and require that the operator trusts it. Return its version on disk, also if there is no file.

        :param refusal: the message of the error.
        :raises Conflict: if the file has errors or is not trusted.
        """
        found = self.read_version()
        if found.errors or (found.data is not None and not self.is_trusted(found)):
            raise Conflict(refusal)
        return found

    @contextmanager
    def replacing(self, before: TomlVersion[_T], after: TomlVersion[_T]) -> Iterator[None]:
        """Write the version C{after} to the file within the context, in which the caller has the operator trust it.

        If the context raises, the version C{before} is restored, unless another program wrote the file meanwhile.

        :raises OSError: if the file cannot be written.
        """
        data = after.data or b""
        try:
            atomic_write(self._path, data)
            yield
        except BaseException:
            self._restore(before.data, data)
            raise

    def _restore(self, before: bytes | None, ours: bytes) -> None:
        if read_private(self._path) != ours:
            return  # another program wrote the file meanwhile
        if before is None:
            self._path.unlink()
        else:
            atomic_write(self._path, before)

    def _make_invalid(self, data: bytes | None, *errors: LoadError) -> TomlVersion[_T]:
        return TomlVersion(data, None, self._missing.contents, errors)

    def _fault(self, message: str, line: int | None = None) -> LoadError:
        return LoadError("validation_error", message, str(self._path), line, _BOUNDARY)
