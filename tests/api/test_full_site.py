"""How many connections a site holds, and who has to make room."""

from __future__ import annotations

from aileron.api import GuardedSite, SiteRules

from .test_channel import HOST, ChannelCase, Line, head, status


class CrowdedSiteTests(ChannelCase):
    """A site with room for three."""

    def setUp(self) -> None:
        """Build it."""
        super().setUp()
        self.site = GuardedSite(self.echo, SiteRules([HOST]), self.clock, most_connections=3)

    def lines(self, count: int) -> list[Line]:
        """Fresh connections."""
        return [Line(self.site) for _ in range(count)]

    def test_oldest_goes(self) -> None:
        """One more than there is room for takes the place of the oldest, also if that waits for an answer."""
        self.echo.hold = True
        first, second, third = self.lines(3)
        first.say(head())
        newest = Line(self.site)
        self.assertEqual([True, False, False, False], [each.closed for each in (first, second, third, newest)])
        self.assertEqual(self.echo.gone, 1)
        self.echo.hold = False
        for line in (second, third, newest):
            self.assertEqual(status(line.say(head())), 200)

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

    def test_half_a_request_is_rest(self) -> None:
        """Whoever only begins a request holds no place against others."""
        slow = self.lines(3)
        for line in slow:
            line.say(head()[:-2])
        self.accepted(head())

    def test_whoever_leaves_makes_room(self) -> None:
        """A closed connection counts no more, whatever it was doing."""
        self.echo.hold = True
        waiting = self.lines(3)
        for line in waiting:
            line.say(head())
        waiting[1].leave()
        self.assertFalse(Line(self.site).closed)

    def test_strangers_take_no_place(self) -> None:
        """A peer of another user, who is dropped, sends nobody away."""
        ours = self.lines(3)
        self.site.rules = SiteRules([HOST], peer_uid=lambda _transport: 502, own_uid=501)
        self.assertTrue(Line(self.site).closed)
        self.assertEqual([False] * 3, [line.closed for line in ours])
