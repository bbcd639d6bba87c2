"""The control key, what was done with it, and the keys of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.values import JSON, LockedPeriod, Mark


class IControl(Interface):
    """The key under which the operator's decisions are marked, in memory only while the vault is unlocked.

    It also remembers, inside the vault, which decisions were used and how far the record had come then: a row or a
    database that is put back decides nothing twice.

    Every method raises L{aileron.errors.BindingFailed} where the vault's file is damaged, or another program wrote it.
    """

    def sign(statement: Mapping[str, JSON]) -> bytes:
        """The mark of C{statement}: an id of the key, and an HMAC-SHA256 over its RFC 8785 form.

        :raises VaultLocked: the vault is not unlocked.
        """

    def verifier() -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        """A function that tells what a mark under a statement is; it never raises and may be called in any thread.

        :raises VaultLocked: the vault is not unlocked.
        """

    def revision() -> tuple[str, int]:
        """The vault's id, and the revision of its file; the revision never goes back while the vault is one.

        :raises VaultLocked: the vault is not unlocked.
        """

    def sealed() -> tuple[int, str] | None:
        """The newest (sequence, hash) of the record that was sealed, or L{None}: nothing was yet.

        :raises VaultLocked: the vault is not unlocked.
        """

    def seal(sequence: int, head: str) -> None:
        """Seal how far the record has come; durable when it returns.  Errors as of L{spend}."""

    def spent(mark: bytes) -> bool:
        """Whether the decision with this mark was used.

        :raises VaultLocked: the vault is not unlocked.
        """

    def outdate(run: str, until: datetime, sequence: int, head: str) -> None:
        """Remember until C{until} that decisions on C{run} gave way, and seal, in one write, as of L{spend}.

        It needs no mark, so no row can hide what it is about.
        """

    def outdated(run: str) -> datetime | None:
        """The latest C{until} of L{outdate} on C{run}; L{None}: there is none that is still remembered.

        :raises VaultLocked: the vault is not unlocked.
        """

    def forgotten() -> datetime | None:
        """The latest C{until} of all that is remembered no more: what ended by then must count as used.

        :raises VaultLocked: the vault is not unlocked.
        """

    def spend(mark: bytes, until: datetime, sequence: int, head: str) -> None:
        """Use a decision, and seal how far the record has come, in one write; durable when it returns.

        :param until: when the decision ends by itself; until then it is remembered.
        :raises Conflict: it was used.
        :raises VaultLocked: the vault is not unlocked.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """


class IRecordKeys(Interface):
    """Keys in the vault by which others can tell that a record is what it was.

    Every method but L{public_key} raises L{aileron.errors.VaultLocked} while the vault is not unlocked, and
    L{aileron.errors.BindingFailed} where its file is damaged, or another program wrote it.
    """

    def public_key() -> str | None:
        """The Ed25519 public key in hexadecimal; L{None}: there is none yet, or the vault was never open in this life.

        It is the key that was verified at the last unlock, not the one in the file: while the vault is locked, another
        program could have written its own key there, and a person notes this one.
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
