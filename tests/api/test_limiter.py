"""Who keeps a place on a site that is flooded, and who gives way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.tcp import Port
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase

from aileron.api import CHECK_SECONDS, GuardedSite, SiteRules, operator_site
from aileron.api._sessions import GRACE_SECONDS
from aileron.api.channels.limiter import MOST_IN_A_TURN, ConnectionLimiter
from tests.extent import examples

from .case import LAUNCH_KEY, ApiCase
from .test_channel import HOST, TYPE, ChannelCase, Line, Proving, head, status


def _go_on(limiter: ConnectionLimiter, what: str, connection: Tracked, held: int) -> None:
    """Do what a connection that is inside may do."""
    if what == "rest":
        limiter.rested(connection)
    elif what == "count":
        limiter.count(connection, held)
    elif what == "leave":
        limiter.leave(connection)


_STEPS = "enter keep rest count forget leave".split()


class Tracked:
    """A connection that only counts."""

    def __init__(self, at_rest: bool = True) -> None:
        self.at_rest = at_rest
        self.dropped = False

    def drop(self) -> None:
        self.dropped = True


class LimiterTests(SynchronousTestCase):
    """A limiter with room for eight, of which six can be kept."""

    def setUp(self) -> None:
        self.limiter = ConnectionLimiter(8, 1000, 20_000)

    def entered(self, count: int, *, at_rest: bool = True) -> list[Tracked]:
        """So many that came in."""
        found = [Tracked(at_rest) for _ in range(count)]
        self.assertTrue(all(map(self.limiter.enter, found)))
        return found

    def kept(self, count: int, owner: str, *, at_rest: bool = True) -> list[Tracked]:
        """So many that came in and proved to be somebody's, each at once."""
        found = []
        for _ in range(count):
            found += self.entered(1, at_rest=at_rest)
            self.limiter.keep(found[-1], owner)
        return found

    def test_shared(self) -> None:
        """Who has most gives up to who has less, until they have the same; those that rest are given up first."""
        greedy = self.kept(6, "ann", at_rest=False)
        greedy[4].at_rest = True
        modest = self.kept(6, "ben", at_rest=False)
        self.entered(8)
        self.assertEqual([each.dropped for each in greedy], [True, True, False, False, True, False])
        self.assertEqual([each.dropped for each in modest], [False] * 3 + [True] * 3)

    def test_another_owner(self) -> None:
        """A connection that many speak by is kept for who spoke last."""
        first, *others = self.kept(6, "ann", at_rest=False)
        self.limiter.keep(first, "ben")
        self.limiter.keep(first, "ben")
        self.kept(1, "ben")
        self.entered(8)
        self.assertEqual((first.dropped, sum(each.dropped for each in others)), (False, 1))

    def test_forgotten(self) -> None:
        """Whoever's credential opens nothing any more keeps nothing, nor does who is gone; what others have stays."""
        ended, live = self.kept(3, "ann"), self.kept(3, "ben")
        self.limiter.forget("ann")
        self.limiter.forget("ann")
        self.entered(5)
        self.assertEqual([each.dropped for each in (*ended, *live)], [True] * 3 + [False] * 3)
        self.assertEqual([each.dropped for each in self.kept(3, "cat")], [False] * 3)
        (gone,) = self.kept(1, "ann")
        self.limiter.leave(gone)
        self.limiter.leave(gone)
        self.limiter.keep(gone, "ann")
        self.limiter.rested(gone)
        self.limiter.count(gone, 1000)
        self.assertEqual(len(self.limiter), 7)

    def test_refused_later(self) -> None:
        """A connection whose next credential is wrong gives way like a newcomer, its owner's others do not."""
        wrong, right = self.kept(2, "ann")
        stranger = self.entered(1)[0]
        for each in (wrong, wrong, stranger, Tracked()):
            self.limiter.give_up(each)
        self.entered(7)
        self.assertEqual((wrong.dropped, right.dropped, len(self.limiter)), (True, False, 8))

    def test_bytes(self) -> None:
        """Of what is held for those that proved nothing there is a bound; who holds most gives way, and no other."""
        large, larger, proven, small = self.entered(4)
        self.limiter.keep(proven, "ann")
        for connection, held in ((large, 400), (larger, 300), (larger, 500), (proven, 10_000), (small, 100)):
            self.limiter.count(connection, held)
        self.assertEqual([each.dropped for each in (large, larger, proven, small)], [False] * 4)
        self.limiter.count(small, 101)
        self.assertEqual([each.dropped for each in (large, larger, proven, small)], [False, True, False, False])

    def test_bytes_of_those_with_places(self) -> None:
        """Of what is held for the others there is another one; of the owner that holds most, the largest goes."""
        ann, bob = self.kept(3, "ann"), self.kept(1, "bob")
        for connection, held in zip((*ann, *bob), (5_000, 4_000, 4_000, 7_000), strict=True):
            self.limiter.count(connection, held)
        self.assertEqual([each.dropped for each in (*ann, *bob)], [False] * 4)
        self.limiter.count(bob[0], 7_001)
        self.assertEqual([each.dropped for each in (*ann, *bob)], [True, False, False, False])

    def test_bytes_go_along(self) -> None:
        """What is held for a connection is counted wherever its place comes from."""
        (small,), (ann,), (bob,) = self.entered(1), self.kept(1, "ann"), self.kept(1, "bob")
        self.limiter.count(small, 500)
        self.limiter.count(ann, 500)
        self.limiter.count(bob, 501)
        self.limiter.give_up(ann)
        self.assertEqual((self.limiter._bytes, self.limiter._proven_bytes), (1000, 501))
        self.limiter.forget("bob")
        self.assertEqual([each.dropped for each in (small, ann, bob)], [False, False, True])
        self.limiter.keep(small, "ann")
        self.assertEqual((self.limiter._bytes, self.limiter._proven_bytes), (500, 500))

    def test_stays_for_a_while(self) -> None:
        """Who has proved nothing stays at least a fifth of a second, however many come and whatever is kept."""
        for kept in (0, 40, 90, 192):
            limiter = ConnectionLimiter(256)
            owned = [Tracked() for _ in range(kept)]
            for number in range(256):
                connection = owned[number] if number < kept else Tracked()
                limiter.enter(connection)
                if connection in owned:
                    limiter.keep(connection, "ann")
            newcomer = Tracked()
            limiter.enter(newcomer)
            seconds = limiter.pause_seconds
            while not newcomer.dropped:
                for _ in range(limiter.most_in_a_turn):
                    limiter.enter(Tracked())
                seconds += 0 if newcomer.dropped else limiter.pause_seconds
            self.assertGreaterEqual(round(seconds, 9), 0.2)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(0, 11)), max_size=80))
    def test_any_order(self, steps: list[tuple[str, int]]) -> None:
        """There are never too many, newcomers always come in, and nobody is refused what another has two more of."""
        limiter, inside, owners = ConnectionLimiter(8, 20, 30), dict[int, Tracked](), dict[int, str]()
        for what, number in steps:
            if what == "enter" and number not in inside:
                inside[number] = Tracked()
                self.assertTrue(limiter.enter(inside[number]))
            elif what == "keep" and number in inside:
                owners[number] = "abc"[number % 3]
                limiter.keep(inside[number], owners[number])
            elif what == "forget":
                limiter.forget("abc"[number % 3])
            elif number in inside:
                _go_on(limiter, what, inside[number], number)
            if what == "leave":
                inside.pop(number, None)
            inside = {each: tracked for each, tracked in inside.items() if not tracked.dropped}
            self.assertEqual(len(limiter), len(inside))
            self.assertLessEqual(len(inside), 8)
            self.assertEqual(limiter._bytes, sum(limiter._unproven.values()))
            self.assertLessEqual(limiter._bytes, 20)
            self.assertEqual(limiter._proven_bytes, sum(sum(kept.values()) for kept in limiter._kept.values()))
            self.assertLessEqual(limiter._proven_bytes, 30)
            shares = {owner: len(kept) for owner, kept in limiter._kept.items()}
            self.assertLessEqual(sum(shares.values()), 6)
            if what == "keep" and number in inside and inside[number] not in limiter._owners:
                self.assertLessEqual(max(shares.values()), shares.get(owners[number], 0) + 1)


