"""What lets runs begin, or keeps them, and is asked for by two at once: grants, limits, pauses."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from aileron.base.json import utc
from aileron.model.authority import Grant, NewGrant, Predicate, PredicateKind
from tests.promises.case import OPERATOR
from tests.runner.kit import manifest, step

from .orders import Act, Home, Race
from .pairs import Pairs

_LIMITED = "[limits]\nper_hour = 1\n\n[[execute]]"


def _call(home: Home, action: str, text: str = "hello") -> Act:
    call = home.call(action, {"text": text})
    return lambda: home.runner.submission.submit(call)


class _Granted(Pairs):
    """Around a grant of one use: another call, whatever it says."""

    grant: Grant

    def prepare(self, home: Home) -> None:
        run, until = home.submit(), utc(home.clock.seconds()) + timedelta(hours=1)
        wish = NewGrant((Predicate("text", PredicateKind.ANY),), 1, until)
        self.grant = home.sync(home.runner.decisions.approve_and_grant(run.id, home.yes(run), wish))[1]

    def twice(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return _call(home, "gated", "one"), _call(home, "gated", "two")

    def one_by_it(self, home: Home, told: list[Any]) -> str | None:
        """One call goes by the grant, the other one is asked about; the first that was sent is the approved one."""
        states = sorted(home.state(run) for run in told)
        right = states == ["completed", "pending_approval"] and home.sent == 2
        return None if right else f"{states}, sent {home.sent} times"

    def revoked(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return _call(home, "gated", "one"), lambda: home.runner.grants.revoke_grant(self.grant.id, OPERATOR)

    def not_after_it(self, home: Home, told: list[Any]) -> str | None:
        """It is done if it had begun before the grant was ended; else it is asked about, or ends unsent."""
        run, types = told[0], [record.event.type for record in home.records()]
        state, sent = home.state(run), home.sent - 1
        begun = types.count("execution.started") == 2
        late = begun and types.index("grant.revoked") < len(types) - 1 - types[::-1].index("execution.started")
        if told[1] is None or late or sent != (state == "completed"):
            return f"{state}, sent {sent} times: {types}"
        after = home.state(home.sync(home.runner.submission.submit(home.call("gated", {"text": "three"}))))
        return None if after == "pending_approval" else f"a call after it was ended is {after}"


class _Limited(Pairs):
    """Around an action that may begin once an hour."""

    def write(self, home: Home, gated: bool) -> None:
        text = manifest("few", step("post"), gated=gated, expires='cool_down = "0s"' if gated else "")
        home.write("few", text.replace("[[execute]]", _LIMITED))
        home.runner.check_changes()

    def calls(self, home: Home) -> tuple[Act, Act]:
        self.write(home, gated=False)
        return _call(home, "few", "one"), _call(home, "few", "two")

    def one_call(self, home: Home, told: list[Any]) -> str | None:
        """One is done, and the other one refused."""
        refused = told.count(None)
        return None if (refused, home.sent) == (1, 1) else f"{refused} refused, sent {home.sent} times"

    def approvals(self, home: Home) -> tuple[Act, Act]:
        self.write(home, gated=True)
        runs = [home.submit("few", {"text": text}) for text in ("one", "two")]
        one, two = (home.yes(run) for run in runs)
        return lambda: home.runner.decisions.decide(runs[0].id, one), lambda: home.runner.decisions.decide(
            runs[1].id, two
        )

    def one_approval(self, home: Home, told: list[Any]) -> str | None:
        """One is done, and the other one is asked anew when it would begin."""
        states = sorted(home.state(each.run) for each in told if each is not None)
        right = states == ["completed", "pending_approval"] and home.sent == 1
        return None if right else f"{states}, sent {home.sent} times"


class _Paused(Pairs):
    """Around a pause."""

    def call(self, home: Home) -> tuple[Act, Act]:
        return _call(home, "open"), lambda: home.runner.limits.pause(None, None, OPERATOR)

    def before_it(self, home: Home, told: list[Any]) -> str | None:
        """What begins has begun before the pause stood on record; what was refused left nothing."""
        types = [record.event.type for record in home.records()]
        begun = types.index("execution.started") if "execution.started" in types else None
        late = begun is not None and types.index("pause.begun") < begun
        if late or home.sent != (told[0] is not None) or home.sent != (begun is not None):
            return f"{told}, sent {home.sent} times: {types}"
        return None

    def hold(self, home: Home) -> None:
        """A run that was approved, and could begin now if it were not paused."""
        home.write("gated", manifest("gated", step("post"), expires="undo_seconds = 60"))
        home.runner.check_changes()
        self.run = home.submit()
        home.approve(self.run)
        home.sync(home.runner.limits.pause(None, None, OPERATOR))
        home.clock.advance(60.0)

    def resume_or_withdraw(self, home: Home) -> tuple[Act, Act]:
        self.hold(home)
        return lambda: home.runner.limits.resume(None, OPERATOR), self.withdraw(home)

    def asked_or_gone(self, home: Home, told: list[Any]) -> str | None:
        """Nothing that was held back begins by itself, and what was taken back stays so."""
        after = (home.state(self.run), home.sent)
        right = ("pending_approval", 0) if told[1] is None else ("cancelled", 0)
        return None if after == right else f"{told}: {after}: {home.events(self.run)}"

    def resume_or_approve(self, home: Home) -> tuple[Act, Act]:
        self.run = home.submit()
        approve = self.approve(home)
        home.sync(home.runner.limits.pause(None, None, OPERATOR))
        return lambda: home.runner.limits.resume(None, OPERATOR), approve

    def done_if_told(self, home: Home, told: list[Any]) -> str | None:
        """A yes that was confirmed is done; one that was refused is not."""
        after = (home.state(self.run), home.sent)
        right = ("pending_approval", 0) if told[1] is None else ("completed", 1)
        return None if after == right else f"{told}: {after}: {home.events(self.run)}"


def allowing() -> tuple[Race, ...]:
    """All of them."""
    granted, limited, paused = _Granted(), _Limited(), _Paused()
    return (
        Race("call, call, one use", "one goes by the grant", granted.twice, granted.one_by_it),
        Race("call, grant revoked", "nothing begins after that", granted.revoked, granted.not_after_it),
        Race("call, call, room for one", "one begins", limited.calls, limited.one_call),
        Race("approve, approve, room for one", "one begins", limited.approvals, limited.one_approval),
        Race("call, pause", "begins before, or not at all", paused.call, paused.before_it),
        Race("resume, withdraw", "never done unasked", paused.resume_or_withdraw, paused.asked_or_gone),
        Race("resume, approve", "a yes that was told is done", paused.resume_or_approve, paused.done_if_told),
    )
