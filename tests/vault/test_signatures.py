"""What a browser's signature is over, and that it holds once."""

from __future__ import annotations

import hashlib

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.sessions import SignedRequest
from aileron.testing import SigningBrowser
from aileron.vault import _signatures
from aileron.vault._signatures import MOST_NONCES, Signatures, read_public_key, signed_text

ASKED = SignedRequest("cookie", "", "POST", "/v1/pause?x=1", hashlib.sha256(b"{}").digest())


class SignaturesTests(SynchronousTestCase):
    """One browser, and what it signed."""

    def setUp(self) -> None:
        """Have a key."""
        self.clock = Clock()
        self.clock.advance(1_760_000_000.0)
        self.signatures = Signatures("life", self.clock)
        self.browser = SigningBrowser.generate("cookie", self.clock.seconds).with_instance("life")
        self.key = read_public_key(self.browser.public_key)

    def hold(self, asked: SignedRequest) -> bool:
        """Whether it does."""
        return self.signatures.hold(self.key, asked)

    def at(self, off: float) -> SigningBrowser:
        """The browser, by a clock that is off by so many seconds."""
        moment = self.clock.seconds() + off
        return evolve(self.browser, seconds=lambda: moment)

    def test_text(self) -> None:
        """What is signed is known to the letter: the pages' script agrees with it."""
        self.assertEqual(
            signed_text(ASKED, "life", "N" * 22, "1760000000000"),
            b"aileron.operator.request.v1\nPOST\n/v1/pause?x=1\nRBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o\nlife\n"
            b"NNNNNNNNNNNNNNNNNNNNNN\n1760000000000",
        )

    def test_fresh(self) -> None:
        """It holds for thirty seconds before and after its time, and no longer."""
        for off, holds in ((-31, False), (-29, True), (0, True), (29, True), (31, False)):
            self.assertEqual(self.hold(self.at(off).sign_request("GET", "/")), holds, off)

    def test_no_replay_while_fresh(self) -> None:
        """A nonce is remembered for as long as what was signed with it is fresh, by whichever clock."""
        ahead = self.at(29).sign_request("GET", "/")
        self.assertTrue(self.hold(ahead))
        for _ in range(12):
            self.clock.advance(5)
            self.assertFalse(self.hold(ahead))

    def test_bounded(self) -> None:
        """A key that asks for too much at once is refused, other keys are not, and it goes on after a minute."""
        self.patch(_signatures, "MOST_NONCES", 8)
        self.assertEqual(
            [self.hold(self.browser.sign_request("GET", "/")) for _ in range(10)], [True] * 8 + [False] * 2
        )
        other = SigningBrowser.generate("other", self.clock.seconds).with_instance("life")
        self.assertTrue(self.signatures.hold(read_public_key(other.public_key), other.sign_request("GET", "/")))
        self.clock.advance(61)
        self.assertTrue(self.hold(self.browser.sign_request("GET", "/")))
        self.assertGreater(MOST_NONCES, 4000)

    def test_refused_spends_nothing(self) -> None:
        """What does not hold takes no room and spends no nonce."""
        signed = self.browser.sign_request("GET", "/")
        self.assertFalse(self.hold(evolve(signed, target="/x")))
        self.assertTrue(self.hold(signed))

    def test_forgotten(self) -> None:
        """Of a key that asks for nothing more, nothing is kept after a minute."""
        self.assertTrue(self.hold(self.browser.sign_request("GET", "/")))
        self.clock.advance(61)
        other = SigningBrowser.generate("other", self.clock.seconds).with_instance("life")
        self.signatures.hold(read_public_key(other.public_key), other.sign_request("GET", "/"))
        self.assertNotIn(self.key, self.signatures._spent)

    @settings(deadline=None, max_examples=50)
    @given(st.text(max_size=140))
    def test_wild(self, proof: str) -> None:
        """Whatever stands in the header's place holds for nothing."""
        self.assertFalse(self.hold(evolve(ASKED, proof=proof)))

    def test_wild_numbers(self) -> None:
        """A signature of no numbers, or of numbers beyond the curve, holds for nothing."""
        now = int(self.clock.seconds() * 1000)
        for signature in ("A" * 86, "_" * 85 + "w"):
            self.assertFalse(self.hold(evolve(ASKED, proof=f"{now}.{'N' * 22}.{signature}")))
