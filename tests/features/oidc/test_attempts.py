"""The attempts to sign in with the provider."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.oidc import _attempts
from aileron.features.oidc._attempts import ATTEMPT_SECONDS, ProviderAttempts
from aileron.model.errors import Unauthorized

SEED = bytes(range(32))


class AttemptTests(SynchronousTestCase):
    """An attempt follows from its cookie."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(1_700_000_000.5)
        self.attempts = ProviderAttempts(b"k" * 32, self.clock)
        self.cookie, self.attempt = self.attempts.begin(SEED)

    def test_found(self) -> None:
        """The cookie leads to the attempt again, and has nothing of it."""
        self.assertEqual(self.attempts.find(self.cookie), self.attempt)
        values = {self.attempt.state, self.attempt.nonce, self.attempt.verifier}
        self.assertEqual(len(values), 3)
        for each in values:
            self.assertRegex(each, r"^[\w-]{43}$")
            self.assertNotIn(each, self.cookie)
            self.assertNotIn(each, repr(self.attempt))

    def test_forged(self) -> None:
        """A cookie that was not made here is refused: changed, of another process, or something else."""
        text, _, mac = self.cookie.rpartition(".")
        other = ProviderAttempts(b"o" * 32, self.clock).begin(SEED)[0]
        for each in (other, f"{text}0.{mac}", f"{text}.{mac[:-1]}", f"{text}.", text, "", "a.b.c", ".", "é.1.é"):
            self.assertRaises(Unauthorized, self.attempts.find, each)

    def test_late(self) -> None:
        """An attempt lasts ten minutes, and no longer if the clock is set back."""
        self.clock.advance(ATTEMPT_SECONDS - 1)
        self.assertEqual(self.attempts.find(self.cookie), self.attempt)
        self.clock.advance(1)
        self.assertRaises(Unauthorized, self.attempts.find, self.cookie)
        self.clock.rightNow -= 2 * ATTEMPT_SECONDS
        self.assertRaises(Unauthorized, self.attempts.find, self.cookie)

    def test_used(self) -> None:
        """An attempt counts once."""
        self.attempts.use(self.attempt)
        self.assertRaises(Unauthorized, self.attempts.use, self.attempt)
        self.attempts.use(self.attempts.begin(b"x" * 32)[1])

    def test_many(self) -> None:
        """Used attempts take bounded memory: more are refused until the oldest are too old to count."""
        self.patch(_attempts, "_MOST_USED", 2)
        for each in (b"1", b"2"):
            self.attempts.use(self.attempts.begin(each * 32)[1])
        self.assertRaises(Unauthorized, self.attempts.use, self.attempt)
        self.clock.advance(3 * ATTEMPT_SECONDS)
        self.attempts.use(self.attempts.begin(b"3" * 32)[1])
