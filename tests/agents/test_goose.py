"""goose through all scenarios, on a terminal, and in a sandbox."""

from tests.agents import egress, scenarios, surroundings
from tests.agents.kinds.goose import Goose


class GooseTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Goose()


class TerminalTests(surroundings.TerminalTestCase):
    """It prints lines, so that a line of ours may stand among them."""

    kind = Goose()
    tells = "aileron: 1 pending approval"


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own."""

    kind = Goose()
    kept = ".local/share/goose/sessions/*.db"


class EgressTests(egress.EgressTestCase):
    """In a sandbox with a way out."""

    kind = Goose()
