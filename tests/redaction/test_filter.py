"""No answer brings the key back, however it is written, cut and chunked; and whatever does not is passed as it came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.http1 import Chunked
from aileron.model.errors import ExternalApiError
from aileron.redaction import SecretScanner, written_forms
from aileron.redaction._filter import BodyFraming, SecretFilter
from tests.extent import examples

KEY = b"sk-proj-AbC_123/4+5=ss"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

_SECRETS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=8, max_size=60).map(str.encode)
# Made of the key's own bytes, so that much of it looks like its beginning.
_NEARLY = st.lists(st.integers(0, len(KEY)).map(lambda end: KEY[:end]) | st.sampled_from((b"s", b"\n", b"\r\n", b"x")))
_CUTS = st.lists(st.integers(0, 400), max_size=12)


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    """C{data} in pieces."""
    edges = [0, *sorted(each for each in at if each < len(data)), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def chunked(data: bytes, at: Iterable[int], extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """The same as a chunked body."""
    chunks = [each for each in cut(data, at) if each]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(each), extension, each) for each in chunks) + b"0\r\n" + trailer + b"\r\n"


class Watched:
    """A screen, and what passed it."""

    def __init__(self, key: bytes = KEY, *, in_chunks: bool = False) -> None:
        self.told: list[str] = []
        self.screen = SecretFilter(key, "openai", self.told.append)
        self.screen.head(HEAD, chunked=in_chunks)
        self.passed = b""

    def watch(self, pieces: Sequence[bytes]) -> bool:
        """Whether all of it passed."""
        try:
            for piece in pieces:
                self.passed += self.screen.body(piece)
            self.passed += self.screen.rest()
        except ExternalApiError:
            return False
        return True


class WholeTests(SynchronousTestCase):
    """A body of known length, or until the close."""

    @given(_NEARLY, _CUTS)
    @settings(max_examples=examples(150), deadline=None)
    def test_cuts(self, parts: list[bytes], at: list[int]) -> None:
        """Every byte passes in its order unless the key is among them, and then it does not pass whole."""
        data, watched = b"".join(parts), Watched()
        passes = watched.watch(cut(data, at))
        self.assertEqual(passes, SecretScanner(KEY).kind_in(data) is None)
        self.assertEqual(watched.passed, data if passes else data[: len(watched.passed)])
        self.assertNotIn(KEY, watched.passed)
        self.assertEqual(len(watched.told), 0 if passes else 1)

    @given(_SECRETS, st.binary(max_size=80), st.binary(max_size=80), _CUTS, st.integers(0, 200))
    @settings(max_examples=examples(150), deadline=None)
    def test_every_form(self, key: bytes, before: bytes, after: bytes, at: list[int], which: int) -> None:
        """No form of any key passes, wherever it is cut."""
        every = written_forms(key.decode())
        written = every[which % len(every)].text.encode("latin-1", "replace")
        watched = Watched(key)
        self.assertFalse(watched.watch(cut(before + written + after, at)))
        self.assertNotIn(written, watched.passed)

    def test_nothing_is_delayed(self) -> None:
        """Of what cannot begin the key nothing is held, and of what can no more than that."""
        screen = Watched().screen
        event = b'data: {"text": "sk-proj-"}\n\n'
        self.assertEqual(screen.body(event), event)
        self.assertEqual(screen.body(b"xx sk-pro"), b"xx ")
        self.assertEqual(screen.body(b"s"), b"sk-pro")
        self.assertEqual(screen.body(b"k-proj-AbX"), b"sk-proj-AbX")
        self.assertEqual((screen.body(b"xs"), screen.rest()), (b"x", b"s"))

    def test_once_refused(self) -> None:
        """After the key was there nothing passes any more, it is told once, and nothing says the key."""
        watched = Watched()
        self.assertFalse(watched.watch([KEY]))
        for ask in (lambda: watched.screen.body(b"more"), watched.screen.rest):
            error = self.assertRaises(ExternalApiError, ask)
            self.assertNotIn(KEY.decode(), f"{watched.screen!r} {error!r} {error} {error.details}")
        self.assertEqual((watched.told, watched.passed), (["plain"], b""))


class ChunkedTests(SynchronousTestCase):
    """A chunked body."""

    @given(_NEARLY, _CUTS, _CUTS)
    @settings(max_examples=examples(150), deadline=None)
    @example([b"data: ", KEY], [10, 11, 12], [])
    def test_chunks(self, parts: list[bytes], chunks: list[int], at: list[int]) -> None:
        """Every byte passes unless the key is in what the chunks say together, whichever way they are cut."""
        said, watched = b"".join(parts), Watched(in_chunks=True)
        data = chunked(said, chunks)
        passes = watched.watch(cut(data, at))
        self.assertEqual(passes, SecretScanner(KEY).kind_in(said) is None)
        self.assertEqual(watched.passed, data if passes else data[: len(watched.passed)])

    @given(st.binary(max_size=300), _CUTS, _CUTS)
    @settings(max_examples=examples(100), deadline=None)
    def test_taken_apart(self, said: bytes, chunks: list[int], at: list[int]) -> None:
        """What a body says is told from its framing, and together they are the body."""
        data, pieces = chunked(said, chunks, b";a=b"), BodyFraming(chunked=True)
        found = [piece for each in cut(data, at) for piece in pieces.take(each)]
        self.assertEqual(b"".join(piece.data for piece in found) + pieces.rest(), data)
        self.assertEqual(b"".join(piece.data for piece in found if piece.said), said + b"\r\n")
        self.assertEqual(Chunked().take(data), len(data))

    def test_extension_and_trailer(self) -> None:
        """A key in a chunk's extension or in the trailer does not pass either, however it is cut."""
        for data in (chunked(b"x", [], b";a=" + KEY), chunked(b"x", [], trailer=b"a: " + KEY + b"\r\n")):
            for at in range(len(data)):
                watched = Watched(in_chunks=True)
                self.assertFalse(watched.watch(cut(data, [at])), at)
                self.assertNotIn(KEY, watched.passed)

    def test_chunk_by_chunk(self) -> None:
        """A whole chunk passes at once when it comes, its line end too."""
        screen = Watched(in_chunks=True).screen
        for data in (b"9\r\ndata: x\n\n\r\n", b"3\r\ns\n\n\r\n", b"0\r\n\r\n"):
            self.assertEqual(screen.body(data), data)

    def test_cut_off(self) -> None:
        """What was held when the upstream left is not lost."""
        watched = Watched(in_chunks=True)
        self.assertTrue(watched.watch([b"4\r\n sk-\r\n1f"]))
        self.assertEqual(watched.passed, b"4\r\n sk-\r\n1f")


class HeadTests(SynchronousTestCase):
    """The answer's head."""

    def screen(self, told: list[str]) -> SecretFilter:
        """One that has seen nothing."""
        return SecretFilter(KEY, "openai", told.append)

    def test_passes(self) -> None:
        """A head passes as it is, interim ones before it too; identity is no coding."""
        screen = self.screen([])
        plain = b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nX: content-encoding: gzip\r\n\r\n"
        for head in (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", plain, HEAD):
            self.assertEqual(screen.head(head, chunked=False), head)

    def test_coded(self) -> None:
        """An answer that cannot be read does not pass; the key is not said to have come back."""
        for field in (b"content-encoding: gzip", b"CONTENT-ENCODING:br", b"Content-Encoding: identity, gzip"):
            told: list[str] = []
            head = HEAD[:-2] + field + b"\r\n\r\n"
            self.assertRaises(ExternalApiError, self.screen(told).head, head, chunked=False)
            self.assertEqual(told, [])
