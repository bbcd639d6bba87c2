"""OpenCode is woken by late decisions."""

from tests.agents.kinds.opencode import OpenCode
from tests.agents.waking import late


class OpenCodeTests(late.WakingTestCase):
    """By a plugin."""

    kind = OpenCode()


class ResumedTests(late.ResumedTestCase):
    """After it has ended."""

    kind = OpenCode()
