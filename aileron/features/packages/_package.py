"""A package: connector and action files with a name and a version, identified by the digest of their bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import field, frozen

from aileron.actions import MAX_FILE_BYTES
from aileron.base.json import digest_of_bytes
from aileron.base.tables import FileFaults, FileTable, TextRule
from aileron.base.toml import NotToml, read_toml
from aileron.features import FeatureSet
from aileron.model.actions import SEMVER
from aileron.model.errors import InvalidRequest

MANIFEST = "aileron-package.toml"
_UNVERSIONED = "0.0.0"
_FILE = re.compile(r"(?:[a-z0-9-]{1,40}/)*([a-z0-9][a-z0-9._-]{0,80}(?<!\.fixtures)\.(md|toml))")
_DIRECTORIES = {"md": "actions", "toml": "connectors"}
_RESERVED = frozenset((MANIFEST, *FeatureSet().file_names(), "packages.toml"))
_MOST_MEMBERS, _MOST_CHARACTERS = 32, 200
NAME = TextRule.shape(r"[a-z0-9][a-z0-9_-]{0,63}", "must be 1 to 64 of a-z, 0-9, '-' and '_'")
VERSION = rf"(?=.{{1,100}}\Z){SEMVER}"
PLACE = re.compile(r"(?:actions|connectors)/[a-z0-9][a-z0-9._-]*")
_VERSION = TextRule.shape(VERSION, "must be a version such as 1.0.0")
_SHORT = TextRule(lambda text: len(text) <= _MOST_CHARACTERS, f"must have {_MOST_CHARACTERS} characters at most")


@frozen
class Package:
    """A package that was read and is not trusted yet.

    :ivar files: the files to install, by path in the home, such as C{actions/file-ticket.md}.
    :ivar members: the sources of the packages that are installed with this one, which is then a suite.
    :ivar manifest: the bytes of the manifest; empty without one.
    """

    name: str
    version: str
    description: str
    files: Mapping[str, bytes] = field(repr=False)
    members: tuple[str, ...] = ()
    manifest: bytes = field(default=b"", repr=False)

    @property
    def digest(self) -> str:
        """The digest over the names and bytes of all files and the manifest, in order of name."""
        files = {**self.files, MANIFEST: self.manifest}
        return digest_of_bytes("".join(f"{digest_of_bytes(files[name])}  {name}\n" for name in sorted(files)).encode())


def read_package(files: Mapping[str, bytes], name: str, version: str) -> Package:
    """Make a package of its files.

    :param name: the name to use if the package has no manifest.
    :param version: the version to use if the package has no manifest; empty for a default.
    :raises InvalidRequest: if the manifest has errors or does not match the files, or there is nothing to install.
    """
    manifest = files.get(MANIFEST)
    if manifest is not None:
        return _read_manifest(files, manifest)
    if not NAME.holds(name):
        raise InvalidRequest(f"The package has no {MANIFEST}, and its directory's name is not a valid package name.")
    chosen = {path: data for path, data in files.items() if _FILE.fullmatch(path) and path not in _RESERVED}
    return Package(name, version or _UNVERSIONED, "", _place(chosen))


def _read_manifest(files: Mapping[str, bytes], manifest: bytes) -> Package:
    if len(manifest) > MAX_FILE_BYTES:
        raise InvalidRequest(f"{MANIFEST} has more than {MAX_FILE_BYTES} bytes.")
    try:
        toml = read_toml(manifest.decode("utf-8", "replace"))
    except NotToml as error:
        raise InvalidRequest(f"{MANIFEST} {error.problem}.") from None
    faults = FileFaults(MANIFEST, toml, "user")
    table = FileTable(toml.values, (), faults)
    name, version = table.text("name", NAME), table.text("version", _VERSION)
    description = table.text("description", _SHORT, required=False)
    members, listed = table.texts("packages", required=False), table.table("files")
    chosen: dict[str, bytes] = {}
    for path in listed.values:
        chosen[path] = files.get(path, b"")
        if listed.text(path) != digest_of_bytes(chosen[path]):
            listed.fault(path, f"must be {digest_of_bytes(chosen[path])}" if path in files else "is not in the package")
    if len(members) > _MOST_MEMBERS or any(len(each) > _MOST_CHARACTERS for each in members):
        table.fault("packages", f"must be {_MOST_MEMBERS} at most, of {_MOST_CHARACTERS} characters each")
    table.close()
    for fault in faults.in_order():
        raise InvalidRequest(f"{MANIFEST}, line {fault.line or 1}: {fault.message}.")
    return Package(name, version, description, _place(chosen, members), members, manifest)


def _place(files: Mapping[str, bytes], members: tuple[str, ...] = ()) -> Mapping[str, bytes]:
    """Return the files by their future paths in the home.

    :raises InvalidRequest: if a name is invalid, repeated or reserved, a file is too large, or there is nothing to
        install.
    """
    placed: dict[str, bytes] = {}
    for path, data in files.items():
        found = _FILE.fullmatch(path)
        if found is None or found[1] in _RESERVED:
            raise InvalidRequest(f"{path[:100]!a} is not a valid file name for a connector (.toml) or an action (.md).")
        place = f"{_DIRECTORIES[found[2]]}/{found[1]}"
        if place in placed or len(data) > MAX_FILE_BYTES:
            raise InvalidRequest(f"{found[1]} is twice in the package, or has more than {MAX_FILE_BYTES} bytes.")
        placed[place] = data
    if not placed and not members:
        raise InvalidRequest("The package has no connector and no action to install.")
    return placed
