"""OpenCode through all scenarios, on a terminal, and in a sandbox."""

from tests.agents import egress, scenarios, surroundings
from tests.agents.kinds.opencode import OpenCode


class OpenCodeTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = OpenCode()


class TerminalTests(surroundings.TerminalTestCase):
    """It draws on the whole terminal."""

    kind = OpenCode()


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are kept apart from its settings."""

    kind = OpenCode()
    kept = ".local/share/opencode/*"


class EgressTests(egress.EgressTestCase):
    """In a sandbox with a way out."""

    kind = OpenCode()
