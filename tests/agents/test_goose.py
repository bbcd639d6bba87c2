"""goose through all scenarios, on a terminal, in tmux, and in a sandbox."""

from tests.agents import scenarios, surroundings, tmux
from tests.agents.kinds.goose import Goose


class GooseTests(scenarios.ScenariosTestCase):
    """Headless."""

    kind = Goose()


class TerminalTests(surroundings.TerminalTestCase):
    """It prints lines, so that a line of ours may stand among them."""

    kind = Goose()
    tells = "aileron: a call waits for your approval"


class TmuxTests(tmux.TmuxTestCase):
    """Where a person has a shell."""

    kind = Goose()


class SandboxTests(surroundings.SandboxTestCase):
    """Its sessions are its own."""

    kind = Goose()
    kept = ".local/share/goose/sessions/*.db"
