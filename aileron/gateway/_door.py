"""Whether anything may leave: the vault's state, which is asked for each request and read from disk now and then."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IVault
from aileron.values import VaultState

REMEMBERED_SECONDS = 1.0

_SHUT = {
    VaultState.LOCKED: "Aileron's vault is locked: run aileron vault unlock in a terminal of your own, then try again.",
    VaultState.LOST: "Aileron's vault is lost: run aileron doctor in a terminal of your own.",
}


class Door:
    """Open, or shut for a reason.

    That the vault is locked is known at once; that its file vanished or came, within L{REMEMBERED_SECONDS}.
    """

    def __init__(self, vault: IVault, clock: IReactorTime) -> None:
        self._vault = vault
        self._clock = clock
        self._why: str | None = None
        self._until = clock.seconds()
        vault.locked().addCallback(self._forget)

    def shut(self) -> str | None:
        """Why nothing may leave, for the user; L{None}: it may."""
        now = self._clock.seconds()
        if not self._until - REMEMBERED_SECONDS <= now < self._until:  # a clock may be set back
            self._why = _SHUT.get(self._vault.state())
            self._until = now + REMEMBERED_SECONDS
        return self._why

    def _forget(self, _: object) -> None:
        self._until = self._clock.seconds()
