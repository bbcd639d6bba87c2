"""Of signatures: those of minisign itself, and those that are not quite."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.packages._minisign import read_key, verify
from aileron.model.errors import InvalidRequest
from tests.features.packages.kit import Publisher

# Made by minisign 0.11: `minisign -G -W`, then `minisign -Sm f`, and the same with `-l`.
KEY = "RWRPPPnV1alr2DsGm6Td8rqY7uvtkUrVtu5H8WBQUQOX1EOML5CxZMty"
FILE = b"hello, package\n"
HASHED = """untrusted comment: signature from minisign secret key
RURPPPnV1alr2HeG4lB2rPe8Vvr9NRUQotE9209yzjBsnnZg1Flu4YQ1yi1Hx6fHy+GC0TpgidPkYvwKVZVfbATyofk8dD82OQw=
trusted comment: trusted ünïcode
GQ6wEoIfxjIvhppIRj/qVcVCtxXh3WCC47lNavggwdLPyZpEYtsMcXgTLxRG7N5ZlBwTBkQPCHgXpKQ8+oZUCA==
"""
LEGACY = """untrusted comment: signature from minisign secret key
RWRPPPnV1alr2Nutqjd0KhutdgKLB5x1UiBL2YJoTBoJwV2YclIFxZ4xH8g7DFB/X0zMUvxOF9E05iRadkcbH/nEMC567MDkuAs=
trusted comment: timestamp:1795703695\tfile:f
nAb5zcwYuHTbYng+G7wCNaS62Wm9sP4Cy8WK8+PEQ6aDCdopzUTLbnE7hNL5TM0bLclViSZSP0Okx9MRv/y+Cg==
"""


class MinisignTests(SynchronousTestCase):
    """Keys and signatures."""

    def refused(self, signature: str, why: str, data: bytes = FILE, key: str = KEY) -> None:
        """Have one refused."""
        failure = self.assertRaises(InvalidRequest, verify, data, signature, [key])
        self.assertIn(why, failure.message)

    def test_minisign(self) -> None:
        """What minisign signs, of its file or of its hash, is verified."""
        for signature in (HASHED, LEGACY):
            self.assertEqual(verify(FILE, signature, [Publisher().key, KEY]), KEY)
            self.refused(signature, "is wrong", b"hello, packages\n")
        self.assertEqual(read_key(f"untrusted comment: minisign public key D86BA9D5D5F93C4F\n{KEY}\n"), KEY)

    def test_comment(self) -> None:
        """The trusted comment is part of what is signed; the other one is not."""
        self.refused(HASHED.replace("trusted ün", "trusted un"), "is wrong")
        self.assertEqual(verify(FILE, HASHED.replace("signature from", "by"), [KEY]), KEY)

    def test_other_key(self) -> None:
        """A key that is not known is named as minisign names it; one with its id, but not its secret, is no match."""
        self.refused(HASHED, "D86BA9D5D5F93C4F", key=Publisher().key)
        other = evolve(Publisher(), key_id=bytes.fromhex("4f3cf9d5d5a96bd8"))
        self.refused(HASHED, "is wrong", key=other.key)
        self.assertEqual(verify(FILE, HASHED, [other.key, KEY]), KEY)

    def test_mixed(self) -> None:
        """A signature of the file does not pass for one of its hash, nor its other parts for another's."""
        self.refused(HASHED.replace("RURP", "RWRP"), "is wrong")
        self.refused(LEGACY.replace("RWRP", "RURP"), "is wrong")
        self.refused("\n".join((*HASHED.splitlines()[:2], *LEGACY.splitlines()[2:])), "is wrong")

    def test_malformed(self) -> None:
        """What is not in the format is refused."""
        lines = HASHED.splitlines()
        for each in ("", HASHED + "more\n", "\n".join(lines[:3]), HASHED.replace("RURP", "RURP!"), lines[1]):
            self.refused(each, "minisign's format")
        for each in ("", "RW", KEY[:-4], "A" + KEY[1:], f"{KEY}\nmore"):
            self.assertRaises(InvalidRequest, read_key, each)

    @given(st.text(), st.binary(max_size=100))
    def test_anything(self, text: str, data: bytes) -> None:
        """No text is a signature, and none does anything but be refused."""
        self.assertRaises(InvalidRequest, verify, data, text, [KEY])
