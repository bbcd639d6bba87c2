"""goose through all scenarios."""

from tests.agents import scenarios
from tests.agents.kinds.goose import Goose


class GooseTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Goose()
