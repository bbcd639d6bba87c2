"""How many of several needed approvals there are, as agents and the operator are told by the API."""

from __future__ import annotations

from typing import Any

from aileron.model.runs import Run, RunState
from tests.api.case import LOCAL_KEY
from tests.promises.doors import DoorCase
from tests.runner.kit import step
from tests.runner.test_votes import TWO, VotesCase


class ProgressTests(DoorCase, VotesCase):
    """An agent whose request needs two people."""

    def ask_here(self, rule: str = TWO) -> Run:
        """A request of the agent, over the API."""
        self.offer("ruled", step("post"), expires=f'cool_down = "0s"\n{rule}')
        heard = self.agents.ask("POST", "/v1/actions/ruled/run", self.TOKEN, {"args": {"text": "hello"}})
        self.assertEqual(heard.status, 202, heard.text)
        run = self.sync(self.store.runs.get(heard.json["run_id"]))
        assert run is not None
        return run

    def told(self, run: Run) -> Any:
        """What the agent is told of its request."""
        return self.agents.ask("GET", f"/v1/action-approvals/{run.id}/result", self.TOKEN).json

    def listed(self, run: Run) -> list[Any]:
        """The progress in the list of what waits, and of the request alone."""
        (item,) = self.operator.ask("GET", "/v1/action-approvals", LOCAL_KEY).json["items"]
        return [item.get("progress"), self.alone(run).get("progress")]

    def alone(self, run: Run) -> Any:
        """The approval as the operator's site returns it."""
        return self.operator.ask("GET", f"/v1/action-approvals/{run.id}", LOCAL_KEY).json

    def test_told(self) -> None:
        """Both are told the same, until there are enough; then nothing is missing, and nobody is told so."""
        run = self.ask_here()
        for name, progress in (("", "0 of 2 approvals"), ("alice", "1 of 2 approvals: alice")):
            if name:
                self.say(run, name)
            self.assertEqual((self.told(run)["progress"], self.listed(run)), (progress, [progress] * 2))
        self.assertEqual(self.alone(run)["approvers"]["count"], 2)
        self.say(run, "bob")
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertNotIn("progress", self.told(run))
        self.assertEqual(self.alone(run)["progress"], "2 of 2 approvals: alice, bob")

    def test_void(self) -> None:
        """An approval that does not count any more is not counted here either."""
        run = self.ask_here()
        self.say(run, "alice")
        self.remove("alice")
        self.assertEqual((self.told(run)["progress"], self.listed(run)), ("0 of 2 approvals", ["0 of 2 approvals"] * 2))

    def test_unneeded(self) -> None:
        """Where one person is enough, or forced it, there is no such member."""
        run = self.ask_here("")
        self.assertNotIn("progress", self.told(run))
        self.assertEqual(self.listed(run), [None, None])
        forced = self.ask_here()
        self.say(forced, "root", forced=True, reason="The site is down.")
        self.assertNotIn("progress", self.told(forced))
        self.assertIs(self.alone(forced)["forced"], True)
        self.assertNotIn("progress", self.alone(forced))
