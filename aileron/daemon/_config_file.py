"""The configuration file of a home: what is on disk, whether the operator trusts it, and what is in force."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from aileron.errors import Forbidden, InvalidRequest
from aileron.home import Home, read_private
from aileron.interfaces import IConfigFile, ITrust
from aileron.values import Candidate, LoadError, TrustKind, digest_of_bytes

from ._config import Config, read_config
from ._nodes import NotConfig

NAME = "config.yaml"
_UNTRUSTED = "it is not trusted, so nothing in it counts; read and trust it: aileron config trust"
_LATER = "it counts from the daemon's next start: aileron daemon stop, then aileron vault unlock"


@frozen
class ConfigCandidate:
    """The file at one moment: all empty where there is none.

    :ivar digest: of its bytes, if they could be read.
    :ivar error: why it is not sound; else there are the other two.
    """

    digest: str | None = None
    candidate: Candidate | None = None
    config: Config | None = None
    error: LoadError | None = None


@implementer(IConfigFile)
class ConfigFile:
    """C{config.yaml} of one home.  It is obeyed as it lay when this was made, and only if it was trusted then.

    :param trust: the operator's word, as far as it is known: nothing while the vault was never unlocked.
    :ivar config: what is in force; says nothing where the file is absent or not trusted.
    :raises InvalidRequest: what is trusted is not sound, so it was written for another version.
    """

    def __init__(self, home: Home, trust: ITrust) -> None:
        self._path, self._trust = home.config, trust
        self._last: tuple[bytes | None, ConfigCandidate] = (None, ConfigCandidate())
        self.config, self._in_force = self._choose(self._look())

    def candidate(self) -> Candidate | None:
        return self._look().candidate

    def problems(self) -> tuple[LoadError, ...]:
        found = self._look()
        if found.error is not None:
            return (found.error,)
        if found.digest is None or found.digest == self._in_force:
            return ()
        return (_fault("untrusted", _LATER if self._is_trusted(found.digest) else _UNTRUSTED, self._path),)

    def _choose(self, found: ConfigCandidate) -> tuple[Config, str | None]:
        if found.digest is None or not self._is_trusted(found.digest):
            return Config(), None
        if found.config is None:
            raise InvalidRequest(_refusal(found.error, self._path))
        return found.config, found.digest

    def _is_trusted(self, digest: str) -> bool:
        word = self._trust.find(TrustKind.CONFIG, NAME)
        return word is not None and word.digest == digest

    def _look(self) -> ConfigCandidate:
        try:
            data = read_private(self._path)
        except (Forbidden, InvalidRequest) as error:
            return _unreadable(error, self._path)
        if data != self._last[0]:
            self._last = (data, ConfigCandidate() if data is None else _read(data, self._path))
        return self._last[1]


def config_problem(home: Home) -> LoadError | None:
    """Return what is wrong with the C{config.yaml} of a home, trusted or not; L{None} if it is sound or missing."""
    try:
        data = read_private(home.config)
    except (Forbidden, InvalidRequest) as error:
        return _unreadable(error, home.config).error
    return None if data is None else _read(data, home.config).error


def _unreadable(error: Forbidden | InvalidRequest, path: Path) -> ConfigCandidate:
    return ConfigCandidate(error=_fault("unreadable", error.message, path))


def _read(data: bytes, path: Path) -> ConfigCandidate:
    digest = digest_of_bytes(data)
    try:
        text = data.decode("utf-8")
        config = read_config(text)
    except UnicodeDecodeError:
        return ConfigCandidate(digest, error=_fault("parse_error", "it is not UTF-8", path))
    except NotConfig as error:
        return ConfigCandidate(digest, error=_fault("validation_error", error.problem, path, error.line))
    return ConfigCandidate(digest, Candidate(TrustKind.CONFIG, NAME, digest, str(path), text), config)


def _fault(kind: str, message: str, path: Path, line: int | None = None) -> LoadError:
    return LoadError(kind, message, str(path), line, "user")


def _refusal(error: LoadError | None, path: Path) -> str:
    line = f":{error.line}" if error and error.line else ""
    return f"{path}{line}: {error.message if error else 'it cannot be read'}."
