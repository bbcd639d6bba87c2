"""pi through all scenarios."""

from tests.agents import scenarios
from tests.agents.kinds.pi import Pi


class PiTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Pi()
