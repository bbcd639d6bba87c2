"""The operator's word, kept in the vault where no other program can write it, and the keys under which it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.base.json import JSON
from aileron.model.audit import LockedPeriod
from aileron.model.authority import Grant, OwnCap, Passkey, PasskeyRule, Pause
from aileron.model.trust import Mark, Trusted, TrustKind


class ITrust(Interface):
    """The operator's word about files, kept where no other program can write it: in the vault, under its key.

    What was verified once is remembered for this life of the daemon, so that a list stays what it was while locked.
    """

    def generation() -> int:
        """Grows whenever what L{find} answers may have changed."""

    def find(kind: TrustKind, name: str) -> Trusted | None:
        """Return the operator's word, or L{None}: there is none, or the vault was never unlocked in this life."""

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


class IOperatorLimits(Interface):
    """The operator's word about what may begin at all, kept where no other program can write it: in the vault.

    What was verified once is remembered for this life of the daemon, as with L{ITrust}.
    """

    def pauses() -> tuple[Pause, ...]:
        """Return what is paused; nothing where the vault was never unlocked in this life, whatever its file says."""

    def keep_pauses(pauses: Sequence[Pause]) -> None:
        """Keep these in the place of all that were kept, in one write; durable when it returns.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the vault's file is damaged, or another program wrote it.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """

    def caps() -> tuple[OwnCap, ...]:
        """Return the operator's own caps, by their name; likewise."""

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


class IControl(Interface):
    """The key under which the operator's decisions are marked, in memory only while the vault is unlocked.

    It also remembers, inside the vault, which decisions were used and how far the record had come then: a row or a
    database that is put back decides nothing twice.

    Every method raises L{BindingFailed} if the vault's file is damaged or another program wrote it.
    """

    def sign(statement: Mapping[str, JSON]) -> bytes:
        """Mark C{statement}: an id of the key, and an HMAC-SHA256 over its RFC 8785 form.

        :raises VaultLocked: the vault is not unlocked.
        """

    def verifier() -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        """Return a function that tells what a mark under a statement is.

        It never raises and may be called in any thread.

        :raises VaultLocked: the vault is not unlocked.
        """

    def revision() -> tuple[str, int]:
        """Return the vault's id, and the revision of its file; the revision never goes back while the vault is one.

        :raises VaultLocked: the vault is not unlocked.
        """

    def sealed() -> tuple[int, str] | None:
        """Return the newest (sequence, hash) of the record that was sealed, or L{None}: nothing was yet.

        :raises VaultLocked: the vault is not unlocked.
        """

    def seal(sequence: int, head: str) -> None:
        """Seal how far the record has come; durable when it returns.  Errors as of L{spend}."""

    def spent(mark: bytes) -> bool:
        """Tell whether the decision with this mark was used.

        :raises VaultLocked: the vault is not unlocked.
        """

    def outdate(run: str, until: datetime, sequence: int, head: str) -> None:
        """Remember until C{until} that decisions on C{run} gave way, and seal, in one write, as of L{spend}.

        It needs no mark, so no row can hide what it is about.
        """

    def outdated(run: str) -> datetime | None:
        """Return the latest C{until} of L{outdate} on C{run}; L{None}: there is none that is still remembered.

        :raises VaultLocked: the vault is not unlocked.
        """

    def forgotten() -> datetime | None:
        """Return the latest C{until} of all that is remembered no more: what ended by then must count as used.

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

    Every method but L{public_key} raises L{aileron.model.errors.VaultLocked} while the vault is not unlocked, and
    L{aileron.model.errors.BindingFailed} where its file is damaged, or another program wrote it.
    """

    def public_key() -> str | None:
        """Return the Ed25519 public key in hexadecimal.

        L{None}: there is none yet, or the vault was never open in this life.

        It is the key that was verified at the last unlock, not the one in the file: while the vault is locked, another
        program could have written its own key there, and a person notes this one.
        """

    def make_key() -> str:
        """Return the public key, whose private one is made if there is none yet; durable when it returns.

        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """

    def endorse(statement: Mapping[str, JSON]) -> str:
        """Sign the RFC 8785 form of C{statement}; in hexadecimal.

        :raises Conflict: there is no key yet.
        """

    def locked_periods() -> tuple[LockedPeriod, ...]:
        """Return what was kept by L{put_locked_periods}."""

    def put_locked_periods(periods: Sequence[LockedPeriod]) -> None:
        """Keep the first keys of C{periods}, in the place of all earlier ones; durable when it returns.

        :raises Conflict: there is no key yet.
        :raises StoreUnavailable: the file could not be written; what was kept before stands.
        """


class IPasskeyBook(Interface):
    """The operator's passkeys and the rule, kept where no other program can write them: in the vault, under its key.

    What was verified once is remembered for this life of the daemon, as with L{ITrust}.
    """

    def passkeys() -> tuple[Passkey, ...]:
        """All, oldest first."""

    def passkey_rule() -> PasskeyRule:
        """Return what may not be approved without one."""

    def keep_passkeys(keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        """Keep both in the place of what was kept, in one write; durable when it returns.

        :raises VaultLocked: the vault is not unlocked.
        :raises BindingFailed: the vault's file is damaged, or another program wrote it.
        :raises StoreUnavailable: the file could not be written; nothing was kept.
        """
