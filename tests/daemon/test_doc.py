"""The page about the configuration tells what is so."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import Config, read_config
from aileron.values import PendingLimits

_PAGE = (Path(__file__).parents[2] / "doc" / "configuration.md").read_text(encoding="utf-8")
_ROWS = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|$", _PAGE, re.MULTILINE))
_FIELDS = {"listen", "operator_listen", "hosts", *(f"pending.{name}" for name in PendingLimits.__annotations__)}


class PageTests(SynchronousTestCase):
    """doc/configuration.md against the daemon."""

    def test_keys(self) -> None:
        """The table has every key that is read, and no other."""
        self.assertEqual(set(_ROWS), _FIELDS)
        self.assertEqual({name.removeprefix("pending.") for name in _ROWS}, set(Config.__annotations__))

    def test_limits(self) -> None:
        """The numbers that hold without the file are those of the table."""
        limits = PendingLimits()
        told = {name.removeprefix("pending."): int(text) for name, text in _ROWS.items() if name.startswith("pending")}
        self.assertEqual({name: getattr(limits, name) for name in told}, told)

    def test_example(self) -> None:
        """The example is a configuration that says what the page says of it."""
        (example,) = re.findall(r"```yaml\n(.*?)```", _PAGE, re.DOTALL)
        config = read_config(example)
        self.assertEqual((config.listen, config.hosts), ("tcp:8081:interface=0.0.0.0", ("aileron.internal",)))
        self.assertEqual(config.limits().per_session, 5)
