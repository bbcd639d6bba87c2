"""OpenCode through all scenarios."""

from tests.agents import scenarios
from tests.agents.kinds.opencode import OpenCode


class OpenCodeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = OpenCode()
