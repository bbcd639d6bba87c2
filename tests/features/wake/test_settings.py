"""The key C{wake} in the configuration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.wake.values import WakeSettings


class SettingsTests(SynchronousTestCase):
    """What may stand there."""

    def read(self, text: str) -> WakeSettings:
        """The settings in a file."""
        found: WakeSettings = read_config(text, FeatureSet()).of_features["wake"]
        return found

    def test_read(self) -> None:
        """All keys, and what holds without them: nothing is resumed, and no denial wakes."""
        self.assertEqual(self.read("wake: {after_seconds: 9}"), WakeSettings(9, denied=False, resume=False))
        found = self.read("wake: {denied: on, resume: on, most_resumes: 20}")
        self.assertEqual(found, WakeSettings(5, True, True, 20))

    def test_refused(self) -> None:
        """What is no switch or number is refused with its line."""
        for text, says in (
            ("{denied: maybe}", "wake.denied must be on or off"),
            ("{resume: 1}", "wake.resume must be on or off"),
            ("{most_resumes: 21}", "from 1 to 20"),
            ("{after_seconds: 0}", "from 1 to 3600"),
        ):
            error = self.assertRaises(NotConfig, self.read, f"wake: {text}")
            self.assertIn(says, error.problem)
            self.assertEqual(error.line, 1)
