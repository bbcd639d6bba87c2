"""The table of what came of the scenarios with each agent, and which agents there are."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import find_agents
from tests.agents import choice, install, turn
from tests.agents.sheet import FAILED, NOT_POSSIBLE, PASSED, Sheet

_UNGATED = "tests.agents.test_pi.AgentTests.test_01_ungated"
_ADDED = "tests.agents.test_goose.AgentTests.test_07_action_added"


class SheetTests(SynchronousTestCase):
    """A table filled in by hand."""

    def test_lines(self) -> None:
        """A row a scenario and a column an agent, then a reason for all that is no success, then what is known."""
        sheet = Sheet()
        sheet.note(_UNGATED, PASSED)
        sheet.note(_ADDED, NOT_POSSIBLE, "It looks at the next turn.")
        sheet.note(_UNGATED.replace("pi", "goose"), FAILED, "2 != 3\nand more")
        self.assertEqual(
            sheet.lines({"pi": ["It is short."], "goose": ["It looks at the next turn."], "claude": ["Nobody asked."]}),
            [
                "                pi goose",
                "01 ungated      ✓    ✗  ",
                "07 action added      –  ",
                "– goose, 07 action added: It looks at the next turn.",
                "✗ goose, 01 ungated: 2 != 3",
                "  pi: It is short.",
            ],
        )

    def test_worst_counts(self) -> None:
        """A scenario that failed and then says that it is over has failed."""
        sheet = Sheet()
        for mark in (PASSED, FAILED, PASSED):
            sheet.note(_UNGATED, mark)
        self.assertEqual(list(sheet.marks.values()), [FAILED])
        self.assertTrue(sheet.failed)

    def test_verdict(self) -> None:
        """What is not possible is no failure, but nothing tried is one."""
        sheet = Sheet()
        self.assertTrue(sheet.failed)
        sheet.note(_ADDED, NOT_POSSIBLE)
        self.assertTrue(sheet.failed)
        sheet.note(_UNGATED, PASSED)
        self.assertFalse(sheet.failed)


class AgentsTests(SynchronousTestCase):
    """The agents that the scenarios are for."""

    def test_tried(self) -> None:
        """Every agent that can be launched, and no other, is put through the scenarios, at a pinned version."""
        self.assertEqual((set(install.AGENTS), {*choice.agents()}), (set(find_agents()), set(find_agents())))

    def test_named(self) -> None:
        """Each is launched by the name under which its scenarios stand."""
        self.assertEqual([choice.kind(name).name for name in choice.agents()], choice.agents())

    def test_turns(self) -> None:
        """So many days as there are other agents than OpenCode bring each of them once, and then the first again."""
        others = sorted({*choice.agents()} - {"opencode"})
        days = [dt.date(2026, 1, 1) + dt.timedelta(days) for days in range(len(others) + 1)]
        turns = [turn.of(day) for day in days]
        self.assertEqual(sorted(turns[:-1]), others)
        self.assertEqual(turns[-1], turns[0])

    def test_few(self) -> None:
        """The few scenarios that a day tries are there under these names, for each agent whose turn it may be."""
        for agent in choice.agents():
            wanted = turn.MISSING + turn.MORE_MISSING if agent == turn.ALWAYS else turn.FEW + turn.MORE
            found = [test.id().rpartition(".test_")[2] for test in choice.scenarios(agent, wanted.__contains__)]
            self.assertEqual(sorted(found), sorted(wanted), agent)

    def test_midnight(self) -> None:
        """The agent that was installed is the one that is tried, whatever day it has become."""
        directory = Path(self.mktemp())
        directory.mkdir()
        self.assertIn(turn.installed(directory), install.AGENTS)
        (directory / "turn.txt").write_text("of yesterday")
        self.assertEqual(turn.installed(directory), "of yesterday")
