"""The same suite against a server that has whatever it asks for: what fails here is the fault of what carries it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from tests.conformance.adapter import AdapterTestCase
from tests.conformance.verdict import PASSED, checked, scored

_ALSO: Mapping[str, Set[str]] = {
    "2025-11-25": frozenset({"server-session-lifecycle"}),
    "2026-07-28": frozenset({"http-header-validation", "http-custom-header-server-validation"}),
}
"""Scenarios by revision that are not scored, and are about the transport."""

_NOT_PASSED: Mapping[str, Mapping[str, str]] = {
    "2025-11-25": {},
    "2026-07-28": {
        "server-sse-multiple-streams:server-sse-streams-functional": (
            "INFO: the SDK answers a stateless request that tells of nothing in JSON, so there is no stream to try"
        ),
    },
}
"""By revision and check, why it did not simply pass: for reasons of the SDK's alone."""


class AdapterTests(AdapterTestCase):
    """Every check passes; a warning, or one that is skipped, stands in the list with a reason."""

    timeout = 600

    async def judged(self, revision: str) -> None:
        """Run what a revision requires; every scenario must have been."""
        results, finished = await self.conform(await self.serving(), revision)
        wanted = scored(revision) | _ALSO[revision]
        checks = checked(results, wanted)
        self.assertEqual({check.scenario for check in checks}, wanted)
        others = {check.name for check in checks if check.status != PASSED}
        self.assertEqual(others, set(_NOT_PASSED[revision]), finished.stdout[-6000:])

    async def test_handshake(self) -> None:
        """The era with a handshake."""
        await self.judged("2025-11-25")

    async def test_stateless(self) -> None:
        """The stateless one."""
        await self.judged("2026-07-28")
