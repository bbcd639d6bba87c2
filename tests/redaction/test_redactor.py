"""Of the search for the secret in what comes back."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, quote_plus

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.connectors import Outcome
from aileron.model.errors import ExternalApiError
from aileron.redaction import REDACTED, Redactor, secrets_in
from tests.extent import examples

SECRET = 'k3y of/"some+length\\=&~~~~~~'  # its base64 holds a plus at each alignment
RAW = SECRET.encode()

FORMS: Mapping[str, tuple[str, str]] = {
    "as it is": ("plain", SECRET),
    "percent": ("url", quote(SECRET, safe="")),
    "percent, lower case": ("url", quote(SECRET, safe="").replace("%2F", "%2f")),
    "percent, slashes kept": ("url", quote(SECRET)),
    "percent, every character": ("url", "".join(f"%{byte:02x}" for byte in RAW)),
    "percent, twice": ("url", quote(quote(SECRET, safe=""), safe="")),
    "plus": ("url", quote_plus(SECRET)),
    "plus, else bare": ("url", SECRET.replace(" ", "+")),
    "JSON": ("json", json.dumps(SECRET)),
    "JSON, slashes": ("json", json.dumps(SECRET).replace("/", "\\/")),
    "JSON, code points": ("json", "".join(f"\\u{byte:04x}" for byte in RAW)),
    "JSON in JSON": ("json", json.dumps(json.dumps(SECRET))),
    "bytes": ("json", "".join(f"\\x{byte:02x}" for byte in RAW)),
    "HTML": ("html", html.escape("<b>" + "".join(f"&#{byte};" for byte in RAW))),
    "HTML, named": ("html", html.escape(SECRET)),
    "HTML, hexadecimal": ("html", "".join(f"&#x{byte:x};" for byte in RAW)),
    "hexadecimal": ("hex", RAW.hex()),
    "hexadecimal, upper case": ("hex", RAW.hex().upper()),
    "base64": ("base64", base64.b64encode(RAW).decode()),
    "base64, no padding": ("base64", base64.b64encode(RAW).decode().rstrip("=")),
    "base64, quoted": ("base64", quote(base64.b64encode(RAW).decode(), safe="")),
    "base64url": ("base64url", base64.urlsafe_b64encode(b">>?" + RAW).decode()),
    "Basic, user first": ("base64", base64.b64encode(b"user:" + RAW).decode()),
    "Basic, user of another length": ("base64", base64.b64encode(b"users:" + RAW).decode()),
    "Basic, no user": ("base64", base64.b64encode(b":" + RAW).decode()),
    "Basic, no password": ("base64", base64.b64encode(RAW + b":").decode()),
    "folded": ("split", SECRET[:9] + "\r\n  " + SECRET[9:]),
    "UTF-16": ("split", RAW.decode().encode("utf-16-le").decode("latin-1")),
    "base64, folded": ("base64", base64.encodebytes(b"user:" + RAW * 3).decode()),
}


def unread(text: str) -> list[str]:
    """C{text} and whatever usual reading makes of it."""
    readings = [text]
    for undo in (html.unescape, _unpercent, _unjson):
        readings += [undo(each) for each in list(readings)]
    return readings


def _unpercent(text: str) -> str:
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(text).decode("latin-1")


def _unjson(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def escaped(character: str, how: int) -> str:
    """One character in one of the ways that may be mixed."""
    code = ord(character)
    return (character, f"%{code:02X}", f"%{code:02x}", f"\\u{code:04x}", f"&#{code};", f"&#x{code:x};")[how]


SECRETS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=6, max_size=40).map(str.strip)
AROUND = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12)


class FormTests(SynchronousTestCase):
    """Each form by itself."""

    def test_every_form(self) -> None:
        """Each usual form is replaced, what stands around it stays, and its kind is told."""
        for name, (kind, form) in FORMS.items():
            redactor = Redactor.of(SECRET)
            cleaned = redactor.text(f"<{form}> ok")
            self.assertEqual((True, {kind}), (cleaned.endswith(" ok") and REDACTED in cleaned, redactor.heard), name)
            self.assertNotIn(SECRET[:6], "".join(unread(cleaned)), name)

    def test_no_edge_of_base64(self) -> None:
        """The characters beside a match that hold some bits of the secret go with it."""
        for before in (b"", b"u", b"us"):
            for after in (b"", b"v", b"vw"):
                redactor = Redactor.of(SECRET)
                cleaned = redactor.text(base64.b64encode(before + RAW + after).decode())
                self.assertLessEqual(
                    len(cleaned.replace(REDACTED, "").rstrip("=")), 2 * (len(before) + len(after)), cleaned
                )

    def test_several(self) -> None:
        """Every place is replaced, and places that touch too."""
        self.assertEqual(f"{REDACTED}{REDACTED}, {REDACTED}", Redactor.of("abcabcx").text("abcabcxabcabcx, abcabcx"))

    def test_overlapping_secrets(self) -> None:
        """Of secrets that overlap in a text nothing is left."""
        self.assertEqual(REDACTED, Redactor.of("abcdef", "defghi").text("abcdefghi"))

    def test_looks_escaped(self) -> None:
        """A secret that looks escaped itself is found in other escapes all the same."""
        for secret in ("ab%41cd&lt;ef/", 'secret\\u0041y/"', "%2541bcdef"):
            for written in (quote(secret, safe=""), json.dumps(secret)[1:-1].replace("/", "\\/"), html.escape(secret)):
                self.assertEqual(REDACTED, Redactor.of(secret).text(written), written)

    def test_short(self) -> None:
        """A short secret is looked for as it is and escaped, and not in base64, which would meet it by chance."""
        redactor = Redactor.of("xyz")
        self.assertEqual(f"{REDACTED} {REDACTED} {REDACTED}", redactor.text("xyz %78yz x\\u0079z"))
        encoded = base64.b64encode(b"xyz").decode()
        self.assertEqual(encoded, redactor.text(encoded))

    def test_part_of_the_replacement(self) -> None:
        """A secret that stands in the usual replacement gets another one."""
        for secret in ("redacted", "[redac", "e", "x[r"):
            self.assertNotIn(secret, Redactor.of(secret).text(f"a {secret} x{secret}"))

    def test_basic(self) -> None:
        """Where the credential is what HTTP's Basic scheme encodes, user and password are secret as well."""
        key = base64.b64encode(b"ada:correct horse").decode()
        secrets = secrets_in(key, f"Basic {key}")
        self.assertEqual((key, "ada:correct horse", "correct horse"), secrets)
        self.assertEqual(f"password {REDACTED}", Redactor.of(*secrets).text("password correct horse"))
        self.assertEqual(("!",), secrets_in("!", "Basic !"))
        self.assertEqual((key,), secrets_in(key, f"Bearer {key}"))

    def test_numbers_and_keys(self) -> None:
        """A secret of digits is found in numbers, and any in the names of an object."""
        redactor = Redactor.of("12345678")
        self.assertEqual(
            {"n": REDACTED, "f": f"{REDACTED}.5", REDACTED: [True, None, 7]},
            redactor.value({"n": 12345678, "f": 12345678.5, "12345678": [True, None, 7]}),
        )

    def test_fault_and_notes(self) -> None:
        """A fault's message and details, and the notes, are searched; the outcome tells the kinds."""
        fault = ExternalApiError(f"no {SECRET}", {"code": SECRET}).fault()
        outcome = Redactor.of(SECRET).outcome(Outcome(fault=fault, notes={"said": SECRET}))
        assert outcome.fault is not None
        self.assertEqual((f"no {REDACTED}", {"code": REDACTED}), (outcome.fault.message, outcome.fault.details))
        self.assertEqual({"said": REDACTED, "echoed": ["plain"]}, outcome.notes)

    def test_no_secret(self) -> None:
        """Without a secret nothing is touched."""
        self.assertEqual([None, 1, "%41"], Redactor.of().value([None, 1, "%41"]))

    def test_shows_nothing(self) -> None:
        """No secret is in its repr."""
        self.assertNotIn("k3y", repr(Redactor.of(SECRET)))


