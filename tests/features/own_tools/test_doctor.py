"""What C{aileron doctor} says about services for agents' own tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.doctor.findings import Severity
from aileron.features.own_tools.doctor import NO_BUBBLEWRAP, find_problems


class DoctorTests(SynchronousTestCase):
    """L{find_problems}."""

    def find(self, about: Mapping[str, Any] | None) -> list[tuple[Severity, str]]:
        """Return the findings on a machine without any program."""
        status = {} if about is None else {"own_tools": about}
        return [(each.severity, each.says) for each in find_problems(status, {"PATH": "/nowhere"})]

    def test_unused(self) -> None:
        """Where own tools are off, or no service was added, nothing is said."""
        self.assertEqual(self.find(None), [])
        self.assertEqual(self.find({"reads": 0, "services": [], "problems": []}), [])

    def test_problems(self) -> None:
        """Each problem of a service is a finding, and so is a machine without bubblewrap."""
        found = self.find({"reads": 0, "services": ["github"], "problems": ["No credential is bound to it."]})
        self.assertEqual(
            found,
            [(Severity.WRONG, "Own tools: No credential is bound to it."), (Severity.NOTE, NO_BUBBLEWRAP)],
        )
