"""The vault file. It is accepted only if it has the contents that this process wrote last.

It is read again when it changes, and replaced atomically. The file is a few kilobytes on a local disk, so reading and
writing are synchronous: a write takes a few milliseconds of the reactor's time, at each change and each gated effect,
and a read takes one C{stat}.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.base.json import utc
from aileron.base.waiting import Waiting
from aileron.home.private_files import atomic_write, read_private
from aileron.model.errors import (
    Forbidden,
    InvalidRequest,
    NoVault,
    StoreUnavailable,
    VaultDamaged,
    VaultLocked,
    damaged,
)
from aileron.model.vault import VaultState

from ._cipher import SALT_BYTES, DataKey, KdfParameters, Sealed
from ._format import Seal, VaultDocument, authority_of, decode, encode, merge, version_of
from ._sealing import authenticated, is_sound

_log = Logger()
_CHANGED = "Another daemon changed the vault at the same time. Nothing was changed here: try again."
_OTHER_KEY = (
    "The vault in the database was altered, or its passphrase was changed in another home: copy secrets.json from"
    " there, and unlock it."
)
_DIVERGED = (
    "The vault in the database and the one of this home were changed independently. Keep one of them: see the"
    " documentation of several daemons."
)


class VaultChanged(StoreUnavailable):
    """Raised if another daemon changed the same part of the vault. What it wrote is known here now."""


class SharedCopy(Protocol):
    """Reads and writes the document of a vault that several daemons share. Blocks, but not for long."""

    def get(self, vault: str) -> bytes | None:
        """Return the document of a vault, or None if there is none.

        :raises StoreUnavailable: if it cannot be read now.
        """

    def put(self, vault: str, before: int | None, revision: int, authority: str, document: bytes) -> bool:
        """Store a document if the stored one has the revision C{before}, or is missing for None. Return whether it did.

        :param authority: the digest of what the operator decided.
        :raises StoreUnavailable: if it cannot be written now. It may have been written.
        """


_MAX_BYTES = 16 * 1024 * 1024


_MOST_TRIES = 20


class VaultFile:
    """Reads and writes one vault file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] = ()
        self._document: VaultDocument | None = None

    def __repr__(self) -> str:
        return f"<vault file {self._path}>"

    def read(self) -> VaultDocument | None:
        """Return the document in the file, or None if there is no file.

        While the file does not change, all calls return one object.

        :raises VaultDamaged: if the file is damaged, or not a private file of this user.
        """
        try:
            seen = self._stamp()
            if seen != self._seen:
                self._document = self._load()
                self._seen = seen
        except (Forbidden, InvalidRequest) as error:
            raise damaged(error.message) from error
        except OSError as error:
            raise damaged(f"The vault file cannot be read: {error.strerror}.") from error
        return self._document

    def version(self) -> int | None:
        """Return the version of the file's format, even one that L{read} refuses, or None if there is no file.

        :raises VaultDamaged: if the file names no version, or is not a private file of this user.
        """
        try:
            data = read_private(self._path, _MAX_BYTES)
        except (Forbidden, InvalidRequest) as error:
            raise damaged(error.message) from error
        return None if data is None else version_of(data)

    def exists(self) -> bool:
        """Return True if the file exists, damaged or not."""
        return os.path.lexists(self._path)

    def write(self, document: VaultDocument) -> None:
        """Replace the file durably.

        :raises OSError: if the file could not be written. The old one is unchanged.
        """
        atomic_write(self._path, _bytes_of(document))
        # A program that replaces the file within these microseconds is noticed at its next write.
        self._seen = self._stamp()
        self._document = document if self._seen else None

    def create(self, document: VaultDocument) -> None:
        """Write the first file.

        :raises FileExistsError: if the file exists already.
        :raises OSError: if the file could not be written.
        """
        atomic_write(self._path, _bytes_of(document), replace=False)

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _load(self) -> VaultDocument | None:
        data = read_private(self._path, _MAX_BYTES)
        return None if data is None else decode(data)


def _bytes_of(document: VaultDocument) -> bytes:
    data = encode(document)
    if len(data) > _MAX_BYTES:  # The file could be written, but never read again.
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data


_HINTS = {
    VaultState.LOCKED: "The vault is locked: run `aileron vault unlock` in your own terminal.",
    VaultState.MISSING: "There is no vault yet: run `aileron vault init` in your own terminal.",
    VaultState.LOST: "There is history but no vault file: put secrets.json back from a copy,"
    " or run `aileron vault reset` in your own terminal.",
}

_NEVER_UNLOCKED = VaultDocument("", KdfParameters(bytes(SALT_BYTES)), Sealed(b"", b""))


