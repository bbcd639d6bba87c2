"""Long answers are searched piece by piece, with the judgement of whole ones, and no part of a secret passes."""

from __future__ import annotations

import itertools
import json
from urllib.parse import quote

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.redaction import Redactor, SecretFound, SecretStream

from .test_redactor import FORMS, SECRET

_TEXT = st.text(st.sampled_from('k3y of/%2\\u0&#x;amp"\n\r\tz=g'), max_size=60)
_CUTS = st.lists(st.integers(0, 400), max_size=12)


def escape_all(text: str) -> str:
    """Return a text with each character escaped as one of three encoders would, in turn."""
    writers = (lambda char: f"%{ord(char):02X}", lambda char: f"\\u{ord(char):04x}", lambda char: f"&#{ord(char)};")
    return "".join(writers[at % 3](char) for at, char in enumerate(text))


def split(data: bytes, cuts: list[int]) -> list[bytes]:
    """Return the pieces of data between the cuts."""
    at = sorted({0, len(data), *(min(each, len(data)) for each in cuts)})
    return [data[one:two] for one, two in itertools.pairwise(at)]


def pass_on(pieces: list[bytes], *secrets: str) -> tuple[bytes, bool]:
    """Return what passes of a body, and whether all of it did."""
    stream, passed = SecretStream(*(secrets or (SECRET,))), b""
    try:
        for each in pieces:
            passed += stream.take(each)
    except SecretFound:
        return passed, False
    return passed + stream.rest(), True


class SecretStreamTests(SynchronousTestCase):
    """L{SecretStream}."""

    def test_forms(self) -> None:
        """Each form that is found in a whole text is found wherever the text is split, and nothing of it has passed."""
        for name, (_, written) in FORMS.items():
            data = f"<<{written}>>".encode("latin-1")
            for cut in range(len(data) + 1):
                passed, is_whole = pass_on([data[:cut], data[cut:]])
                self.assertFalse(is_whole, (name, cut))
                self.assertTrue(data.startswith(passed))
                self.assertLessEqual(len(passed), len("<<&lt;b&gt;"), (name, cut))

    def test_single_bytes(self) -> None:
        """Mixed escapes, in layers, are found in a text that comes byte by byte."""
        for written in (escape_all(SECRET), quote(escape_all(SECRET)), json.dumps(escape_all(SECRET))):
            data = b"text " + written.encode() + b" more"
            passed, is_whole = pass_on([data[at : at + 1] for at in range(len(data))])
            self.assertEqual((b"text ", False), (passed.rstrip(b'"'), is_whole), written)

    def test_binary(self) -> None:
        """In content with control characters the secret is found plain and in UTF-16, however it is split."""
        wide = b"".join(bytes([0, 0, 0, each]) for each in SECRET.encode())
        for written in (SECRET.encode(), SECRET.encode("utf-16-le"), SECRET.encode().hex().encode(), wide):
            data = b"\x01\x02" + written + b"\xff\x00"
            for cut in range(len(data)):
                passed, is_whole = pass_on([data[:cut], data[cut:]])
                self.assertFalse(is_whole, (written, cut))
                self.assertLessEqual(len(passed), 2 + 3, (written, cut))

    def test_several(self) -> None:
        """Each of several secrets is found."""
        for each in ("user:password", "password", "other-secret"):
            self.assertFalse(pass_on([b"a" + each.encode()], "user:password", "password", "other-secret")[1])

    def test_little_is_held(self) -> None:
        """Text without a beginning of the secret passes at once; after very many separators the beginning does too."""
        stream = SecretStream("key-of-the-service")
        self.assertEqual(b"no\n  beginning; ", stream.take(b"no\n  beginning; "))
        self.assertEqual(b"a ", stream.take(b"a key-of"))
        self.assertEqual(b"", stream.take(b"\n" + b" " * 1000))
        passed = b"".join(stream.take(b" " * 8192) for _ in range(20))
        self.assertTrue(passed.startswith(b"key-of\n "))
        self.assertLessEqual(len(stream.rest()), 64 * 1024)
        self.assertEqual(b"", stream.rest())

    def test_shows_nothing(self) -> None:
        """No repr shows the secret."""
        self.assertNotIn("key", repr(SecretStream("key-of-the-service")))

    @given(_TEXT, _TEXT, st.sampled_from([*(written for _, written in FORMS.values()), escape_all(SECRET)]), _CUTS)
    @example("%", "", SECRET, [1])
    def test_any_split(self, before: str, after: str, written: str, cuts: list[int]) -> None:
        """What passes before a secret is a beginning of the body that holds no secret."""
        data = (before + written + after).encode("latin-1")
        passed, is_whole = pass_on(split(data, cuts))
        self.assertFalse(is_whole)
        self.assertTrue(data.startswith(passed))
        text = passed.decode("latin-1")
        self.assertEqual(text, Redactor.of(SECRET).text(text))

    @given(_TEXT, _CUTS)
    def test_nothing_lost(self, text: str, cuts: list[int]) -> None:
        """A body without a secret passes unchanged; a text is cut exactly if the whole one would be redacted."""
        data = text.encode("latin-1")
        passed, is_whole = pass_on(split(data, cuts), "k3y of")
        self.assertEqual(Redactor.of("k3y of").text(text) == text, is_whole)
        if is_whole:
            self.assertEqual(data, passed)

    @given(st.binary(max_size=300), _CUTS)
    def test_any_bytes(self, data: bytes, cuts: list[int]) -> None:
        """Whatever a body without a secret is, it passes unchanged."""
        self.assertEqual((data, True), pass_on(split(data, cuts), "a-secret-that-is-not-there"))
