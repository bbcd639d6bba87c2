"""The file of limits: what it says, and that it counts only as it is trusted."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from aileron.features.spending._file import MOST_RAISES, OwnLimits
from aileron.features.spending.values import Per, Raise, SpendLimit, Unit
from aileron.model.errors import Conflict, InvalidRequest
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import TrustKind

from .case import SpendCase, limit

_TEXT = """
[[limit]]
tokens = 5000000

[[limit]]
per = "session"
money = "2.50"
provider = "openai"
model = "gpt-5*"

[[raise]]
limit = "0123abcd"
window = "2026-03-01"
by = 7
"""
_MEANT = OwnLimits(
    (limit(5_000_000), limit(2_500_000, Unit.MONEY, Per.SESSION, "openai", "gpt-5*")),
    (Raise("0123abcd", "2026-03-01", 7),),
)


class FileTests(SpendCase):
    """L{SpendingFile}."""

    def change(self, own: OwnLimits) -> None:
        """Write it, and trust it."""
        with self.file.changing(own) as candidate:
            self.put(candidate.text)

    def test_missing(self) -> None:
        """Without a file there are no limits, and nothing is wrong."""
        self.assertTrue(verifyObject(IConfigFile, self.file))
        self.assertEqual((self.file.candidates(), self.file.problems()), ((), ()))
        self.assertEqual(self.file.read_own(), OwnLimits())

    def test_read(self) -> None:
        """Limits and what was added to them are read, and written as they are read."""
        self.put(_TEXT)
        self.assertEqual(self.file.read_own(), _MEANT)
        self.change(_MEANT)
        self.assertEqual(self.file.read_own(), _MEANT)
        self.assertEqual(self.file.problems(), ())

    def test_untrusted(self) -> None:
        """What is on disk and not trusted changes nothing; after a restart it is not known what was trusted."""
        self.put(_TEXT, trusted=False)
        self.assertEqual(self.file.read_own(), OwnLimits())
        self.assertIn("not trusted as it is now", self.file.problems()[0].message)
        self.put(_TEXT)
        self.file.read_own()
        for other in ("[[limit]]\ntokens = 9\n", "broken"):
            self.put(other, trusted=False)
            self.assertEqual(self.file.read_own(), _MEANT)
        self.path.unlink()
        self.assertEqual(self.file.read_own(), _MEANT)
        self.limited()
        self.assertIsNone(self.file.read_own())
        self.trust.remove(TrustKind.CONFIG, "spending.toml")
        self.assertEqual(self.file.read_own(), OwnLimits())

    def test_faults(self) -> None:
        """What is no limit is a fault with its line, and none of the file counts."""
        for text in (
            "[[limit]]\n",
            "[[limit]]\ntokens = 1\nrequests = 2\n",
            "[[limit]]\ntokens = 0\n",
            "[[limit]]\ntokens = 1.5\n",
            "[[limit]]\ntokens = 1000000000000000000\n",
            '[[limit]]\nmoney = "-1"\n',
            '[[limit]]\nmoney = "1e9"\n',
            '[[limit]]\ntokens = 1\nper = "hour"\n',
            '[[limit]]\nrequests = 1\nper = "request"\n',
            '[[limit]]\ntokens = 1\nmodel = "a b"\n',
            '[[limit]]\ntokens = 1\nprovider = "A"\n',
            "[[limit]]\ntokens = 1\n[[limit]]\ntokens = 2\n",
            '[[raise]]\nlimit = "x"\nwindow = "a"\nby = 1\n',
            '[[raise]]\nlimit = "0123abcd"\nwindow = "a"\n',
            "other = 1\n",
            "[[limit]\n",
            "\ufeff\x00",
        ):
            self.put(text, trusted=False)
            self.assertTrue(self.file.problems(), text)
            self.assertEqual(self.file.candidates(), (), text)

    def test_change_of_another(self) -> None:
        """Nothing is written over what the operator has not trusted."""
        self.put(_TEXT, trusted=False)
        self.assertRaises(Conflict, self.change, _MEANT)
        self.assertEqual(self.path.read_text(), _TEXT)

    def test_failed(self) -> None:
        """If the new file is not trusted, the earlier one stands there again."""
        self.put(_TEXT)

        def fail() -> None:
            with self.file.changing(OwnLimits()):
                raise RuntimeError

        self.assertRaises(RuntimeError, fail)
        self.assertEqual((self.path.read_text(), self.file.read_own()), (_TEXT, _MEANT))
        self.path.unlink()
        self.trust.remove(TrustKind.CONFIG, "spending.toml")
        self.assertRaises(RuntimeError, fail)
        self.assertFalse(self.path.exists())

    def test_too_much(self) -> None:
        """What the file cannot say is not written."""
        many = tuple(Raise("0123abcd", "a", 1) for _ in range(MOST_RAISES + 1))
        self.assertRaises(InvalidRequest, self.change, OwnLimits((), many))
        strange = SpendLimit(Unit.TOKENS, Per.DAY, 1, None, 'a"b')
        self.assertRaises(InvalidRequest, self.change, OwnLimits((strange,)))
        self.assertFalse(self.path.exists())
