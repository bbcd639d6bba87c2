"""Following what the daemon offers."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.client import DaemonFault, DaemonUnreachable
from aileron.mcp._definitions import ToolDefinition
from tests.mcp.case import DaemonCase, action, fault, offering


class LinkTests(DaemonCase):
    """The list of tools follows the daemon's."""

    def names(self) -> list[str]:
        """The tools that are known."""
        return [definition.name for definition in self.link.definitions]

    def offered(self) -> Deferred[tuple[ToolDefinition, ...]]:
        """Ask as a client does."""
        return Deferred.fromCoroutine(self.link.offered())

    def test_first(self) -> None:
        """The first list is asked for at once, and whoever asks early waits for it."""
        self.start()
        offered = self.offered()
        self.assertNoResult(offered)
        self.site.answer(200, offering(1, action()))
        self.assertEqual([definition.name for definition in self.successResultOf(offered)], ["ship_update"])
        self.assertEqual(self.paths, ["/v1/actions"])

    def test_slow_first(self) -> None:
        """A daemon that does not answer keeps nobody waiting longer than 5 s."""
        self.start()
        offered = self.offered()
        self.clock.advance(4.9)
        self.assertNoResult(offered)
        self.clock.advance(0.2)
        self.assertEqual(self.successResultOf(offered), ())

    def test_long_poll(self) -> None:
        """From then on the daemon is asked to answer when something changes, and the change is told."""
        self.begin(action("a"))
        self.assertEqual(self.paths[-1], "/v1/actions?generation=1&wait=50")
        self.assertEqual(self.changes, 1)
        self.site.answer(200, offering(2, action("a"), action("b")))
        self.assertEqual((self.names(), self.changes), (["a", "b"], 2))
        self.clock.advance(0.25)
        self.assertEqual(self.paths[-1], "/v1/actions?generation=2&wait=50")

    def test_same_tools(self) -> None:
        """Another generation with the same tools is no change of the list."""
        self.begin(action("a"))
        self.site.answer(200, offering(2, action("a"), load_errors=[{"file": "x.md", "message": "bad"}]))
        self.assertEqual(self.changes, 1)
        self.assertEqual(self.link.load_errors[0]["file"], "x.md")

    def test_takes_tool_call(self) -> None:
        """Each answer says anew whether runs may name the model's tool call; while no daemon answers, none may."""
        self.start()
        self.site.answer(200, offering(1, action("a"), takes_tool_call=True))
        self.assertTrue(self.link.takes_tool_call)
        self.clock.advance(0.25)
        self.site.hang_up()
        self.assertFalse(self.link.takes_tool_call)
        self.clock.advance(0.25)
        self.site.answer(200, offering(1, action("a"), takes_tool_call=True))
        self.assertTrue(self.link.takes_tool_call)
        self.clock.advance(1)
        self.site.answer(200, offering(1, action("a")))
        self.assertFalse(self.link.takes_tool_call)

    def test_no_hot_loop(self) -> None:
        """A daemon that answers at once though nothing changed is not asked again for a second."""
        self.begin(action("a"))
        asked = len(self.paths)
        self.site.answer(200, offering(1, action("a")))
        self.clock.advance(0.9)
        self.assertEqual(len(self.paths), asked)
        self.clock.advance(0.2)
        self.assertEqual(len(self.paths), asked + 1)

    def test_held(self) -> None:
        """A daemon that held the poll is asked again at once, so that no change falls into a pause."""
        self.begin(action("a"))
        asked = len(self.paths)
        self.clock.advance(50)
        self.site.answer(200, offering(1, action("a")))
        self.clock.advance(0)
        self.assertEqual(self.paths[asked:], ["/v1/actions?generation=1&wait=50"])

    def test_restart(self) -> None:
        """While the daemon is away the tools stay; when it is back they are read at once, not by a long poll."""
        self.begin(action("a"))
        self.site.hang_up()
        self.assertIsInstance(self.link.trouble, DaemonUnreachable)
        self.assertEqual((self.names(), self.changes), (["a"], 1))
        self.clock.advance(0.25)
        self.assertEqual(self.paths[-1], "/v1/actions?generation=1")
        self.site.answer(200, offering(7, action("b")))
        self.assertIsNone(self.link.trouble)
        self.assertEqual((self.names(), self.changes), (["b"], 2))
        self.clock.advance(0.25)
        self.site.hang_up()
        self.clock.advance(0.25)
        self.site.answer(200, offering(7, action("b")))
        self.clock.advance(0)
        self.assertEqual((self.paths[-1], self.changes), ("/v1/actions?generation=7&wait=50", 2), "as it was")

    def test_back_off(self) -> None:
        """A daemon that stays away is asked ever less often, every 10 s in the end."""
        self.start()
        gaps = []
        for _ in range(8):
            before = self.clock.seconds()
            self.site.hang_up()
            while not self.site.waiting:
                self.clock.advance(0.25)
            gaps.append(self.clock.seconds() - before)
        self.assertEqual(gaps, [0.25, 0.5, 1, 2, 4, 8, 10, 10])
        self.site.answer(200, offering(1))
        self.clock.advance(0.25)
        self.site.hang_up()
        self.clock.advance(0.25)
        self.assertEqual(self.site.waiting, 1, "the next time it is asked soon again")

    def test_wrong_token(self) -> None:
        """A refused token is remembered as the trouble, and asked about again."""
        self.start()
        self.site.answer(401, fault("unauthorized"))
        self.assertIsInstance(self.link.trouble, DaemonFault)
        self.assertEqual(self.successResultOf(self.offered()), ())
        self.clock.advance(0.25)
        self.site.answer(200, offering(1, action("a")))
        self.assertEqual((self.names(), self.changes), (["a"], 1))

    def test_nonsense(self) -> None:
        """An answer that is no list of actions harms nothing."""
        self.start()
        for nonsense in [{}, {"generation": None}, {"generation": 5, "items": 7, "load_errors": 8}]:
            self.site.answer(200, nonsense)
            self.assertEqual(self.successResultOf(self.offered()), ())
            self.clock.advance(2)
        self.site.answer(200, offering(1, action("a")))
        self.assertEqual(self.names(), ["a"])

    def test_stop(self) -> None:
        """Stopping ends the poll and leaves nothing behind; twice is safe."""
        self.begin(action("a"))
        self.link.stop()
        self.link.stop()
        self.site.agent.flush()
        self.assertEqual((self.site.waiting, self.clock.getDelayedCalls()), (0, []))
