"""Messages are encrypted as RFC 8291 says, and signed as RFC 8292 says."""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.push._encryption import (
    VALID_SECONDS,
    check_keys,
    decode_base64url,
    encode_base64url,
    encode_point,
    encrypt,
    make_key,
    pad,
    read_key,
    sign,
)
from aileron.features.push._payload import MOST_BYTES
from aileron.features.push.values import Subscription

from .case import CURVE, ENDPOINT, BrowserDouble, check_vapid, unpack

NOW = 1_700_000_000.0
# RFC 8291, section 5 and appendix A.
_TEXT = b"When I grow up, I want to be a watermelon"
_SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
_RECEIVER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
_AUTH, _SALT = "BTBZMqHH6r4Tts7J_aSIgg", "DGv6ra1nlYgDCS1FRnbzlw"
_BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A"
    "_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def _text(count: int) -> bytes:
    return b'{"id":"01JA%022d","n":%d}' % (count, count)


class EncryptionTests(SynchronousTestCase):
    def test_vector(self) -> None:
        """The example of the RFC comes out as it is printed there."""
        ours = ec.derive_private_key(int.from_bytes(unpack(_SENDER), "big"), CURVE)
        subscription = Subscription(ENDPOINT, unpack(_RECEIVER), unpack(_AUTH))
        body = encrypt(_TEXT + b"\x02", subscription, lambda _: unpack(_SALT), ours)
        self.assertEqual(encode_base64url(body), _BODY)

    def test_received(self) -> None:
        """The browser reads an id and a number, no other browser does, and each body has one length."""
        browser = BrowserDouble()
        subscription = Subscription(ENDPOINT, browser.point, browser.auth)
        sizes: set[int] = set()
        bodies: set[bytes] = set()
        for count in (0, 2, 400, 10**6):
            body = encrypt(pad(_text(count)), subscription, secrets.token_bytes)
            self.assertEqual(browser.open(body), _text(count))
            sizes.add(len(body))
            bodies.update((body, encrypt(pad(_text(count)), subscription, secrets.token_bytes)))
            with self.assertRaises(InvalidTag):
                BrowserDouble().open(body)
            with self.assertRaises(InvalidTag):
                BrowserDouble(private=browser.private, auth=b"f" * 16).open(body)
            with self.assertRaises(InvalidTag):
                browser.open(body[:-1] + bytes((body[-1] ^ 1,)))
        self.assertEqual((sizes, len(bodies)), ({615}, 8))
        self.assertEqual(len(encrypt(pad(b"x" * MOST_BYTES), subscription, secrets.token_bytes)), 615)
        self.assertRaises(ValueError, pad, b"x" * (MOST_BYTES + 1))

    def test_keys(self) -> None:
        """A point that is not on the curve, or a secret of another size, is refused."""
        browser = BrowserDouble()
        check_keys(Subscription(ENDPOINT, browser.point, browser.auth))
        for point in (browser.point[:-1], b"\x04" + b"\x01" * 64, b"\x02" + browser.point[1:33], b""):
            with self.assertRaises(ValueError):
                check_keys(Subscription(ENDPOINT, point, browser.auth))
        with self.assertRaises(ValueError):
            check_keys(Subscription(ENDPOINT, browser.point, browser.auth[:-1]))

    def test_base64url(self) -> None:
        """What is not base64url is refused."""
        for data in (b"", b"\xff", b"\xfb\xff\xfe", bytes(range(65))):
            self.assertEqual(decode_base64url(encode_base64url(data)), data)
        for wrong in ("a", "!!!!", "a b=", "YQ==="):
            with self.assertRaises(ValueError):
                decode_base64url(wrong)


class SignatureTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.kept = make_key()
        self.key = read_key(self.kept)
        self.header = sign(ENDPOINT, self.key, NOW)

    def test_signed(self) -> None:
        """The service can tell that it is the daemon, by the key that the browser was told."""
        self.assertEqual(
            check_vapid(self.header, "https://push.example", NOW), encode_base64url(encode_point(self.key))
        )
        self.assertEqual(encode_point(read_key(self.kept)), encode_point(self.key))
        self.assertNotIn("send", self.header)
        self.assertLessEqual(VALID_SECONDS, 24 * 3600)
        self.assertNotEqual(make_key(), self.kept)

    def test_refused(self) -> None:
        """For another service, later, under another key or with one bit changed, it counts for nothing."""
        other = encode_base64url(encode_point(read_key(make_key())))
        bit = self.header.index("t=") + 40
        changed = self.header[:bit] + ("A" if self.header[bit] != "A" else "B") + self.header[bit + 1 :]
        for header, audience, now in (
            (self.header, "https://push.example.org", NOW),
            (self.header, "https://push.example:8443", NOW),
            (self.header, "https://push.example", NOW + VALID_SECONDS + 1),
            (self.header, "https://push.example", NOW - 24 * 3600),
            (self.header.replace(self.header.partition("k=")[2], other), "https://push.example", NOW),
            (changed, "https://push.example", NOW),
        ):
            with self.assertRaises(ValueError):
                check_vapid(header, audience, now)