class SiteTests(ChannelCase):
    """A site with room for four."""

    def setUp(self) -> None:
        super().setUp()
        self.echo = Proving()
        self.site = GuardedSite(self.echo, SiteRules([HOST]), self.clock, most_connections=4)

    def test_kept(self) -> None:
        """Who named itself is answered after any number of newcomers; who has said nothing is gone."""
        named, silent = Line(self.site), Line(self.site)
        self.assertEqual(status(named.say(head("X-Name: ann"))), 200)
        for _ in range(20):
            Line(self.site)
        self.assertEqual((named.closed, silent.closed), (False, True))
        self.assertEqual(status(named.say(head())), 200)

    def test_left_before_proof(self) -> None:
        """A request whose client has left keeps nothing."""
        self.echo.hold = True
        line = Line(self.site)
        line.say(head())
        line.leave()
        request = self.echo.held[0]
        request.keep_place("ann")
        self.assertEqual(len(self.site.limiter), 0)

    def listening(self, count: int) -> Sequence[Port]:
        """Ports at which the site listens."""
        self.reactor = MemoryReactor()
        ports = [Port(0, self.site, reactor=self.reactor) for _ in range(count)]
        for port in ports:
            port.connected = True
            port.startReading()
        self.site.listens_at(ports)
        return ports

    def test_paced(self) -> None:
        """Few connections are accepted in a turn; while it is full fewer, and none for a while after that."""
        ports = self.listening(2)
        self.assertEqual([port.numberAccepts for port in ports], [MOST_IN_A_TURN // 2] * 2)
        for _ in range(3):
            ports[0].numberAccepts = 100  # Twisted's grows
            Line(self.site)
            self.clock.advance(0)
            self.assertEqual(ports[0].numberAccepts, MOST_IN_A_TURN // 2)
            self.assertCountEqual(self.reactor.getReaders(), ports)
        for _ in range(2):
            Line(self.site)
            self.clock.advance(0)
            self.assertEqual(self.reactor.getReaders(), [])
            self.clock.advance(0.024)
            self.assertEqual(self.reactor.getReaders(), [])
            self.clock.advance(0.001)
            self.assertCountEqual(self.reactor.getReaders(), ports)
            self.assertEqual([port.numberAccepts for port in ports], [1, 1])

    def test_closed_while_nobody_is_accepted(self) -> None:
        """A port that is closed meanwhile is not opened again, and with the last one the pause ends."""
        ports = self.listening(3)
        for _ in range(4):
            Line(self.site)
        self.clock.advance(0)
        ports[0].connected, ports[1].disconnecting = False, True
        self.clock.advance(1)
        self.assertEqual(self.reactor.getReaders(), [ports[2]])
        Line(self.site)
        self.site.stopFactory()
        self.assertEqual([call for call in self.clock.getDelayedCalls() if call.getTime() <= self.clock.seconds()], [])

    def test_strangers_are_paced(self) -> None:
        """So are those that are refused at once: another user's, or who has closed before anybody could look."""
        [port] = self.listening(1)
        self.site.rules = SiteRules([HOST], peer_uid=lambda _transport: None, own_uid=501)
        for _ in range(2):
            port.numberAccepts = 100
            self.assertTrue(Line(self.site).closed)
            self.assertTrue(Line(self.site).closed)
            self.assertEqual(len(self.clock.getDelayedCalls()), 1)
            self.clock.advance(0)
            self.assertEqual(port.numberAccepts, MOST_IN_A_TURN)

    def test_strangers_bodies(self) -> None:
        """Bodies that do not end, heads, and what follows a request that waits are bounded; who sends most goes."""
        self.site.limiter = ConnectionLimiter(4, 100_000)
        slow = [Line(self.site) for _ in range(3)]
        for line, size in zip(slow, (40_000, 50_000, 20_000), strict=True):
            line.say(head(TYPE, "Content-Length: 90000", method="POST") + b"x" * size)
        self.assertEqual([line.closed for line in slow], [False, True, False])
        self.assertEqual(status(slow[0].say(b"x" * 50_000)), 200)
        self.assertEqual(self.site.limiter._bytes, 20_000)
        self.site.limiter = ConnectionLimiter(4, 20_000)
        self.echo.hold = True
        ahead, unended = Line(self.site), Line(self.site)
        ahead.say(head() + b"x" * 12_000)
        unended.say(b"x" * 9_000)
        self.assertEqual([line.closed for line in (ahead, unended)], [True, False])


class GuardTests(ApiCase):
    """Both sites behind their channels, each with room for four."""

    def line(self, resource: Any) -> Line:
        """A connection to a site of its own, others of which come later."""
        self.site = GuardedSite(resource, SiteRules(hosts=(HOST,)), self.clock, most_connections=4)
        return Line(self.site)

    def assert_kept(self, line: Line, kept: bool) -> None:
        """Assert that newcomers send it away, or do not."""
        for _ in range(4):
            Line(self.site)
        self.assertEqual(line.closed, not kept)

    def posted(self, path: str, body: bytes) -> bytes:
        """A request with a body."""
        return head(TYPE, f"Content-Length: {len(body)}", method="POST", target=path) + body

    def test_credentials(self) -> None:
        """Every credential keeps its connection's place, also where it may not do what it asks."""
        agent, operator = f"Bearer {self.agent_token()}", f"Bearer {self.operator_token()}"
        for resource, path, credential, wanted in (
            (self.agents.resource, "/v1/runs", agent, 200),
            (self.agents.resource, "/v1/status", f"Bearer {LAUNCH_KEY}", 200),
            (self.agents.resource, "/v1/runs", f"Bearer {LAUNCH_KEY}", 403),
            (operator_site(self.deps), "/v1/runs", operator, 200),
        ):
            line = self.line(resource)
            heard = line.say(head(f"Authorization: {credential}", target=path))
            self.assertEqual(status(heard), wanted, (path, heard))
            self.assert_kept(line, True)

    def test_wrong_one_later(self) -> None:
        """A connection with a credential that nobody knows any more, a wrong one or none keeps no place."""
        session = self.open_session()
        line = self.line(self.agents.resource)
        asked = head(f"Authorization: Bearer {session['token']}", target="/v1/runs")
        self.assertEqual(status(line.say(asked)), 200)
        self.agents.ask("POST", f"/v1/sessions/{session['id']}/end", session["token"])
        self.assertEqual(status(line.say(asked)), 401)
        self.assert_kept(line, False)
        for lines, path in (((), "/v1/health"), (("Authorization: Bearer ail_o_guess",), "/v1/runs")):
            line = self.line(operator_site(self.deps))
            line.say(head(*lines, target=path))
            self.assert_kept(line, False)

    def test_ended(self) -> None:
        """Every end of a credential is told to the sites: of a session, however it ends, and of a login."""
        told: list[str] = []
        self.build(forget_places=told.append)
        operator = self.operator_token()
        sessions = [self.open_session() for _ in range(2)]
        self.agents.ask("POST", f"/v1/sessions/{sessions[0]['id']}/end", sessions[0]["token"])
        self.operator.ask("POST", f"/v1/sessions/{sessions[1]['id']}/deny", operator)
        self.assertEqual(told, [each["id"] for each in sessions])
        leased = {"agent": "a", "working_dir": "/", "lease": True}
        orphan = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, leased).json["id"]
        for _ in range(2 + int(GRACE_SECONDS / CHECK_SECONDS)):
            self.successResultOf(Deferred.fromCoroutine(self.deps.leases.end_lapsed_sessions()))
            self.clock.advance(CHECK_SECONDS)
        self.assertEqual(told[2:], [orphan])
        login = self.operator.ask("GET", "/v1/operator/sessions", operator).json["items"][0]["id"]
        self.operator.ask("POST", "/v1/operator/logout", operator)
        self.assertEqual(told[3:], [login])

    def test_login(self) -> None:
        """A login keeps its connection's place from then on."""
        nonce = self.operators.challenge(self.operators.CLIENT_NONCE, self.operators.ADDRESS)[0]
        body = f'{{"nonce": "{nonce}", "proof": "{self.operators.prove(nonce)}"}}'.encode()
        line = self.line(operator_site(self.deps))
        self.assertEqual(status(line.say(self.posted("/v1/operator/login", body))), 200)
        self.assert_kept(line, True)

    def test_delayed(self) -> None:
        """A wrong login whose refusal comes late gives way to a newcomer; the late refusal then goes nowhere."""
        for _ in range(5):
            self.operator.start("POST", "/v1/operator/login", None, {"nonce": "x", "proof": "y"})
        line = self.line(operator_site(self.deps))
        self.assertEqual(line.say(self.posted("/v1/operator/login", b'{"nonce": "x", "proof": "y"}')), b"")
        self.assert_kept(line, False)
        self.clock.advance(60)
        self.assertEqual(self.flushLoggedErrors(), [])


class CrowdedSiteTests(ChannelCase):
    """A site with room for three."""

    def setUp(self) -> None:
        super().setUp()
        self.site = GuardedSite(self.echo, SiteRules([HOST]), self.clock, most_connections=3)

    def lines(self, count: int) -> list[Line]:
        """Fresh connections."""
        return [Line(self.site) for _ in range(count)]

    def test_oldest_goes(self) -> None:
        """One more than there is room for takes the place of the oldest, also of one that waits or only begins."""
        self.echo.hold = True
        first, second, third = self.lines(3)
        first.say(head())
        newest = Line(self.site)
        self.assertEqual([True, False, False, False], [each.closed for each in (first, second, third, newest)])
        self.assertEqual(self.echo.gone, 1)
        self.echo.hold = False
        for line in (second, third, newest):
            self.assertEqual(status(line.say(head())), 200)
        slow = self.lines(3)
        for line in slow:
            line.say(head()[:-2])
        self.accepted(head())

    def test_closed(self) -> None:
        """When nobody listens any more, who rests goes at once, who waits goes with the answer."""
        self.site.startFactory()
        resting, waiting = self.lines(2)
        self.echo.hold = True
        waiting.say(head())
        self.site.stopFactory()
        self.assertEqual([each.closed for each in (resting, waiting)], [True, False])
        self.assertTrue(Line(self.site).closed)
        self.echo.held[0].finish()
        self.assertEqual(status(waiting.hear()), 200)
        self.assertTrue(waiting.closed)
        self.site.startFactory()
        self.assertFalse(Line(self.site).closed)

    def test_strangers_take_no_place(self) -> None:
        """A peer of another user, who is dropped, sends nobody away."""
        ours = self.lines(3)
        self.site.rules = SiteRules([HOST], peer_uid=lambda _transport: 502, own_uid=501)
        self.assertTrue(Line(self.site).closed)
        self.assertEqual([False] * 3, [line.closed for line in ours])