class AnySecretTests(SynchronousTestCase):
    """Whatever the secret, whatever stands around it."""

    @settings(deadline=None, max_examples=examples(150))
    @given(SECRETS, AROUND, AROUND, st.lists(st.integers(0, 5), min_size=40, max_size=40))
    def test_mixed_escapes(self, secret: str, before: str, after: str, how: list[int]) -> None:
        """No mixture of escapes gets a secret through."""
        assume(len(secret) >= 6 and not set("%\\&") & set(secret + before))
        written = "".join(escaped(character, way) for character, way in zip(secret, how, strict=False))
        cleaned = Redactor.of(secret).text(f"{before}{written}{after}")
        for reading in unread(cleaned):
            self.assertNotIn(secret, reading)

    @settings(deadline=None, max_examples=examples(150))
    @given(SECRETS, AROUND, AROUND, st.sampled_from(["quote", "plus", "json", "slashes", "hex", "html", "plain"]))
    @example(r">\/%5C", "", "", "slashes")
    @example(r"abc%5C\u0030%30", "", "", "json")
    def test_one_escape(self, secret: str, before: str, after: str, name: str) -> None:
        """No single way of writing gets a secret through, though it looks like escapes itself."""
        assume(len(secret) >= 6)
        ways: Mapping[str, Callable[[str], str]] = {
            "quote": lambda text: quote(text, safe=""),
            "plus": quote_plus,
            "json": lambda text: json.dumps(text)[1:-1],
            "slashes": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
            "hex": lambda text: text.encode().hex(),
            "html": html.escape,
            "plain": str,
        }
        written = ways[name](secret)
        self.assertNotIn(written, Redactor.of(secret).text(f"{before} {written} {after}"))

    @settings(deadline=None, max_examples=examples(200))
    @given(SECRETS, st.binary(max_size=9), st.binary(max_size=9), st.booleans(), st.booleans())
    def test_base64(self, secret: str, before: bytes, after: bytes, urlsafe: bool, padded: bool) -> None:
        """No alignment, alphabet or padding of base64 gets a secret through."""
        assume(len(secret) >= 6)
        encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
        written = encode(before + secret.encode() + after).decode()
        cleaned = Redactor.of(secret).text(written if padded else written.rstrip("="))
        self.assertNotEqual(written, cleaned)
        for piece in re.split(r"\[redacted\]|█+", cleaned):
            for shift in range(4):
                tail = piece[shift:].rstrip("=")
                decoded = (
                    base64.urlsafe_b64decode(tail.translate(str.maketrans("+/", "-_")) + "=" * (-len(tail) % 4))
                    if len(tail) % 4 != 1
                    else b""
                )
                self.assertNotIn(secret.encode(), decoded)
