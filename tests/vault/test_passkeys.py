"""Passkeys: made, let count, and asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.json import JSON
from aileron.model.authority import PasskeyRule
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, VaultLocked
from aileron.model.interfaces.authority import IPasskeyBook
from aileron.model.runs import Assertion
from aileron.testing import MemoryPasskeyBook, MemoryVault, SoftwareAuthenticator
from aileron.vault import Passkeys

URL = "http://localhost:7001"
ABOUT: Mapping[str, JSON] = {"run": "run-1", "approved": True, "digest": "sha256:0"}


class PasskeysCase(SynchronousTestCase):
    """Passkeys over memory, and a person who has an authenticator."""

    def setUp(self) -> None:
        """Build them."""
        self.clock, self.vault, self.urls = Clock(), MemoryVault(), {URL}
        self.clock.advance(1_760_000_000)
        self.book = MemoryPasskeyBook(self.vault)
        self.passkeys = Passkeys(self.book, lambda: self.urls, self.clock)
        self.person = SoftwareAuthenticator(URL)

    def add(self, person: SoftwareAuthenticator) -> None:
        """Let a passkey count."""
        words = self.passkeys.propose("Mine", person.made(self.passkeys.offer()))
        self.passkeys.confirm(f" {words.upper()} ")

    def used(self, about: Mapping[str, JSON] = ABOUT, **changes: Any) -> Assertion:
        """What the person's passkey, changed so, answers when it is asked."""
        nonce, options = self.passkeys.ask(about)
        return Assertion(nonce, evolve(self.person, **changes).used(options))

    def refused(self, assertion: Assertion | None, about: Mapping[str, JSON] = ABOUT) -> None:
        """It does not pass, and the page is told that a passkey is wanted."""
        error = self.assertRaises(Forbidden, self.passkeys.check, "post", about, assertion)
        self.assertEqual(error.details, {"passkey": True})


class AddingTests(PasskeysCase):
    """A passkey comes to count."""

    def test_provides(self) -> None:
        """They provide their interfaces."""
        self.assertTrue(verifyObject(IPasskeyBook, self.book))

    def test_added(self) -> None:
        """It counts once its words were typed, and not before; a second one counts beside it."""
        words = self.passkeys.propose("Mine", self.person.made(self.passkeys.offer()))
        self.assertEqual(self.passkeys.passkeys(), ())
        self.assertEqual(self.passkeys.confirm(words).name, "Mine")
        self.add(SoftwareAuthenticator(URL, id=b"other"))
        self.assertEqual(len(self.passkeys.passkeys()), 2)
        self.assertRaises(Conflict, self.passkeys.confirm, words)

    def test_verified_person(self) -> None:
        """What is offered asks for the person to be verified, and for no passkey that counts already."""
        self.add(self.person)
        offered: Any = self.passkeys.offer()
        self.assertEqual(offered["authenticatorSelection"]["userVerification"], "required")
        self.assertEqual((offered["rp"]["id"], len(offered["excludeCredentials"])), ("localhost", 1))

    def test_wrong_words(self) -> None:
        """Wrong words end it; so do two minutes, and another proposal."""
        words = self.passkeys.propose("Mine", self.person.made(self.passkeys.offer()))
        self.assertRaises(Forbidden, self.passkeys.confirm, "not these")
        self.assertRaises(Conflict, self.passkeys.confirm, words)
        words = self.passkeys.propose("Mine", self.person.made(self.passkeys.offer()))
        self.clock.advance(120)
        self.assertRaises(Conflict, self.passkeys.confirm, words)
        self.assertEqual(self.passkeys.passkeys(), ())

    def test_unsound(self) -> None:
        """Of another origin or site, unverified, for another offer, late, twice or no passkey at all: refused."""
        offered = self.passkeys.offer()
        for changes in ({"origin": "http://localhost:9"}, {"site": "evil.example"}, {"verifies": False}):
            made = evolve(self.person, **changes).made(self.passkeys.offer())
            self.assertRaises(InvalidRequest, self.passkeys.propose, "x", made)
        wild: tuple[dict[str, Any], ...] = ({}, {"id": 1}, {"id": "A", "rawId": "A", "type": "x", "response": {}})
        for credential in wild:
            self.passkeys.offer()
            self.assertRaises(InvalidRequest, self.passkeys.propose, "x", credential)
        self.passkeys.offer()
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", self.person.made(offered))
        twice = self.person.made(self.passkeys.offer())
        self.passkeys.propose("x", twice)
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", twice)
        late = self.person.made(self.passkeys.offer())
        self.clock.advance(60)
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", late)

    def test_only_at_localhost(self) -> None:
        """Where the operator's site is not called localhost there are none."""
        self.urls.clear()
        self.urls.add("http://127.0.0.1:7001")
        self.assertRaises(Conflict, self.passkeys.offer)

    def test_at_a_name(self) -> None:
        """At a name of the daemon's own they are for all names that it will have, and one of another site is none."""
        self.assertEqual(self.passkeys.site(), "localhost")
        self.add(self.person)
        self.urls = {"http://bcdfghjklm.aileron.localhost:7001"}
        self.assertEqual(self.passkeys.site(), "aileron.localhost")
        offered: Any = self.passkeys.offer()
        self.assertEqual((offered["rp"]["id"], offered["excludeCredentials"]), ("aileron.localhost", []))
        self.assertRaises(InvalidRequest, self.passkeys.propose, "Mine", self.person.made(offered))
        (origin,) = self.urls
        fresh = SoftwareAuthenticator(origin, "aileron.localhost", id=b"fresh")
        self.add(fresh)
        self.assertEqual([each.site for each in self.passkeys.passkeys()], ["localhost", "aileron.localhost"])
        self.urls = {"http://zxwvtsrqpn.aileron.localhost:7001"}
        (fresh.origin,) = self.urls
        self.person = fresh
        self.passkeys.check("post", ABOUT, self.used())
        fresh.origin = origin
        self.refused(self.used())

    def test_locked(self) -> None:
        """While the vault is locked none comes to count."""
        words = self.passkeys.propose("Mine", self.person.made(self.passkeys.offer()))
        self.vault.lock()
        self.assertRaises(VaultLocked, self.passkeys.confirm, words)


