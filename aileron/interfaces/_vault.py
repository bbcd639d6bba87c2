"""The vault's state."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from zope.interface import Interface

from aileron.values import VaultState


class IVault(Interface):
    """The encrypted file's state.  The key is in memory only while unlocked."""

    def state() -> VaultState:
        """The state now."""

    def ever_unlocked() -> bool:
        """Whether it was unlocked at any time in this life of the daemon."""

    def lock() -> None:
        """Forget the key and end every operator session.

        Twice is safe.  Whoever calls it has waited for running effects.
        """

    def locked() -> Deferred[None]:
        """Fires when the vault becomes locked.  Each caller its own."""
