"""What the operator allows and forbids beforehand: grants, limits, pauses, denials that stick."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from aileron.base.json import utc
from aileron.model.actions import Cap
from aileron.model.audit import Actor
from aileron.model.authority import OwnCap
from aileron.model.runs import Approval, Decision
from tests.runner.kit import OPERATOR

from .acting import FATE, NUMBER, UNCLEAR, Fate
from .calling import PICKS, SESSION, Calling
from .model import Allowance

_UNTIL = st.sampled_from((100.0, 7200.0))
_ALLOWED = st.sampled_from(("gated", "undone", "sticky"))
_WELL = ("goes well", 0)
_LIMITED = st.sampled_from((None, "open", "gated"))


class Allowing(Calling):
    """Words that outlast a call."""

    @precondition(lambda self: self.pending)
    @rule(which=NUMBER, uses=st.integers(1, 2), seconds=_UNTIL, exact=st.booleans(), own=st.booleans(), fate=FATE)
    def grant(self, which: int, uses: int, seconds: float, exact: bool, own: bool, fate: Fate) -> None:
        """The operator approves, and allows more like it."""
        shown = self.shown(self.pending[which % len(self.pending)])
        if shown is not None:
            self.allow(shown, (uses, seconds, exact, own), fate)

    @rule(action=_ALLOWED, uses=st.integers(1, 2), exact=st.booleans(), own=st.booleans(), who=SESSION)
    def allow_and_use(self, action: str, uses: int, exact: bool, own: bool, who: str) -> None:
        """An agent calls, the operator allows more like it, and the agent calls once more."""
        run = self.call(action, "a", who, _WELL)
        self.holds()
        shown = self.shown(run.id) if run is not None else None
        if shown is not None:
            self.allow(shown, (uses, 7200.0, exact, own), _WELL)
            self.holds()
            self.call(action, "a", who, _WELL)

    def allow(self, shown: Approval, terms: tuple[int, float, bool, bool], fate: Fate) -> None:
        """The operator approves what is shown, and allows more like it."""
        uses, seconds, exact, own = terms
        run = shown.run
        until = float(int(self.now + seconds))
        text, whose = str(run.arguments["text"]) if exact else None, run.session_id if own else None
        made = (run.id, shown.review.manifest_digest, self.home.content())
        wish = Allowance(run.action, text, whose, uses, until, *made)
        self.model.wishes.append(wish)
        self.mean(shown)
        yes = Decision(True, shown.digest, OPERATOR.id)
        told = self.meets(fate, lambda: self.home.runner.decisions.approve_and_grant(run.id, yes, wish.wish()))
        self.decided(shown, True, told)

    @precondition(lambda self: self.held_by_grants())
    @rule(which=NUMBER, fate=FATE)
    def repent(self, which: int, fate: Fate) -> None:
        """The operator ends the grant by which something was approved that has not begun."""
        self.end_grant(sorted(self.held_by_grants())[which % len(self.held_by_grants())], fate)

    def held_by_grants(self) -> set[str]:
        """The grants by which something was approved that has not begun."""
        held = {run.id for run in self.last.values() if run.state.value == "approved"}
        return {grant_id for run_id, grant_id in self.granted.items() if run_id in held}

    @precondition(lambda self: self.model.grants)
    @rule(which=NUMBER, text=st.sampled_from(("a", "b", None)), who=SESSION, fate=FATE)
    def use(self, which: int, text: str | None, who: str, fate: Fate) -> None:
        """An agent calls what a grant may allow."""
        grants = [*self.model.grants.values()]
        grant = grants[which % len(grants)]
        self.call(
            grant.action, text or grant.text or "c", grant.session if text is None and grant.session else who, fate
        )

    @precondition(lambda self: self.model.grants)
    @rule(which=NUMBER, texts=st.lists(st.sampled_from("ab"), min_size=2, max_size=3), picks=PICKS)
    def use_at_once(self, which: int, texts: list[str], picks: list[int]) -> None:
        """Agents call it at the same moment."""
        grants = [*self.model.grants.values()]
        grant = grants[which % len(grants)]
        if grant.action != "sticky":
            self.crowd(grant.action, texts, grant.session or "session-1", picks)

    @precondition(lambda self: self.model.grants)
    @rule(which=NUMBER, fate=FATE)
    def revoke(self, which: int, fate: Fate) -> None:
        """The operator ends a grant."""
        self.end_grant([*self.model.grants][which % len(self.model.grants)], fate)

    def end_grant(self, grant_id: str, fate: Fate) -> None:
        """The operator ends it."""
        told = self.meets(fate, lambda: self.home.runner.grants.revoke_grant(grant_id, OPERATOR))
        if told is not None and told is not UNCLEAR:
            self.model.grants[grant_id].ended = True

    @precondition(lambda self: "pauses" in self.troubles)
    @rule(pauses=st.sampled_from((True, False, False)), name=st.sampled_from((None, "session-1")), fate=FATE)
    def switch(self, pauses: bool, name: str | None, fate: Fate) -> None:
        """The operator pauses or resumes everything, or a session; an agent pauses its own."""
        runner = self.home.runner
        if pauses:
            who = OPERATOR if name is None else Actor("agent", name)
            told = self.meets(fate, lambda: runner.limits.pause(name, None, who))
            if told is not None and told is not UNCLEAR and told.saved:  # while no disk takes it, a restart may lose it
                self.model.paused.add(name)
            return
        self.resume(name, fate)

    def resume(self, name: str | None, fate: Fate) -> None:
        """The operator resumes."""
        paused, standing = {pause.session_id for pause in self.home.runner.limits.pauses()}, dict(self.last)
        told = self.meets(fate, lambda: self.home.runner.limits.resume(name, OPERATOR))
        if told is UNCLEAR:
            self.model.paused.discard(name)
        elif told is not None:
            self.model.resumed(name, standing, paused)

    @precondition(lambda self: "limits" in self.troubles)
    @rule(action=_LIMITED, most=st.integers(0, 2), text=st.booleans(), fate=FATE)
    def limit(self, action: str | None, most: int, text: bool, fate: Fate) -> None:
        """The operator sets a limit, or takes it away."""
        argument = "text" if text and action is not None else None
        room = max(1, most) if action else 3 + most
        cap = OwnCap(Cap(room, 3600.0, argument), utc(0), "", action)
        runner = self.home.runner
        self.meets(
            fate,
            lambda: runner.limits.set_caps([cap], OPERATOR) if most else runner.limits.remove_cap(cap, OPERATOR),
        )

    @rule(which=NUMBER, written=st.sampled_from(("{}", "\n{}  ", " {}\t")), who=SESSION)
    def insist(self, which: int, written: str, who: str) -> None:
        """An agent asks once more what was denied, written in another way."""
        denied = [run for run in self.last.values() if run.action == "sticky" and run.state.value == "denied"]
        if denied:
            text = str(denied[which % len(denied)].asked_for["text"])
            self.call("sticky", written.format(text.upper()), who, _WELL)

    @rule(which=NUMBER, fate=FATE)
    def forgive(self, which: int, fate: Fate) -> None:
        """The operator lets it be asked again."""
        run = self.of(which, "denied")
        if run is not None:
            self.model.forgiven.add(run.id)
            self.meets(fate, lambda: self.home.runner.limits.forgive(run.id, OPERATOR))
