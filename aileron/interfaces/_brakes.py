"""The operator's brakes: what is paused, and own caps."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import OwnCap, Pause


class IBrakes(Interface):
    """The operator's word about what may begin at all, kept where no other program can write it: in the vault.

    What was verified once is remembered for this life of the daemon, as with L{ITrust}.
    """

    def pauses() -> tuple[Pause, ...]:
        """What is paused; nothing where the vault was never unlocked in this life, whatever its file says."""

    def keep_pauses(pauses: Sequence[Pause]) -> None:
        """Keep these in the place of all that were kept, in one write; durable when it returns.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the vault's file is damaged, or another program wrote it.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """

    def caps() -> tuple[OwnCap, ...]:
        """The operator's own caps, by their name; likewise."""

    def keep_caps(caps: Sequence[OwnCap]) -> None:
        """Keep these in the place of all that were kept; errors as of L{keep_pauses}."""
