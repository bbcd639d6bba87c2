"""The daemon's vault: its state, bindings, trust, grants, pauses, caps, passkeys and the keys of the audit log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.base.json import JSON, canonical
from aileron.model.audit import LockedPeriod
from aileron.model.authority import EnrolledSshKey, OwnCap, Passkey, PasskeyRule, Pause
from aileron.model.errors import Conflict
from aileron.model.interfaces.authority import (
    IOperatorLimits,
    IPasskeyBook,
    IPeopleBook,
    IRecordKeys,
    ISshKeyBook,
    ITrust,
)
from aileron.model.interfaces.vault import IVault
from aileron.model.people import REMOVED, Owner
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import VaultState

from ._bindings import FileBindings
from ._cipher import DataKey
from ._control import FileControl
from ._credential import Renewals
from ._format import RecordKeys, Stretch, trust_key
from ._grants import FileGrants
from ._key_sources import FileKeySources
from ._proofs import operator_key
from ._sealing import SIGNING, seal_part, unseal_part
from ._shared_renewal import RenewalTurns, Sharing
from ._vault_file import OpenVault, SharedCopy


@implementer(IRecordKeys)
class FileRecordKeys:
    """The keys of the audit log in a vault file."""

    def __init__(self, file: OpenVault) -> None:
        self._file = file

    def public_key(self) -> str | None:
        record = self._file.verified.record
        return None if record is None else record.public_key

    def make_key(self) -> str:
        key, document = self._file.opened()
        if document.record is not None:
            return document.record.public_key
        private = Ed25519PrivateKey.generate()
        public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        secret = private.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
        sealed = seal_part(document, key, SIGNING, secret)
        self._file.change(record=RecordKeys(public, sealed))
        return public

    def endorse(self, statement: Mapping[str, JSON]) -> str:
        key, document = self._file.opened()
        private = unseal_part(document, key, SIGNING, _make(document.record).signing)
        return Ed25519PrivateKey.from_private_bytes(private).sign(canonical(statement)).hex()

    def locked_periods(self) -> tuple[LockedPeriod, ...]:
        key, document = self._file.opened()
        kept = () if document.record is None else document.record.stretches
        return tuple(LockedPeriod(each.id, unseal_part(document, key, each.id, each.sealed)) for each in kept)

    def put_locked_periods(self, periods: Sequence[LockedPeriod]) -> None:
        key, document = self._file.opened()
        sealed = tuple(Stretch(each.id, seal_part(document, key, each.id, each.key)) for each in periods)
        self._file.change(record=evolve(_make(document.record), stretches=sealed))


def _make(record: RecordKeys | None) -> RecordKeys:
    if record is None:
        raise Conflict("The record has no key yet.")
    return record


@implementer(ITrust, IOperatorLimits, IPasskeyBook, ISshKeyBook, IPeopleBook)
class FileAuthority:
    """Trust, pauses, caps and passkeys in a vault's file.  A mixin of L{Vault}.

    Reads use the verified contents, so a lock or an altered file does not change them. All are empty if the vault was
    not unlocked since the daemon started.
    """

    _file: OpenVault
    _trust: tuple[Trusted, ...] = ()
    _generation = 0

    def generation(self) -> int:
        records = self._file.verified.trust
        if records is not self._trust:
            self._generation += records != self._trust
            self._trust = records
        return self._generation

    def find(self, kind: TrustKind, name: str) -> Trusted | None:
        return next((record for record in self.trusted() if trust_key(record) == (kind, name)), None)

    def trusted(self) -> tuple[Trusted, ...]:
        return self._file.verified.trust

    def put(self, words: Sequence[Trusted]) -> None:
        by_key = {trust_key(record): record for record in (*self._file.current().trust, *words)}
        self._file.change(trust=tuple(by_key[key] for key in sorted(by_key)))

    def remove(self, kind: TrustKind, name: str) -> None:
        kept = (record for record in self._file.current().trust if trust_key(record) != (kind, name))
        self._file.change(trust=tuple(kept))

    def void(self) -> None:
        # guard of roles: an older vault puts no account in force -> vault.test_people.PeopleTests.test_void,
        #    instead self._file.change(trust=())
        self._file.change(trust=(), people={})

    def pauses(self) -> tuple[Pause, ...]:
        return self._file.verified.pauses

    def keep_pauses(self, pauses: Sequence[Pause]) -> None:
        self._file.change(pauses=tuple(pauses))

    def caps(self) -> tuple[OwnCap, ...]:
        return self._file.verified.caps

    def keep_caps(self, caps: Sequence[OwnCap]) -> None:
        self._file.change(caps=tuple(sorted(caps, key=lambda each: each.name)))

    def passkeys(self) -> tuple[Passkey, ...]:
        return self._file.verified.passkeys

    def passkey_rule(self) -> PasskeyRule:
        return self._file.verified.passkey_rule

    def keep_passkeys(self, keys: Sequence[Passkey], rule: PasskeyRule) -> None:
        self._file.change(passkeys=tuple(keys), passkey_rule=rule)

    def ssh_keys(self) -> tuple[EnrolledSshKey, ...]:
        return self._file.verified.ssh_keys

    def keep_ssh_keys(self, keys: Sequence[EnrolledSshKey]) -> None:
        self._file.change(ssh_keys=tuple(keys))

    def people(self) -> Mapping[str, str]:
        return self._file.verified.people

    def keep_people(self, people: Mapping[str, str]) -> None:
        self._file.change(people=dict(people))


@implementer(IVault)
class Vault(FileBindings, FileAuthority, FileControl):
    """The vault at C{path}: state, bindings, trust, grants, pauses, caps, passkeys and keys over one open file.

    No method accepts a passphrase: the key comes once from the parent process, and C{lock} is final for this process. A
    file that differs from the last one written is refused at every use by L{VaultDamaged}.

    :param has_history: returns whether the database has records of a vault. Called only if there is no file.
    :param key: the key of this vault, or None to start locked.
    :param renewals: the dependencies of renewals, or None if nothing is renewed.
    :raises NoVault: if there is a key but no file.
    :raises VaultDamaged: if the file is damaged, or the key belongs to another vault.
    """

    def __init__(
        self,
        path: Path,
        clock: IReactorTime,
        has_history: Callable[[], bool],
        key: DataKey | None = None,
        renewals: Renewals | None = None,
    ) -> None:
        self._file = OpenVault(path, clock, has_history, key)
        self._clock = clock
        self._turns = defaultdict(DeferredLock)
        self._renewals, self._changes = renewals or Renewals(), 0
        self._sharing: Sharing | None = None
        self.grants = FileGrants(self._file, clock)
        self.record_keys = FileRecordKeys(self._file)
        self.key_sources = FileKeySources(self._file)

    def __repr__(self) -> str:
        return f"<Vault {self.state().value}>"

    def state(self) -> VaultState:
        """Return whether the vault exists and is locked or unlocked.

        A file that vanished while unlocked counts as lost.
        """
        return self._file.state()

    def ever_unlocked(self) -> bool:
        return self._file.known is not None

    def lock(self) -> None:
        """Lock the vault.  Operator sessions end too, because their owner waits for L{locked}."""
        self._file.lock()

    def share(self, copy: SharedCopy, turns: RenewalTurns) -> None:
        """From now on, use the document that several daemons share. Call while unlocked. See L{OpenVault.share}.

        :param turns: lets one daemon at a time renew a credential.
        :raises VaultLocked: if the vault is not unlocked.
        :raises VaultDamaged: if the shared document is not this vault's, or was changed independently.
        :raises StoreUnavailable: if it cannot be read or written now.
        """
        self._file.share(copy)
        self._sharing = Sharing(turns, self.refresh)

    def refresh(self) -> bool:
        """Read what other daemons changed in the vault. Return whether anything had changed.

        :raises VaultDamaged: if it is not this vault's, or an older one. The known contents stay in use.
        :raises StoreUnavailable: if it cannot be read now.
        """
        return self._file.refresh()

    def authority(self) -> tuple[str, str]:
        """Return the vault's id and the digest of what the operator decided, as known here. Safe in any thread.

        The digest is empty if the vault is not shared.
        """
        return self._file.verified.vault, self._file.authority

    def is_removed(self, owner: Owner) -> bool:
        """Return whether an owner's account was removed. While the vault was never unlocked, none is known to be."""
        # guard of roles: an account that may not come back owns nothing any more
        #    -> vault.test_people.PeopleTests.test_removed,
        #    instead return self.ever_unlocked() and owner.account not in self.people()
        return self.ever_unlocked() and self.people().get(owner.account, REMOVED).startswith(REMOVED)

    def locked(self) -> Deferred[None]:
        """Return a Deferred that fires with None when the vault is locked, or has fired if it is."""
        return self._file.locked()

    def operator_key(self) -> bytes:
        """Return the key of the operator's logins.

        A damaged vault does not prevent logins, so that its fault can be seen.

        :raises VaultLocked: if the vault is not unlocked.
        """
        return operator_key(self._file.key())
