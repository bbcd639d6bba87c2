"""What a security key is asked, and what it says when it cannot: against a security key in software."""

from __future__ import annotations

from itertools import count
from threading import Event

from fido2.ctap import CtapDevice, CtapError
from fido2.ctap2.base import Ctap2
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.key_sources.authenticator import RP_ID, Authenticator, UserVerification
from aileron.features.key_sources.devices import LimitedWait, SecurityKeyError
from aileron.model.vault import SecurityKey

from .software_key import ERR, SoftwareKey, take_out, wait_for_cancel, walk_away

SALT, OTHER_SALT = bytes(range(32)), bytes(32)


def prove(key: Authenticator, pin: str | None, *, making: bool) -> bytes | None:
    """Return a token by whatever the key has."""
    if pin is not None:
        return key.token_by_pin(pin, making=making)
    built_in = key.verification is UserVerification.BUILT_IN
    return key.token_by_fingerprint(Event(), making=making) if built_in else None


def make(device: SoftwareKey, salt: bytes = SALT, known: tuple[SecurityKey, ...] = ()) -> tuple[SecurityKey, bytes]:
    """Make a credential, and compute its secret."""
    key = Authenticator(device)
    made = key.make(known, salt, prove(key, device.pin, making=True), Event())
    return made, key.compute(made, prove(key, device.pin, making=False), Event())


class MakingTests(SynchronousTestCase):
    """A credential and its secret."""

    def test_same_secret(self) -> None:
        """The secret is the same each time, 32 bytes, and another for another salt, credential or key."""
        for device in (
            SoftwareKey(),
            SoftwareKey(pin="1234"),
            SoftwareKey(pin="1234", tokens=False, protocols=(1,)),
            SoftwareKey(fingerprint=True),
            SoftwareKey(fingerprint=True, tokens=False),
            SoftwareKey(extensions=("hmac-secret",)),
        ):
            made, secret = make(device)
            self.assertEqual(len(secret), 32)
            self.assertEqual(made.verified, device.pin is not None or device.fingerprint)
            key = Authenticator(device)
            again = key.compute(made, prove(key, device.pin, making=False), Event())
            self.assertEqual(again, secret)
            salted = SecurityKey(made.credential_id, OTHER_SALT, made.verified)
            self.assertNotEqual(key.compute(salted, prove(key, device.pin, making=False), Event()), secret)
            self.assertNotEqual(make(device)[1], secret)

    def test_protected(self) -> None:
        """Without the PIN, another program that knows the credential and the salt learns neither the secret nor that
        the credential is there.
        """
        device = SoftwareKey(pin="1234")
        made, _ = make(device)
        touches = device.touches
        stranger = Authenticator(device)
        self.assertFalse(stranger.holds(made, None))
        self.assertRaises(SecurityKeyError, stranger.compute, made, None, Event())
        self.assertEqual(device.touches, touches)

    def test_careless(self) -> None:
        """A key that has a PIN but did not verify the person is not enrolled."""
        device = SoftwareKey(pin="1234", careless=True)
        error = self.assertRaises(SecurityKeyError, make, device)
        self.assertIn("did not verify you", error.message)

    def test_no_web_page(self) -> None:
        """The credential belongs to a name that is no domain, so that no browser sends a request for it."""
        self.assertIn(":", RP_ID)
        made, _ = make(SoftwareKey(seed=SALT))
        asked = Ctap2(SoftwareKey(seed=SALT))
        allowed = [{"type": "public-key", "id": made.credential_id}]
        error = self.assertRaises(CtapError, asked.get_assertion, "aileron.localhost", SALT, allowed)
        self.assertEqual(error.code, ERR.NO_CREDENTIALS)

    def test_twice(self) -> None:
        """A key that is enrolled is not enrolled again."""
        for pin in (None, "1234"):
            device = SoftwareKey(pin=pin)
            made, _ = make(device)
            error = self.assertRaises(SecurityKeyError, make, device, known=(made,))
            self.assertIn("already", error.message)

    def test_holds(self) -> None:
        """Whether a credential is on the key is known without a touch."""
        device = SoftwareKey()
        made, _ = make(device)
        touches = device.touches
        self.assertTrue(Authenticator(device).holds(made, None))
        self.assertFalse(Authenticator(SoftwareKey()).holds(made, None))
        self.assertEqual(device.touches, touches)


