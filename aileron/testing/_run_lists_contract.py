"""The tests that every implementation of L{IRuns} must pass, for searches and lists."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import evolve

from aileron.base.json import JSON
from aileron.model.authority import PendingLimits
from aileron.model.errors import InvalidRequest
from aileron.model.queries import RunQuery
from aileron.model.reviews import Review
from aileron.model.runs import Run, RunState

from ._apply_contract import ApplyContract
from ._examples import NOON, example_ask, example_decision, example_run, example_transition
from ._receive_contract import ReceiveContract

_S = RunState


class RunsContract(ReceiveContract, ApplyContract):
    """All tests of L{IRuns}: receiving, changing, listing.  Mix into a test case with C{make_runs}."""

    def ids(self, query: RunQuery) -> list[str]:
        """Return the ids of the runs that match."""
        return [run.id for run in self.do(self.runs.list(query)).items]

    def asked(self, run_id: str, review: dict[str, JSON]) -> Run:
        """Return a pending run without a session, with the given review."""
        run = example_run(run_id, session_id=None)
        ask = example_transition(run, _S.PENDING, ask=example_ask(review=Review(unread=review)))
        return self.do(self.runs.receive(run, (ask,), PendingLimits()))[0]

    def test_absent(self) -> None:
        """For an unknown id, reading one object returns None, and reading several returns none."""
        self.assertIsNone(self.do(self.runs.get("x")))
        self.assertIsNone(self.do(self.runs.approval("x")))
        self.assertEqual(self.do(self.runs.steps("x")), ())
        self.assertEqual(self.do(self.runs.attempts("x")), ())
        self.assertEqual(self.do(self.runs.count(RunQuery())), 0)

    def test_filters(self) -> None:
        """Every given field must match, in lists and counts."""
        self.received(example_run("a"))
        self.received(example_run("b", session_id="session-2", gated=False))
        self.received(example_run("c", action="other"))
        self.pending("d", session_id=None)
        for query, expected in (
            (RunQuery(), ["d", "c", "b", "a"]),
            (RunQuery(oldest_first=True), ["a", "b", "c", "d"]),
            (RunQuery(states=(_S.PENDING, _S.APPROVED)), ["d"]),
            (RunQuery(states=(_S.PENDING, _S.RECEIVED)), ["d", "c", "b", "a"]),
            (RunQuery(session_id="session-2"), ["b"]),
            (RunQuery(action="other"), ["c"]),
            (RunQuery(gated=False), ["b"]),
            (RunQuery(gated=True, action="ship-update"), ["d", "a"]),
        ):
            self.assertEqual(self.ids(query), expected, query)
            self.assertEqual(self.do(self.runs.count(query)), len(expected), query)

    def test_denials(self) -> None:
        """Denials after a time are returned with their runs, oldest first. Approvals and earlier denials are not."""
        at = example_decision().decided_at or NOON
        for number, approved in enumerate((False, True, False)):
            run = self.pending(f"run-{number}")
            decision = evolve(example_decision(), approved=approved, decided_at=at + timedelta(seconds=number))
            end = _S.APPROVED if approved else _S.DENIED
            self.do(self.runs.apply(example_transition(run, end, f"e-{number}", decision=decision)))
        found = self.do(self.runs.denials(at - timedelta(seconds=1)))
        self.assertEqual(
            [(each.run.id, each.run.state, each.approved) for each in found],
            [
                ("run-0", _S.DENIED, False),
                ("run-2", _S.DENIED, False),
            ],
        )
        self.assertEqual([each.run.id for each in self.do(self.runs.denials(at))], ["run-2"])

    def test_pages(self) -> None:
        """Pages have no gaps and no repetitions, even if runs are added in between."""
        for number in range(5):
            self.received(example_run(f"run-{number}"))
        first = self.do(self.runs.list(RunQuery(limit=2)))
        self.received(example_run("run-5"))
        second = self.do(self.runs.list(RunQuery(limit=2, cursor=first.cursor)))
        third = self.do(self.runs.list(RunQuery(limit=2, cursor=second.cursor)))
        ids = [run.id for page in (first, second, third) for run in page.items]
        self.assertEqual(ids, ["run-4", "run-3", "run-2", "run-1", "run-0"])
        self.assertIsNone(third.cursor)

    def test_bytes(self) -> None:
        """A page limited in bytes is shorter but never empty, and the next page continues without a gap."""
        for number in range(4):
            self.received(example_run(f"run-{number}", arguments={"text": "x" * (5000 if number == 2 else 1000)}))
        found, cursor = [], None
        for _ in range(3):
            page = self.do(self.runs.list(RunQuery(most_bytes=3000, cursor=cursor)))
            found.append([run.id for run in page.items])
            cursor = page.cursor
        self.assertEqual((found, cursor), ([["run-3"], ["run-2"], ["run-1", "run-0"]], None))
        first, second = self.pending("a"), self.pending("b")
        asked = self.do(self.runs.approvals(RunQuery(most_bytes=1)))
        self.assertEqual([each.run for each in asked.items], [first])
        rest = self.do(self.runs.approvals(RunQuery(most_bytes=1, cursor=asked.cursor)))
        self.assertEqual(([each.run for each in rest.items], rest.cursor), ([second], None))

    def test_last_page_full(self) -> None:
        """A page that ends with the last run has no cursor."""
        for number in range(2):
            self.received(example_run(f"run-{number}"))
        self.assertIsNone(self.do(self.runs.list(RunQuery(limit=2))).cursor)

    def test_bad_cursor(self) -> None:
        """A malformed cursor, or one of another list, is refused as invalid."""
        for number in range(2):
            self.received(example_run(f"run-{number}"))
        other = self.do(self.runs.list(RunQuery(limit=1, oldest_first=True))).cursor
        for cursor in ("", "x", "é", "cnVuczox\n", "cnVuczp4", "cnVuczo5OTk5OTk5OTk5OTk5OTk5OTk5OTk5", other):
            self.refused(self.runs.list(RunQuery(cursor=cursor)), InvalidRequest)
        self.refused(self.runs.approvals(RunQuery(cursor=other)), InvalidRequest)

    def test_approvals(self) -> None:
        """Approvals are listed with their runs, oldest first, with filters and pages."""
        self.received(example_run("ungated", gated=False))
        first, second = self.pending("a"), self.pending("b", session_id="session-2")
        page = self.do(self.runs.approvals(RunQuery(limit=1)))
        self.assertEqual([each.run for each in page.items], [first])
        rest = self.do(self.runs.approvals(RunQuery(limit=1, cursor=page.cursor)))
        self.assertEqual([each.run for each in rest.items], [second])
        self.assertIsNone(rest.cursor)
        self.do(self.runs.apply(example_transition(first, _S.CANCELLED)))
        waiting = self.do(self.runs.approvals(RunQuery(states=(_S.PENDING,))))
        self.assertEqual([each.run.id for each in waiting.items], ["b"])
        self.assertEqual(self.do(self.runs.approvals(RunQuery(gated=False))).items[0].run.id, "a")

    def test_most_used(self) -> None:
        """The actions completed most often come first, then in alphabetical order. Others are not returned."""
        self.received(example_run("waits", action="d"))
        for number, action in enumerate("abcbc"):
            run = self.received(example_run(f"run-{number}", action=action, gated=False))
            begun = self.do(self.runs.apply(example_transition(run, _S.EXECUTING)))
            self.do(self.runs.apply(example_transition(begun, _S.COMPLETED)))
        self.assertEqual(self.do(self.runs.most_used(9)), ("b", "c", "a"))
        self.assertEqual(self.do(self.runs.most_used(1)), ("b",))

    def test_repeats(self) -> None:
        """Identical runs of other sessions are returned if pending, executing, unknown or recently completed."""
        at = NOON + timedelta(seconds=2)
        for name, *states in (
            ("done", _S.EXECUTING, _S.COMPLETED),
            ("failed", _S.EXECUTING, _S.FAILED),
            ("in-doubt", _S.EXECUTING, _S.UNKNOWN),
            ("goes-on", _S.EXECUTING),
            ("cancelled", _S.CANCELLED),
        ):
            run = self.received(example_run(name, gated=False))
            for state in states:
                run = self.do(self.runs.apply(example_transition(run, state)))
        self.pending("waits")
        self.pending("nobody's", session_id=None)
        for run in (
            example_run("other-arguments", arguments={"count": 3}),
            example_run("other-action", action="other"),
        ):
            self.received(run)
            self.do(self.runs.apply(example_transition(run, _S.EXECUTING)))
        asked = example_run("again", session_id="session-2")

        def ids(since: datetime, limit: int = 9) -> list[str]:
            return [each.id for each in self.do(self.runs.repeats(asked, since, limit))]

        self.assertEqual(ids(at), ["goes-on", "in-doubt", "nobody's", "waits"])
        self.assertEqual(ids(NOON), ["goes-on", "in-doubt", "done", "nobody's", "waits"])
        self.assertEqual(ids(NOON, 2), ["goes-on", "in-doubt"])

    def test_twins(self) -> None:
        """Identical runs of this session are returned, oldest first. Those of other sessions or of none are not."""
        for name, *states in (
            ("done", _S.EXECUTING, _S.COMPLETED),
            ("failed", _S.EXECUTING, _S.FAILED),
            ("in-doubt", _S.EXECUTING, _S.UNKNOWN),
            ("cancelled", _S.CANCELLED),
        ):
            run = self.received(example_run(name, gated=False))
            for state in states:
                run = self.do(self.runs.apply(example_transition(run, state)))
        self.pending("waits")
        self.pending("other-session", session_id="session-2")
        self.pending("nobody's", session_id=None)
        self.received(example_run("other-arguments", gated=False, arguments={"count": 3}))
        asked = example_run("again")

        def ids(run: Run, since: datetime, limit: int = 9) -> list[str]:
            return [each.id for each in self.do(self.runs.twins(run, since, limit))]

        self.assertEqual(ids(asked, NOON), ["done", "in-doubt", "waits"])
        self.assertEqual(ids(asked, NOON + timedelta(seconds=2)), ["in-doubt", "waits"])
        self.assertEqual(ids(asked, NOON, 1), ["done"])
        self.assertEqual(ids(example_run("in-doubt"), NOON), ["done", "waits"])
        self.assertEqual(ids(example_run("again", session_id=None), NOON), [])

    def test_unshown(self) -> None:
        """Pending runs whose stored preview is not shown are returned, page by page, also if a page has none."""
        for name, kept in (
            ("none", None),
            ("shown", {"status": "shown", "fields": []}),
            ("fetching", {"status": "fetching"}),
            ("unavailable", {"status": "unavailable"}),
            ("odd", ["shown"]),
        ):
            self.asked(name, {"preview": kept})
        self.asked("silent", {})
        over = self.asked("over", {"preview": {"status": "fetching"}})
        self.do(self.runs.apply(example_transition(over, _S.CANCELLED)))
        found, after = self.do(self.runs.unshown(0, 100))
        self.assertEqual(found, ("fetching", "unavailable", "odd"))
        self.assertEqual(self.do(self.runs.unshown(after or 0, 100)), ((), None))
        pages, after = [], 0
        while after is not None:
            page, after = self.do(self.runs.unshown(after, 2))
            pages.append(page)
        self.assertEqual(pages, [(), ("fetching", "unavailable"), ("odd",), ()])

    def test_unfinished(self) -> None:
        """All unfinished runs are returned, oldest first."""
        self.received(example_run("a"))
        self.pending("b")
        self.do(self.runs.apply(example_transition(self.pending("c"), _S.CANCELLED)))
        self.executing()
        self.assertEqual([run.id for run in self.do(self.runs.unfinished())], ["a", "b", "run-1"])
