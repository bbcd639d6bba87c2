"""Heads that differ in their length alone: found without being read, and never taken for another."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.http1 import CHUNKED, HeadCache, Malformed, RequestHead, parse_request
from tests.extent import examples

LINES = st.sampled_from(
    [b"Host: a", b"content-LENGTH:  %d", b"Content-Length: %d", b"Transfer-Encoding: chunked", b"X: Content-Length: 5"]
)
TARGETS = st.sampled_from([b"/v1/x", b"/v1/x?Content-Length:5", b"/"])
LENGTHS = st.one_of(st.integers(0, 12), st.integers(0, 10**18 - 1))
AFTER = st.sampled_from([b"", b"\r\n", b"body", b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])


@st.composite
def heads(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two sound heads that differ in their lengths alone, if at all."""
    lines = draw(st.lists(LINES, unique_by=lambda line: line.lower()[:4], max_size=4))
    head = b"\r\n".join([b"POST " + draw(TARGETS) + b" HTTP/1.1", *lines, b"", b""])
    if b"Transfer" in head:
        head = head.replace(b"Content-Length: %d", b"A: 1").replace(b"content-LENGTH:  %d", b"B: 2")
    numbers = head.count(b"%d")
    first, second = draw(LENGTHS), draw(LENGTHS)
    return head % ((first,) * numbers), head % ((second,) * numbers)


def read(data: bytes) -> tuple[int, RequestHead] | None:
    """The head at the beginning of C{data} and where it ends, or L{None}: there is none."""
    end = data.find(b"\r\n\r\n") + 4
    try:
        return (end, parse_request(data[:end])) if end >= 4 else None
    except Malformed:
        return None


def cache_of(raw: bytes) -> HeadCache:
    """Of a head."""
    return HeadCache(raw, parse_request(raw).length)


class HeadCacheTests(SynchronousTestCase):
    """A head that was read, and the next one."""

    @settings(deadline=None, max_examples=examples(300))
    @given(heads(), AFTER)
    def test_like(self, two: tuple[bytes, bytes], after: bytes) -> None:
        """One that differs in its length alone is found, with the length that reading it tells."""
        first, second = two
        known = cache_of(first)
        self.assertEqual(known.measure(second + after), (len(second), parse_request(second).length))
        self.assertEqual(known.with_length(parse_request(second).length), second)

    @settings(deadline=None, max_examples=examples(600))
    @given(heads(), st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3), AFTER)
    @example((b"A / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",) * 2, 30, b"0", 0, b"")
    @example((b"A / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",) * 2, 30, b"", 1, b"")
    @example((b"A / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",) * 2, 30, b"-", 0, b"")
    @example((b"A / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",) * 2, 31, b" ", 0, b"")
    @example((b"A / HTTP/1.1\r\nContent-Length: 1\r\n\r\n",) * 2, 31, b"0" * 18, 0, b"")
    def test_never_another(self, two: tuple[bytes, bytes], at: int, put: bytes, less: int, after: bytes) -> None:
        """Whatever comes, what is found is what reading tells: the same fields, and the same end."""
        data = two[1][:at] + put + two[1][at + less :] + after
        measured, found = cache_of(two[0]).measure(data), read(data)
        if measured is None:
            return
        assert found is not None, data
        first = parse_request(two[0])
        self.assertEqual(measured, (found[0], found[1].length))
        self.assertEqual((found[1].method, found[1].target), (first.method, first.target))
        others = [{**head.fields, b"content-length": b""} for head in (first, found[1])]
        self.assertEqual(others[0].keys(), others[1].keys())
        self.assertEqual(others[0], others[1])

    def test_not_all_there(self) -> None:
        """A head that has not come whole is not found."""
        raw = b"POST / HTTP/1.1\r\nContent-Length: 12\r\nHost: a\r\n\r\n"
        known = cache_of(raw)
        for end in range(len(raw)):
            self.assertIsNone(known.measure(raw[:end]))

    def test_numbers_of_another_form(self) -> None:
        """Numbers that are not written as we write them are read; a head with one is like none but itself."""
        raw = b"POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n"
        for number in (b"", b"05", b"+5", b"-5", b"5 ", b" 5", b"5,5", b"\xb2", b"1" * 19):
            self.assertIsNone(cache_of(raw % b"5").measure(raw % number), number)
        known = cache_of(raw % b"05")
        self.assertEqual(known.measure(raw % b"05"), (len(raw), 5))
        self.assertEqual(known.with_length(5), raw % b"05")
        self.assertIsNone(known.measure(raw % b"06"))

    def test_without_length(self) -> None:
        """A head without a length is like itself, chunked or not."""
        for line, length in ((b"", 0), (b"Transfer-Encoding: chunked\r\n", CHUNKED)):
            raw = b"POST / HTTP/1.1\r\n" + line + b"\r\n"
            self.assertEqual(cache_of(raw).measure(raw + b"x"), (len(raw), length))
            self.assertEqual(cache_of(raw).with_length(length), raw)

    def test_long(self) -> None:
        """A long head is not worth remembering."""
        self.assertIsNone(HeadCache.if_short(b"x" * 5000, 0))
        self.assertIsNotNone(HeadCache.if_short(b"GET / HTTP/1.1\r\n\r\n", 0))
