"""Of long bodies: their normal form, what could change the method, and what a person sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import overriding_in_body
from aileron.base.json import digest_of_bytes
from aileron.features.own_tools._bodies import MOST_PARTS, MOST_SHOWN, LongBody
from aileron.features.own_tools._forms import form_digest, read_long
from aileron.features.own_tools.values import ToolRequest
from tests.extent import examples
from tests.growth import times_as_long

from .requests import ask_tracker, declared, tracker

_MULTIPART = 'multipart/form-data; boundary="{}"'


def read(content_type: str, *pieces: bytes) -> LongBody:
    """Return what is read of a body in pieces."""
    reading = read_long(content_type)
    for each in pieces:
        reading.add(each)
    return reading.end()


def cut(body: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """Yield a body in pieces."""
    before = 0
    for place in sorted({each % (len(body) + 1) for each in places}):
        yield body[before:place]
        before = place
    yield body[before:]


def part(boundary: str, head: str, content: bytes) -> bytes:
    """Return a part of a multipart body, with its delimiter."""
    return f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"


def form(request: ToolRequest) -> str:
    """Return the digest of a request's form."""
    return form_digest(request, declared(tracker()))


class FormTests(SynchronousTestCase):
    """The normal form of a long body."""

    @given(
        st.lists(st.sampled_from([b"--", b"-", b"b", b"--bb", b"--b", b"\0", b"\1", b"\0\1", b"\r\n", b"x"])),
        st.sampled_from(["b", "bb", "-", "--", "b-b"]),
        st.lists(st.integers(0, 200)),
    )
    @settings(max_examples=examples(200))
    def test_pieces(self, words: list[bytes], boundary: str, places: list[int]) -> None:
        """It is that of the same body in memory, whatever the pieces are in which it comes."""
        body, kind = b"".join(words), _MULTIPART.format(boundary)
        long = read(kind, *cut(body, places))
        short = ask_tracker("POST", "/v2/files", body, ("Content-Type", kind))
        with_long = ToolRequest(
            short.session_id, short.connection, short.host, "POST", "/v2/files", short.headers, long=long
        )
        self.assertEqual(form(short), form(with_long))
        self.assertEqual((digest_of_bytes(body), len(body)), (long.digest, long.size))

    def test_boundary(self) -> None:
        """Two bodies that differ in the boundary alone have one form. Another part makes another one."""
        found = []
        for boundary, content in (("one", b"a"), ("two", b"a"), ("two", b"b")):
            body = part(boundary, 'name="f"', content) + f"--{boundary}--\r\n".encode()
            found.append(read(_MULTIPART.format(boundary), body))
        self.assertEqual(found[0].form, found[1].form)
        self.assertNotEqual(found[0].digest, found[1].digest)
        self.assertNotEqual(found[1].form, found[2].form)

    def test_other(self) -> None:
        """The form of any other body is its bytes, also of JSON."""
        long = read("application/json", b'{"a": ', b"1}")
        self.assertEqual(("bytes", digest_of_bytes(b'{"a": 1}')), long.form)


