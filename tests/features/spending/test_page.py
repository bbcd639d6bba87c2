"""Limits, and what was used, on the operator's pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from aileron.features.spending.running import RunningSpending
from aileron.features.spending.values import Per, SpendLimit, Unit
from aileron.model.audit import Actor
from aileron.model.usage import Spent
from tests.api.case import running
from tests.features.gateway.running import relaying
from tests.web.case import WebCase, read

from .case import limit
from .running import limiting, use


class SpendPageTests(WebCase):
    """The parts of this feature."""

    def limited(self, *limits: SpendLimit) -> RunningSpending:
        """Have these limits."""
        directory = Path(self.mktemp())
        directory.mkdir()
        spending = limiting(directory, self.store, self.clock, self.fresh_id, *limits)
        self.build(features=running(relaying(), spending))
        self.path = directory / "spending.toml"
        return spending

    def buttons(self, path: str) -> list[tuple[str, Any]]:
        """What the buttons of limits on a page send."""
        tags = [each for tag, each in read(self.fragment(path).text).tags if tag == "button" and "data-act" in each]
        return [(each["data-act"], json.loads(each["data-body"])) for each in tags if "limits" in each["data-act"]]

    def test_nothing(self) -> None:
        """Without limits and requests it says so, with the command that sets one."""
        self.limited()
        text = self.fragment("/gateway").text
        self.assertIn("aileron gateway limit set", text)
        self.assertIn("No requests today", text)

    def test_limits(self) -> None:
        """Each limit is drawn with what was used of it, and a button that raises it as it was shown."""
        spending = self.limited(limit(100), limit(7, Unit.REQUESTS, Per.SESSION), limit(9, per=Per.REQUEST))
        session = self.open_session()["id"]
        use(spending, session, Spent(1, 100))
        text = self.fragment("/gateway").text
        for part in ("100 tokens of 100 tokens", "Reached", "1 request of 7 requests", "tokens in one request"):
            self.assertIn(part, text)
        self.assertEqual(
            [body for _, body in self.buttons("/gateway")],
            [
                {"window": f"{spending.today()}", "by": 100, "most": 100},
                {"window": session, "by": 7, "most": 7},
            ],
        )
        self.assertEqual([body["window"] for _, body in self.buttons(f"/sessions/{session}")], [session])
        self.assertIn("A spending limit is reached: tokens a day.", self.fragment("/home").text)

    def test_used(self) -> None:
        """What was used today is drawn by agent, model, session and day, and stands in tables as well."""
        spending = self.limited()
        session = self.open_session(agent="claude")["id"]
        use(spending, session, Spent(1, 1200, 34, 0, 1_500_000), "gpt-5")
        use(spending, session, Spent(2, 5, 5, 0, 0, 1, 2), "<b>evil</b>")
        text = self.fragment("/gateway").text
        charts = [each["aria-label"] for tag, each in read(text).tags if tag == "svg"]
        self.assertEqual(len(charts), 4)
        self.assertIn("gpt-5 1,234", charts[1])
        self.assertIn("1,205 input tokens, 39 output tokens", charts[3])
        for part in ("$1.50", "unknown (2 without a price)", "2 (1 estimated)"):
            self.assertIn(part, text)
        self.assertNotIn("<b>evil", text)

    def test_unreadable(self) -> None:
        """If the limits cannot be read, pages say so, and what to do."""
        spending = self.limited()
        self.path.write_text("[[limit]]\ntokens = 5\n")
        trust: Any = spending._trust
        digest = "sha256:" + "0" * 64
        trusting = trust.trust([("config", "spending.toml", digest)], Actor("human", "me"))
        self.successResultOf(Deferred.fromCoroutine(trusting))
        self.assertIn("aileron config trust", self.fragment("/gateway").text)
        self.assertIn("not as you trusted it", self.fragment("/home").text)
