"""Rate limits that several daemons share last by the database's clock, and never become shorter."""

from __future__ import annotations

from aileron.model.rate_limits import MOST_HELD_SECONDS, RateLimit
from aileron.store._rate_limits import SQLRateLimits

from .case import DatabaseCase

LIMIT = RateLimit(("builtin://slack", "api_key/slack"), of_preview=False)
OF_PREVIEW = RateLimit(LIMIT.account, of_preview=True)


class RateLimitTests(DatabaseCase):
    def setUp(self) -> None:
        super().setUp()
        store = self.opened()
        self.limits = SQLRateLimits(store._writer, store._readers)

    def note(self, limit: RateLimit, seconds: float) -> None:
        self.do(self.limits.note(limit, seconds))

    def left(self, limit: RateLimit) -> float:
        return round(self.do(self.limits.all()).get(limit, 0.0), -1)

    def pass_seconds(self, seconds: float) -> None:
        """Let the database's clock go on."""
        self.query(f"UPDATE rate_limits SET until = until - {seconds}")

    def test_over(self) -> None:
        """A limit applies until it is over, to one account alone, with a credential or without."""
        bare = RateLimit((LIMIT.account[0], None), of_preview=False)
        self.note(LIMIT, 60)
        self.note(bare, 120)
        self.assertEqual((self.left(LIMIT), self.left(bare), self.left(OF_PREVIEW)), (60, 120, 0))
        self.pass_seconds(90)
        self.assertEqual((self.left(LIMIT), self.left(bare)), (0, 30))
        self.note(LIMIT, 60)
        self.assertEqual(self.left(LIMIT), 60)

    def test_longer(self) -> None:
        """A limit becomes longer, not shorter, and one that a preview set not even longer."""
        for limit in (LIMIT, OF_PREVIEW):
            self.note(limit, 60)
            self.note(limit, 30)
            self.note(limit, 120)
        self.assertEqual((self.left(LIMIT), self.left(OF_PREVIEW)), (120, 60))

    def test_most(self) -> None:
        """A limit lasts an hour at most; one that another program stored for longer does not apply."""
        self.note(LIMIT, 10 * MOST_HELD_SECONDS)
        self.assertEqual(self.left(LIMIT), MOST_HELD_SECONDS)
        self.pass_seconds(-60)
        self.assertEqual(self.left(LIMIT), 0)
        self.note(LIMIT, 30)
        self.assertEqual(self.left(LIMIT), 30)
