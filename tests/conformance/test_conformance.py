"""MCP's own conformance suite, in both eras, against an installed daemon with fixture actions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import yaml
from twisted.internet.defer import CancelledError, Deferred

from tests.conformance import judges
from tests.conformance.case import JudgedTestCase
from tests.conformance.expected import EXPECTED

_SCENARIO_SECONDS = 90
_RUN_SECONDS = 500
_PROGRESS_SECONDS = 50
_DIRECTORY = re.compile(r"server-(.+?)-\d{4}-\d\d-\d\dT.*")


class ConformanceTests(JudgedTestCase):
    """Every scored check passes, but for those that stand in the list with a reason."""

    timeout = 700

    async def judged(self, revision: str) -> None:
        """Run what a revision requires, and hold what failed against the list."""
        session = await self.furnish_with_fixtures()
        deciding = Deferred.fromCoroutine(self._decide())
        deciding.addErrback(lambda failure: failure.trap(CancelledError))
        results = self.home.root / "results"
        finished = await self.judge(
            judges.CONFORMANCE,
            "dist/index.js",
            *("server", "--url", self.listening_for(session), "--requirements", revision, "-o", str(results)),
            *("--timeout", str(_SCENARIO_SECONDS * 1000)),
            seconds=_RUN_SECONDS,
        )
        deciding.cancel()
        scored = _scored(revision)
        found = {each for each in _failed(results) if each.partition(":")[0] in scored}
        self.assertIn("Total:", finished.stdout)
        self.assertEqual(found, set(EXPECTED[revision]), finished.stdout[-6000:])

    async def _decide(self) -> None:
        """Approve what has waited long enough for a client to hear of it three times."""
        while True:
            [approval] = await self.waiting(1, seconds=_RUN_SECONDS)
            await self.pause(_PROGRESS_SECONDS)
            await self.approve(approval["id"])

    async def test_handshake(self) -> None:
        """The era with a handshake."""
        await self.judged("2025-11-25")

    async def test_stateless(self) -> None:
        """The stateless one."""
        await self.judged("2026-07-28")


def _scored(revision: str) -> frozenset[str]:
    """The scenarios that a revision requires of a server."""
    path = judges.script(judges.CONFORMANCE, f"requirements/{revision}.yaml")
    return frozenset(yaml.safe_load(Path(path).read_text())["server"])


def _failed(results: Path) -> Iterator[str]:
    """Each check that failed, by scenario and id."""
    for path in results.glob("*/checks.json"):
        named = _DIRECTORY.fullmatch(path.parent.name)
        assert named is not None, path
        for check in json.loads(path.read_text()):
            if check["status"] == "FAILURE":
                yield f"{named[1]}:{check['id']}"
