"""What a service says in C{WWW-Authenticate} is read as the grammar has it, in linear time, or not at all."""

from __future__ import annotations

from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.credentials._challenge import read_challenge, read_scopes
from tests.growth import seconds

_TOKEN = st.text("abcXYZ09!#$%&'*+.^_`|~-", min_size=1, max_size=8)
_QUOTED = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)
_PIECES = st.sampled_from(("Bearer", "Basic", " ", ",", "=", '"', "\\", "a", "scope", "a=b", 'c="d"', "e68==", "\t"))


def _write(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'


class ChallengeTests(SynchronousTestCase):
    def test_read(self) -> None:
        """Parameters of the first Bearer challenge are found among others, quoted or not, whatever their case."""
        page = "https://mcp.example/.well-known/oauth-protected-resource"
        for header, wanted in (
            (f'Bearer resource_metadata="{page}"', {"resource_metadata": page}),
            ('bearer Error=insufficient_scope, SCOPE="a b"', {"error": "insufficient_scope", "scope": "a b"}),
            ('Basic realm="x", Bearer scope="a"', {"scope": "a"}),
            ('Bearer scope="a", Basic realm="x", Bearer scope="b"', {"scope": "a"}),
            ('Negotiate abc==, Bearer realm = "say \\"x\\", y"', {"realm": 'say "x", y'}),
            ("Negotiate, Bearer", {}),
            ('Bearer realm=",Bearer scope=b"', {"realm": ",Bearer scope=b"}),
            (',, Bearer a="", b=c ,', {"a": "", "b": "c"}),
            ("", {}),
        ):
            self.assertEqual(read_challenge(header), wanted, header)

    def test_not_read(self) -> None:
        """What is malformed, too long, of another scheme or said twice says nothing, not even in part."""
        for header in (
            'Bearer scope="a',
            'Bearer scope="a" error="b"',
            'Bearer scope="a", scope="b"',
            'Bearer scope="a", Scope="b"',
            'scope="a"',
            'Digest scope="a"',
            "Bearer scope=",
            'Bearer scope="a", @',
            f'Bearer scope="{"a" * 8192}"',
        ):
            self.assertEqual(read_challenge(header), {}, header[:40])

    @given(st.dictionaries(_TOKEN.map(str.lower), _QUOTED, min_size=1, max_size=5), st.booleans())
    def test_round_trip(self, told: dict[str, str], beside: bool) -> None:
        """What is written by the grammar is read back, whatever another challenge before it says."""
        written = "Bearer " + ", ".join(_write(name, value) for name, value in told.items())
        self.assertEqual(read_challenge(f'Basic realm="Bearer a=b", {written}' if beside else written), told)

    @given(st.lists(_PIECES, max_size=40).map("".join))
    def test_wild(self, header: str) -> None:
        """No header breaks the reader, and what it finds stands in the header."""
        for name, value in read_challenge(header).items():
            self.assertIn(name, header.lower())
            self.assertIn(value.partition("\\")[0].partition('"')[0], header)

    def test_linear(self) -> None:
        """The longest headers made to be tried again and again cost no time worth the name."""
        for piece in ('a="', "a ", "a=b,", '\\"', "a=", " ", ",", "Bearer ", 'a="b",', '"\\'):
            for before in ("", "Bearer ", 'Bearer a="'):
                self.assertLess(seconds(partial(read_challenge, (before + piece * 8192)[:8192])), 0.5, piece)


class ScopeTests(SynchronousTestCase):
    def test_read(self) -> None:
        """Scopes are read from a text or an array, each once."""
        self.assertEqual(read_scopes("read write read"), ("read", "write"))
        self.assertEqual(read_scopes(["read", "https://api.example/write"]), ("read", "https://api.example/write"))
        self.assertEqual(read_scopes(None), ())

    def test_refused(self) -> None:
        """One that is no scope, too long or among too many makes all of them none."""
        wrongs: tuple[str | list[JSON], ...] = (
            "read \x1b[2J",
            'read "',
            "read " + "x" * 129,
            " ".join(map(str, range(101))),
            ["read", 7],
        )
        for wrong in wrongs:
            self.assertEqual(read_scopes(wrong), (), str(wrong)[:20])
