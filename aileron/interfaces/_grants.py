"""Where standing grants are kept."""

from __future__ import annotations

from datetime import datetime

from zope.interface import Interface

from aileron.values import Grant


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
