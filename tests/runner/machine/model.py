"""What was said, and what follows from that: the model that the runner is held against.

It knows only what the operator did and what was answered.  What was not answered, since a life ended in the middle,
may have been taken or not: the model allows both.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from attrs import Factory, define, field

from aileron.base.json import utc
from aileron.model.authority import Grant, NewGrant, Predicate, PredicateKind
from aileron.model.runs import Run, RunState

from .home import COOL_DOWN_SECONDS, UNDO_SECONDS, UNGATED
from .record import Begun
from .world import Arrival, described

_NOT_BEGUN = (RunState.APPROVED, RunState.AWAITING_VAULT, RunState.AWAITING_CREDENTIAL)


@define(eq=False)
class Allowance:
    """A grant that the operator made, or may have made.

    :ivar text: the only one allowed; L{None}: any.
    :ivar run_id: of the call that was approved with it.
    :ivar content: the digest of the connector's file then; C{manifest}: of the action's.
    :ivar ended: the operator was told that it is.
    :ivar runs: those that something was sent of by it.
    """

    action: str
    text: str | None
    session: str | None
    uses: int
    until: float
    run_id: str
    manifest: str
    content: str
    ended: bool = False
    runs: set[str] = field(factory=set)

    def wish(self) -> NewGrant:
        """As the operator asks for it."""
        predicates = (Predicate("text", PredicateKind.ANY),) if self.text is None else ()
        return NewGrant(predicates, self.uses, utc(0) + timedelta(seconds=self.until), self.session is not None)

    def made(self, grant: Grant) -> bool:
        """Whether C{grant} is what the operator asked for."""
        asked = self.wish()
        terms = (asked.predicates, asked.uses, asked.not_after, self.session, self.run_id)
        return terms == (grant.predicates, grant.uses, grant.not_after, grant.session_id, grant.run_id)

    def faults(self, run: Begun) -> str | None:
        """Why it does not allow what is sent; L{None}: it does, and is used."""
        if run.run_id in self.runs:
            return None
        if self.action != run.action or self.session not in (None, run.session_id):
            return "it is for others"
        if self.text not in (None, run.text):
            return "it is for another text"
        if self.ended or run.at >= self.until:
            return "it is over"
        if len(self.runs) >= self.uses:
            return "it was used as often as it could be"
        self.runs.add(run.run_id)
        return None


@define(eq=False)
class Model:
    """All that was said.

    :ivar words: by run, from when on what was approved may begin, for each time that it was or may have been.
    :ivar wishes: grants that were asked for.
    :ivar grants: those that there are, by their ids.
    :ivar paused: what was paused, and not resumed since, as the operator was told.
    :ivar forgiven: denials that may be forgiven.
    :ivar settled: runs that a person may have settled.
    :ivar happened: runs that are known to have been done, by their state.
    :ivar began: runs of which something was sent.
    :ivar broken: what should not have happened.
    """

    words: defaultdict[str, list[float]] = Factory(lambda: defaultdict(list))
    wishes: list[Allowance] = field(factory=list)
    grants: dict[str, Allowance] = field(factory=dict)
    paused: set[str | None] = field(factory=set)
    forgiven: set[str] = field(factory=set)
    settled: set[str] = field(factory=set)
    happened: set[str] = field(factory=set)
    began: set[str] = field(factory=set)
    broken: list[str] = field(factory=list)

    def approving(self, run_id: str, action: str, now: float, not_before: float) -> None:
        """The operator says yes, and nobody has said yet that it is taken."""
        undo = UNDO_SECONDS if action == "undone" else 0.0
        self.words[run_id].append(max(now + undo, not_before))

    def approved(self, run_id: str) -> None:
        """The last yes is taken, and stands in the place of all before."""
        del self.words[run_id][:-1]

    def unsaid(self, run_id: str) -> None:
        """Whatever was said to a run counts no more, as the operator was told."""
        self.words.pop(run_id, None)

    def resumed(self, name: str | None, standing: dict[str, Run], paused: set[str | None]) -> None:
        """It was: what was approved and had not begun is asked anew, but where its session alone stays paused."""
        self.paused.discard(name)
        for run in standing.values():
            stays = run.session_id in paused - {None, name}
            if name in paused and run.state in _NOT_BEGUN and name in (None, run.session_id) and not stays:
                self.unsaid(run.id)

    def arrived(self, arrival: Arrival) -> None:
        """Something was sent: was it allowed at this moment?"""
        why = self._fault(arrival.by)
        if why is not None:
            self.broken.append(f"{why}: {described(arrival)}")
        if arrival.by is not None:
            self.began.add(arrival.by.run_id)

    def _fault(self, run: Begun | None) -> str | None:
        if run is None:
            return "sent, and nobody had put on record that it begins"
        if run.parent_id in self.happened and run.run_id not in self.began:
            return "done again, and it was known to have happened"
        if run.run_id in self.began or (run.action in UNGATED and run.parent_id is None):
            return None
        words = self.words.get(run.run_id)
        if words:
            return None if run.at >= min(words) else f"begun before its time, {min(words)}"
        return self._not_granted(run)

    def _not_granted(self, run: Begun) -> str | None:
        grant = self.grants.get(run.grant_id or "")
        if grant is None:
            return "nobody had said yes"
        if run.action == "undone" and run.at < run.received_at + UNDO_SECONDS:
            return "begun by a grant before its undo window was over"
        why = grant.faults(run)
        return None if why is None else f"begun by a grant, and {why}"

    def sticks(self, action: str, text: str, standing: dict[str, Run], now: float) -> bool:
        """Whether the same was denied lately and is not forgiven."""
        return action == "sticky" and any(
            run.action == action
            and run.state is RunState.DENIED
            and run.id not in self.forgiven
            and _plain(str(run.asked_for["text"])) == _plain(text)
            and run.changed_at.timestamp() + COOL_DOWN_SECONDS > now
            for run in standing.values()
        )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
