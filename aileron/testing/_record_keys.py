"""The record's keys in memory, and what every keeper of them must do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.audit import is_signed
from aileron.base.json import JSON, canonical
from aileron.model.audit import NO_CHECKPOINT, Checkpoint, LockedPeriod
from aileron.model.errors import Conflict, VaultLocked
from aileron.model.interfaces.authority import IRecordKeys

from ._case import MixedIn
from ._vault import MemoryVault


@implementer(IRecordKeys)
class MemoryRecordKeys:
    """Real signatures under a key that is made of C{secret}.

    :param vault: whose state it obeys; unlocked by default.
    """

    def __init__(self, vault: MemoryVault | None = None, secret: bytes = b"memory record".ljust(32)) -> None:
        self._vault = MemoryVault() if vault is None else vault
        self._private = Ed25519PrivateKey.from_private_bytes(secret)
        self._made: str | None = None
        self._locked_periods: tuple[LockedPeriod, ...] = ()

    def public_key(self) -> str | None:
        return self._made

    def make_key(self) -> str:
        self._vault.check()
        self._made = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
        return self._made

    def endorse(self, statement: Mapping[str, JSON]) -> str:
        self._check_made()
        return self._private.sign(canonical(statement)).hex()

    def locked_periods(self) -> tuple[LockedPeriod, ...]:
        self._vault.check()
        return self._locked_periods

    def put_locked_periods(self, periods: Sequence[LockedPeriod]) -> None:
        self._check_made()
        self._locked_periods = tuple(periods)

    def _check_made(self) -> None:
        self._vault.check()
        if self._made is None:
            raise Conflict("The record has no key yet.")


class RecordKeysContract(MixedIn):
    """Mix into a test case with C{make_record_keys} and C{lock}."""

    def make_record_keys(self) -> IRecordKeys:
        """Those of an unlocked vault that has none yet."""
        raise NotImplementedError

    def lock(self) -> None:
        """Lock the vault of these."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """It provides IRecordKeys."""
        self.assertTrue(verifyObject(IRecordKeys, self.make_record_keys()))

    def test_made_once(self) -> None:
        """The key is made at first need, and is the same ever after."""
        keys = self.make_record_keys()
        self.assertIsNone(keys.public_key())
        made = keys.make_key()
        self.assertEqual((keys.make_key(), keys.public_key()), (made, made))

    def test_signs(self) -> None:
        """What it signs, anybody can tell by the public key."""
        keys = self.make_record_keys()
        unsigned = Checkpoint("vault", 1, "sha256:1", "2026-01-01T00:00:00.000000Z", NO_CHECKPOINT, keys.make_key())
        signed = evolve(unsigned, signature=keys.endorse(unsigned.statement()))
        self.assertTrue(is_signed(signed))
        self.assertFalse(is_signed(evolve(signed, sequence=2)))

    def test_no_key(self) -> None:
        """Without a key nothing is signed and no locked period kept."""
        keys = self.make_record_keys()
        self.assertRaises(Conflict, keys.endorse, {})
        self.assertRaises(Conflict, keys.put_locked_periods, ())

    def test_locked_periods(self) -> None:
        """Locked periods are kept whole, each in the place of all earlier ones; a key shows in no repr."""
        keys = self.make_record_keys()
        keys.make_key()
        one, other = LockedPeriod("one", b"1" * 32), LockedPeriod("other", b"2" * 32)
        keys.put_locked_periods((one, other))
        self.assertEqual(keys.locked_periods(), (one, other))
        keys.put_locked_periods((other,))
        self.assertEqual(keys.locked_periods(), (other,))
        self.assertNotIn("2222", repr(other))

    def test_locked(self) -> None:
        """While locked nothing is signed, and no key is told but the public one."""
        keys = self.make_record_keys()
        public = keys.make_key()
        self.lock()
        self.assertRaises(VaultLocked, keys.endorse, {})
        self.assertRaises(VaultLocked, keys.locked_periods)
        self.assertRaises(VaultLocked, keys.put_locked_periods, ())
        self.assertRaises(VaultLocked, keys.make_key)
        self.assertEqual(keys.public_key(), public)
