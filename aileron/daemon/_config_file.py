"""The files of the home that take effect only after the operator trusted them: config.yaml and action files."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from aileron.actions import MAX_FILE_BYTES, ManifestFault, parse
from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.yaml_keys import NotConfig
from aileron.features import FeatureSet
from aileron.home.paths import Home
from aileron.home.private_files import atomic_write, read_private
from aileron.model.actions import ActionFile, is_action_name
from aileron.model.audit import Actor
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, NotFound, StoreUnavailable
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import ICatalogue, IConfigFile
from aileron.model.interfaces.governance import ITrustService
from aileron.model.trust import Candidate, TrustKind

from ._config import Config, read_config


@frozen
class HomeActionFiles:
    """Checks, reads and writes the action files of one home. Writing a file does not make it trusted."""

    _home: Home
    _catalogue: ICatalogue

    def check(self, text: str) -> ActionFile:
        """Parse a text as an action file and return the action or its faults."""
        return _judge(text.encode(), "the text")

    def read(self, name: str) -> ActionFile | None:
        """Read the file of an action, valid or not, or return None if there is no file.

        A valid file is returned as the catalogue last read it.

        :raises NotFound: if no action can have this name.
        :raises Forbidden: if the directory of actions is a symbolic link.
        """
        path = self._find(name)
        known = self._catalogue.current().actions.get(name)
        if known is not None:
            return ActionFile(known.text, known.digest, known)
        data = read_private(path, MAX_FILE_BYTES)
        return None if data is None else ActionFile(data.decode("utf-8", "replace"), digest_of_bytes(data), None)

    def write(self, name: str, text: str, before: str | None) -> ActionFile:
        """Write the file of an action, and return the file with its action. Idempotent.

        :param before: the digest of the file that the text replaces, or None if there must be no file.
        :raises InvalidRequest: if the text has faults, or a new file declares another name than C{name}.
        :raises Conflict: if the file on disk has another digest than C{before}.
        :raises NotFound: if no action can have this name.
        :raises Forbidden: if the directory of actions is a symbolic link.
        :raises StoreUnavailable: if the file cannot be written.
        """
        path = self._find(name)
        found, there = _judge(text.encode(), str(path)), read_private(path, MAX_FILE_BYTES)
        if found.action is None:
            problems = [("/text", f"line {fault.line or 1}: {fault.message}") for fault in found.faults]
            raise InvalidRequest.listing("The text has errors. Nothing was saved.", *problems)
        if there is None and found.action.name != name:
            message = "A new file has the name of its action. Nothing was saved."
            raise InvalidRequest.listing(message, ("/text", f"must declare the name {name}"))
        if there == text.encode():
            return found  # a retry after a lost answer
        if before != (None if there is None else digest_of_bytes(there)):
            raise _refuse_changed(there)
        try:
            atomic_write(path, text.encode(), replace=there is not None)
        except FileExistsError:
            raise _refuse_changed(read_private(path, MAX_FILE_BYTES)) from None
        except OSError as error:
            raise StoreUnavailable(f"The file cannot be written: {error.strerror}. Nothing was saved.") from error
        return found

    def _find(self, name: str) -> Path:
        """Return the path of the action's file in the directory of actions, whether or not the file exists.

        :raises NotFound: if no action can have this name.
        :raises Forbidden: if the directory of actions is a symbolic link.
        """
        if not is_action_name(name):
            raise NotFound("No action can have this name.")
        if self._home.actions.is_symlink():
            raise Forbidden(f"{self._home.actions} is a symbolic link.")
        known = self._catalogue.refresh().actions.get(name)
        return self._home.actions / (f"{name}.md" if known is None else Path(known.path).name)


def _judge(data: bytes, path: str) -> ActionFile:
    text, digest = data.decode("utf-8", "replace"), digest_of_bytes(data)
    try:
        return ActionFile(text, digest, parse(data, path))
    except ManifestFault as fault:
        return ActionFile(text, digest, None, fault.errors)


def _refuse_changed(there: bytes | None) -> Conflict:
    present = None if there is None else digest_of_bytes(there)
    return Conflict("The file was changed since you opened it. Nothing was saved.", {"digest": present})


NAME = "config.yaml"
_UNTRUSTED = "it is not trusted, so it has no effect; review and trust it: aileron config trust"
_AT_START = Actor("human", "passphrase")
_LATER = "it takes effect at the daemon's next start: aileron daemon stop, then aileron vault unlock"


@frozen
class ConfigCandidate:
    """The state of C{config.yaml} at one moment. All fields are empty if there is no file.

    :ivar digest: the digest of its bytes, if they could be read.
    :ivar error: the reason why the file is invalid, or None if the other two fields are set.
    """

    digest: str | None = None
    candidate: Candidate | None = None
    config: Config | None = None
    error: LoadError | None = None


@implementer(IConfigFile)
class ConfigFile:
    """C{config.yaml} of one home, as it was when this object was created. It is in force only if it was trusted then.

    :param trust: the operator's trust. It is empty if the vault was never unlocked.
    :param features: the features whose keys are allowed.
    :param confirmed: a digest that the operator confirms with this start, or None. A file that has it is in force, as
        if it had been trusted before.
    :ivar config: the configuration in force. It is empty if the file is absent or not trusted.
    :ivar features: the features with the switches of the configuration applied.
    :raises InvalidRequest: if the trusted file is invalid, so it was written for another version.
    """

    def __init__(self, home: Home, trust: ITrust, features: FeatureSet, confirmed: str | None = None) -> None:
        self._path, self._trust, self._known, self._confirmed = home.config, trust, features, confirmed
        self._last: tuple[bytes | None, ConfigCandidate] = (None, ConfigCandidate())
        found = self._look()
        self.config, self._in_force = self._choose(found)
        self.features = features.switch(self.config.features)
        if self.features.known != features.known and found.candidate is not None:  # foreign settings can be parsed now
            self.config = read_config(found.candidate.text, self.features)

    @property
    def log_format(self) -> str:
        """The format of the log. It is in force without trust, so that a locked daemon writes the log alike."""
        found = self._look().config
        return Config().log if found is None else found.log

    def require_trusted(self) -> None:
        """Require that the configuration in force is still trusted, after the vault's newest contents were read.

        :raises InvalidRequest: if it is not.
        """
        # guard of several daemons: a configuration that was distrusted elsewhere is not used
        #    -> daemon.test_config.FileTests.test_distrusted
        if self._in_force is None or not self._is_trusted(self._in_force):
            raise InvalidRequest(f"{self._path} is not the one that is trusted: copy it from another home.")

    async def trust_confirmed(self, service: ITrustService) -> None:
        """Trust the configuration in force if the operator confirms it with this start and it is not trusted yet.

        :raises Conflict: if the file was changed meanwhile.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the trust cannot be stored.
        """
        confirmed, self._confirmed = self._confirmed, None
        if confirmed is not None and confirmed == self._in_force and not self._is_trusted(confirmed):
            await service.trust([(TrustKind.CONFIG, NAME, confirmed)], _AT_START)

    def candidates(self) -> tuple[Candidate, ...]:
        found = self._look().candidate
        return () if found is None else (found,)

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
        if digest == self._confirmed:
            return True
        word = self._trust.find(TrustKind.CONFIG, NAME)
        return word is not None and word.digest == digest

    def _look(self) -> ConfigCandidate:
        try:
            data = read_private(self._path)
        except (Forbidden, InvalidRequest) as error:
            return _unreadable(error, self._path)
        if data != self._last[0]:
            self._last = (data, ConfigCandidate() if data is None else _read(data, self._path, self._known))
        return self._last[1]


def config_problem(home: Home) -> LoadError | None:
    """Return the error in the C{config.yaml} of a home, trusted or not, or None if it is valid or missing."""
    try:
        data = read_private(home.config)
    except (Forbidden, InvalidRequest) as error:
        return _unreadable(error, home.config).error
    return None if data is None else _read(data, home.config, FeatureSet()).error


def _unreadable(error: Forbidden | InvalidRequest, path: Path) -> ConfigCandidate:
    return ConfigCandidate(error=_fault("unreadable", error.message, path))


def _read(data: bytes, path: Path, features: FeatureSet) -> ConfigCandidate:
    digest = digest_of_bytes(data)
    try:
        text = data.decode("utf-8")
        config = read_config(text, features)
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
