"""What was promised to those who asked, and whether a run keeps it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, evolve, field

from .furnished import KINDS, Kind
from .words import Words
from .world import World

BY_NAME = {kind.name: kind for kind in KINDS}
NOTHING_SENT = (
    "received",
    "pending_approval",
    "approved",
    "awaiting_vault",
    "awaiting_credential",
    "denied",
    "cancelled",
    "expired",
)
ENDS = ("completed", "failed", "denied", "cancelled", "expired")
_EXECUTED = ("executing", "completed", "failed", "unknown")
_DECIDED = ("approved", "awaiting_vault", "awaiting_credential", "executing", "completed", "failed", "unknown")
Broken = tuple[str, str]
"""The promise that is broken, and how."""

LOST, DOUBLED, WRONG, UNASKED, BEYOND = "lost", "doubled", "wrongly failed", "unasked", "beyond a limit"


@define(eq=False)
class Call:
    """A call of an agent, and all that anybody was told of it.

    :ivar text: no other call has it.
    :ivar run_id: as the agent was told, or as it was found.
    :ivar promised: whether somebody was told that it is there.
    :ivar asked: what was asked of it, answered or not: C{approve}, C{deny}, C{withdraw}, C{settle}.
    :ivar confirmed: of that, what was answered with a yes.
    :ivar end: its end, once somebody has seen it.
    :ivar path: of the protocol in which a model is asked to make it; empty: the agent makes it.
    :ivar tries: how often the model was asked; C{is_with_model}: it is being asked now.
    :ivar approvals: how often a yes was asked for.
    :ivar begins: no sooner than this, by the wall clock, whichever yes counts.
    :ivar done_again: somebody asked that it be done again; C{children}: as what.
    :ivar parent_happened: it does another again, which was found out to have happened, so this must be asked anew.
    """

    text: str
    kind: Kind
    key: str | None
    run_id: str | None = None
    promised: bool = False
    asked: set[str] = field(factory=set)
    confirmed: set[str] = field(factory=set)
    state: str = ""
    end: str | None = None
    path: str = ""
    tries: int = 0
    is_with_model: bool = False
    approvals: int = 0
    begins: float = float("inf")
    done_again: bool = False
    children: dict[str, Call] = field(factory=dict)
    parent_happened: bool = False

    @property
    def may_be_asked_anew(self) -> bool:
        """Whether a yes that was confirmed may count no more when it would begin."""
        return "resume" in self.asked or self.kind.is_limited or self.parent_happened


@define(eq=False)
class Book:
    """All calls of one home, and what was said that outlasts them.

    :ivar resuming: it is being asked that things begin again, also of whatever nobody has seen yet.
    """

    world: World
    calls: dict[str, Call] = field(factory=dict)
    words: Words = field(factory=Words)
    resuming: bool = False

    def child(self, parent: Call, run_id: str) -> Call:
        """The call that stands for a run that does another again."""
        asked = {"resume"} if self.resuming else set[str]()
        child = Call(parent.text, evolve(parent.kind, approval="required = true"), None, run_id, asked=asked)
        return parent.children.setdefault(run_id, child)

    def of(self, run_id: str, text: str, parent_id: str | None) -> Call:
        """The call that stands for a run."""
        call = self.calls[text]
        return call if parent_id is None else self.child(call, run_id)

    def all(self) -> Iterator[Call]:
        """All of them."""
        for call in self.calls.values():
            yield call
            yield from call.children.values()

    def by_run(self) -> dict[str, Call]:
        """All of them whose runs are known, by their ids."""
        return {call.run_id: call for call in self.all() if call.run_id is not None}

    def heard(self, text: str) -> None:
        """Something happens."""
        call, now = self.calls[text], time.time()
        if call.kind.waits and not call.children and now < call.begins:
            self.words.early.append(f"{text}: it happened {call.begins - now} s before its time")

    def again(self) -> list[Call]:
        """Those that nobody has answered and that may be asked again, under their key."""
        return [call for call in self.calls.values() if call.key and not call.promised]

    def happened(self) -> dict[str, set[str]]:
        """By the texts of all calls, which of their steps have happened by now."""
        return {text: self.world.steps_of(text) for text in self.calls}

    def hold(self, runs: Mapping[str, Mapping[str, Any]], before: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
        """What does not hold of the runs that are there, by their ids: which promise is broken, and by what.

        :param before: what L{happened} said before anybody asked for the runs: they go on meanwhile.
        """
        by_text: dict[str, list[Mapping[str, Any]]] = {}
        for run in runs.values():
            if run.get("parent_id") is None:
                by_text.setdefault(run["arguments"]["text"], []).append(run)
            else:
                yield from self._hold_child(run, runs[run["parent_id"]])
        for call in self.calls.values():
            found = by_text.get(call.text, [])
            if len(found) > 1 and call.key is not None:
                yield DOUBLED, f"{call.text}: two runs of one call: {found}"
            for run in found:
                call.run_id = call.run_id or run["id"]
            if call.promised and call.run_id not in runs:
                yield LOST, f"{call.text}: the run is gone"
            elif call.run_id is not None:
                yield from self._hold_one(call, runs[call.run_id], before[call.text])
        yield from self._doubled()

    def _hold_child(self, run: Mapping[str, Any], parent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """A run that does another again: whose effect is whose, the record tells in the end."""
        call = self.of(run["id"], run["arguments"]["text"], run["parent_id"])
        call.parent_happened = parent["state"] == "completed"
        state = call.state = str(run["state"])
        told = f"{call.text} {call.kind.name}, again, {state}, asked to {sorted(call.asked)}"
        yield from ((LOST, f"{told}: {what}") for what in _forgotten(call, state))
        if state in _EXECUTED and "approve" not in call.asked:
            yield UNASKED, f"{call.text} is done again, {state}, and nobody had approved it"
        if state in ENDS:
            call.end = state

    def _hold_one(self, call: Call, run: Mapping[str, Any], before: set[str]) -> Iterator[tuple[str, str]]:
        state = call.state = str(run["state"])
        yield from (
            (LOST, f"{call.text} {call.kind.name} {state}, asked to {sorted(call.asked)}: {what}")
            for what in _forgotten(call, state)
        )
        if state in ENDS:
            call.end = state
        if not call.done_again:  # else whose effect is whose, the record tells in the end
            yield from self._hold_effects(call, run, before)

    def _hold_effects(self, call: Call, run: Mapping[str, Any], before: set[str]) -> Iterator[tuple[str, str]]:
        state = call.state
        done, told = self.world.steps_of(call.text), f"{call.text} {call.kind.name} {state} {run.get('failure')}"
        if before and state in NOTHING_SENT:
            yield WRONG, f"{told}: it happened: {before}"
        if done and call.kind.gated and not call.kind.granted and "approve" not in call.asked:
            yield UNASKED, f"{told}: it happened, and nobody had approved it"
        if done and run["arguments"].get("note") != self.world.notes[call.text]:
            yield UNASKED, f"{told}: what happened is not what was approved: {self.world.notes[call.text]}"
        if "settle" not in call.asked:
            if state == "failed" and done - set((run["failure"].get("details") or {}).get("steps_done", ())):
                yield WRONG, f"{told}: {done} happened"
            if state == "completed" and done != set(call.kind.steps):
                yield LOST, f"{told}: only {done} happened"

    def _doubled(self) -> Iterator[tuple[str, str]]:
        for (text, step), times in self.world.effects.items():
            if times > self._may(text):
                yield DOUBLED, f"{text}: {step} happened {times} times"
        for (text, step), keys in self.world.keys.items():
            if len(keys) > self._may(text):
                yield DOUBLED, f"{text}: {step} came under {len(keys)} effect keys"

    def _may(self, text: str) -> int:
        """How often it may have happened: once, and once more each time that the operator had it done again."""
        return 1 + sum("approve" in child.asked for child in self.calls[text].children.values())


def _forgotten(call: Call, state: str) -> Iterator[str]:
    """What of that which was confirmed shows no more."""
    if call.end not in (None, state):
        yield f"it had ended: {call.end}"
    if "deny" in call.confirmed and state != "denied":
        yield "it was denied"
    if "withdraw" in call.confirmed and state != "cancelled":
        yield "it was withdrawn"
    # A withdrawal that a kill cut in two leaves no decision that counts: it is asked anew.
    withdrawn = "withdraw" in call.asked and state in ("cancelled", "pending_approval", "denied", "expired")
    asked_anew = call.may_be_asked_anew and state in ("pending_approval", "denied", "expired")
    if "approve" in call.confirmed and state not in _DECIDED and not withdrawn and not asked_anew:
        yield "it was approved"
    if "settle" in call.confirmed and state not in ("completed", "failed"):
        yield "it was settled"
