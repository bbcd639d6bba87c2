"""Which agents the scenarios are for, and on which day each has its turn."""

from __future__ import annotations

import datetime as dt

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.agents import find_agents
from tests.agents import choice, install, turn


class AgentsTests(SynchronousTestCase):
    """The agents that the scenarios are for."""

    def test_tried(self) -> None:
        """Every agent that can be launched, and no other, is put through the scenarios, each in its turn of days."""
        self.assertEqual((set(install.AGENTS), {*choice.agents()}), (set(find_agents()), set(find_agents())))
        others = sorted({*choice.agents()} - {"opencode"})
        days = [dt.date(2026, 1, 1) + dt.timedelta(days) for days in range(len(others) + 1)]
        turns = [turn.of(day) for day in days]
        self.assertEqual(sorted(turns[:-1]), others)
        self.assertEqual(turns[-1], turns[0])

    def test_few(self) -> None:
        """The few scenarios that a day tries are there under these names, for each agent whose turn it may be."""
        for agent in choice.agents():
            wanted = turn.MISSING if agent == turn.ALWAYS else turn.FEW + turn.MORE
            found = [test.id().rpartition(".test_")[2] for test in choice.scenarios(agent, wanted.__contains__)]
            self.assertEqual(sorted(found), sorted(wanted), agent)
