"""What must hold of grants, limits, pauses, ends and the record after each step."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.actions import Cap
from aileron.model.authority import GrantState
from aileron.model.runs import Run, RunState

from .allowing import Allowing
from .disturbing import Disturbing
from .doubting import Doubting
from .home import MOST_AN_HOUR, MOST_OF_ONE_TEXT
from .record import ENDED, FOUND_OUT, Told

_HOUR_SECONDS = 3600.0
_Counted = tuple[object, ...]


class Judging(Allowing, Doubting, Disturbing):
    """The promises that somebody gave beforehand, held against all that was done."""

    def __init__(self, case: SynchronousTestCase) -> None:
        super().__init__(case)
        self.heard_of = 0
        self.times: defaultdict[_Counted, list[float]] = defaultdict(list)
        self.standing()

    def standing(self) -> None:
        """Remember what stands now, for what the next step may do."""
        self.paused = {pause.session_id for pause in self.home.runner.limits.pauses()}
        self.caps = {own.name: (own.action, own.cap) for own in self.home.runner.limits.caps()}

    def judge(self, story: list[Told]) -> None:
        """All of it.  What began in this step did so under what stood before it and still stands."""
        assert not self.model.broken, self.model.broken
        started = [told for told in story if told.type == "execution.started"]
        fresh = started[self.heard_of :]
        self.heard_of = len(started)
        self.judge_pauses(fresh)
        self.judge_limits(fresh)
        self.judge_grants(fresh, story)
        self.judge_ends(story)
        self.model.happened = {run.id for run in self.unforged().values() if run.state is RunState.COMPLETED}
        self.standing()

    def judge_pauses(self, fresh: list[Told]) -> None:
        """Nothing begins that is paused, and nothing is resumed but by the operator."""
        now = {pause.session_id for pause in self.home.runner.limits.pauses()}
        assert self.model.paused <= now, (self.model.paused, now)
        for told in fresh:
            session_id = self.last[told.run_id].session_id
            assert not {None, session_id} & self.paused & now, f"begun while it was paused: {told}"

    def judge_limits(self, fresh: list[Told]) -> None:
        """No limit is exceeded: the manifest's, or the operator's own while they stand."""
        now = {own.name: (own.action, own.cap) for own in self.home.runner.limits.caps()}
        stood = [(name, *self.caps[name], now[name][1]) for name in now.keys() & self.caps.keys()]
        for told in fresh:
            run = self.last[told.run_id]
            if run.action == "limited":
                self.count(told, MOST_AN_HOUR, "limited")
            if run.action == "limited" and told.run_id not in self.forged:
                self.count(told, MOST_OF_ONE_TEXT, "limited", str(run.arguments["text"]))
            for name, action, before, after in stood:
                if action in (None, run.action):
                    self.count(told, max(before.most, after.most), name, *self.counted(run, before))

    def counted(self, run: Run, cap: Cap) -> _Counted:
        """What a limit counts apart; of forged rows nobody knows, so that each is its own."""
        if cap.argument is None:
            return ()
        return (run.id if run.id in self.forged else str(run.arguments[cap.argument]),)

    def count(self, told: Told, most: int, *what: object) -> None:
        """One more within the hour."""
        self.times[what].append(told.at)
        within = sum(at > told.at - _HOUR_SECONDS for at in self.times[what])
        assert within <= most, f"begun {within} times within an hour, at most {most} may: {what}"

    def judge_grants(self, fresh: list[Told], story: list[Told]) -> None:
        """A grant is the operator's, is used as often as the record says and no more, and not where things changed."""
        self.adopt()
        uses = defaultdict(list)
        for told in story:
            if told.type == "grant.used":
                uses[told.payload["grant"]].append(told.payload["left"])
                self.granted[told.run_id] = told.payload["grant"]
        for grant in self.home.grants.all():
            known, left = self.model.grants[grant.id], uses[grant.id]
            assert len(set(left)) == len(left) <= grant.used <= grant.uses, (grant, left)
            assert not known.ended or grant.revoked_at is not None or grant.state(grant.not_after) is GrantState.OVER
        for told in fresh:
            if told.run_id in self.granted and not self.model.words.get(told.run_id):
                self.judge_bound(told, self.granted[told.run_id])

    def judge_bound(self, told: Told, grant_id: str) -> None:
        """What began by a grant is what that was given for."""
        known = self.model.grants[grant_id]
        contents = {step["content_hash"] for step in told.payload["steps"]}
        assert self.last[told.run_id].manifest_digest == known.manifest, "begun by a grant of another action"
        assert contents == {known.content}, "begun by a grant for another connector"

    def adopt(self) -> None:
        """Know the grants that are there: each must have been asked for."""
        for grant in self.home.grants.all():
            if grant.id not in self.model.grants:
                asked = [each for each in self.model.wishes if each.made(grant)]
                assert asked, f"a grant that nobody asked for: {grant}"
                self.model.wishes.remove(asked[0])
                self.model.grants[grant.id] = asked[0]

    def judge_ends(self, story: list[Told]) -> None:
        """What is called failed had no effect, what is called done had all, and the record tells how each ended."""
        told = defaultdict(set)
        for event in story:
            told[event.run_id].add(event.type)
        for run in self.unforged().values():
            if run.state.settled:
                ways = ENDED[run.state.value] | (FOUND_OUT if "execution.unknown" in told[run.id] else set())
                assert told[run.id] & ways, f"no word of how it ended: {run}"
            if run.id not in self.model.settled:
                self.judge_effects(run)

    def judge_effects(self, run: Run) -> None:
        """Of a run that nobody but the daemon has settled."""
        mine = [each for each in self.home.world.arrivals if each.by is not None and each.by.run_id == run.id]
        if run.state is RunState.COMPLETED:
            done = {each.step for each in mine if each.happened}
            assert done == ({"one", "two"} if run.action == "steps" else {"only"}), f"only {done} happened: {run}"
        elif run.state is RunState.FAILED:
            said: Any = run.fault.details.get("steps_done", ()) if run.fault else ()
            left = [each for each in mine if each.happened is not False and each.step not in said]
            assert not left, f"it may have happened: {run}, {left}"
