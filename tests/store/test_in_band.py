"""What in-band mode hid is found by any of its keys, within bounds, while its session lives, and for a week."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from aileron.model.interfaces.store import IInBandMemories
from aileron.store import Store
from aileron.store._in_band import KEPT, MOST_CHARACTERS, MOST_CHARACTERS_IN_ALL, MOST_MEMORIES
from aileron.testing import example_session, memory_store
from aileron.testing._examples import NOON

from .case import DatabaseCase

ONE = "session-1"
DIGEST, OTHER = b"d" * 32, b"e" * 32
LONG_AGO = "2001-01-01T00:00:00.000000Z"


class InBandCase(DatabaseCase):
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


class InBandMemoriesTests(InBandCase):
    """What in-band mode hid."""

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
        """After a week by the database's clock one is no longer found, and the next that is kept deletes it."""
        self.keep("a")
        self.clock.advance(2 * KEPT.total_seconds())
        self.assertEqual(len(self.find("a")), 1)
        self.query(f"UPDATE in_band_memories SET kept_at = '{LONG_AGO}'")
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


class RequestsTests(InBandCase):
    """Requests of a session, whose daemons may have any clocks."""

    def store_again(self) -> None:
        """Go on with another daemon, whose clock differs by two hours."""
        self.clock.advance(7200)
        self.memories = self.opened().in_band

    def age(self) -> None:
        """Let all be stored long ago."""
        self.query(f"UPDATE in_band_requests SET seen_at = '{LONG_AGO}'")

    def claim(self, request_id: str, digest: bytes = DIGEST, session_id: str = ONE) -> str:
        """Claim one as another attempt."""
        return self.do(self.memories.claim_request(session_id, digest, request_id, 600))

    def test_found(self) -> None:
        """One is found by session and digest as long as is asked, at another daemon too; the last one counts."""
        self.do(self.memories.keep_request(ONE, DIGEST, "r1"))
        self.do(self.memories.keep_request(ONE, OTHER, "r2"))
        self.store_again()
        self.assertEqual(self.do(self.memories.find_request(ONE, DIGEST, 600)), "r1")
        self.assertIsNone(self.do(self.memories.find_request("session-2", DIGEST, 600)))
        self.age()
        self.do(self.memories.keep_request(ONE, OTHER, "r3"))
        self.assertIsNone(self.do(self.memories.find_request(ONE, DIGEST, 600)))
        self.assertEqual(self.do(self.memories.find_request(ONE, OTHER, 600)), "r3")

    def test_claimed(self) -> None:
        """The first of all attempts has named it, whichever daemon they come to, for as long as there are more."""
        self.assertEqual(self.claim("r1"), "r1")
        self.store_again()
        self.assertEqual([self.claim("r2"), self.claim("r3")], ["r1", "r1"])
        self.assertEqual((self.claim("r4", OTHER), self.claim("r5", session_id="session-2")), ("r4", "r5"))
        self.do(self.memories.keep_request(ONE, DIGEST, "r6"))
        self.assertEqual(self.claim("r7"), "r6")
        self.age()
        self.assertEqual((self.claim("r8"), self.claim("r9")), ("r8", "r8"))

    def test_clock(self) -> None:
        """A daemon whose clock is hours ahead deletes nothing that another daemon has just stored."""
        self.assertEqual(self.claim("r1"), "r1")
        self.store_again()
        self.do(self.memories.keep_request(ONE, OTHER, "r2"))
        self.assertEqual(self.claim("r3"), "r1")

    def test_go(self) -> None:
        """Requests go after an hour, when another is kept, and with their session."""
        count = "SELECT count(*) FROM in_band_requests"
        self.claim("r1")
        self.age()
        self.claim("r2", OTHER)
        self.assertEqual(self.query(count), [(1,)])
        self.do(self.store.sessions.end(ONE, 0, ()))
        self.assertEqual(self.query(count), [(0,)])
