"""Of several daemons one gives an outcome to the agent, once, to its newest request."""

from __future__ import annotations

from aileron.model.queries import AuditQuery
from aileron.model.wakes import WakeClaim, WakeHow
from aileron.store._wakes import SQLWakes
from aileron.testing import example_event, example_session, seals

from .case import DatabaseCase


class WakeTests(DatabaseCase):
    """Two daemons, and a request that waits at the first."""

    def setUp(self) -> None:
        super().setUp()
        self.store = self.opened()
        self.one, self.other = (SQLWakes(self.store._writer, seals()) for _ in range(2))
        self.number = self.do(self.one.begin("s", "")).number

    def claim(self, wakes: SQLWakes, run_id: str = "r", how: WakeHow = WakeHow.WOKEN, most: int = 3) -> WakeClaim:
        event = example_event("wake.sent", run_id, session_id="s")
        return self.do(wakes.claim(event, how, self.number, most))

    def recorded(self) -> int:
        return len(self.do(self.store.audit.list(AuditQuery(type="wake.sent"))).items)

    def test_once(self) -> None:
        """An outcome is given out once, and recorded once."""
        self.assertIs(self.claim(self.one), WakeClaim.GIVEN)
        self.assertIs(self.claim(self.other), WakeClaim.TOLD)
        self.assertEqual(self.recorded(), 1)
        self.assertIs(self.claim(self.other, "another"), WakeClaim.GIVEN)

    def test_fetched(self) -> None:
        """What the agent has fetched at one daemon, the other does not give out."""
        for _ in range(2):
            self.do(self.one.tell("s", "r"))
        self.assertIs(self.claim(self.other), WakeClaim.TOLD)
        self.assertEqual(self.recorded(), 0)

    def test_later(self) -> None:
        """The session's newest request gets the outcome, at whichever daemon it waits."""
        before = self.number
        self.number = self.do(self.other.begin("s", "")).number
        after, self.number = self.number, before
        self.assertIs(self.claim(self.one), WakeClaim.SUPERSEDED)
        self.number = after
        self.assertIs(self.claim(self.other), WakeClaim.GIVEN)

    def test_resumes(self) -> None:
        """An agent is resumed only so often by all daemons, and woken as often as there are outcomes."""
        for number in range(2):
            self.assertIs(self.claim((self.one, self.other)[number], f"r{number}", WakeHow.RESUMED, 2), WakeClaim.GIVEN)
        self.assertIs(self.claim(self.one, "r2", WakeHow.RESUMED, 2), WakeClaim.NO_MORE)
        self.assertEqual(self.do(self.one.begin("s", "")).resumes, 2)
        self.number += 1
        self.assertIs(self.claim(self.one, "r2", WakeHow.WOKEN, 2), WakeClaim.GIVEN)

    def test_conversation(self) -> None:
        """All daemons know the conversation that was named last; no name keeps it."""
        self.do(self.one.name_conversation("s", "first"))
        self.assertEqual(self.do(self.other.begin("s", "")).conversation, "first")
        self.do(self.other.begin("s", "second"))
        self.assertEqual(self.do(self.one.begin("s", "")).conversation, "second")
        self.do(self.one.name_conversation("t", "third"))
        self.assertEqual(self.do(self.one.begin("t", "")).conversation, "third")

    def test_deleted(self) -> None:
        """What is stored of a session goes with the session."""
        self.do(self.store.sessions.open(example_session("s"), b"1" * 32, b"2" * 32, ()))
        self.claim(self.one)
        self.query("DELETE FROM sessions")
        self.assertEqual(self.query("SELECT count(*) FROM wakes"), [(0,)])
        self.assertEqual(self.query("SELECT count(*) FROM wake_waiters"), [(0,)])
