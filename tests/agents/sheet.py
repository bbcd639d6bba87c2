"""A table of what came of each scenario with each agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import Factory, define
from twisted.trial.reporter import TreeReporter

PASSED, FAILED, NOT_POSSIBLE, NOT_TRIED = "✓", "✗", "–", " "


@define
class Sheet:
    """What came of them.

    :ivar marks: by agent and scenario.
    :ivar reasons: why one is not possible, or how it failed, in the same way.
    """

    marks: dict[tuple[str, str], str] = Factory(dict)
    reasons: dict[tuple[str, str], str] = Factory(dict)

    def note(self, test: str, mark: str, reason: object = "") -> None:
        """Put down what came of one; of several outcomes of the same the worse counts.

        :param test: its id, such as ``tests.agents.test_pi.PiTests.test_01_ungated``.
        """
        place = placed(test)
        if self.marks.get(place) == FAILED:
            return
        self.marks[place] = mark
        if said := str(reason).strip():
            self.reasons[place] = said.splitlines()[0]

    @property
    def failed(self) -> bool:
        """Whether one failed, or none was tried."""
        return FAILED in self.marks.values() or PASSED not in self.marks.values()

    def lines(self, limits: Mapping[str, Sequence[str]]) -> list[str]:
        """The table, and below it the reasons and what the agents are known not to do.

        :param limits: sentences, by agent.
        """
        agents = list(dict.fromkeys(agent for agent, _ in self.marks))
        scenarios = sorted({scenario for _, scenario in self.marks})
        width = max(map(len, scenarios), default=0)
        rows = [[scenario.ljust(width), *self._row(scenario, agents)] for scenario in scenarios]
        told = [
            f"{mark} {agent}, {scenario}: {self.reasons.get((agent, scenario), '')}"
            for (agent, scenario), mark in self.marks.items()
            if mark != PASSED
        ]
        said = set(self.reasons.values())
        known = [f"  {agent}: {limit}" for agent in agents for limit in limits.get(agent, ()) if limit not in said]
        return [" ".join([" " * width, *agents]), *map(" ".join, rows), *told, *known]

    def _row(self, scenario: str, agents: Sequence[str]) -> list[str]:
        return [self.marks.get((agent, scenario), NOT_TRIED).center(len(agent)) for agent in agents]


class SheetReporter(TreeReporter):
    """Shows each test as it ends, as trial does, and puts it down in a sheet."""

    def __init__(self, sheet: Sheet, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
        self._sheet = sheet

    def addSuccess(self, test: Any) -> None:
        """See the base class."""
        super().addSuccess(test)  # type: ignore[no-untyped-call]
        self._sheet.note(test.id(), PASSED)

    def addError(self, test: Any, error: Any) -> None:
        """See the base class."""
        super().addError(test, error)  # type: ignore[no-untyped-call]
        self._sheet.note(test.id(), FAILED, _said(error))

    def addFailure(self, test: Any, fail: Any) -> None:
        """See the base class."""
        super().addFailure(test, fail)  # type: ignore[no-untyped-call]
        self._sheet.note(test.id(), FAILED, _said(fail))

    def addSkip(self, test: Any, reason: Any) -> None:
        """See the base class."""
        super().addSkip(test, reason)  # type: ignore[no-untyped-call]
        self._sheet.note(test.id(), NOT_POSSIBLE, reason)


def placed(test: str) -> tuple[str, str]:
    """The agent and the scenario that a test is about."""
    words = test.split(".")
    agent = next((word.removeprefix("test_") for word in words if word.startswith("test_")), words[-1])
    return agent, words[-1].removeprefix("test_").replace("_", " ")


def _said(error: Any) -> str:
    """What went wrong, without where."""
    return str(getattr(error, "value", error[1] if isinstance(error, tuple) else error))
