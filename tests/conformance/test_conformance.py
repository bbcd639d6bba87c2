"""MCP's own conformance suite, in both eras, against an installed daemon with fixture actions."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred

from tests.conformance.case import RUN_SECONDS, JudgedTestCase
from tests.conformance.expected import EXPECTED
from tests.conformance.fixtures import PICTURE
from tests.conformance.names import fixture_names
from tests.conformance.verdict import FAILED, checked, scored

_PROGRESS_SECONDS = 4.5


class ConformanceTests(JudgedTestCase):
    """Every scored check passes, but for those that stand in the list with a reason."""

    timeout = 700

    async def judged(self, revision: str) -> None:
        """Run what a revision requires, and hold what failed against the list."""
        session = await self.furnish_with_fixtures()
        deciding = Deferred.fromCoroutine(self._decide())
        deciding.addErrback(lambda failure: failure.trap(CancelledError))
        seen = await self.run_action(session, PICTURE, {}, wait=30)
        url = self.listening_for(session, fixture_names(seen.body["run_id"]))
        results, finished = await self.conform(url, revision)
        deciding.cancel()
        found = {check.name for check in checked(results, scored(revision)) if check.status == FAILED}
        self.assertEqual(found, set(EXPECTED[revision]), finished.stdout[-6000:])

    async def _decide(self) -> None:
        """Approve what has waited long enough for a client to hear of it three times."""
        while True:
            [approval] = await self.waiting(1, seconds=RUN_SECONDS)
            await self.pause(_PROGRESS_SECONDS)
            await self.approve(approval["id"])

    async def test_handshake(self) -> None:
        """The era with a handshake."""
        await self.judged("2025-11-25")

    async def test_stateless(self) -> None:
        """The stateless one."""
        await self.judged("2026-07-28")
