"""The history: everything on record as one timeline, in words, and found again by its address."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.base.text import visible
from aileron.features import FeatureSet
from aileron.model.audit import Actor, Event
from aileron.model.usage import Usage
from aileron.web.event_names import KINDS, event_names
from tests.api.case import NOW
from tests.audit.recorded import RECORDED
from tests.web.case import Reading, WebCase, read

HOSTILE = "<b onclick=x>\u202e</b>"
OPERATOR = Actor("human", "operator-1")


class HistoryTests(WebCase):
    """C{/history}."""

    def record(self, kind: str, at: datetime | None = None, actor: Actor = OPERATOR, **about: Any) -> None:
        """Put it on record."""
        event = Event(self.fresh_id(), kind, at or utc(NOW), actor, **about)
        self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))

    def shown(self, query: str = "") -> Reading:
        """The page, read."""
        heard = self.fragment(f"/history{query}")
        self.assertEqual(heard.status, 200, heard.text)
        return read(heard.text)

    def entries(self, query: str = "") -> Sequence[str]:
        """What each entry is called, in order."""
        parts = self.fragment(f"/history{query}").text.split('<span class="chip ')[1:]
        return [part.partition(">")[2].partition("<")[0] for part in parts]

    def test_every_type(self) -> None:
        """Every type that is ever on record has words and a kind of its own."""
        names = event_names(FeatureSet())
        self.assertEqual(set(names), set(RECORDED))
        self.assertEqual({each.kind for each in names.values()}, set(KINDS))
        self.assertEqual(len({each.words for each in names.values()}), len(names))

    def test_timeline(self) -> None:
        """Runs, sessions and the rest are told in words, newest first, and lead to their pages and to the record."""
        self.agent(agent=HOSTILE)
        self.record("session.started", session_id="session-1")
        self.record("execution.succeeded", run_id="run-1", session_id="session-1", action="ship-update")
        self.record("trust.given", payload={"name": "config.yaml"})
        self.record("later.type")
        self.assertEqual(self.entries(), ["later.type", "Trusted", "Completed", "Session started"])
        shown = self.shown()
        links = [attributes["href"] for tag, attributes in shown.tags if tag == "a"]
        self.assertLessEqual({"/runs", "/history", "/runs/run-1", "/sessions/session-1"}, set(links))
        self.assertEqual(len([each for each in links if each.startswith("/audit/")]), 4)
        for words in ("config.yaml", visible(HOSTILE), "by you", "ship-update"):
            self.assertIn(words, shown.text)
        self.assertNotIn("onclick", str([attributes for _, attributes in shown.tags]))

    def test_search_in_view(self) -> None:
        """The field to search in is always in view; the other filters are folded up until one of them is used."""
        for query, is_open in (("", False), ("?text=x", False), ("?text=x&kind=runs", True)):
            shown = self.shown(query).tags
            at = next(place for place, (tag, _) in enumerate(shown) if tag == "details")
            self.assertEqual("open" in shown[at][1], is_open, query)
            fields = [attributes["name"] for tag, attributes in shown[:at] if tag == "input"]
            self.assertEqual(fields, ["text"], query)

    def test_days(self) -> None:
        """What came of calls in the last two weeks is drawn by day, and said in words; with a filter it is not."""
        self.assertEqual([tag for tag, _ in self.shown().tags if tag == "svg"], [])
        now = utc(NOW)
        for days, kind, number in (
            (0, "execution.succeeded", 3),
            (1, "approval.denied", 1),
            (20, "execution.failed", 5),
        ):
            for _ in range(number):
                self.record(kind, now - timedelta(days=days))
        shown = self.shown()
        outcomes, decisions = [each["aria-label"] for tag, each in shown.tags if tag == "svg"]
        yesterday = now - timedelta(days=1)
        told = f"Outcomes, by day (UTC): {yesterday:%d %b}: 1 denied; {now:%d %b}: 3 completed"
        self.assertEqual((outcomes, decisions), (told, f"Decisions, by day (UTC): {yesterday:%d %b}: 1 denied"))
        kinds = [each["class"] for tag, each in shown.tags if tag == "rect"]
        self.assertEqual(kinds, ["denied", "completed", "denied"])
        self.assertIn("Outcome unknown", shown.text)
        self.assertEqual([tag for tag, _ in self.shown("?kind=runs").tags if tag == "svg"], [])

    def test_decisions(self) -> None:
        """Decisions are told by who made them; what a grant allowed is none of yours, and takes none of your time."""
        now = utc(NOW)
        for run, seconds in (("run-1", 40), ("run-2", 90), ("run-3", 7200)):
            self.record("approval.requested", now - timedelta(seconds=seconds), run_id=run)
            self.record("approval.approved", now, run_id=run)
        self.record("approval.requested", now - timedelta(hours=9), run_id="run-4")
        self.record("grant.used", now, run_id="run-4")
        self.record("approval.approved", now, run_id="run-4", actor=Actor("service", "grant-1"))
        self.record("approval.expired", now, run_id="run-5")
        shown = self.shown()
        decisions, half, most = [each["aria-label"] for tag, each in shown.tags if tag == "svg"]
        day = f"by day (UTC): {now:%d %b}"
        self.assertEqual(decisions, f"Decisions, {day}: 3 approved by you, 1 approved by a grant, 1 expired")
        self.assertEqual(half, f"Time to decide: half within, {day}: 1.5 min (3 decisions)")
        self.assertEqual(most, f"Time to decide: 9 in 10 within, {day}: 2 h (3 decisions)")
        kinds = [each["class"] for tag, each in shown.tags if tag == "rect"]
        self.assertEqual(kinds, ["by-you", "by-grant", "expired", "time", "time"])

    def test_tokens(self) -> None:
        """LLM tokens are drawn by day, input and output stacked, and their cost only where a provider told one."""
        self.store.usage.note("openai", "session-1", Usage(12_345, 678))
        self.store.usage.note("anthropic", None, Usage(655, 0))
        day = f"by day (UTC): {utc(NOW):%d %b}"
        (tokens,) = [each["aria-label"] for tag, each in self.shown().tags if tag == "svg"]
        self.assertEqual(tokens, f"LLM tokens, {day}: 13,000 input tokens, 678 output tokens")
        self.assertEqual([each["class"] for tag, each in self.shown().tags if tag == "rect"], ["input", "output"])
        self.assertIn(">14k</text>", self.fragment("/history").text)
        for microdollars, words, above in (
            (140, "$0.000140", "&lt;1¢"),
            (449_860, "$0.450000", "45¢"),
            (2_050_000, "$2.50", "$2.5"),
            (10**7, "$12.50", "$12"),
        ):
            self.store.usage.note("openrouter", "session-1", Usage(cost_microdollars=microdollars))
            _, cost = [each["aria-label"] for tag, each in self.shown().tags if tag == "svg"]
            self.assertEqual(cost, f"Cost as reported by providers, {day}: {words}")
            self.assertIn(f">{above}</text>", self.fragment("/history").text)
        self.assertNotIn("<svg", self.fragment("/history?kind=runs").text)

    def test_older_tokens(self) -> None:
        """Usage of days that are not drawn, or of a clock that was ahead, is left out."""
        for days in (-1, 20):
            self.clock.rightNow = NOW - days * 86_400.0
            self.store.usage.note("openai", "session-1", Usage(5, 5, 0, 5))
        self.clock.rightNow = NOW
        self.assertNotIn("<svg", self.fragment("/history").text)

    def test_numbers(self) -> None:
        """The numbers stand in tables too, with a row for each day, and a dash where nothing was decided."""
        now = utc(NOW)
        self.record("approval.requested", now - timedelta(days=2), run_id="run-1")
        self.record("approval.denied", now, run_id="run-1")
        self.store.usage.note("openai", "session-1", Usage(1200, 34, 0, 140))
        text = self.fragment("/history").text
        for caption, first, last in (
            ("Outcomes and decisions", [*"0000000"], [*"0001000"]),
            ("LLM tokens and time to decide", ["0", "0", "–", "–", "–"], ["1,200", "34", "2 d", "2 d", "$0.000140"]),
        ):
            rows = text.partition(f"{caption}</caption>")[2].partition("</table>")[0].split("<tr>")[2:]
            self.assertEqual(len(rows), 14)
            cells = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in rows]
            self.assertEqual((cells[0][1:], cells[-1]), (first, [f"{now:%d %b}", *last]))

    def test_filters(self) -> None:
        """Each filter leaves what is like it, all together what is like all, and the page keeps what was chosen."""
        yesterday = utc(NOW) - timedelta(days=1)
        self.record("execution.failed", yesterday, action="b", session_id="s")
        self.record("execution.succeeded", action="a", session_id="s")
        self.record("approval.denied", action="b")
        for query, left in (
            ("?kind=runs", ["Completed", "Failed"]),
            ("?action=b", ["Denied", "Failed"]),
            ("?session=s", ["Completed", "Failed"]),
            (f"?day={yesterday:%Y-%m-%d}", ["Failed"]),
            (f"?kind=runs&action=b&session=s&day={yesterday:%Y-%m-%d}", ["Failed"]),
            ("?kind=sessions", []),
        ):
            self.assertEqual(self.entries(query), left, query)
        shown = self.shown("?kind=sessions&action=b")
        self.assertIn("No matching entries", shown.text)
        self.assertIn(("action", "b"), [(each.get("name"), each.get("value")) for _, each in shown.tags])
        heard = self.fragment("/history?day=x")
        self.assertEqual(heard.status, 400)
        self.assertIn("Day is not a valid date.", heard.text)

    def test_logins(self) -> None:
        """The login and logout of each command are left out, which is told, unless a filter says what is wanted."""
        self.record("operator.login", payload={"browser": False})
        self.record("trust.given")
        self.record("operator.logout", payload={"session": OPERATOR.id})
        self.record("operator.login_refused")
        told, link = "The login and logout of each command are left out", "/history?kind=logins"
        for query in ("", f"?day={utc(NOW):%Y-%m-%d}"):
            self.assertEqual(self.entries(query), ["Login refused", "Trusted"])
            self.assertEqual(
                (told in self.shown(query).text, link in self.fragment(f"/history{query}").text), (True, True)
            )
        for query, left in (
            ("?kind=logins", ["Login refused", "Logged out", "Logged in"]),
            ("?text=logged%20in", ["Logged in"]),
        ):
            self.assertEqual(self.entries(query), left)
            self.assertNotIn(told, self.shown(query).text)

    def test_search(self) -> None:
        """A text is found in what an entry is called, in what it is about and in its contents, in whatever case."""
        self.record("vault.unlocked")
        self.record("pause.begun", payload={"reason": "Lunch"})
        self.record("trust.given", connector="local://me/Chat")
        for text, left in (("UNLOCK", ["Vault unlocked"]), ("lunch", ["Paused"]), ("me/chat", ["Trusted"]), ("no", [])):
            self.assertEqual(self.entries(f"?text={text}"), left, text)

    def test_pages(self) -> None:
        """What does not fit is behind a link that keeps the filters, and no entry is lost or told twice."""
        for _ in range(120):
            self.record("vault.locked")
        seen, address = 0, "/history?kind=logins"
        for count in (50, 50, 20):
            shown = read(self.fragment(address).text)
            entries = sum(tag == "li" for tag, _ in shown.tags)
            self.assertEqual(entries, count)
            seen += entries
            address = next((each["href"] for _, each in shown.tags if each.get("rel") == "next"), "")
            self.assertEqual(parse_qs(urlsplit(address).query).get("kind"), ["logins"] if seen < 120 else None)

    def test_search_of_many(self) -> None:
        """A search reads so many at most, says so, and goes on where it ended."""
        self.record("session.broken", payload={"why": "needle"})
        for number in range(2050):
            self.record("vault.locked", payload={"number": number})
        shown = self.shown("?text=needle")
        self.assertIn("No matching entries", shown.text)
        self.assertIn("Searched 2,000 records. Older entries may match.", shown.text)
        address = next(each["href"] for _, each in shown.tags if each.get("rel") == "next")
        self.assertEqual(self.entries(address.removeprefix("/history")), ["Stopped for a while"])
