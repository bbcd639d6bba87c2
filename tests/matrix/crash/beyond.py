"""What the record and the service tell together: whose effect each was, and what it went by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field

from aileron.model.audit import Event
from aileron.model.runs import Run, RunState

from .book import BEYOND, DOUBLED, LOST, NOTHING_SENT, UNASKED, WRONG, Book, Broken
from .furnished import Kind
from .words import LIMIT

_FOUND_OUT = {"run.settled", "execution.reconciled", "execution.late_answer"}
_ASKED_ANEW = (RunState.PENDING, RunState.DENIED, RunState.EXPIRED)


@define(eq=False)
class Beyond:
    """Of one home that nobody serves any more.

    :param events: of the whole record, in order.
    """

    book: Book
    kinds: Mapping[str, Kind]
    runs: Sequence[Run]
    events: Sequence[Event]
    _of: defaultdict[str, list[Event]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        """Know the events of each run."""
        self._of = defaultdict(list)
        for event in self.events:
            if event.run_id is not None:
                self._of[event.run_id].append(event)

    def all(self) -> Iterator[Broken]:
        """Every promise that is broken, and how."""
        yield from self._quiet()
        yield from self._limits()
        yield from self._grants()
        yield from self._approvals()
        yield from self._alarms()
        by_id = {run.id: run for run in self.runs}
        for run in self.runs:
            yield from self._effects(run)
            if run.parent_id is not None:
                yield from self._again(run, by_id[run.parent_id])
        yield from ((UNASKED, each) for each in self.book.words.early)

    def _quiet(self) -> Iterator[Broken]:
        for event in self.events:
            why = self.book.words.refused(event.at.timestamp())
            if event.type == "execution.started" and why is not None:
                yield UNASKED, f"{event.run_id} began while it was {why}"

    def _approvals(self) -> Iterator[Broken]:
        """An approval that was confirmed and counts no more gave way on record."""
        states = {run.id: run.state for run in self.runs}
        for run_id, call in self.book.by_run().items():
            types = [event.type for event in self._of[run_id]]
            gone = "approve" in call.confirmed and states.get(run_id) in _ASKED_ANEW
            if gone and "approval.stale" not in types:
                yield LOST, f"{call.text} was approved, is {states[run_id]}, and nothing tells why: {', '.join(types)}"

    def _alarms(self) -> Iterator[Broken]:
        """Nobody tampers here: what a crash leaves is not told as that."""
        for event in self.events:
            if event.type == "tamper.detected":
                yield LOST, f"{event.run_id} is said to have been tampered with: {event.payload.get('found')}"

    def _limits(self) -> Iterator[Broken]:
        begun = Counter(event.action for event in self.events if event.type == "execution.started")
        most = {name: kind.most for name, kind in self.kinds.items() if kind.most is not None}
        for name, may in {**most, LIMIT: self.book.words.most}.items():
            if begun[name] > may:
                yield BEYOND, f"{name} began {begun[name]} times, at most {may} may"

    def _grants(self) -> Iterator[Broken]:
        by_run: dict[str | None, object] = {}
        ended: set[str] = set()
        for event in self.events:
            if event.type == "grant.revoked":
                ended.add(str(event.payload["grant"]))
            elif event.type == "approval.approved":  # what a grant allowed once a person may have approved since
                by_run[event.run_id] = event.payload.get("grant")
            elif event.type == "execution.started" and by_run.get(event.run_id) in ended:
                said = ", ".join(each.type for each in self._of[str(event.run_id)])
                yield BEYOND, f"{event.run_id} began by a grant that had been revoked: {said}"
        yield from self._uses()

    def _uses(self) -> Iterator[Broken]:
        issued: dict[Any, Any] = {each.payload["grant"]: each.payload for each in self._typed("grant.issued")}
        uses: defaultdict[Any, list[Any]] = defaultdict(list)
        for event in self._typed("grant.used"):
            uses[event.payload["grant"]].append(event.payload["left"])
        for grant, left in uses.items():
            run_id, may = issued[grant]["run"], issued[grant]["uses"]
            if may not in self.book.words.uses.get(run_id, []):
                yield UNASKED, f"nobody asked for the grant {grant}, of {run_id}"
            elif len(set(left)) < len(left) or len(left) > may:
                yield BEYOND, f"the grant {grant} of {may} uses: {left} were left"

    def _typed(self, type_: str) -> Iterator[Event]:
        return (event for event in self.events if event.type == type_)

    def _effects(self, run: Run) -> Iterator[Broken]:
        keys = {step: f"{run.effect_key}.{step}" for step in self.kinds[run.action].steps}
        done = {step for step, key in keys.items() if self.book.world.by_key[key]}
        told = f"{run.action} {run.id} {run.state.value}"
        yield from (
            (DOUBLED, f"{told}: {step} happened twice under one key")
            for step, key in keys.items()
            if self.book.world.by_key[key] > 1
        )
        types = [event.type for event in self._of[run.id]]
        if done and "execution.started" not in types:
            if not self._shares(run):
                yield WRONG, f"{told}: {done} happened, and it never began"
        elif done and run.state.value in NOTHING_SENT:
            yield WRONG, f"{told}: {done} happened"
        if done and run.gated and "execution.started" in types and "grant.used" not in types and not self._asked(run):
            yield UNASKED, f"{told}: {done} happened, and nobody had approved it"
        if run.state is RunState.FAILED and "run.settled" not in types and not self._shares(run):
            said: Any = run.fault.details.get("steps_done", ()) if run.fault else ()
            if done - set(said):
                yield WRONG, f"{told}: {done} happened"

    def _asked(self, run: Run) -> bool:
        call = self.book.of(run.id, str(run.arguments["text"]), run.parent_id)
        return "approve" in call.asked

    def _shares(self, run: Run) -> bool:
        """Whether another has the same effect key, so that nobody knows whose an effect was."""
        return sum(other.effect_key == run.effect_key for other in self.runs) > 1

    def _again(self, run: Run, parent: Run) -> Iterator[Broken]:
        """What was known to have happened whole is not done again."""
        mine, known = {event.id for event in self._of[run.id] if event.type == "execution.started"}, False
        for event in self.events:
            whole = event.payload.get("happened") is True and event.payload.get("last", True) is True
            known = known or (event.run_id == parent.id and event.type in _FOUND_OUT and whole)
            if known and event.id in mine:
                yield DOUBLED, f"{run.id} did {parent.id} again, which was known to have happened"
