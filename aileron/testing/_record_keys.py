"""The keys of the audit log in memory, and the tests that every implementation of L{IRecordKeys} must pass."""

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
    """An L{IRecordKeys} in memory. Its key pair is made from C{secret}, and its signatures are valid.

    :param vault: the vault whose state applies, by default an unlocked one.
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
    """Tests of L{IRecordKeys}.  Mix into a test case with C{make_record_keys} and C{lock}."""

    def make_record_keys(self) -> IRecordKeys:
        """Return the keys of an unlocked vault, none created yet."""
        raise NotImplementedError

    def lock(self) -> None:
        """Lock the vault of these keys."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{IRecordKeys}."""
        self.assertTrue(verifyObject(IRecordKeys, self.make_record_keys()))

    def test_made_once(self) -> None:
        """The key is created once, on first use."""
        keys = self.make_record_keys()
        self.assertIsNone(keys.public_key())
        made = keys.make_key()
        self.assertEqual((keys.make_key(), keys.public_key()), (made, made))

    def test_signs(self) -> None:
        """Signatures can be verified with the public key."""
        keys = self.make_record_keys()
        unsigned = Checkpoint("vault", 1, "sha256:1", "2026-01-01T00:00:00.000000Z", NO_CHECKPOINT, keys.make_key())
        signed = evolve(unsigned, signature=keys.endorse(unsigned.statement()))
        self.assertTrue(is_signed(signed))
        self.assertFalse(is_signed(evolve(signed, sequence=2)))

    def test_no_key(self) -> None:
        """Before the audit log has a key, nothing can be signed, and no period of a locked vault can be stored."""
        keys = self.make_record_keys()
        self.assertRaises(Conflict, keys.endorse, {})
        self.assertRaises(Conflict, keys.put_locked_periods, ())

    def test_locked_periods(self) -> None:
        """Periods in which the vault was locked are stored unchanged, replacing all earlier ones.

        Their keys are not in reprs.
        """
        keys = self.make_record_keys()
        keys.make_key()
        one, other = LockedPeriod("one", b"1" * 32), LockedPeriod("other", b"2" * 32)
        keys.put_locked_periods((one, other))
        self.assertEqual(keys.locked_periods(), (one, other))
        keys.put_locked_periods((other,))
        self.assertEqual(keys.locked_periods(), (other,))
        self.assertNotIn("2222", repr(other))

    def test_locked(self) -> None:
        """While locked, nothing can be signed, and only the public key can be read."""
        keys = self.make_record_keys()
        public = keys.make_key()
        self.lock()
        self.assertRaises(VaultLocked, keys.endorse, {})
        self.assertRaises(VaultLocked, keys.locked_periods)
        self.assertRaises(VaultLocked, keys.put_locked_periods, ())
        self.assertRaises(VaultLocked, keys.make_key)
        self.assertEqual(keys.public_key(), public)
