"""Everybody who acts, and how it goes: well, or to the end of a life, or of somebody's patience."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import AileronError
from aileron.model.reviews import ReviewedRequest
from aileron.model.runs import Run
from aileron.model.vault import VaultState

from .home import Home
from .model import Model

NUMBER = st.integers(0, 5)
FATE = st.one_of(
    st.just(("goes well", 0)),
    st.just(("goes well", 0)),
    st.tuples(st.sampled_from(("caller leaves", "caller leaves", "daemon is killed")), st.integers(0, 3)),
)
Fate = tuple[str, int]
Begin = Callable[[], Coroutine[Deferred[Any], Any, Any]]

TROUBLES = ("files", "intruders", "ends", "keys", "limits", "pauses")
"""What comes between; two of them at most in one game, so that the others come to something."""

UNCLEAR = object()
"""Nobody was told how it went."""


class Acting(RuleBasedStateMachine):
    """What is known of everything that was done."""

    def __init__(self, case: SynchronousTestCase) -> None:
        super().__init__()
        self.case = case  # hears of what is logged
        self.home = Home()
        self.home.setUp()
        self.model = Model()
        self.home.world.heard = self.model.arrived
        self.runs: list[str] = []
        self.pending: list[str] = []
        self.meant: set[tuple[str, ReviewedRequest | None]] = (
            set()
        )  # a run's request that the operator has seen and approved
        self.last: dict[str, Run] = {}
        self.read: dict[str, str] = {}  # the file that the operator saw when a run was approved
        self.began: Counter[str] = Counter()
        self.gated: dict[str, bool] = {}  # as each was called
        self.forged: set[str] = set()  # runs into whose rows somebody wrote
        self.granted: dict[str, str] = {}  # by run, the grant that the record says allowed it
        self.troubles: set[str] = set()

    @initialize(troubles=st.sets(st.sampled_from(TROUBLES), max_size=2))
    def begin(self, troubles: set[str]) -> None:
        """What this game has."""
        self.troubles = troubles

    def holds(self) -> None:
        """Whether all is as it must be; a step of several parts asks between them as well."""
        raise NotImplementedError

    @property
    def now(self) -> float:
        """The time."""
        return float(self.home.clock.seconds())

    def of(self, which: int, *states: str) -> Run | None:
        """One of the runs that stand in one of these states, if any does."""
        found = [run for run in self.last.values() if run.state.value in states]
        return found[which % len(found)] if found else None

    def meets(self, fate: Fate, begin: Begin) -> Any:
        """Have it done; or go, or end, after some pieces of the database's work.

        :return: what it came to; L{None}, if it was refused; L{UNCLEAR}, if nobody was told.
        """
        end, pieces = fate
        if end == "goes well":
            return self.attempt(begin())
        self.home.pool.hold()
        waiting = self.home.later(begin())
        for _ in range(pieces):
            if self.home.pool.todo:
                self.home.pool.step()
        if end == "caller leaves":
            waiting.cancel()
            self.home.pool.release()
        else:
            self.home.kill(VaultState.UNLOCKED)
        waiting.addErrback(lambda failure: None)
        return UNCLEAR

    def at_once(self, begin: Sequence[Begin], picks: Sequence[int]) -> list[Any]:
        """Have all of it done at the same moment, the pieces of the database's work in the order of C{picks}.

        :return: what each came to; L{None}, if it was refused.
        """
        pool = self.home.pool
        pool.hold()
        waiting = [self.home.later(each()) for each in begin]
        for pick in picks:
            if pool.todo:
                pool.todo.rotate(-(pick % len(pool.todo)))
                pool.step()
        pool.release()
        return [self.outcome(each) for each in waiting]

    def attempt(self, work: Coroutine[Deferred[Any], Any, Any]) -> Any:
        """What C{work} comes to, or L{None} if it was refused in a proper way."""
        return self.outcome(self.home.later(work))

    def outcome(self, waiting: Deferred[Any]) -> Any:
        """What it came to, likewise."""
        told: list[Any] = []
        waiting.addBoth(told.append)
        assert told, "the call got no answer"
        if isinstance(told[0], Failure):
            told[0].trap(AileronError)
            return None
        return told[0]
