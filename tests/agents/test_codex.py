"""Codex through all scenarios."""

from tests.agents import scenarios
from tests.agents.kinds.codex import Codex


class CodexTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Codex()
