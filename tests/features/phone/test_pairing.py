"""Pairing: one code, one page, two words."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.phone._pairing import Pairings
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, Unauthorized
from aileron.model.sessions import HandOverState
from aileron.testing import MemoryPasskeyBook, SoftwareAuthenticator
from aileron.vault import Passkeys

PUBLIC = "https://phone.example.org"


class PairingTests(SynchronousTestCase):
    """A terminal, a phone, and others who know the code."""

    def setUp(self) -> None:
        """A pairing that has begun."""
        self.clock, self.book = Clock(), MemoryPasskeyBook()
        self.clock.advance(1_760_000_000)
        self.passkeys = Passkeys(self.book, lambda: (PUBLIC,), self.clock, needs_room=True)
        self.pairings = Pairings(self.passkeys, self.clock)
        self.person = SoftwareAuthenticator(PUBLIC, "phone.example.org")
        self.code = self.pairings.begin("ops_1", "Mine")

    def propose(self) -> tuple[str, str]:
        """The page's secret and words."""
        page, options = self.pairings.redeem(self.code)
        return page, self.pairings.propose(page, self.person.create(options))

    def state(self) -> HandOverState | None:
        """The state as the terminal sees it."""
        found = self.pairings.state("ops_1")
        return None if found is None else found[0]

    def test_whole(self) -> None:
        """The passkey is registered once its words were typed, and not before, under the terminal's name for it."""
        self.assertGreaterEqual(len(self.code), 22)
        page, words = self.propose()
        self.assertEqual(self.book.passkeys(), ())
        self.assertEqual(self.pairings.progress(page), HandOverState.OPENED)
        self.assertEqual(self.pairings.confirm("ops_1", words).name, "Mine")
        (key,) = self.book.passkeys()
        self.assertEqual((key.name, key.site), ("Mine", "phone.example.org"))
        self.assertEqual(self.pairings.progress(page), HandOverState.CONFIRMED)
        self.assertRaises(Unauthorized, self.pairings.redeem, self.code)

    def test_options(self) -> None:
        """The passkey must verify the person, and be one that is found without its id."""
        options: Any = self.pairings.redeem(self.code)[1]
        chosen = options["authenticatorSelection"]
        self.assertEqual((chosen["userVerification"], chosen["residentKey"]), ("required", "required"))
        self.assertEqual(options["rp"]["id"], "phone.example.org")

    def test_twice(self) -> None:
        """A second use ends it for everybody, also when the words are typed afterwards."""
        page, words = self.propose()
        self.assertRaises(Conflict, self.pairings.redeem, self.code)
        self.assertEqual((self.state(), self.pairings.progress(page)), (HandOverState.TWICE, HandOverState.TWICE))
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", words)
        self.assertRaises(Unauthorized, self.pairings.redeem, self.code)
        self.assertEqual(self.book.passkeys(), ())

    def test_wrong_words(self) -> None:
        """Wrong words end it: the right ones come too late."""
        _, words = self.propose()
        self.assertRaises(Forbidden, self.pairings.confirm, "ops_1", "wrong words")
        self.assertEqual(self.state(), HandOverState.WRONG)
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", words)
        self.assertEqual(self.book.passkeys(), ())

    def test_late(self) -> None:
        """Two minutes for the code, and two for the words."""
        self.clock.advance(121)
        self.assertRaises(Unauthorized, self.pairings.redeem, self.code)
        self.assertEqual(self.state(), HandOverState.LATE)
        self.code = self.pairings.begin("ops_1", "Mine")
        _, words = self.propose()
        self.clock.advance(121)
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", words)

    def test_others(self) -> None:
        """Another code, another page and another login get nothing, and end nothing."""
        self.assertRaises(Unauthorized, self.pairings.redeem, "A" * 22)
        page, words = self.propose()
        self.assertRaises(Unauthorized, self.pairings.progress, "")
        self.assertRaises(Unauthorized, self.pairings.propose, "B" * 43, {})
        self.assertRaises(Unauthorized, self.pairings.propose, page, {})
        self.assertIsNone(self.pairings.state("ops_2"))
        self.assertRaises(Conflict, self.pairings.confirm, "ops_2", words)
        self.assertEqual(self.pairings.confirm("ops_1", words).name, "Mine")

    def test_refused_passkey(self) -> None:
        """A passkey that did not verify the person is refused."""
        page, options = self.pairings.redeem(self.code)
        self.person.verifies = False
        self.assertRaises(InvalidRequest, self.pairings.propose, page, self.person.create(options))
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", "some words")

    def test_new_one(self) -> None:
        """A new pairing ends the one before."""
        before, self.code = self.code, self.pairings.begin("ops_1", "Mine")
        self.assertRaises(Unauthorized, self.pairings.redeem, before)
        self.propose()

    def test_no_words(self) -> None:
        """Words before the phone has any are refused, and end nothing."""
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", "two words")
        self.pairings.redeem(self.code)
        self.assertRaises(Conflict, self.pairings.confirm, "ops_1", "two words")
        self.assertEqual(self.state(), HandOverState.OPENED)
