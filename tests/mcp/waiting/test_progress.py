"""When a call that waits tells of itself."""

from itertools import accumulate, islice

from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp.waiting.clients import usual_beats


class BeatsTests(SynchronousTestCase):
    """The usual ones."""

    def test_times(self) -> None:
        """Somebody who watches hears of it three times in a quarter of a minute, then every fifteen seconds."""
        self.assertEqual([*islice(accumulate(usual_beats()), 7)], [1, 2, 4, 8, 15, 30, 45])