class RuleTests(PasskeysCase):
    """What may not be approved without one."""

    def test_without_a_passkey(self) -> None:
        """Nothing can ask for a passkey that nobody has."""
        self.assertRaises(Conflict, self.passkeys.require, PasskeyRule(everything=True))

    def test_only_more(self) -> None:
        """It can come to ask for more; less comes by a reset alone, which forgets the passkeys too."""
        self.add(self.person)
        for rule in (PasskeyRule(False, ("a",)), PasskeyRule(False, ("b", "a")), PasskeyRule(everything=True)):
            self.passkeys.require(rule)
        for rule in (PasskeyRule(), PasskeyRule(False, ("a", "b"))):
            self.assertRaises(Conflict, self.passkeys.require, rule)
        self.passkeys.reset()
        self.assertEqual((self.passkeys.passkeys(), self.passkeys.passkey_rule()), ((), PasskeyRule()))
        self.passkeys.check("post", ABOUT, None)

    def test_names(self) -> None:
        """A name is one action, and with a star at its end every one that begins so."""
        rule = PasskeyRule(False, ("post", "mail-*"))
        for action, needs in (("post", True), ("post-note", False), ("mail-send", True), ("mail", False), ("", False)):
            self.assertEqual(rule.needs(action), needs, action)
        self.assertTrue(PasskeyRule(everything=True).needs("any"))


class UseTests(PasskeysCase):
    """A passkey is used for one decision."""

    def setUp(self) -> None:
        """Ask for it."""
        super().setUp()
        self.add(self.person)
        self.passkeys.require(PasskeyRule(False, ("post",)))

    def test_used(self) -> None:
        """Without it what needs one does not pass, with it it does, and what needs none always does."""
        self.refused(None)
        self.passkeys.check("post", ABOUT, self.used())
        self.passkeys.check("look-up", ABOUT, None)

    def test_once(self) -> None:
        """Its answer is good once and for less than a minute; a copy of its authenticator is noticed by the count."""
        used = self.used(count=5)
        self.passkeys.check("post", ABOUT, used)
        self.refused(used)
        self.refused(self.used(count=5))
        late = self.used(count=6)
        self.clock.advance(60)
        self.refused(late)
        self.passkeys.check("post", ABOUT, self.used(count=6))

    def test_for_another(self) -> None:
        """Its answer is good for exactly what it was asked for."""
        for changed in ({"run": "run-2"}, {"digest": "sha256:1"}, {"approved": False}, {"grant": {"uses": 9}}):
            self.refused(self.used(), {**ABOUT, **changed})
        nonce, _options = self.passkeys.ask(ABOUT)
        self.refused(Assertion(nonce, self.used().credential))

    def test_unsound(self) -> None:
        """Of another origin, port, site or key, without verification, or of no passkey that counts: refused."""
        other = SoftwareAuthenticator(URL)
        for changes in (
            {"origin": "http://localhost:7002"},
            {"origin": "http://127.0.0.1:7001"},
            {"site": "evil.example"},
            {"verifies": False},
            {"key": other.key},
            {"id": b"another"},
        ):
            self.refused(self.used(**changes))
        nonce, _options = self.passkeys.ask(ABOUT)
        self.refused(Assertion(nonce, {}))

    def test_made_for_another_address(self) -> None:
        """One that was made for localhost is not asked for elsewhere, and what is refused for that says what to do."""
        used = self.used()
        self.urls = {"http://bcdfghjklm.aileron.localhost:7001"}
        refused = self.assertRaises(Forbidden, self.passkeys.check, "post", ABOUT, None).message
        for words in ("aileron open passkeys", "aileron operator passkey add", "operator_host: localhost"):
            self.assertIn(words, refused)
        self.assertEqual(self.assertRaises(Conflict, self.passkeys.ask, ABOUT).message, refused)
        self.assertRaises(Conflict, self.passkeys.require, PasskeyRule(everything=True))
        self.refused(used)
        self.passkeys.check("look-up", ABOUT, None)
        self.urls = {"http://192.0.2.7:7001"}
        refused = self.assertRaises(Forbidden, self.passkeys.check, "post", ABOUT, None).message
        self.assertIn("`operator_listen` in config.yaml gives none. Nothing was decided.", refused)
        self.urls = {URL}
        self.passkeys.check("post", ABOUT, self.used())

    def test_without_the_library(self) -> None:
        """Where the library is gone what needs a passkey does not pass."""
        used = self.used()
        self.patch(self.passkeys, "_webauthn", _gone)
        self.assertRaises(Conflict, self.passkeys.check, "post", ABOUT, used)


def _gone() -> None:
    raise Conflict("gone")
