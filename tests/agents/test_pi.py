"""pi through all scenarios, on a terminal, in tmux, and in a sandbox."""

from tests.agents import scenarios, surroundings, tmux
from tests.agents.kinds.pi import Pi


class PiTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Pi()


class TerminalTests(surroundings.TerminalTestCase):
    """It draws on the whole terminal."""

    kind = Pi()


class TmuxTests(tmux.TmuxTestCase):
    """Where a person has a shell."""

    kind = Pi()


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own, though they lie among its settings."""

    kind = Pi()
    kept = ".pi/agent/sessions/*/*.jsonl"
