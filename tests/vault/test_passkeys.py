"""Passkeys: made, let count, and asked for."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.signatures import write_base64url
from aileron.model.authority import Passkey, PasskeyRule
from aileron.model.errors import Conflict, Forbidden, InvalidRequest, VaultLocked
from aileron.model.interfaces.authority import IPasskeyBook
from aileron.testing import MemoryPasskeyBook, MemoryVault, SoftwareAuthenticator
from aileron.vault import Passkeys

URL = "http://localhost:7001"
CHALLENGE = bytes(range(32))


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
        words = self.passkeys.propose("Mine", person.create(self.passkeys.offer()))
        self.passkeys.confirm(f" {words.upper()} ")

    def used(self, **changes: Any) -> Passkey:
        """What comes of the answer of the person's passkey, changed so."""
        options: Any = self.passkeys.request(CHALLENGE)
        return self.passkeys.use(CHALLENGE, evolve(self.person, **changes).get(options))


class AddingTests(PasskeysCase):
    """A passkey comes to count."""

    def test_provides(self) -> None:
        """They provide their interfaces."""
        self.assertTrue(verifyObject(IPasskeyBook, self.book))

    def test_added(self) -> None:
        """It counts once its words were typed, and not before; a second one counts beside it."""
        words = self.passkeys.propose("Mine", self.person.create(self.passkeys.offer()))
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
        self.assertEqual(offered["authenticatorSelection"]["residentKey"], "preferred")

    def test_synced(self) -> None:
        """It is told whether a passkey is copied to other devices, and where it was not recorded its next use tells."""
        self.add(evolve(self.person, synced=True))
        self.assertEqual([each.synced for each in self.passkeys.passkeys()], [True])
        (key,) = self.passkeys.passkeys()
        self.book.keep_passkeys((evolve(key, synced=None),), PasskeyRule())
        self.used()
        self.assertEqual([each.synced for each in self.passkeys.passkeys()], [False])

    def test_embedded(self) -> None:
        """A page in a frame of another site makes none."""
        for more in ({"crossOrigin": True}, {"topOrigin": "https://evil.example"}):
            made = evolve(self.person, more=more).create(self.passkeys.offer())
            self.assertRaises(InvalidRequest, self.passkeys.propose, "x", made)

    def test_wrong_words(self) -> None:
        """Wrong words end it; so do two minutes, and another proposal."""
        words = self.passkeys.propose("Mine", self.person.create(self.passkeys.offer()))
        self.assertRaises(Forbidden, self.passkeys.confirm, "not these")
        self.assertRaises(Conflict, self.passkeys.confirm, words)
        words = self.passkeys.propose("Mine", self.person.create(self.passkeys.offer()))
        self.clock.advance(120)
        self.assertRaises(Conflict, self.passkeys.confirm, words)
        self.assertEqual(self.passkeys.passkeys(), ())

    def test_unsound(self) -> None:
        """Of another origin or site, unverified, for another offer, late, twice or no passkey at all: refused."""
        offered = self.passkeys.offer()
        for changes in ({"origin": "http://localhost:9"}, {"site": "evil.example"}, {"verifies": False}):
            made = evolve(self.person, **changes).create(self.passkeys.offer())
            self.assertRaises(InvalidRequest, self.passkeys.propose, "x", made)
        wild: tuple[dict[str, Any], ...] = ({}, {"id": 1}, {"id": "A", "rawId": "A", "type": "x", "response": {}})
        for credential in wild:
            self.passkeys.offer()
            self.assertRaises(InvalidRequest, self.passkeys.propose, "x", credential)
        nested: dict[str, Any] = {**self.person.create(self.passkeys.offer())}
        nested["response"] = {**nested["response"], "clientDataJSON": write_base64url(b"[" * 9000)}
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", nested)
        self.passkeys.offer()
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", self.person.create(offered))
        twice = self.person.create(self.passkeys.offer())
        self.passkeys.propose("x", twice)
        self.assertRaises(InvalidRequest, self.passkeys.propose, "x", twice)
        late = self.person.create(self.passkeys.offer())
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
        self.assertRaises(InvalidRequest, self.passkeys.propose, "Mine", self.person.create(offered))
        (origin,) = self.urls
        fresh = SoftwareAuthenticator(origin, "aileron.localhost", id=b"fresh")
        self.add(fresh)
        self.assertEqual([each.site for each in self.passkeys.passkeys()], ["localhost", "aileron.localhost"])
        self.urls = {"http://zxwvtsrqpn.aileron.localhost:7001"}
        (fresh.origin,) = self.urls
        self.person = fresh
        self.used()
        fresh.origin = origin
        self.assertRaises(Forbidden, self.used)

    def test_locked(self) -> None:
        """While the vault is locked none comes to count."""
        words = self.passkeys.propose("Mine", self.person.create(self.passkeys.offer()))
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

    def test_names(self) -> None:
        """A name is one action, and with a star at its end every one that begins so."""
        rule = PasskeyRule(False, ("post", "mail-*"))
        for action, needs in (("post", True), ("post-note", False), ("mail-send", True), ("mail", False), ("", False)):
            self.assertEqual(rule.needs(action), needs, action)
        self.assertTrue(PasskeyRule(everything=True).needs("any"))


class ElsewhereTests(PasskeysCase):
    """Passkeys of a public name, beside those of the desk."""

    PUBLIC = "https://phone.example.org"

    def setUp(self) -> None:
        """A passkey of the public name."""
        super().setUp()
        self.passkeys = Passkeys(self.book, lambda: self.urls, self.clock, elsewhere=lambda: (self.PUBLIC,))
        phone = Passkeys(self.book, lambda: (self.PUBLIC,), self.clock, needs_room=True)
        self.phone = SoftwareAuthenticator(self.PUBLIC, "phone.example.org", id=b"phone")
        phone.confirm(phone.propose("Phone", self.phone.create(phone.offer())))

    def use_phone(self, **changes: Any) -> Passkey:
        """What comes of the phone's answer at the desk's daemon, changed so."""
        options = {"challenge": write_base64url(CHALLENGE)}
        return self.passkeys.use(CHALLENGE, evolve(self.phone, **changes).get(options), elsewhere=True)

    def test_decides(self) -> None:
        """It signs decisions, also where the desk's pages are at an address of numbers, which has no passkeys."""
        self.assertEqual(self.use_phone().name, "Phone")
        self.urls = {"http://127.0.0.1:7001"}
        self.phone.count = 1
        self.assertEqual(self.use_phone().name, "Phone")

    def test_own_address(self) -> None:
        """It counts at the public address alone, and for nothing but decisions."""
        for changes in ({"origin": URL}, {"origin": "https://phone.example.org:8443"}, {"site": "localhost"}):
            self.assertRaises(Forbidden, self.use_phone, **changes)
        answer = self.phone.get({"challenge": write_base64url(CHALLENGE)})
        self.assertRaises(Forbidden, self.passkeys.use, CHALLENGE, answer)
