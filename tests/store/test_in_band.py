"""What in-band mode hid is found by any of its keys, within bounds, while its session lives, and for a week."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from aileron.model.interfaces.store import IInBandMemories
from aileron.store import Store
from aileron.store._in_band import KEPT, MOST_CHARACTERS, MOST_CHARACTERS_IN_ALL, MOST_MEMORIES, REQUESTS_KEPT
from aileron.testing import example_session, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

ONE = "session-1"


class InBandMemoriesTests(DatabaseCase):
    """A store at noon, with one session."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.clock.advance(NOON.timestamp())
        self.store = self.opened()
        self.memories = self.store.in_band
        self.do(self.store.sessions.open(example_session(ONE), b"t" * 32, b"g" * 32, ()))

    def opened(self) -> Store:
        """Return a store on the file, opened."""
        return memory_store(self, self.clock, self.path, lambda *_: self.threads)

    def keep(self, *keys: str, content: str = "{}", session_id: str = ONE) -> None:
        """Keep one."""
        self.do(self.memories.keep(session_id, keys, content))

    def find(self, *keys: str, session_id: str = ONE) -> Sequence[tuple[tuple[str, ...], str]]:
        """Return what is found."""
        return self.do(self.memories.find(session_id, keys))

    def test_provides(self) -> None:
        """It provides IInBandMemories."""
        self.assertTrue(verifyObject(IInBandMemories, self.memories))

    def test_found(self) -> None:
        """Each is found by any of its keys, once and oldest first, byte for byte, after a restart too."""
        self.keep("a", "b", content='{"text": "ä \\u0000"}')
        self.keep("c", content="2")
        self.store = self.opened()
        self.memories = self.store.in_band
        self.assertEqual(self.find("c", "b", "a"), [(("a", "b"), '{"text": "ä \\u0000"}'), (("c",), "2")])
        self.assertEqual(self.find("c", "x"), [(("c",), "2")])
        self.assertEqual(self.find("x"), [])

    def test_of_one_session(self) -> None:
        """Nobody finds another session's, by whatever key."""
        self.keep("a")
        self.assertEqual(self.find("a", session_id="session-2"), [])

    def test_ends_with_session(self) -> None:
        """They are gone when their session has ended, and others' are not."""
        self.keep("a")
        self.keep("a", session_id="session-2")
        self.do(self.store.sessions.end(ONE, 0, ()))
        self.assertEqual(self.find("a"), [])
        self.assertEqual(self.query("SELECT session_id FROM in_band_memories"), [("session-2",)])

    def test_expires(self) -> None:
        """After a week one is no longer found, and the next that is kept deletes it."""
        self.keep("a")
        self.clock.advance(KEPT.total_seconds())
        self.assertEqual(len(self.find("a")), 1)
        self.clock.advance(1)
        self.assertEqual(self.find("a"), [])
        self.keep("b")
        self.assertEqual(self.query("SELECT keys FROM in_band_memories"), [('["b"]',)])

    def test_most(self) -> None:
        """Of one session so many are kept, the newest, whatever others keep."""
        self.keep("x", session_id="session-2")
        for number in range(MOST_MEMORIES + 1):
            self.keep(f"k{number}")
        self.assertEqual(self.find("k0"), [])
        self.assertEqual(len(self.find("k1", f"k{MOST_MEMORIES}")), 2)
        self.assertEqual(len(self.find("x", session_id="session-2")), 1)

    def test_longest(self) -> None:
        """Of one session's contents, and of all, only so much is kept, the newest."""
        half = "x" * (MOST_CHARACTERS // 2)
        for key in "abc":
            self.keep(key, content=half)
        self.assertEqual([keys for keys, _ in self.find("a", "b", "c")], [("b",), ("c",)])
        for number in range(MOST_CHARACTERS_IN_ALL // MOST_CHARACTERS):
            self.keep("y", content=half * 2, session_id=f"other-{number}")
        self.assertEqual(self.find("b", "c"), [])
        self.assertEqual(len(self.find("y", session_id="other-0")), 1)

    def test_requests(self) -> None:
        """A request is found by session and digest as long as is asked, after a restart too; the last one counts."""
        digest, other = b"d" * 32, b"e" * 32
        self.do(self.memories.keep_request(ONE, digest, "r1"))
        self.do(self.memories.keep_request(ONE, other, "r2"))
        self.memories = self.opened().in_band
        self.clock.advance(599)
        self.assertEqual(self.do(self.memories.find_request(ONE, digest, 600)), "r1")
        self.assertIsNone(self.do(self.memories.find_request("session-2", digest, 600)))
        self.do(self.memories.keep_request(ONE, other, "r3"))
        self.clock.advance(1)
        self.assertIsNone(self.do(self.memories.find_request(ONE, digest, 600)))
        self.assertEqual(self.do(self.memories.find_request(ONE, other, 600)), "r3")

    def test_requests_go(self) -> None:
        """Requests go after an hour, when another is kept, and with their session."""
        count = "SELECT count(*) FROM in_band_requests"
        self.do(self.memories.keep_request(ONE, b"d" * 32, "r1"))
        self.clock.advance(REQUESTS_KEPT.total_seconds() + 1)
        self.do(self.memories.keep_request(ONE, b"e" * 32, "r2"))
        self.assertEqual(self.query(count), [(1,)])
        self.do(self.store.sessions.end(ONE, 0, ()))
        self.assertEqual(self.query(count), [(0,)])