class _Deaf(SoftwareKey):
    """A key that answers with bytes of a test's own."""

    answer = b""

    def call(self, *given: object, **named: object) -> bytes:
        return self.answer


class FailureTests(SynchronousTestCase):
    """Each failure is explained."""

    def told(self, device: SoftwareKey, pin: str | None = None) -> str:
        """Return why nothing came of making a credential."""
        made, _ = make(SoftwareKey(seed=device.seed, pin=pin))
        key = Authenticator(device)
        token = prove(key, pin, making=False)
        error = self.assertRaises(SecurityKeyError, key.compute, made, token, Event())
        return str(error.message)

    def test_no_secrets(self) -> None:
        """A key without C{hmac-secret}, without a protocol for secrets, or of U2F alone cannot unlock a vault."""
        plain = SoftwareKey()
        self.patch(SoftwareKey, "capabilities", 0)
        self.assertIn("no hmac-secret", self.assertRaises(SecurityKeyError, Authenticator, plain).message)
        self.patch(SoftwareKey, "capabilities", 4)
        for device in (SoftwareKey(extensions=()), SoftwareKey(protocols=())):
            self.assertIn("no hmac-secret", self.assertRaises(SecurityKeyError, Authenticator, device).message)

    def test_untouched(self) -> None:
        """A key that is not touched in time, or taken out, says so; a reset one is not that key any more."""
        self.assertIn("not touched in time", self.told(SoftwareKey(finger=walk_away)))
        self.assertIn("taken out", self.told(SoftwareKey(finger=take_out)))
        made, _ = make(SoftwareKey())
        reset = Authenticator(SoftwareKey())
        error = self.assertRaises(SecurityKeyError, reset.compute, made, None, Event())
        self.assertIn("not one that unlocks", error.message)

    def test_cancelled(self) -> None:
        """A wait ends when its event is set."""
        device = SoftwareKey(finger=wait_for_cancel)
        made, _ = make(SoftwareKey(seed=device.seed))
        wait = Event()
        wait.set()
        self.assertRaises(SecurityKeyError, Authenticator(device).compute, made, None, wait)

    def test_pin(self) -> None:
        """A wrong PIN gives no token; after three in a row the key takes none until it was taken out."""
        device = SoftwareKey(pin="1234")
        key = Authenticator(device)
        self.assertIsNone(key.token_by_pin("0000", making=False))
        self.assertEqual(key.pin_tries(), 7)
        self.assertIsNone(key.token_by_pin("0000", making=False))
        error = self.assertRaises(SecurityKeyError, key.token_by_pin, "0000", making=False)
        self.assertIn("Take the security key out", error.message)

    def test_asks_always(self) -> None:
        """A key that asks for its PIN since it was enrolled says what to do."""
        self.assertIn("add it again", self.told(SoftwareKey(always=True)))

    def test_busy(self) -> None:
        """A key that another program uses is not waited for for ever, to ask it anything or to touch it."""
        ticks = count(0.0, 0.5)
        error = self.assertRaises(SecurityKeyError, Authenticator, SoftwareKey(busy=True), lambda: next(ticks))
        self.assertIn("Another program", error.message)
        device = SoftwareKey()
        made, _ = make(device)
        key = Authenticator(device, lambda: next(ticks))
        device.busy = True
        wait = LimitedWait(lambda: next(ticks), 3)
        self.assertIn("Another program", self.assertRaises(SecurityKeyError, key.compute, made, None, wait).message)

    def test_other_codes(self) -> None:
        """Codes without a sentence of their own, also unknown ones, are told by number."""
        for code, name in ((0x28, "KEY_STORE_FULL"), (0xF5, "0xf5")):

            def refuse(_wait: Event, code: int = code) -> None:
                raise CtapError(code)

            self.assertIn(name, self.told(SoftwareKey(finger=refuse)))

    @given(st.binary(max_size=200))
    def test_wild_answers(self, answer: bytes) -> None:
        """Whatever a device answers, it is explained, or makes no security key for a vault."""
        device: CtapDevice = _Deaf()
        _Deaf.answer = answer
        error = self.assertRaises(SecurityKeyError, Authenticator, device)
        self.assertTrue(error.message.endswith("."))