class PartTests(SynchronousTestCase):
    """The lines about the parts of a multipart body."""

    def test_package(self) -> None:
        """A package is shown by its fields and by the name, type, size and digest of its file."""
        content = bytes(range(256)) * 10
        body = part("b", 'name=":action"', b"file_upload") + part("b", 'name="name"', b"caf\xc3\xa9")
        body += part("b", 'name="content"; filename="p-1.0.whl"\r\nContent-Type: application/zip', content) + b"--b--"
        digest = sha256(content).hexdigest()
        lines = (
            ":action: file_upload",
            "name: café",
            f"content: p-1.0.whl (application/zip), 2560 bytes, sha256:{digest}",
        )
        for places in (range(0), range(len(body)), range(0, len(body), 7)):
            self.assertEqual(lines, read(_MULTIPART.format("b"), *cut(body, places)).parts)

    def test_odd(self) -> None:
        """A long field, one that is no text, an unnamed part and one without a head are shown by size and digest."""
        for head, content, shown in (
            ('name="n"', b"x" * 301, "n, 301 bytes, sha256:"),
            ('name="n"', b"\xff", "n, 1 bytes, sha256:"),
            ("x", b"", ", 0 bytes, sha256:"),
            ('name="n"; filename=""', b"a", "n: a"),
        ):
            (line,) = read(_MULTIPART.format("b"), part("b", head, content) + b"--b--").parts
            self.assertTrue(line.startswith(shown), line)
        self.assertEqual(1, len(read(_MULTIPART.format("b"), b"--b\r\n" + b"y" * 9000 + b"\r\n--b--").parts))

    def test_deceptive(self) -> None:
        """A name cannot write control characters, and what is no part is not shown as one."""
        body = part("b", 'name="a\x1b[2J"', b"1") + part("b", 'name="b"', b"in the text --b\r\n is none") + b"--b--"
        first, second = read(_MULTIPART.format("b"), body).parts
        self.assertNotIn("\x1b", first)
        self.assertEqual("b: in the text --b␍↵ is none", second)

    def test_other_boundary(self) -> None:
        """A parameter that only looks like the boundary divides nothing, and of two boundaries neither does."""
        body = part("b", 'name="n"', b"1") + b"--b--"
        for kind in (
            "multipart/form-data; xboundary=b; boundary=c",
            "multipart/form-data; boundary=b; boundary=c",
            'multipart/form-data; x="; boundary=b"; boundary=c',
            "multipart/form-data; boundary=b; boundary*=utf-8''c",
            "multipart/form-data; xboundary=b",
            'multipart/form-data; boundary=b"c',
        ):
            self.assertEqual((), read(kind, body).parts, kind)
        for kind in ("multipart/form-data;boundary=b", 'multipart/form-data; charset=utf-8; Boundary="b" ; x=1'):
            self.assertEqual(("n: 1",), read(kind, body).parts, kind)
        self.assertEqual(1, len(read(_MULTIPART.format("boundary"), part("boundary", "", b"") + b"--boundary--").parts))

    def test_unclear(self) -> None:
        """A body that programs could divide in different ways is not shown by its parts."""
        good = part("b", 'name="file"; filename="f"', b"known")
        for body in (
            good[:-2] + b"\r\n--b2\r\nhidden\r\n--b--",
            good[:-2] + b"\n--b\r\nhidden\r\n--b--",
            good + b"--b--\r\n" + good + b"--b--",
            good + b"--b--\r\n--b\r\n",
            good + b"--b",
            good,
        ):
            for places in ((), range(len(body))):
                (line,) = read(_MULTIPART.format("b"), *cut(body, places)).parts
                self.assertTrue(line.startswith("The parts are not listed"), (line, body))

    def test_many(self) -> None:
        """Of very many parts, the first are shown, and the number of the others."""
        body = part("b", 'name="n"', b"1") * (MOST_PARTS + 7) + b"--b--"
        found = read(_MULTIPART.format("b"), body).parts
        self.assertEqual((MOST_PARTS + 1, "and 7 more"), (len(found), found[-1]))


class BeginningTests(SynchronousTestCase):
    """The beginning of a text."""

    def test_text(self) -> None:
        """Of a text, the beginning is shown, also if the end of what is read cuts a character."""
        self.assertEqual("short", read("text/plain", b"sho", b"rt").beginning)
        text = "é" * 100_000
        for shift in ("", "a"):
            found = read("text/plain", (shift + text).encode()).beginning
            self.assertEqual((shift + text)[:MOST_SHOWN] + "…", found)

    def test_binary(self) -> None:
        """Of anything else nothing is shown."""
        for content in (b"\x1f\x8b\x08", b"text\0", b"a\xffb", b"a" * 100 + b"\x1b[2J"):
            self.assertEqual("", read("text/plain", content).beginning)


class OverrideTests(SynchronousTestCase):
    """Method overrides in multipart bodies, and in bodies without a type."""

    HIDDEN = (
        b'name="_method"',
        b'name="%5fMETHOD"',
        b'name="_%6de%74hod"',
        b'name="\\u005fm\\u0065thod"',
        b'name="\\u0025\\u0036\\u0064ethod_override"',
        b'name="x-http-method-override"',
        b"&method=delete",
    )

    def test_found(self) -> None:
        """They are found wherever the pieces end."""
        for hidden in self.HIDDEN:
            body = b"x" * 1000 + b" " + hidden + b"\r\n" + b"x" * 1000
            self.assertTrue(overriding_in_body(body), hidden)
            for kind in (_MULTIPART.format("b"), ""):
                for place in range(1000, 1003 + len(hidden)):
                    self.assertTrue(read(kind, *cut(body, [place])).overrides, (hidden, place))

    def test_others(self) -> None:
        """Other bodies have none, and what is sent as a file of another type is not searched."""
        self.assertFalse(read(_MULTIPART.format("b"), part("b", 'name="method"', b"a")).overrides)
        self.assertFalse(read("application/zip", self.HIDDEN[0]).overrides)


class GrowthTests(SynchronousTestCase):
    """Bodies that are made to take long."""

    def test_linear(self) -> None:
        """A body of sixteen times the length does not take much longer for each byte."""
        for word in (b"--b", b"\r\n--b", b"\r\n--b\r\nname=", b"%6d", b"\\u00", b"_metho", b"\0", b"-"):
            for kind in (_MULTIPART.format("b"), _MULTIPART.format("-" * 70)):
                write = partial(self.write, kind, word)
                self.assertLess(times_as_long(write, 2000, 32000), 4, (word, kind))

    def write(self, kind: str, word: bytes, size: int) -> Callable[[], LongBody]:
        """Return what reads a body of repeated words."""
        return partial(read, kind, word * size)
