"""pi through all scenarios, on a terminal, and in a sandbox."""

from tests.agents import egress, scenarios, surroundings
from tests.agents.kinds.pi import Pi


class PiTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Pi()


class TerminalTests(surroundings.TerminalTestCase):
    """It draws on the whole terminal."""

    kind = Pi()


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own, though they lie among its settings."""

    kind = Pi()
    kept = ".pi/agent/sessions/*/*.jsonl"


class EgressTests(egress.EgressTestCase):
    """In a sandbox with a way out."""

    kind = Pi()
