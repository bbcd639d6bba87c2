"""What the SDK logs in the daemon."""

from __future__ import annotations

import logging
from typing import Any, cast

from twisted.logger import ILogObserver, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from aileron.mcp._http_endpoint import LogFilter


class LogFilterTests(SynchronousTestCase):
    """One logger."""

    def setUp(self) -> None:
        self.logger = logging.getLogger("aileron-tests-of-filter")
        self.logger.propagate = False
        handler = LogFilter(logging.ERROR)
        self.logger.addHandler(handler)
        self.addCleanup(self.logger.removeHandler, handler)
        self.told: list[str] = []
        observe = cast(ILogObserver, lambda event: self.told.append(formatEvent(event)))
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)

    def test_failure(self) -> None:
        """Of a failure its kind and place are told, and nothing of what it says."""
        value: Any = "hunter2"
        try:
            raise ValueError(value)
        except ValueError:
            self.logger.exception("could not read %s", value)
        [line] = self.told
        self.assertIn("ValueError", line)
        self.assertIn("test_log_filter.py", line)
        self.assertNotIn("hunter2", line)

    def test_lesser(self) -> None:
        """What is no failure is not told."""
        self.logger.warning("client said %s", "hunter2")
        self.assertEqual(self.told, [])
