"""Makes programs in a sandbox trust the authority of their session, besides all authorities that they trust already.

Most programs read the system's bundle or directory, for which copies are mounted. Others have authorities of their own,
and are given a file by a variable. Most such variables replace the program's authorities, and the user may have set
them too: so each names a bundle of the system's authorities, the user's, and the session's.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count, islice
from os.path import isdir, join, realpath
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import field, frozen

from aileron.base.addresses import SYSTEM_BUNDLES, find_certificates, system_authorities
from aileron.base.text import visible
from aileron.model.errors import NotFound

PLACE = "/tmp/aileron-certificates"  # noqa: S108  # the sandbox has its own /tmp
"""The directory in the sandbox that the variables name."""

REPLACING = (
    *("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT"),
    *("CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"),
)
"""Variables that name a file with all authorities that a program trusts."""

ADDING = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
"""Variables that name a file with authorities that a program trusts besides its own."""

_IF_SET = ("NIX_SSL_CERT_FILE", "npm_config_cafile", "NPM_CONFIG_CAFILE")
"""Variables that replace a program's authorities too. Programs trust the session's without them."""

_DIRECTORY = "SSL_CERT_DIR"
_MOST_BYTES = 4 * 1024 * 1024
_MOST_FILES = 5000
_NO_ROOTS = (
    "This system has no bundle of certificate authorities, so own tools could reach no host. Install the package "
    "ca-certificates."
)


@frozen
class SystemRoots:
    """The places where a system has its certificate authorities.

    :ivar bundles: files with all of them; some exist.
    :ivar directory: a directory with a file for each.
    """

    bundles: Sequence[str] = SYSTEM_BUNDLES
    directory: str = "/etc/ssl/certs"


@frozen
class TrustFiles:
    """The files by which programs in a sandbox trust the session's authority.

    :ivar mounts: our paths by the paths in the sandbox where they are mounted, read-only.
    :ivar variables: the environment variables that name them.
    """

    mounts: Mapping[str, str]
    variables: Mapping[str, str] = field(factory=dict)

    @property
    def variables_outside(self) -> Mapping[str, str]:
        """The variables for programs outside of a sandbox, where nothing is mounted."""
        place = self.mounts.get(PLACE, PLACE)
        return {name: value.replace(PLACE, place) for name, value in self.variables.items()}


@contextmanager
def lay_out_trust(
    certificate: str, environment: Mapping[str, str], say: Callable[[str], object], system: SystemRoots | None = None
) -> Iterator[TrustFiles]:
    """Provide the files of a session's authority within the context.

    :param certificate: the authority's certificate in PEM.
    :param environment: the user's environment, whose variables may name further authorities.
    :param say: shows the user one line.
    :raises NotFound: if the system has no authorities.
    """
    system, own = system or SystemRoots(), certificate.encode("ascii")
    roots = system_authorities(system.bundles)
    if not roots:
        raise NotFound(_NO_ROOTS)
    added = (*_read_theirs(environment, ADDING, say), own)
    theirs = (*_read_theirs(environment, (*REPLACING, *_IF_SET, _DIRECTORY), say), *added)
    with TemporaryDirectory(prefix="aileron-certificates-") as place:
        bundle, directory = Path(place, "bundle.pem"), Path(place, "certs")
        _write(bundle, (*roots, *theirs))
        _write(Path(place, "added.pem"), added)
        covered = {realpath(each) for each in system.bundles}
        directory.mkdir()
        _copy_directory(system.directory, directory, bundle.read_bytes(), covered)
        _add_by_hash(directory, (each for each in dict.fromkeys(theirs) if each not in roots))
        mounts = {PLACE: place}
        if isdir(system.directory):
            mounts[realpath(system.directory)] = str(directory)
        inside = f"{realpath(system.directory)}{os.sep}"
        mounts |= {path: str(bundle) for path in covered if os.path.isfile(path) and not path.startswith(inside)}
        yield TrustFiles(mounts, _name_files(environment))


def _name_files(environment: Mapping[str, str]) -> Mapping[str, str]:
    set_too = [name for name in _IF_SET if environment.get(name)]
    return {
        **dict.fromkeys((*REPLACING, *set_too), f"{PLACE}/bundle.pem"),
        **dict.fromkeys(ADDING, f"{PLACE}/added.pem"),
        _DIRECTORY: f"{PLACE}/certs",
        "NODE_USE_SYSTEM_CA": "1",
    }


def _read_theirs(
    environment: Mapping[str, str], names: Iterable[str], say: Callable[[str], object]
) -> tuple[bytes, ...]:
    """Return the certificates in the files and directories that the user's variables in C{names} give.

    A message to the user names each file that cannot be used.
    """
    found: list[bytes] = []
    for name in names:
        value = environment.get(name, "")
        for path in filter(None, value.split(os.pathsep) if name == _DIRECTORY else [value]):
            try:
                found.extend(_read_place(path))
            except OSError as error:
                why = error.strerror or str(error)
                say(f"Own tools: {visible(path)}, which {name} names, is left out: {why}.")
    return tuple(dict.fromkeys(found))


def _read_place(path: str) -> Iterable[bytes]:
    """Return the certificates in a file, or in the files of a directory.

    :raises OSError: if the path cannot be read.
    """
    if not isdir(path):
        return find_certificates(_read_file(path))
    files = islice((each.path for each in os.scandir(path) if each.is_file()), _MOST_FILES)
    return chain.from_iterable(find_certificates(_read_file(each)) for each in sorted(files))


def _read_file(path: str) -> bytes:
    """Return the contents of a file.

    :raises OSError: if it cannot be read, is no regular file, or is too large.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("it is no file")
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"it has more than {_MOST_BYTES} bytes")
    return content


def _copy_directory(source: str, target: Path, bundle: bytes, bundles: Collection[str]) -> None:
    """Copy a directory of certificates with the directories in it, and replace the system's bundles.

    Files that cannot be read are left out.
    """
    paths = (join(place, name) for place, _, names in os.walk(source) for name in names)
    for path in islice(paths, _MOST_FILES):
        copy = target / os.path.relpath(path, source)
        try:
            content = bundle if realpath(path) in bundles else _read_file(path)
        except OSError:
            continue
        copy.parent.mkdir(exist_ok=True, parents=True)
        copy.write_bytes(content)


def _add_by_hash(directory: Path, certificates: Iterable[bytes]) -> None:
    """Write certificates under the names by which OpenSSL finds them: the hash of the subject, and a number."""
    from twisted.internet.ssl import Certificate  # heavy

    for each in certificates:
        subject = Certificate.loadPEM(each).original.subject_name_hash()
        names = (directory / f"{subject:08x}.{number}" for number in count())
        next(name for name in names if not name.exists()).write_bytes(each + b"\n")


def _write(path: Path, certificates: Iterable[bytes]) -> None:
    path.write_bytes(b"".join(each.rstrip() + b"\n" for each in dict.fromkeys(certificates)))
