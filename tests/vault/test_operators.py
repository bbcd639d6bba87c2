"""The operator's logins over a real vault, and the proofs they rest on."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import VaultLocked
from aileron.testing import OperatorsContract
from aileron.vault import Operators, keys
from aileron.vault.keys import LoginExchange, client_proof, daemon_proof

from .case import VaultCase

EXCHANGE = LoginExchange("A" * 43, "B" * 43, "instance-1", "http://localhost:7001")


class OperatorsTests(OperatorsContract, VaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.vault = self.unlocked()

    def make_operators(self) -> Operators:
        return Operators(self.vault, "instance-1", lambda: (self.ADDRESS,), self.clock)

    def lock(self) -> None:
        self.vault.lock()

    def exchange(self, client_nonce: str, daemon_nonce: str) -> LoginExchange:
        return LoginExchange(client_nonce, daemon_nonce, "instance-1", self.ADDRESS)

    def prove(self, client_nonce: str, daemon_nonce: str) -> str:
        return client_proof(keys.operator_key(self.key()), self.exchange(client_nonce, daemon_nonce))

    def check_daemon(self, client_nonce: str, daemon_nonce: str, proof: str) -> bool:
        key = keys.operator_key(self.key())
        return keys.same(daemon_proof(key, self.exchange(client_nonce, daemon_nonce)), proof)

    def test_started_locked(self) -> None:
        """A daemon that was started locked proves nothing to anyone."""
        operators = Operators(self.locked(), "instance-1", lambda: (self.ADDRESS,), self.clock)
        self.assertRaises(VaultLocked, operators.challenge, self.NONCE, self.ADDRESS)

    def test_flood_while_a_login_waits(self) -> None:
        """Challenges that come while a login is made to wait for others' failures do not push its own out."""
        operators = self.make_operators()
        nonce, _proof = operators.challenge(self.NONCE, self.ADDRESS)
        for _ in range(5000):  # more than the daemon answers in the five seconds that a login waits at most
            operators.challenge(self.NONCE, self.ADDRESS)
        exchange = LoginExchange(self.NONCE, nonce, "instance-1", self.ADDRESS)
        token, _session = operators.login(nonce, client_proof(self.vault.operator_key(), exchange))
        self.assertIsNotNone(operators.by_token(token))

    def test_stored_hashed(self) -> None:
        """No token, code, cookie or page key lies in the table, and words show in no repr."""
        operators = self.make_operators()
        token, _session = self.log_in(operators)
        code = operators.hand_over(token)
        cookie, page_key, _maker = operators.redeem(code)
        words = self.words(operators, self.registered(operators, cookie, page_key))
        kept = repr([vars(table) for table in (operators._logins, operators._hand_overs, operators._challenges)])
        for secret in (token, code, cookie, page_key, words):
            self.assertNotIn(secret, kept)


class ProofTests(SynchronousTestCase):
    def test_distinct(self) -> None:
        """Each side, key, nonce, instance and address makes another proof; so does a character in the next field."""
        key = b"k" * 32
        proofs = {daemon_proof(key, EXCHANGE), client_proof(key, EXCHANGE), client_proof(b"l" * 32, EXCHANGE)}
        shifted = attrs.evolve(EXCHANGE, client_nonce="A" * 42, daemon_nonce="A" + "B" * 43)
        others = (attrs.evolve(EXCHANGE, **{field.name: "C" * 43}) for field in attrs.fields(LoginExchange))
        proofs.update(client_proof(key, other) for other in (shifted, *others))
        self.assertEqual(len(proofs), 8)

    def test_stable(self) -> None:
        """The proof of a known exchange is a known one: clients of another release agree with it."""
        self.assertEqual(daemon_proof(bytes(32), EXCHANGE), "lzh5GIhCvKF7J3SxK1LuDdiy9fHKk_4vN-MBleQ8h3M")
        self.assertEqual(client_proof(bytes(32), EXCHANGE), "iONmCqk5g_mKpbRqp9mey8mXmpoqwmNfYTCJ7Zblqbg")

    def test_same(self) -> None:
        """Proofs are compared whatever they are made of."""
        self.assertTrue(keys.same("a", "a"))
        for other in ("", "b", "ä", "\ud800"):
            self.assertFalse(keys.same("a", other))

    def test_nonce(self) -> None:
        """A fresh nonce is 32 random bytes."""
        self.assertEqual(keys.new_nonce(lambda count: b"\0" * count), "A" * 43)
        self.assertNotEqual(keys.new_nonce(), keys.new_nonce())
