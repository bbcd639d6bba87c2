"""The keys that the record hangs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Interface

from aileron.values import JSON, LockedPeriod


class IRecordKeys(Interface):
    """Keys in the vault by which others can tell that a record is what it was.

    Every method but L{public_key} raises L{aileron.errors.VaultLocked} while the vault is not unlocked, and
    L{aileron.errors.BindingFailed} where its file is damaged, or another program wrote it.
    """

    def public_key() -> str | None:
        """The Ed25519 public key in hexadecimal; L{None}: there is none yet, or the vault was never open in this life.

        It is what was verified then: a person notes it, and a file that lies there locked can name anybody's.
        """

    def make_key() -> str:
        """The public key, whose private one is made if there is none yet; durable when it returns.

        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """

    def endorse(statement: Mapping[str, JSON]) -> str:
        """The signature over the RFC 8785 form of C{statement}, in hexadecimal.

        :raises Conflict: there is no key yet.
        """

    def locked_periods() -> tuple[LockedPeriod, ...]:
        """What was kept by L{put_locked_periods}."""

    def put_locked_periods(periods: Sequence[LockedPeriod]) -> None:
        """Keep the first keys of C{periods}, in the place of all earlier ones; durable when it returns.

        :raises Conflict: there is no key yet.
        :raises StoreUnavailable: the file could not be written; what was kept before stands.
        """
