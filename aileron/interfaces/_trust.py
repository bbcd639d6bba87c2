"""What the operator trusts."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import Trusted, TrustKind


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
