"""Claude Code through all scenarios."""

from tests.agents import scenarios
from tests.agents.kinds.claude import Claude


class ClaudeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Claude()
