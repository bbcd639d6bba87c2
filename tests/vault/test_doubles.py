"""The doubles in memory keep the contracts of what they stand for."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.vault import VaultState
from aileron.testing import (
    ControlContract,
    GrantsContract,
    MemoryBindings,
    MemoryControl,
    MemoryGrants,
    MemoryOperatorLimits,
    MemoryRecordKeys,
    MemoryTrust,
    MemoryVault,
    OperatorLimitsContract,
    RecordKeysContract,
    TrustContract,
    VaultContract,
)

from .authorized import AuthorizedContract


class MemoryCase(SynchronousTestCase):
    """With a vault in memory."""

    def setUp(self) -> None:
        self.vault = MemoryVault()

    def lock(self) -> None:
        self.vault.lock()


class MemoryVaultTests(VaultContract, SynchronousTestCase):
    def make_vault(self) -> MemoryVault:
        return MemoryVault()

    def make_locked(self) -> MemoryVault:
        return MemoryVault(VaultState.LOCKED)


class MemoryBindingsTests(MemoryCase, AuthorizedContract):
    def make_bindings(self) -> MemoryBindings:
        return MemoryBindings(self.vault)


class MemoryOperatorLimitsTests(MemoryCase, OperatorLimitsContract):
    def setUp(self) -> None:
        super().setUp()
        self.operator_limits = MemoryOperatorLimits(self.vault)

    def make_operator_limits(self) -> MemoryOperatorLimits:
        return self.operator_limits

    def break_disk(self) -> None:
        self.operator_limits.full = True


class MemoryTrustTests(MemoryCase, TrustContract):
    def setUp(self) -> None:
        super().setUp()
        self.trust = MemoryTrust(self.vault)

    def make_trust(self) -> MemoryTrust:
        return self.trust

    def break_disk(self) -> None:
        self.trust.full = True


class MemoryControlTests(MemoryCase, ControlContract):
    def setUp(self) -> None:
        super().setUp()
        self.control = MemoryControl(self.vault)

    def make_control(self) -> MemoryControl:
        return self.control

    def make_other(self) -> MemoryControl:
        other = MemoryControl()
        other.change_key()
        return other

    def break_disk(self) -> None:
        self.control.full = True


class MemoryGrantsTests(MemoryCase, GrantsContract):
    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.clock.advance(1_700_000_000)
        self.control = MemoryControl(self.vault)
        self.grants = MemoryGrants(self.vault, self.control, self.clock)

    def make_grants(self) -> MemoryGrants:
        return self.grants

    def make_control(self) -> MemoryControl:
        return self.control

    def break_disk(self) -> None:
        self.grants.full = True


class MemoryRecordKeysTests(MemoryCase, RecordKeysContract):
    def make_record_keys(self) -> MemoryRecordKeys:
        return MemoryRecordKeys(self.vault)
