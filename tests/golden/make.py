"""Makes the home of the installed version: ``AILERON_GOLDEN_HOME=yes trial tests.golden.make``."""

import os
from pathlib import Path
from typing import Any

from aileron import __version__
from tests.functional.operated import GATED, SHIP, UNGATED, OperatedTestCase
from tests.functional.slack import FakeSlack
from tests.golden.home import PORT, REPORT, REPORT_ACTION, REPORTED, TOKEN, pack


class MakeTests(OperatedTestCase):
    """One home, with a run in each state that lasts."""

    if "AILERON_GOLDEN_HOME" not in os.environ:
        skip = "makes what every later version must read"

    def _listening(self) -> FakeSlack:
        return self.slack(TOKEN, PORT)

    async def test_make(self) -> None:
        """Do all that leaves a trace, stop the daemon, and keep the home and what is true of it."""
        await self.furnish()
        report = self.home.project / f"{REPORT}.md"
        report.write_text(REPORT_ACTION)
        await self.add(report)
        agent = await self.session("opencode")
        await self.run_action(agent, UNGATED, {**SHIP, "summary": "noted"}, wait=20)
        await self._decided(agent, "approve", "--yes", "--reason", "fine", summary="approved")
        await self._decided(agent, "deny", "--reason", "not today", summary="denied")
        await self._decided(agent, "approve", "--yes", "--grant", "--all-sessions", "--uses", "3", summary="granted")
        await self.run_action(agent, GATED, {**SHIP, "summary": "granted"}, wait=20)
        withdrawn = await self.run_action(agent, GATED, {**SHIP, "summary": "withdrawn"})
        await self.operator("runs", "cancel", str(withdrawn.body["run_id"]))
        for name, arguments in ((GATED, {**SHIP, "summary": "still waits: \u00e9"}), (REPORT, REPORTED)):
            asked = await self.run_action(agent, name, dict(arguments))
            self.assertEqual(asked.status, 202, asked.text)
        facts = await self._facts()
        await self.command("daemon", "stop")
        facts["export"] = (await self.command("audit", "export")).stdout
        for name in ("log", "daemon.json", "daemon.lock"):
            self._delete(self.home.aileron / name)
        pack(__version__, self.home.aileron, facts)

    async def _decided(self, agent: Any, verdict: str, *options: str, summary: str) -> None:
        asked = await self.run_action(agent, GATED, {**SHIP, "summary": summary})
        await self.operator("approval", verdict, str(asked.body["run_id"]), *options)

    async def _facts(self) -> dict[str, Any]:
        waiting = [str(each["id"]) for each in await self.waiting(2)]
        runs = (await self.told("runs", "list"))["items"]
        return {
            "states": {each["id"]: each["state"] for each in runs},
            "digests": {each: (await self.told("approval", "show", each))["digest"] for each in waiting},
            "grants": [each["id"] for each in (await self.told("grant", "list"))["items"]],
            "bindings": await self.told("binding", "list"),
        }

    @staticmethod
    def _delete(path: Path) -> None:
        if path.is_dir():
            for each in path.iterdir():
                each.unlink()
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
