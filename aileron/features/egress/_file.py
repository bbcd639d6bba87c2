"""The file C{egress.toml} of a home, which lists the hosts that projects may reach. It counts only while trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from attrs import frozen
from zope.interface import implementer

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable, TextRule
from aileron.base.toml import NotToml, read_toml
from aileron.home.private_files import atomic_write, read_private
from aileron.model.errors import Conflict, Forbidden, InvalidRequest
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import Candidate, TrustKind

from .values import EGRESS_PRESETS, read_egress, read_egress_host

NAME = "egress.toml"
_BOUNDARY = "user"
_MOST_ENTRIES = 200
_MOST_HOSTS = 100
_ABSOLUTE = TextRule(
    lambda path: path.startswith("/") and ".." not in PurePosixPath(path).parts, "must be an absolute path"
)
_UNTRUSTED = "it is not trusted as it is now, so nothing in it counts; read and trust it: aileron config trust"


@frozen
class ProjectRule:
    """One entry of the file.

    :ivar project: the directory of the project; directories below belong to the project.
    :ivar hosts: the hosts, each with its port.
    :ivar private_network: True if the hosts may have private addresses or addresses of this machine.
    """

    project: PurePosixPath
    hosts: frozenset[str]
    private_network: bool

    def covers(self, project: str, host: str) -> bool:
        """Return True if the entry allows a project to reach a host."""
        directory = PurePosixPath(project)
        inside = ".." not in directory.parts and directory.is_relative_to(self.project)
        return inside and host in self.hosts


@frozen
class _Present:
    """The file at one moment.

    :ivar data: the bytes, or None if there is no file.
    :ivar candidate: the file as it can be trusted, or None if there is no file or the file has errors.
    """

    data: bytes | None = None
    candidate: Candidate | None = None
    rules: tuple[ProjectRule, ...] = ()
    errors: tuple[LoadError, ...] = ()


@implementer(IConfigFile)
class EgressFile:
    """C{egress.toml} of one home. Each method reads the file again.

    :param trust: the digests that the operator trusts.
    """

    def __init__(self, path: Path, trust: ITrust) -> None:
        self._path, self._trust = path, trust
        self._last = _Present()
        self._held: tuple[ProjectRule, ...] | None = None

    def candidates(self) -> tuple[Candidate, ...]:
        found = self._look().candidate
        return () if found is None else (found,)

    def problems(self) -> tuple[LoadError, ...]:
        found = self._look()
        if found.candidate is None or self._is_trusted(found.candidate):
            return found.errors
        return (LoadError("untrusted", _UNTRUSTED, str(self._path), None, _BOUNDARY),)

    def find(self, project: str, host: str) -> ProjectRule | None:
        """Return the trusted entry that allows a project to reach a host, or None if there is none."""
        covering = [rule for rule in self._in_force() if rule.covers(project, host)]
        return next((rule for rule in covering if rule.private_network), next(iter(covering), None))

    @contextmanager
    def adding(self, project: str, host: str) -> Iterator[Candidate]:
        """Add an entry to the file, and provide the file as it must be trusted within the context.

        The entries that were trusted before stay in force within the context. If the context raises, the entry is
        removed again.

        :raises Conflict: the present file is not trusted.
        :raises InvalidRequest: the file with the entry could not be read.
        """
        before = self._look()
        if before.errors or (before.candidate is not None and not self._is_trusted(before.candidate)):
            raise Conflict(
                f"{NAME} is not trusted as it is now, so nothing was added to it. Read it first: aileron config trust."
            )
        data = (before.data or b"") + _entry(project, host)
        after = _read(data, self._path)
        if after.candidate is None or not any(rule.covers(project, host) for rule in after.rules):
            raise InvalidRequest(f"{NAME} cannot name this project. Nothing was changed.")
        self._held = before.rules
        try:
            atomic_write(self._path, data)
            yield after.candidate
        except BaseException:
            self._put_back(before.data, data)
            raise
        finally:
            self._held = None

    def _put_back(self, before: bytes | None, ours: bytes) -> None:
        if read_private(self._path) != ours:
            return  # another program wrote the file meanwhile
        if before is None:
            self._path.unlink()
        else:
            atomic_write(self._path, before)

    def _in_force(self) -> tuple[ProjectRule, ...]:
        if self._held is not None:
            return self._held
        found = self._look()
        return found.rules if found.candidate is not None and self._is_trusted(found.candidate) else ()

    def _is_trusted(self, candidate: Candidate) -> bool:
        word = self._trust.find(TrustKind.CONFIG, NAME)
        return word is not None and word.digest == candidate.digest

    def _look(self) -> _Present:
        try:
            data = read_private(self._path)
        except (Forbidden, InvalidRequest) as error:
            return _Present(errors=(_fault(error.message, self._path),))
        if data != self._last.data:
            self._last = _Present() if data is None else _read(data, self._path)
        return self._last


def _read(data: bytes, path: Path) -> _Present:
    try:
        text = data.decode("utf-8")
        toml = read_toml(text)
    except UnicodeDecodeError:
        return _Present(data, errors=(_fault("it is not UTF-8", path),))
    except NotToml as error:
        return _Present(data, errors=(_fault(f"it {error.problem}", path, error.line),))
    faults = FileFaults(str(path), toml, _BOUNDARY)
    table = FileTable(toml.values, (), faults)
    rules = tuple(map(_read_entry, table.tables("allow", _MOST_ENTRIES, required=False)))
    table.close()
    if faults.found:
        return _Present(data, errors=faults.in_order())
    return _Present(data, Candidate(TrustKind.CONFIG, NAME, digest_of_bytes(data), str(path), text), rules)


def _read_entry(entry: FileTable) -> ProjectRule:
    project = entry.text("project", _ABSOLUTE)
    presets, hosts = entry.texts("presets", required=False), entry.texts("hosts", required=False)
    private_network = entry.flag("private_network", default=False)
    unknown = [name for name in presets if name not in EGRESS_PRESETS]
    if unknown:
        entry.fault("presets", f"must be some of: {', '.join(EGRESS_PRESETS)}")
    if len(hosts) > _MOST_HOSTS:
        entry.fault("hosts", f"must be {_MOST_HOSTS} at most")
    if private_network and presets:
        entry.fault("private_network", "cannot be set for presets; give them an entry of their own")
    found = {host for word in hosts if (host := _read_host(entry, word))}
    if not unknown:
        found.update(read_egress(presets))
    entry.close()
    return ProjectRule(PurePosixPath(project or "/nowhere"), frozenset(found), private_network)


def _read_host(entry: FileTable, text: str) -> str | None:
    try:
        return read_egress_host(text)
    except ValueError as error:
        entry.fault("hosts", f"{error}")
        return None


def _entry(project: str, host: str) -> bytes:
    """Return an entry as TOML. JSON writes its strings alike, except for characters that no path should have."""
    quoted = (json.dumps(each, ensure_ascii=False) for each in (project, host))
    return "\n[[allow]]\nproject = {}\nhosts = [{}]\n".format(*quoted).encode("utf-8", "surrogateescape")


def _fault(message: str, path: Path, line: int | None = None) -> LoadError:
    return LoadError("validation_error", message, str(path), line, _BOUNDARY)