class OpenVault:
    """The open file of a vault, unlocked while it holds the vault's key.

    :param has_history: returns whether the database has records of a vault. Called only if there is no file.
    :param key: the key of this vault, or None to stay locked.
    :ivar others_bindings: how often bindings were found that another daemon had changed, also while merging a write.
    :raises NoVault: if there is a key but no file.
    :raises VaultDamaged: if the file is damaged, or its MAC is invalid under the key.
    """

    def __init__(
        self, path: Path, clock: IReactorTime, has_history: Callable[[], bool], key: DataKey | None = None
    ) -> None:
        self._stored = VaultFile(path)
        self._clock = clock
        self._has_history = has_history
        self._key = key
        self._waiting = Waiting()
        self._attempted: VaultDocument | None = None
        self._shared: SharedCopy | None = None
        self.authority = ""
        self.others_bindings = 0
        found = self._stored.read()
        self.known: VaultDocument | None = None if key is None else _check(found, key)

    @property
    def verified(self) -> VaultDocument:
        """The contents verified last, or those of an empty vault if none were verified in this process."""
        return _NEVER_UNLOCKED if self.known is None else self.known

    def state(self) -> VaultState:
        """Return whether the vault exists and is locked or unlocked.

        A file that vanished while unlocked counts as lost.
        """
        if not self._stored.exists():
            return VaultState.LOST if self.known is not None or self._has_history() else VaultState.MISSING
        return VaultState.LOCKED if self._key is None else VaultState.UNLOCKED

    def lock(self) -> None:
        """Wipe the key.  Idempotent."""
        if self._key is not None:
            self._key.wipe()
            self._key = None
            self._waiting.fire()

    def locked(self) -> Deferred[None]:
        """Return a Deferred that fires with None when the key is wiped, or has fired if there is no key."""
        return self._waiting.wait(over=self._key is None)

    def key(self) -> DataKey:
        """Return the key without checking the contents of the file.

        :raises VaultLocked: if the vault is not unlocked.
        """
        if self._key is None or not self._stored.exists():
            raise self._not_open()
        return self._key

    def read_unverified(self) -> VaultDocument | None:
        """Return the contents of the file for display, or None if there is no file.

        While locked, they are not verified.

        :raises VaultDamaged: if the file is damaged.
        """
        if self._shared is not None:
            return self.known
        found = self._stored.read()
        return found if self._key is None or found is None else self._make_expected(found)

    def opened(self) -> tuple[DataKey, VaultDocument]:
        """Return the key and the verified contents of the file.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if the file is not what was written last.
        """
        if self._shared is not None and self.known is not None:
            return self.key(), self.known
        key, found = self.key(), self._stored.read()
        if found is None:
            raise self._not_open()
        return key, self._make_expected(found)

    def current(self) -> VaultDocument:
        """Return the verified contents of the file.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if the file is not what was written last.
        """
        _key, document = self.opened()
        return document

    def write(self, changed: VaultDocument) -> None:
        """Write C{changed} durably, as a new revision and without entries of used decisions that have expired.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if another program wrote the file.
        :raises InvalidRequest: if a text or a number cannot be stored.
        :raises StoreUnavailable: if the file could not be written. The old contents stay in use.
        """
        key, known = self.opened()
        self._attempted = attempted = self._next(changed, known, key)
        if self._shared is not None:
            self._write_shared(self._shared, attempted, known)
            return
        try:
            self._stored.write(attempted)
        except OSError as error:
            raise StoreUnavailable(f"The vault could not be written: {error.strerror}.") from error
        self.known = attempted

    def _next(self, changed: VaultDocument, known: VaultDocument, key: DataKey) -> VaultDocument:
        """Return the document to be written over C{known}: the next revision, without expired entries, with its MAC."""
        fresh = changed.spent.keys() - known.spent.keys()
        pruned = changed.remembering(utc(self._clock.seconds()), fresh)
        return authenticated(evolve(pruned, revision=known.revision + 1), key)

    def share(self, copy: SharedCopy) -> None:
        """From now on, use the document that several daemons share. The file is a copy of it. Call while unlocked.

        The newer one of the two counts: the file's, if the database was replaced by an older one or the passphrase was
        changed while no daemon ran, or else that of the database.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if the shared document is not this vault's, or was changed independently.
        :raises StoreUnavailable: if it cannot be read or written now.
        """
        key, own = self.opened()
        data = copy.get(own.vault)
        there = None if data is None else decode(data)
        if there is not None and there.revision >= own.revision:
            self._check_shared(there, own, key)
            if there.revision == own.revision and there != own:
                raise damaged(_DIVERGED)
            self._shared = copy
            self._accept_others(there, keep=True)
            return
        before = None if there is None else there.revision
        if not copy.put(own.vault, before, own.revision, authority_of(own), encode(own)):
            raise StoreUnavailable(_CHANGED)
        self._shared = copy
        self._accept(own, keep=False)

    def refresh(self) -> bool:
        """Read the shared document if another daemon may have changed it. Return whether it had changed.

        If it is not shared or the vault is locked, do nothing.

        :raises VaultDamaged: if it is not this vault's, or an older one. The known contents stay in use.
        :raises StoreUnavailable: if it cannot be read now.
        """
        if self._shared is None or self._key is None or self.known is None:
            return False
        known, data = self.known, self._shared.get(self.known.vault)
        found = None if data is None else decode(data)
        # guard of several daemons: an older vault in the database is not accepted
        #    -> vault.test_shared.SharedTests.test_older
        if found is None or found.revision < known.revision:
            raise damaged("An older copy of the vault was put into the database while the daemon ran.")
        if found.revision == known.revision:
            return False
        self._check_shared(found, known, self._key)
        self._accept_others(found, keep=authority_of(found) != self.authority)
        return True

    def _check_shared(self, found: VaultDocument, own: VaultDocument, key: DataKey) -> None:
        """Require that a shared document is of this vault and made with its key.

        :raises VaultDamaged: if it is not.
        """
        # guard of several daemons: only who has the vault's key can change the vault
        #    -> vault.test_shared.SharedTests.test_altered
        if found.vault != own.vault or not is_sound(found, key):
            raise damaged(_OTHER_KEY)

    def _write_shared(self, copy: SharedCopy, attempted: VaultDocument, known: VaultDocument) -> None:
        """Write the document over the revision that is known here. If another daemon was faster, merge and try again.

        :raises VaultChanged: if both changed the same part.
        """
        base = known
        for _ in range(_MOST_TRIES):
            if copy.put(base.vault, known.revision, attempted.revision, authority_of(attempted), encode(attempted)):
                self._accept(attempted, keep=True)
                return
            if not self.refresh():
                break
            key, known = self.opened()
            merged = merge(base, attempted, known)
            if merged is None:
                break
            base, attempted = known, self._next(merged, known, key)
        raise VaultChanged(_CHANGED)

    def _accept_others(self, document: VaultDocument, *, keep: bool) -> None:
        """Use a verified document that another daemon wrote from now on."""
        self.others_bindings += document.entries != self.verified.entries
        self._accept(document, keep=keep)

    def _accept(self, document: VaultDocument, *, keep: bool) -> None:
        """Use a verified document from now on.

        :param keep: whether to write it to the file as well, which is a copy: a failure is logged.
        """
        self.known, self.authority = document, authority_of(document)
        if keep:
            try:
                self._stored.write(document)
            except OSError as error:
                _log.warn("the copy of the vault in this home cannot be written: {why}", why=error.strerror)

    def change(self, **changes: Any) -> None:
        """Write the file with these members changed.  If they are unchanged, nothing is written.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if another program wrote the file.
        :raises StoreUnavailable: if the file could not be written. The old contents stay in use.
        """
        known = self.current()
        changed = evolve(known, **changes)
        if changed != known:
            self.write(changed)

    def find_latest_seal(self, seal: Seal) -> Seal:
        """Return the later one of C{seal} and the stored one, which another daemon may have read meanwhile.

        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if the file is not what was written last.
        """
        stored = self.current().sealed
        # guard of several daemons: the sealed end of the log never goes back because of another daemon
        #    -> vault.test_shared.SharedTests.test_sealed
        if self._shared is not None and stored is not None and stored.sequence > seal.sequence:
            return stored
        return seal

    def _make_expected(self, found: VaultDocument) -> VaultDocument:
        if found is not self.known:
            # A write may fail after the file was replaced. The file is then the last attempt, though the caller got an
            # error.
            ours = next((each for each in (self.known, self._attempted) if each == found), None)
            if ours is None:
                # guard against attack: another vault's file opens nothing while the daemon runs
                #    -> test_rollback.RewrittenTests.test_refused, instead ours = found
                # guard against attack: an older vault's file opens nothing while the daemon runs
                #    -> test_rollback.VaultTests.test_while_it_runs, instead ours = found
                raise damaged(_difference(found, self.known))
            self.known = ours  # not C{found}: equal values may be 1 and 1.0
            return ours
        return found

    def _not_open(self) -> VaultLocked:
        state = self.state()
        return VaultLocked(_HINTS.get(state, "The vault is not open."), {"state": state.value})


def _check(found: VaultDocument | None, key: DataKey) -> VaultDocument:
    if found is None:
        raise NoVault("There is a key, but no vault that it could open.", {"state": VaultState.MISSING.value})
    if not is_sound(found, key):
        raise VaultDamaged(
            "The vault file was altered, or the key that was handed over is not its own: put secrets.json back from"
            " a copy, or unlock it again."
        )
    return found


def _difference(found: VaultDocument, known: VaultDocument | None) -> str:
    if known is not None and found.vault != known.vault:
        return "Another vault was put in the place of this one."
    if known is not None and found.revision < known.revision:
        return "An older copy of the vault was put back while the daemon ran."
    return "Another program wrote the vault file while the daemon ran."
