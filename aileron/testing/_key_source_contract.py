"""The tests that every implementation of L{IKeySource} must pass."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from aileron.model.errors import Forbidden, InvalidRequest
from aileron.model.interfaces.vault import IKeySource

from ._case import MixedIn

_KEY_BYTES = 32


class KeySourceContract(MixedIn):
    """Tests of L{IKeySource}.  Mix into a test case."""

    def make_source(self) -> IKeySource:
        """Return a source that is available. Each source that is made has the same private key."""
        raise NotImplementedError

    def make_absent(self) -> IKeySource:
        """Return a source whose private key is not available in this process."""
        raise NotImplementedError

    def make_refused(self) -> IKeySource:
        """Return a source that must not be used, or cannot be read."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The source provides L{IKeySource}."""
        self.assertTrue(verifyObject(IKeySource, self.make_source()))

    def test_reads_the_same(self) -> None:
        """The private key has 32 bytes, and is the same each time."""
        found = self.make_source().read()
        assert found is not None
        self.assertEqual(len(found), _KEY_BYTES)
        self.assertEqual(self.make_source().read(), found)

    def test_absent(self) -> None:
        """A source that is not available returns None."""
        self.assertIsNone(self.make_absent().read())

    def test_refused(self) -> None:
        """A source that must not be used says why, in a sentence without its private key."""
        found = self.make_source().read()
        assert found is not None
        error = self.assertRaises((Forbidden, InvalidRequest), self.make_refused().read)
        assert isinstance(error, (Forbidden, InvalidRequest))
        self.assertTrue(error.message.endswith("."))
        self.assertNotIn(found.hex(), repr(error))
