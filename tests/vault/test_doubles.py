"""The doubles in memory keep the contracts of what they stand for."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.testing import (
    BindingsContract,
    MemoryBindings,
    MemoryOperators,
    MemoryVault,
    OperatorsContract,
    VaultContract,
)
from aileron.values import VaultState
from aileron.vault import Exchange, daemon_proof


class MemoryVaultTests(VaultContract, SynchronousTestCase):
    def make_vault(self) -> MemoryVault:
        return MemoryVault()

    def make_locked(self) -> MemoryVault:
        return MemoryVault(VaultState.LOCKED)


class MemoryBindingsTests(BindingsContract, SynchronousTestCase):
    def setUp(self) -> None:
        self.vault = MemoryVault()

    def make_bindings(self) -> MemoryBindings:
        return MemoryBindings(self.vault)

    def lock(self) -> None:
        self.vault.lock()


class MemoryOperatorsTests(OperatorsContract, SynchronousTestCase):
    def setUp(self) -> None:
        self.vault = MemoryVault()
        self.clock = Clock()
        self.operators = MemoryOperators(self.vault, self.clock)

    def make_operators(self) -> MemoryOperators:
        return self.operators

    def lock(self) -> None:
        self.vault.lock()

    def prove(self, client_nonce: str, daemon_nonce: str) -> str:
        return self.operators.prove(daemon_nonce, client_nonce)

    def check_daemon(self, client_nonce: str, daemon_nonce: str, proof: str) -> bool:
        exchange = Exchange(client_nonce, daemon_nonce, MemoryOperators.INSTANCE, self.ADDRESS)
        return proof == daemon_proof(self.vault.operator_key(), exchange)

    def test_short_cuts(self) -> None:
        """The short cuts end in sessions like any other."""
        token, session = self.operators.log_in()
        self.assertEqual(self.operators.by_token(token), session)
        cookie, page_key, browser = self.operators.open_browser()
        self.assertEqual(self.operators.by_browser(cookie, page_key), browser)
