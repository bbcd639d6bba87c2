"""The file C{egress.toml} of a home, which lists the hosts that projects may reach. It counts only while trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from attrs import frozen

from aileron.base.tables import FileTable, TextRule
from aileron.home.trusted_toml import TrustedToml
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.authority import ITrust
from aileron.model.trust import Candidate

from .values import EGRESS_PRESETS, read_egress, read_egress_host

NAME = "egress.toml"
_MOST_ENTRIES = 200
_MOST_HOSTS = 100
_ABSOLUTE = TextRule(
    lambda path: path.startswith("/") and ".." not in PurePosixPath(path).parts, "must be an absolute path"
)
_UNTRUSTED = "it is not trusted as it is now, so it has no effect; review and trust it: aileron config trust"
_UNCHANGED = f"{NAME} is not trusted as it is now, so nothing was added to it. Read it first: aileron config trust."


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


class EgressFile(TrustedToml[tuple[ProjectRule, ...]]):
    """C{egress.toml} of one home. Each method reads the file again.

    :param trust: the digests that the operator trusts.
    """

    def __init__(self, path: Path, trust: ITrust) -> None:
        super().__init__(path, trust, _parse, (), _UNTRUSTED)
        self._held: tuple[ProjectRule, ...] | None = None

    def find(self, project: str, host: str) -> ProjectRule | None:
        """Return the trusted entry that allows a project to reach a host, or None if there is none.

        An entry that permits private addresses comes first.
        """
        covering = [rule for rule in self._list_in_force() if rule.covers(project, host)]
        return next((rule for rule in covering if rule.private_network), next(iter(covering), None))

    @contextmanager
    def adding(self, project: str, host: str) -> Iterator[Candidate]:
        """Add an entry to the file, and yield the new file as a candidate, for the caller to trust in the context.

        Within the context only the earlier entries are in force. If the context raises, the entry is removed again.

        :raises Conflict: if the file on disk has errors or is not trusted.
        :raises InvalidRequest: if the file cannot express the entry.
        """
        before = self.require_trusted(_UNCHANGED)
        after = self.parse_version((before.data or b"") + _entry(project, host))
        if after.candidate is None or not any(rule.covers(project, host) for rule in after.contents):
            raise InvalidRequest(f"{NAME} cannot name this project. Nothing was changed.")
        self._held = before.contents
        try:
            with self.replacing(before, after):
                yield after.candidate
        finally:
            self._held = None

    def _list_in_force(self) -> tuple[ProjectRule, ...]:
        if self._held is not None:
            return self._held
        found = self.read_version()
        return found.contents if self.is_trusted(found) else ()


def _parse(table: FileTable) -> tuple[ProjectRule, ...]:
    return tuple(map(_read_entry, table.tables("allow", _MOST_ENTRIES, required=False)))


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
    """Return an entry as TOML, with strings quoted as in JSON, which TOML reads too except for unusual characters."""
    quoted = (json.dumps(each, ensure_ascii=False) for each in (project, host))
    return "\n[[allow]]\nproject = {}\nhosts = [{}]\n".format(*quoted).encode("utf-8", "surrogateescape")
