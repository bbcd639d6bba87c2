"""A session's page says when its agent was woken."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from aileron.model.audit import DAEMON, Event
from tests.web.case import WebCase, read


class WokenTests(WebCase):
    """The line."""

    def test_line(self) -> None:
        """There is one for each time, with a link to the run; none before."""
        session = self.open_session()["id"]
        self.assertNotIn("by the outcome of", self.fragment(f"/sessions/{session}").text)
        for number, how in enumerate(("woken", "resumed")):
            event = Event(
                self.fresh_id(),
                "wake.sent",
                self.deps.now(),
                DAEMON,
                {"state": "completed", "how": how},
                run_id=f"run-{number}",
                session_id=session,
                action="ship-update",
            )
            self.successResultOf(Deferred.fromCoroutine(self.store.audit.append(event)))
        page = self.fragment(f"/sessions/{session}").text
        text = read(page).text
        self.assertIn("Woken at", text)
        self.assertIn("Resumed at", text)
        self.assertIn("by the outcome of ship-update", text)
        self.assertIn("/runs/run-1", page)
