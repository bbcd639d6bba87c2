"""The vault's control key, which signs decisions, and the decisions that were used, in the vault's file."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256

from attrs import field, frozen
from zope.interface import implementer

from aileron.base.json import JSON, canonical
from aileron.model.errors import Conflict
from aileron.model.interfaces.authority import IControl
from aileron.model.trust import Mark

from ._cipher import DataKey
from ._format import Seal
from ._vault_file import OpenVault

_ID_BYTES = 8
_MARK_BYTES = _ID_BYTES + sha256().digest_size


@frozen
class ControlKey:
    """The key that signs decisions, derived from the vault's data key. Immutable, and so usable from any thread.

    :ivar id: identifies the data key without revealing anything else about it.
    """

    id: bytes
    _secret: bytes = field(repr=False)

    @classmethod
    def of(cls, key: DataKey) -> ControlKey:
        """Derive the key that signs decisions from the vault's data key."""
        return cls(sha256(key.subkey("aileron control id v1")).digest()[:_ID_BYTES], key.subkey("aileron control v1"))

    def sign(self, statement: Mapping[str, JSON]) -> bytes:
        """Return the mark of C{statement}, by which L{verify} recognizes it: the key's id, and an HMAC-SHA256.

        The HMAC is over the statement's RFC 8785 form.

        :raises ValueError: if the statement has no such form.
        """
        return self.id + hmac.digest(self._secret, canonical(statement), sha256)

    def verify(self, statement: Mapping[str, JSON], mark: bytes | None) -> Mark:
        """Check that C{mark} is this key's MAC of C{statement}.

        :return: whether the mark is sound, false, or made with an earlier key. Nothing is raised.
        """
        if not isinstance(mark, bytes) or len(mark) != _MARK_BYTES:
            return Mark.FALSE
        if not mark.startswith(self.id):
            return Mark.EARLIER
        try:
            return Mark.SOUND if hmac.compare_digest(self.sign(statement), mark) else Mark.FALSE
        except (ValueError, TypeError, RecursionError):
            return Mark.FALSE


@implementer(IControl)
class FileControl:
    """The part of a vault that signs and uses up decisions, a mixin of L{Vault}.

    It derives the control key, which signs them, for each use. Only the data key is stored, so that it can be wiped.
    """

    _file: OpenVault

    def sign(self, statement: Mapping[str, JSON]) -> bytes:
        return self._control_key().sign(statement)

    def verifier(self) -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        """Return a function that verifies marks, the signatures of decisions.

        It holds the key until the caller drops it.

        :raises VaultLocked: if the vault is not unlocked.
        """
        return self._control_key().verify

    def revision(self) -> tuple[str, int]:
        document = self._file.current()
        return document.vault, document.revision

    def sealed(self) -> tuple[int, str] | None:
        sealed = self._file.current().sealed
        return None if sealed is None else (sealed.sequence, sealed.head)

    def seal(self, sequence: int, head: str) -> None:
        self._file.change(sealed=Seal(sequence, head))

    def spent(self, mark: bytes) -> bool:
        return mark.hex() in self._file.current().spent

    def spend(self, mark: bytes, until: datetime, sequence: int, head: str) -> None:
        """Store that the decision with this mark (its signature) is used up, until C{until}.

        Expired marks are removed at a later write.

        :raises Conflict: if the mark was used before.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if the vault cannot be written.
        """
        if self.spent(mark):
            raise Conflict("This decision was used.")
        self._use(mark.hex(), until, Seal(sequence, head))

    def outdate(self, run: str, until: datetime, sequence: int, head: str) -> None:
        self._use(_name_of(run), max(until, self.outdated(run) or until), Seal(sequence, head))

    def outdated(self, run: str) -> datetime | None:
        return self._file.current().spent.get(_name_of(run))

    def forgotten(self) -> datetime | None:
        return self._file.current().forgotten

    def _use(self, used: str, until: datetime, sealed: Seal) -> None:
        sealed = self._file.find_latest_seal(sealed)
        self._file.change(spent={**self._file.current().spent, used: until}, sealed=sealed)

    def _control_key(self) -> ControlKey:
        key, _document = self._file.opened()
        return ControlKey.of(key)


def _name_of(run: str) -> str:
    """Return the name under which a run is stored: short and plain, even if another program wrote the run's id."""
    return "run " + sha256(run.encode("utf-8", "surrogatepass")).hexdigest()
