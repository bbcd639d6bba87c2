"""The file C{packages.json} of a home: the installed packages and the keys of their publishers.

An agent may be able to write the file, so it is used only if the operator has trusted its digest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, frozen
from zope.interface import implementer

from aileron.base.converter import JsonConverter, Member
from aileron.base.json import digest_of_bytes, loads_strict
from aileron.base.load_error import LoadError
from aileron.home.private_files import read_private
from aileron.model.errors import Forbidden, InvalidRequest
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import Candidate, TrustKind

from ._package import PLACE, VERSION

NAME = "packages.json"
_VERSION = re.compile(VERSION)
MOST_LOCK_BYTES = 1024 * 1024
_UNTRUSTED = "it is not trusted as it is now, so no package can be changed; read and trust it: aileron config trust"


@frozen
class Installed:
    """The entry of an installed package.

    :ivar source: the source, without a version.
    :ivar commit: the id of the tag's commit; empty if the package did not come from Git.
    :ivar digest: the digest of the whole package.
    :ivar publisher: the key that signed the package; empty if it is not signed.
    :ivar host_key: the host key of the SSH server; empty if the package did not come over SSH.
    :ivar files: the digests of the files, by path in the home.
    :ivar highest: the highest version of the package that was ever installed, if that is higher than C{version}.
    """

    name: str
    version: str
    source: str
    commit: str
    digest: str
    publisher: str
    host_key: str
    files: Mapping[str, str]
    highest: str = ""

    def __attrs_post_init__(self) -> None:
        versions = (self.version, self.highest or self.version)
        if not all(map(_VERSION.fullmatch, versions)) or not all(map(PLACE.fullmatch, self.files)):
            raise ValueError(f"the package {self.name} has an invalid version or path")

    @property
    def consent(self) -> str:
        """The publisher's key, and the repository or package for which the operator accepts it; empty if not signed."""
        return self.publisher and f"{self.publisher} {self.source if '://' in self.source else self.name}"

    def find_unchanged(self, there: Mapping[str, bytes]) -> set[str]:
        """Return the paths of the files whose contents equal the installed ones.

        :param there: the contents of files in the home, by path.
        """
        return {place for place, data in there.items() if self.files.get(place) == digest_of_bytes(data)}


@frozen
class Lock:
    """The contents of C{packages.json}.

    :ivar github: the URL that replaces C{github://} in sources.
    :ivar publishers: the accepted keys, each with its repository or package, as in L{Installed.consent}.
    :ivar packages: the installed packages, by order of name.
    :ivar uninstalled: the uninstalled packages, without their files. A package that is installed again is compared with
        the version that was uninstalled.
    """

    github: str = "https://github.com/"
    publishers: tuple[str, ...] = ()
    packages: tuple[Installed, ...] = ()
    uninstalled: tuple[Installed, ...] = ()

    @property
    def keys(self) -> set[str]:
        """The public keys of all publishers that the operator accepted."""
        return {each.partition(" ")[0] for each in self.publishers}

    @property
    def digests(self) -> set[str]:
        """The digests of all files that installed packages brought."""
        return {digest for package in self.packages for digest in package.files.values()}

    def find(self, name: str) -> Installed | None:
        """Return the installed package of a name, or None if it is not installed."""
        return next((each for each in self.packages if each.name == name), None)

    def find_uninstalled(self, name: str) -> Installed | None:
        """Return the uninstalled package of a name, or None if there is none."""
        return next((each for each in self.uninstalled if each.name == name), None)

    def replace(self, name: str, package: Installed | None) -> Lock:
        """Return a copy with C{package} installed under a name, or with that name uninstalled if C{package} is None.

        A publisher's key that was replaced by another key is dropped, unless another package needs it.
        """
        others = [each for each in self.packages if each.name != name]
        found = sorted([*others, *([] if package is None else [package])], key=_name_of)
        consent = "" if package is None else package.consent
        before = self.find(name) or self.find_uninstalled(name)
        former = before.consent if before else ""
        is_replaced = former != consent and former.partition(" ")[2] == consent.partition(" ")[2]
        gone = {former} - {each.consent for each in others} if is_replaced else set()
        kept = (each for each in self.publishers if each not in gone)
        publishers = tuple(dict.fromkeys(filter(None, (*kept, consent))))
        gone_by = [evolve(before, files={})] if before is not None and package is None else []
        removed = sorted([*(each for each in self.uninstalled if each.name != name), *gone_by], key=_name_of)
        return evolve(self, packages=tuple(found), publishers=publishers, uninstalled=tuple(removed))

    def encode(self) -> bytes:
        """Return the content of C{packages.json}."""
        return (json.dumps(_FORM.to_json(self), indent=2, ensure_ascii=False) + "\n").encode()


def _name_of(package: Installed) -> str:
    return package.name


_FORM = JsonConverter()
_FORM.differ(Lock, uninstalled=Member(optional=True))
_FORM.differ(Installed, highest=Member(optional=True))


def read_lock(data: bytes | None) -> Lock:
    """Parse the bytes of C{packages.json}. If C{data} is None, return an empty lock.

    :raises InvalidRequest: if the file has errors.
    """
    try:
        return Lock() if data is None else _FORM.from_json(Lock, loads_strict(data))
    except ValueError as error:
        raise InvalidRequest(f"{NAME} has an error: {error}.") from None


@implementer(IConfigFile)
@frozen
class LockFile:
    """C{packages.json} of a home as a file that the operator can trust. The daemon does not use its contents.

    :ivar trust: the records of trusted files.
    """

    path: Path
    trust: ITrust

    def candidates(self) -> tuple[Candidate, ...]:
        return self._read()[0]

    def problems(self) -> tuple[LoadError, ...]:
        return self._read()[1]

    def _read(self) -> tuple[tuple[Candidate, ...], tuple[LoadError, ...]]:
        try:
            data = read_private(self.path, MOST_LOCK_BYTES)
            read_lock(data)
        except (Forbidden, InvalidRequest) as error:
            return (), (LoadError("validation_error", error.message, str(self.path), None, "user"),)
        if data is None:
            return (), ()
        found = Candidate(TrustKind.CONFIG, NAME, digest_of_bytes(data), str(self.path), data.decode())
        word = self.trust.find(TrustKind.CONFIG, NAME)
        trusted = word is not None and word.digest == found.digest
        return (found,), () if trusted else (LoadError("untrusted", _UNTRUSTED, str(self.path), None, "user"),)
