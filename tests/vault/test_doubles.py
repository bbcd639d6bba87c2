"""The doubles in memory keep the contracts of what they stand for."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.testing import (
    BindingsContract,
    BrakesContract,
    ControlContract,
    MemoryBindings,
    MemoryBrakes,
    MemoryControl,
    MemoryOperators,
    MemoryTrust,
    MemoryVault,
    OperatorsContract,
    TrustContract,
    VaultContract,
    trusted_word,
)
from aileron.values import JSON, Mark, VaultState
from aileron.vault import LoginExchange, daemon_proof


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


class MemoryBindingsTests(MemoryCase, BindingsContract):
    def make_bindings(self) -> MemoryBindings:
        return MemoryBindings(self.vault)


class MemoryBrakesTests(MemoryCase, BrakesContract):
    def setUp(self) -> None:
        super().setUp()
        self.brakes = MemoryBrakes(self.vault)

    def make_brakes(self) -> MemoryBrakes:
        return self.brakes

    def break_disk(self) -> None:
        self.brakes.full = True


class MemoryTrustTests(MemoryCase, TrustContract):
    def setUp(self) -> None:
        super().setUp()
        self.trust = MemoryTrust(self.vault)

    def make_trust(self) -> MemoryTrust:
        return self.trust

    def break_disk(self) -> None:
        self.trust.full = True

    def test_of_an_earlier_life(self) -> None:
        """What was trusted in an earlier life is known in a vault that was unlocked, and in no other."""
        word = trusted_word()
        self.assertEqual(MemoryTrust(self.vault, [word]).trusted(), (word,))
        self.assertEqual(MemoryTrust(MemoryVault(VaultState.LOCKED), [word]).trusted(), ())


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

    def test_changed_key(self) -> None:
        """After a change of its key, marks of before are earlier ones and new ones are sound."""
        statement: dict[str, JSON] = {"run": "run-1"}
        before = self.control.sign(statement)
        self.control.change_key()
        verify = self.control.verifier()
        found = [verify(statement, mark) for mark in (before, self.control.sign(statement))]
        self.assertEqual(found, [Mark.EARLIER, Mark.SOUND])


class MemoryOperatorsTests(MemoryCase, OperatorsContract):
    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.operators = MemoryOperators(self.vault, self.clock)

    def make_operators(self) -> MemoryOperators:
        return self.operators

    def prove(self, client_nonce: str, daemon_nonce: str) -> str:
        return self.operators.prove(daemon_nonce, client_nonce)

    def check_daemon(self, client_nonce: str, daemon_nonce: str, proof: str) -> bool:
        exchange = LoginExchange(client_nonce, daemon_nonce, MemoryOperators.INSTANCE, self.ADDRESS)
        return proof == daemon_proof(self.vault.operator_key(), exchange)

    def test_short_cuts(self) -> None:
        """The short cuts end in sessions like any other."""
        token, session = self.operators.log_in()
        self.assertEqual(self.operators.by_token(token), session)
        browser, opened = self.operators.open_browser()
        self.assertEqual(self.known(self.operators, browser), opened)
        self.assertEqual(self.operators.words_of(browser), "")
