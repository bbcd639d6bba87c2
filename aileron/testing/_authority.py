"""Trust and the control key (which signs decisions) in memory, for tests of the runner and the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from zope.interface import implementer

from aileron.base.json import JSON
from aileron.model.errors import Conflict
from aileron.model.interfaces.authority import IControl, ITrust
from aileron.model.trust import Mark, Trusted, TrustKind
from aileron.vault import ControlKey, DataKey

from ._vault import KeptInMemory, MemoryVault

_KEY = b"memory control".ljust(32)


@implementer(ITrust)
class MemoryTrust(KeptInMemory):
    """An L{ITrust} in memory.

    :param vault: the vault whose state applies, by default an unlocked one.
    :param words: trust that an earlier process stored, loaded if the vault is or was unlocked.
    """

    def __init__(self, vault: MemoryVault | None = None, words: Sequence[Trusted] = ()) -> None:
        super().__init__(vault)
        self._words = _by_name(words) if self._vault.ever_unlocked() else {}
        self._generation = 0

    def generation(self) -> int:
        return self._generation

    def find(self, kind: TrustKind, name: str) -> Trusted | None:
        return self._words.get((kind, name))

    def trusted(self) -> tuple[Trusted, ...]:
        return tuple(self._words[key] for key in sorted(self._words))

    def put(self, words: Sequence[Trusted]) -> None:
        self._become({**self._words, **_by_name(words)})

    def remove(self, kind: TrustKind, name: str) -> None:
        self._become({key: word for key, word in self._words.items() if key != (kind, name)})

    def void(self) -> None:
        self._become({})

    def _become(self, words: dict[tuple[TrustKind, str], Trusted]) -> None:
        self._vault.check()
        if words != self._words:
            self.check_writable()
            self._words = words
            self._generation += 1


def _by_name(words: Sequence[Trusted]) -> dict[tuple[TrustKind, str], Trusted]:
    return {(word.kind, word.name): word for word in words}


@implementer(IControl)
class MemoryControl(KeptInMemory):
    """An L{IControl} in memory, which signs decisions. All objects of this class share one key.

    Used decisions and the end of the audit log are in memory, too.

    :ivar vault_id: set another id to simulate a replaced vault.
    :ivar file_revision: set a lower value to simulate a restored older vault.
    """

    def __init__(self, vault: MemoryVault | None = None) -> None:
        super().__init__(vault)
        self._key = ControlKey.of(DataKey(_KEY))
        self._sealed: tuple[int, str] | None = None
        self._spent: set[bytes] = set()
        self._outdated: dict[str, datetime] = {}
        self.vault_id = "memory"
        self.file_revision = 1

    def change_key(self, secret: bytes = b"another".ljust(32)) -> None:
        """Change the key, as a new passphrase does.  Earlier marks are L{Mark.EARLIER} afterwards."""
        self._key = ControlKey.of(DataKey(secret))

    def sign(self, statement: Mapping[str, JSON]) -> bytes:
        self._vault.check()
        return self._key.sign(statement)

    def verifier(self) -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        self._vault.check()
        return self._key.verify

    def revision(self) -> tuple[str, int]:
        self._vault.check()
        return self.vault_id, self.file_revision

    def sealed(self) -> tuple[int, str] | None:
        self._vault.check()
        return self._sealed

    def seal(self, sequence: int, head: str) -> None:
        self._vault.check()
        if self._sealed != (sequence, head):
            self.check_writable()
            self._sealed = (sequence, head)
            self.file_revision += 1

    def spent(self, mark: bytes) -> bool:
        self._vault.check()
        return mark in self._spent

    def spend(self, mark: bytes, until: datetime, sequence: int, head: str) -> None:
        """Record a mark as used, and store the sequence and hash of the newest audit record.

        Expired marks are stored too.

        :raises Conflict: if the mark was used before.
        :raises VaultLocked: if the vault is locked.
        :raises StoreUnavailable: if the simulated disk is full.
        """
        if self.spent(mark):
            raise Conflict("This decision was used.")
        self.check_writable()
        self._spent.add(mark)
        self._sealed = (sequence, head)
        self.file_revision += 1

    def outdate(self, run: str, until: datetime, sequence: int, head: str) -> None:
        self.check_writable()
        self._outdated[run] = max(until, self._outdated.get(run, until))
        self._sealed = (sequence, head)
        self.file_revision += 1

    def outdated(self, run: str) -> datetime | None:
        self._vault.check()
        return self._outdated.get(run)

    def forgotten(self) -> datetime | None:
        """Return None: used marks are never deleted."""
        self._vault.check()
        return None
