"""The operator's SSH keys, which sign decisions on any machine: enrolment and removal (ADR 82)."""

from __future__ import annotations

import hashlib

from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.base.sshsig import read_ssh_key
from aileron.model.authority import EnrolledSshKey
from aileron.model.errors import Conflict, InvalidRequest, NotFound
from aileron.model.interfaces.authority import ISshKeyBook

_PREFIX, _ID_LENGTH = "key_", 24
_MAX_KEYS = 16


class SshKeys:
    """The operator's SSH keys, whose signatures approve or reject requests."""

    def __init__(self, book: ISshKeyBook, clock: IReactorTime) -> None:
        self._book = book
        self._clock = clock

    def list(self) -> tuple[EnrolledSshKey, ...]:
        """Return all enrolled SSH keys, oldest first."""
        return self._book.ssh_keys()

    def add(self, name: str, line: str) -> EnrolledSshKey:
        """Enrol a key, and return it.

        :param line: the key as in a C{.pub} file.
        :raises InvalidRequest: if the line is no public key, or of a kind that is not supported.
        :raises Conflict: if the key is enrolled already, or there are too many.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """
        try:
            public_key = read_ssh_key(line)[0].write()
        except ValueError as error:
            raise InvalidRequest.listing("The key was not added.", ("/public_key", str(error))) from None
        keys = self._book.ssh_keys()
        if any(each.public_key == public_key for each in keys):
            raise Conflict("This key is enrolled already.")
        if len(keys) >= _MAX_KEYS:
            raise Conflict(f"There are {_MAX_KEYS} SSH keys already. Remove one first.")
        key = EnrolledSshKey(id_of(public_key), name, public_key, utc(self._clock.seconds()))
        self._book.keep_ssh_keys((*keys, key))
        return key

    def remove(self, key_id: str) -> EnrolledSshKey:
        """Remove a key, and return it.

        Decisions that it signed and that are not carried out yet have no effect any more.

        :raises NotFound: if there is no key with this id.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """
        keys = self._book.ssh_keys()
        key = next((each for each in keys if each.id == key_id), None)
        if key is None:
            raise NotFound("There is no such SSH key.")
        self._book.keep_ssh_keys(tuple(each for each in keys if each.id != key_id))
        return key

    def find(self, public_key: str) -> EnrolledSshKey | None:
        """Return the enrolled key, or None if it is not enrolled. Safe in any thread."""
        return next((each for each in self._book.ssh_keys() if each.public_key == public_key), None)


def id_of(public_key: str) -> str:
    """Return the id of a key, from its digest."""
    return _PREFIX + hashlib.sha256(public_key.encode()).hexdigest()[:_ID_LENGTH]
