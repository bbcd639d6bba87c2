"""The daemon's vault: its state, and all that lies in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.interfaces import IVault
from aileron.values import VaultState

from ._authority import FileAuthority
from ._bindings import FileBindings
from ._cipher import DataKey
from ._control import FileControl
from ._credential import Renewals
from ._grants import FileGrants
from ._proofs import operator_key
from ._record_keys import FileRecordKeys
from ._vault_file import OpenVault


@implementer(IVault)
class Vault(FileBindings, FileAuthority, FileControl):
    """The vault at C{path}: state, bindings, trust, grants, brakes, passkeys and keys over one open file.

    No method takes a passphrase: the key comes once, from the parent process, and C{lock} is for the rest of this life.
    A file that is not what the holder of the key wrote last is refused at every use: L{VaultDamaged}.

    :param has_history: whether the database remembers a vault; asked only where there is no file.
    :param key: of this vault; L{None}: it starts locked.
    :param renewals: for credentials that run out; L{None}: none is renewed.
    :raises NoVault: there is a key but no file.
    :raises VaultDamaged: the file is damaged, or the key is not its own.
    """

    def __init__(
        self,
        path: Path,
        clock: IReactorTime,
        has_history: Callable[[], bool],
        key: DataKey | None = None,
        renewals: Renewals | None = None,
    ) -> None:
        self._file = OpenVault(path, clock, has_history, key)
        self._clock = clock
        self._turns = defaultdict(DeferredLock)
        self._renewals, self._changes = renewals or Renewals(), 0
        self.grants = FileGrants(self._file, clock)
        self.record_keys = FileRecordKeys(self._file)

    def __repr__(self) -> str:
        return f"<Vault {self.state().value}>"

    def state(self) -> VaultState:
        """Tell the state: a file that vanished while unlocked is lost."""
        return self._file.state()

    def ever_unlocked(self) -> bool:
        return self._file.known is not None

    def lock(self) -> None:
        """Operator sessions end because their owner waits for L{locked}."""
        self._file.lock()

    def locked(self) -> Deferred[None]:
        """Fire when it is locked; where there is no key already, it has."""
        return self._file.locked()

    def operator_key(self) -> bytes:
        """Derive the key of the operator's logins, who may come even to a damaged vault, to see what is wrong.

        :raises VaultLocked: the vault is not unlocked.
        """
        return operator_key(self._file.key())
