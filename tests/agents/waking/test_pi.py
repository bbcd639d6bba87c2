"""pi is woken by late decisions."""

import signal

from tests.agents.kinds.pi import Pi
from tests.agents.waking import late


class PiTests(late.WakingTestCase):
    """By an extension."""

    kind = Pi()


class ResumedTests(late.ResumedTestCase):
    """After it has ended."""

    kind = Pi()

    async def test_interrupted(self) -> None:
        """Ctrl-C ends the launch and its session, and nothing is resumed."""
        launched, _ = await self.begun()
        finished = await launched.running.signal(signal.SIGINT)
        self.assertEqual(finished.exit_code, 0)
        self.assertEqual((await self.status())["counts"]["sessions"], 0)
        self.assertNotIn("wake.sent", [each["type"] for each in await self.audit()])
