"""Interfaces of the operator's decisions and keys in the vault, where no other program can write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.base.json import JSON
from aileron.model.audit import LockedPeriod
from aileron.model.authority import EnrolledSshKey, Grant, OwnCap, Passkey, PasskeyRule, Pause
from aileron.model.trust import Mark, Trusted, TrustKind


class ITrust(Interface):
    """The operator's trust in files, stored in the vault, where no other program can write.

    Entries verified at an unlock stay in memory until the daemon stops, so they can be read while the vault is locked.
    """

    def generation() -> int:
        """Return a number that grows whenever the result of L{find} may have changed."""

    def find(kind: TrustKind, name: str) -> Trusted | None:
        """Return the trust in one file, or None if there is none or the vault was never unlocked in this process."""

    def trusted() -> tuple[Trusted, ...]:
        """Return the entries of all trusted files, by kind and name."""

    def put(words: Sequence[Trusted]) -> None:
        """Store these entries in one durable write. Each replaces an earlier one of its kind and name.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """

    def remove(kind: TrustKind, name: str) -> None:
        """Remove one entry. Idempotent.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """

    def void() -> None:
        """Remove all entries, and those of L{IPeopleBook}, because the vault turned out to be an older copy.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """


class IOperatorLimits(Interface):
    """The operator's pauses and caps, stored in the vault, where no other program can write.

    Entries verified at an unlock stay in memory until the daemon stops, as with L{ITrust}.
    """

    def pauses() -> tuple[Pause, ...]:
        """Return the pauses, or nothing if the vault was never unlocked in this process."""

    def keep_pauses(pauses: Sequence[Pause]) -> None:
        """Replace all stored pauses in one durable write.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """

    def caps() -> tuple[OwnCap, ...]:
        """Return the operator's caps by name, or nothing if the vault was never unlocked in this process."""

    def keep_caps(caps: Sequence[OwnCap]) -> None:
        """Replace all stored caps in one durable write.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """


class IGrants(Interface):
    """The operator's standing grants, stored in the vault, where no other program can write.

    Entries verified at an unlock stay in memory until the daemon stops, so they can be read while the vault is locked.

    Every change is one durable write. If the vault is not unlocked, it raises C{VaultLocked}. If its file is damaged or
    another program wrote it, it raises C{BindingFailed}. If the file cannot be written, it raises C{StoreUnavailable}.
    Then nothing was changed.
    """

    def all() -> tuple[Grant, ...]:
        """Return all grants, oldest first. Grants that ended are included for some days."""

    def get(grant_id: str) -> Grant | None:
        """Return one grant, or None if there is none or the vault was never unlocked in this process."""

    def put(grant: Grant) -> None:
        """Store a new grant.

        :raises Conflict: if the most grants are in force, or there is already a grant with this id.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file cannot be written.
        """

    def use(grant_id: str, sequence: int, head: str) -> Grant:
        """Count one use of a grant.

        In the same write, store the sequence and hash of the newest record of the audit log.

        :return: the grant after this use.
        :raises NotFound: if there is no such grant.
        :raises Conflict: if the grant is used up, revoked or expired.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file cannot be written.
        """

    def revoke(grant_id: str, at: datetime) -> Grant:
        """Revoke a grant. If the grant is revoked already, the time of the first revocation is kept.

        :return: the revoked grant.
        :raises NotFound: if there is no such grant.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file cannot be written.
        """

    def void() -> None:
        """Revoke all grants, because the vault turned out to be an older copy.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file cannot be written.
        """


