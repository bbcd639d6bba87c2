"""Who is told of silence, when exchanges end one another."""

from __future__ import annotations

from typing import Any

from attrs import define, field
from twisted.trial.unittest import SynchronousTestCase

from aileron.gateway._limits import SilenceWatch


@define(eq=False)
class Quiet:
    """An exchange in which nothing stirs; told of it, it ends, and others with it."""

    silence: SilenceWatch
    ends: list[Quiet] = field(factory=list)
    stirred: bool = False
    over: bool = False
    told: int = 0

    def silent(self, seconds: float) -> None:
        """See L{Exchange.silent}."""
        self.told += 1
        for each in (self, *self.ends):
            each.over = True
            self.silence.forget(each)  # type: ignore[arg-type]  # as far as silence looks


class SilenceTests(SynchronousTestCase):
    """Looks at exchanges."""

    def test_ended_by_another(self) -> None:
        """What the end of one ends is told nothing, and looked at no more."""
        silence: Any = SilenceWatch(1.0)
        first, second, third = (Quiet(silence) for _ in range(3))
        first.ends = [second]
        for each in (first, second, third):
            silence.watch(each)
        third.stirred = True
        second.stirred = True
        for _ in range(10):
            silence.look()
            second.stirred = True
        self.assertEqual([each.told for each in (first, second, third)], [1, 0, 1])
        self.assertFalse(silence._quiet)
