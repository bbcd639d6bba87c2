"""What the operator has said, kept where no other program can write it: trust, brakes and standing grants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.values import Grant, OwnCap, Pause, Trusted, TrustKind


class ITrust(Interface):
    """The operator's word about files, kept where no other program can write it: in the vault, under its key.

    What was verified once is remembered for this life of the daemon, so that a list stays what it was while locked.
    """

    def generation() -> int:
        """Grows whenever what L{find} answers may have changed."""

    def find(kind: TrustKind, name: str) -> Trusted | None:
        """The operator's word, or L{None}: there is none, or the vault was never unlocked in this life."""

    def trusted() -> tuple[Trusted, ...]:
        """All, by kind and name."""

    def put(words: Sequence[Trusted]) -> None:
        """Keep them all, each in the place of an earlier one, in one write; durable when it returns.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the vault's file is damaged, or another program wrote it.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """

    def remove(kind: TrustKind, name: str) -> None:
        """Take one back.  Twice is safe; errors as of L{put}."""

    def void() -> None:
        """Take all back: the vault turned out to be older than what was done with it.  Errors as of L{put}."""


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


class IGrants(Interface):
    """The operator's standing grants, kept where no other program can write them: in the vault, under its key.

    What was verified once is remembered for this life of the daemon, so that a list stays what it was while locked.

    Every change is one durable write, and raises C{VaultLocked} where the vault is not unlocked, C{BindingFailed} where
    its file is damaged or another program wrote it, C{StoreUnavailable} where it could not be written: nothing was
    changed then.
    """

    def all() -> tuple[Grant, ...]:
        """All, oldest first; those that are no longer in force for some days yet."""

    def get(grant_id: str) -> Grant | None:
        """One, or L{None}: there is none, or the vault was never unlocked in this life."""

    def put(grant: Grant) -> None:
        """Keep a new one.

        :raises Conflict: as many are in force as can be, or there is one of this id.
        """

    def use(grant_id: str, sequence: int, head: str) -> Grant:
        """Count one use, and seal how far the record has come.

        :return: as it is after this use.
        :raises NotFound: there is none.
        :raises Conflict: it is used up, revoked or over.
        """

    def revoke(grant_id: str, at: datetime) -> Grant:
        """Let it be in force no more.  Twice is safe: the first moment stays.

        :return: as it is then.
        :raises NotFound: there is none.
        """

    def void() -> None:
        """Take all back: the vault turned out to be older than what was done with it."""
