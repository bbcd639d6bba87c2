"""Our connector to MCP servers before MCP's own suite for clients, over HTTP and over a program's pipes."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.conformance import client, judges
from tests.conformance.expected import EXPECTED_OF_CLIENT
from tests.conformance.verdict import FAILED, WARNED, checked, scored
from tests.functional.case import FunctionalTestCase
from tests.functional.process import Command

_BOTH = {
    "2025-11-25": ("initialize", "tools_call", "json-schema-2020-12-preservation"),
    "2026-07-28": ("request-metadata", "tools_call", "json-schema-2020-12-preservation", "json-schema-ref-no-deref"),
}
_HTTP = {
    "2025-11-25": ("sse-retry",),
    "2026-07-28": (
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "sep-2322-client-request-state",
    ),
}
"""Those about HTTP, or about what a relay would have to keep."""

_SECONDS = 60


class ClientTests(FunctionalTestCase):
    """Every check passes, but for those that stand in the list with a reason."""

    timeout = 1800

    async def judge(self, scenario: str, revision: str, *options: str) -> set[str]:
        """What fails of a scenario; something must have been checked."""
        results = self.home.root / f"results-{revision}-{scenario.replace('/', '-')}"
        ours = " ".join((sys.executable, "-m", client.__name__, *options))
        command = Command(
            arguments=(
                *(judges.node(), judges.script(judges.CONFORMANCE, "dist/index.js"), "client"),
                *("--command", ours, "--scenario", scenario, "--spec-version", revision, "-o", str(results)),
            ),
            environment={**self.home.environment(), "PYTHONPATH": str(Path(client.__file__).parents[2])},
            directory=self.home.project,
        )
        finished = await self.run_command(command, _SECONDS)
        found = checked(results, {scenario})
        self.assertTrue(found, finished.stdout + finished.stderr)
        bad = (FAILED, WARNED) if scenario.startswith(client.OAUTH) else (FAILED,)
        return {check.name for check in found if check.status in bad}

    async def test_http(self) -> None:
        """Over HTTP, in both eras."""
        failed: set[str] = set()
        for scenarios in (_BOTH, _HTTP):
            for revision, names in scenarios.items():
                for name in names:
                    failed |= await self.judge(name, revision)
        self.assertEqual(failed, set(EXPECTED_OF_CLIENT))

    async def test_oauth(self) -> None:
        """A person signs in wherever a revision requires that a client can, and nowhere else.

        Extensions of OAuth (client credentials, DPoP, identity assertions) are optional, and not built.  Endpoints that
        a server does not name are not guessed, as the revision 2025-03-26 has it: the connector's file can name them.
        """
        for revision in _HTTP:
            for name in sorted(scored(revision, "client")):
                if name.startswith(client.OAUTH):
                    self.assertEqual(await self.judge(name, revision), set(), (name, revision))

    async def test_pipes(self) -> None:
        """Over the pipes of a program that relays to the suite, in both eras."""
        for revision, names in _BOTH.items():
            for name in names:
                self.assertEqual(await self.judge(name, revision, client.STDIO), set(), name)