class IControl(Interface):
    """The vault's key that authenticates the operator's decisions. It is in memory only while the vault is unlocked.

    The vault also stores which decisions were used, and the sequence and hash of the newest record of the audit log
    (the "sealed" record), so that restoring an old row or database cannot repeat a decision. Every method raises
    L{BindingFailed} if the vault file is damaged or another program wrote it.
    """

    def sign(statement: Mapping[str, JSON]) -> bytes:
        """Return the mark of C{statement}: an id of the key, and an HMAC-SHA256 over the RFC 8785 form.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def verifier() -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        """Return a function that verifies a mark of a statement.

        The function never raises and may be called in any thread.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def revision() -> tuple[str, int]:
        """Return the vault's id and the revision of its file. The revision of one vault never decreases.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def sealed() -> tuple[int, str] | None:
        """Return the sequence and hash that L{seal} stored last, or None if it was never called.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def seal(sequence: int, head: str) -> None:
        """Store the sequence and hash of the newest record of the audit log in the vault, durably.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written.
        """

    def spent(mark: bytes) -> bool:
        """Return whether the decision with this mark was used.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def outdate(run: str, until: datetime, sequence: int, head: str) -> None:
        """Store until C{until} that all decisions on C{run} are outdated and may not be used.

        The same write stores the sequence and hash of the newest record of the audit log, as L{seal} does. Decisions
        are named by the run's id, not by their marks, because an altered row could contain another mark.

        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def outdated(run: str) -> datetime | None:
        """Return the latest time until which L{outdate} stored that decisions on C{run} are outdated.

        Return None if there is none or it has passed.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def forgotten() -> datetime | None:
        """Return the latest C{until} of all entries of used decisions that were deleted, or None if none was deleted.

        A decision that expires at this time or earlier must count as used, because its entry may be deleted.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def spend(mark: bytes, until: datetime, sequence: int, head: str) -> None:
        """Store that a decision was used. The same write stores the newest record of the audit log, as L{seal} does.

        :param mark: the mark of the decision, from L{sign}.
        :param until: when the decision expires. The entry is stored until then.
        :raises Conflict: if the decision was already used.
        :raises VaultLocked: if the vault is not unlocked.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """


class IRecordKeys(Interface):
    """The keys in the vault that prove that the audit log is unaltered.

    If the vault is not unlocked, every method but L{public_key} raises L{aileron.model.errors.VaultLocked}. If its file
    is damaged or another program wrote it, they raise L{aileron.model.errors.BindingFailed}.
    """

    def public_key() -> str | None:
        """Return the Ed25519 public key in hexadecimal.

        If there is no key yet, or the vault was never unlocked in this process, return None.

        The result is the key that was verified at the last unlock, not the key in the file, because a person notes the
        shown key for later comparisons. While the vault is locked, another program could replace the key in the file.
        """

    def make_key() -> str:
        """Return the public key. If there is none yet, create the key pair and store it durably.

        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def endorse(statement: Mapping[str, JSON]) -> str:
        """Return the signature of the RFC 8785 form of C{statement}, in hexadecimal.

        :raises Conflict: if there is no key yet.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def locked_periods() -> tuple[LockedPeriod, ...]:
        """Return the stored periods in which the audit log was written while the vault was locked.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """

    def put_locked_periods(periods: Sequence[LockedPeriod]) -> None:
        """Store the periods in which the audit log was written while the vault was locked, with the first key of each.

        They replace all that were stored before. The write is durable.

        :raises Conflict: if the audit log has no signing key yet.
        :raises StoreUnavailable: if the file could not be written. The earlier keys stay.
        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        """


class ISshKeyBook(Interface):
    """The operator's SSH keys, stored in the vault. As with L{IPasskeyBook}, they stay in memory after a lock."""

    def ssh_keys() -> tuple[EnrolledSshKey, ...]:
        """Return all SSH keys, oldest first."""

    def keep_ssh_keys(keys: Sequence[EnrolledSshKey]) -> None:
        """Replace the stored SSH keys in one durable write.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """


class IPeopleBook(Interface):
    """The digests of the accounts in force, stored in the vault, where no other program can write.

    An account in the database counts only while its digest is here. As with L{IPasskeyBook}, the digests stay in memory
    after a lock.
    """

    def people() -> Mapping[str, str]:
        """Return the digest of each account in force, by the account's ID.

        An account of a provider that the operator removed has L{aileron.model.people.REMOVED} and its name instead.
        """

    def keep_people(people: Mapping[str, str]) -> None:
        """Replace the stored digests in one durable write.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed, StoreUnavailable: if its file is damaged, or cannot be written. Nothing was stored.
        """


class IPasskeyBook(Interface):
    """The operator's passkeys and their rule, stored in the vault, where no other program can write.

    Entries verified at an unlock stay in memory until the daemon stops, as with L{ITrust}.
    """

    def passkeys() -> tuple[Passkey, ...]:
        """Return all passkeys, oldest first."""

    def passkey_rule() -> PasskeyRule:
        """Return the rule of approvals that need a passkey."""

    def keep_passkeys(keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        """Replace the stored passkeys and rule in one durable write.

        :raises VaultLocked: if the vault is not unlocked.
        :raises BindingFailed: if the vault file is damaged, or another program wrote it.
        :raises StoreUnavailable: if the file could not be written. Nothing was stored.
        """
