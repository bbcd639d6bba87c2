"""The login of a command, and the key that signs its decisions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.client import OperatorLogin, TerminalKey, item_of
from aileron.model.signing import KeyKind, SignedDecisions


class OperatorLoginTests(SynchronousTestCase):
    """A login passes through a pipe between two processes of ours."""

    def test_round_trip(self) -> None:
        """It is the same on the other side, with and without a key; the key is shown nowhere."""
        key = TerminalKey.make("life")
        for login in (OperatorLogin("token"), OperatorLogin("token", key)):
            self.assertEqual(OperatorLogin.read(login.write()), login)
        self.assertNotIn(key.seed.hex(), repr(OperatorLogin("token", key)))
        self.assertNotIn(repr(key.seed), repr(key))

    def test_malformed(self) -> None:
        """What is no login is refused, and not repeated."""
        for line in ("token life", "token life xyz"):
            refused = self.assertRaises(ValueError, OperatorLogin.read, line)
            self.assertNotIn("life", str(refused))

    def test_sign(self) -> None:
        """What it signs can be verified by its public key, and has a nonce of its own."""
        key = TerminalKey.make("life")
        item = item_of("run-1", {"approved": False, "digest": "sha256:0", "reason": "no"})
        told = [key.sign([item], 5.0) for _ in range(2)]
        read = [
            SignedDecisions(KeyKind.TERMINAL, key.public_key, str(each["statement"]), str(each["signature"])).verified()
            for each in told
        ]
        self.assertEqual([each.of("run-1") for each in read], [item, item])
        self.assertEqual(len({each.nonce for each in read}), 2)
