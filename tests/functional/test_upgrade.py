"""A home that an earlier version left is opened by this one, verified, and gone on with."""

import json
from collections.abc import Mapping
from typing import Any

from tests.functional.operated import CONNECTOR, GATED, SHIP, OperatedTestCase, kinds
from tests.functional.reactor import until
from tests.functional.slack import FakeSlack
from tests.golden.home import PORT, REPORT, TOKEN, unpack, versions


class UpgradeTests(OperatedTestCase):
    """Each home in turn, with the service that its connector names."""

    def _listening(self) -> FakeSlack:
        return self.slack(TOKEN, PORT)

    async def test_homes(self) -> None:
        """What was recorded reads and verifies as before, what waited binds the same call, and new calls go on."""
        for version in versions():
            facts = unpack(version, self.home.aileron)
            await self._recorded(facts)
            await self.unlock()
            await self._stands(facts)
            await self._goes_on(facts)
            await self.command("daemon", "stop")
            self.home.aileron.rename(self.home.root / f"opened-{version}")

    async def _recorded(self, facts: Mapping[str, Any]) -> None:
        """The record, before and after an export, is the one that was left."""
        exported = self.home.root / "export"
        exported.write_text(facts["export"])
        for arguments in (("audit", "verify"), ("audit", "verify", str(exported))):
            await self.command(*arguments)
        now = [json.loads(line) for line in (await self.command("audit", "export")).stdout.splitlines()]
        left = [json.loads(line) for line in facts["export"].splitlines()]
        self.assertEqual(_of_kind(now, "record"), _of_kind(left, "record"))
        self.assertEqual(_of_kind(now, "checkpoint"), _of_kind(left, "checkpoint"))

    async def _stands(self, facts: Mapping[str, Any]) -> None:
        """Runs, grants and bindings are those that were left, and what waits has the digest that it had."""
        states = {each["id"]: each["state"] for each in (await self.told("runs", "list"))["items"]}
        self.assertEqual(states, facts["states"])
        self.assertEqual([each["id"] for each in (await self.told("grant", "list"))["items"]], facts["grants"])
        for now, left in zip((await self.told("binding", "list"))["items"], facts["bindings"]["items"], strict=True):
            self.assertEqual({**now, **left}, now)
        for run_id, digest in facts["digests"].items():
            shown = await self.told("approval", "show", run_id)
            self.assertEqual((shown["digest"], shown["stale"]), (digest, None))
        self.assertNotIn("approval.stale", kinds(await self.audit()))

    async def _goes_on(self, facts: Mapping[str, Any]) -> None:
        """What waited is approved and done, with the credential that was bound, and so is a new call."""
        before = len(self.workspace.messages)
        for run_id in facts["digests"]:
            await self.approve(run_id)
        await until(self.reactor, lambda: len(self.workspace.messages) == before + 3, 20, "what waited is sent")
        asked = await self.run_action(await self.session(), GATED, {**SHIP, "summary": "new"})
        await self.approve(str(asked.body["run_id"]), "--wait", "20")
        self.assertEqual([each.text for each in self.workspace.messages][-1], "new")
        self.assertEqual(len(self.workspace.messages), before + 4)
        self.assertEqual((await self.told("binding", "list"))["items"][0]["connector"], CONNECTOR)
        self.assertIn(REPORT, {each["action"] for each in (await self.told("runs", "list"))["items"]})
        await self.command("audit", "verify")


def _of_kind(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]
