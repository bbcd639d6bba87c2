"""Who acts at once, and what must hold whatever comes first."""

from __future__ import annotations

from typing import Any

from aileron.model.connectors import Finding
from aileron.model.vault import VaultState
from tests.promises.case import NO_ANSWER, OPERATOR
from tests.runner.kit import manifest, step

from .allowing import allowing
from .ending import ending
from .orders import Act, Home, Race
from .pairs import Pairs
from .voting import voting


class _Deciding(Pairs):
    """Around a run that waits for a decision."""

    def prepare(self, home: Home, approval: str = "") -> None:
        """A run that waits."""
        if approval:
            home.write("gated", manifest("gated", step("post"), expires=approval))
            home.runner.check_changes()
        self.run = home.submit()

    def against_denial(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.approve(home), self.deny(home)

    def twice(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.approve(home), self.approve(home)

    def against_withdrawal(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.approve(home), self.withdraw(home)

    def against_expiry(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, 'expires_after = "1m"')
        approve = self.approve(home)
        home.clock.advance(59.0)

        async def expire() -> None:
            home.clock.advance(1.0)

        return approve, expire

    def against_pause(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.approve(home), lambda: home.runner.limits.pause(None, None, OPERATOR)

    def against_lock(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)

        async def lock() -> None:
            await home.runner.limits.hold()
            home.vault.lock()

        return self.approve(home), lock

    def against_change(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)

        async def change() -> None:
            home.write("gated", manifest("gated", step("put")))
            home.runner.check_changes()

        return self.approve(home), change

    def against_edit(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.approve(home), lambda: home.runner.decisions.edit(self.run.id, {"text": "edited"}, None, OPERATOR)

    def one_decided(self, home: Home, told: list[Any]) -> str | None:
        """One of two decisions was confirmed, and is what became of it."""
        confirmed = [each for each in told if each is not None]
        state, events = home.state(self.run), home.events(self.run)
        if len(confirmed) != 1 or "tamper.detected" in events:
            return f"{len(confirmed)} were confirmed: {events}"
        right = ("completed", 1) if confirmed[0].approved else ("denied", 0)
        return None if (state, home.sent) == right else f"{state}, sent {home.sent} times"

    def taken_back_or_done(self, home: Home, told: list[Any]) -> str | None:
        """What was taken back is not done; what was not is done if it was approved."""
        state, (approved, withdrawn) = home.state(self.run), told
        right = ("cancelled", 0) if withdrawn is not None else ("completed", 1)
        if (state, home.sent) != right or (approved is None and withdrawn is None):
            return f"{told}: {state}, sent {home.sent} times: {home.events(self.run)}"
        return None

    def expired_or_done(self, home: Home, told: list[Any]) -> str | None:
        """A yes that was confirmed is done; without one it expires."""
        right = ("completed", 1) if told[0] is not None else ("expired", 0)
        state = home.state(self.run)
        return None if (state, home.sent) == right else f"{told}: {state}, sent {home.sent} times"

    def paused_or_done(self, home: Home, told: list[Any]) -> str | None:
        """What had not begun does not begin, and once it is resumed waits for a word."""
        state = home.state(self.run)
        if (state, home.sent) == ("completed", 1):
            return None
        if home.sent or state not in ("approved", "pending_approval"):
            return f"{state}, sent {home.sent} times"
        home.sync(home.runner.limits.resume(None, OPERATOR))
        home.approve(self.run)
        after = (home.state(self.run), home.sent)
        return None if after == ("completed", 1) else f"it is {after} after it was resumed"

    def locked_or_done(self, home: Home, told: list[Any]) -> str | None:
        """What had not begun waits for the vault, and begins once it is open, if it was approved."""
        home.unlock_anew(VaultState.UNLOCKED)
        home.restart()
        right = ("completed", 1) if told[0] is not None else ("pending_approval", 0)
        after = (home.state(self.run), home.sent)
        return None if after == right else f"{told}: {after}: {home.events(self.run)}"

    def never_another(self, home: Home, told: list[Any]) -> str | None:
        """What is sent is what was approved, or nothing."""
        sent = [(each.request.operation, each.request.body) for each in home.connector.sendings]
        if sent not in ([], [("post", b'{"text":"hello"}')]):
            return f"sent {sent}"
        state = home.state(self.run)
        return None if state == ("completed" if sent else "pending_approval") else f"{state}, sent {sent}"


class _Beginning(Pairs):
    """Around a run that is approved and about to begin."""

    def start_against_withdrawal(self, home: Home) -> tuple[Act, Act]:
        self.run = home.held()
        home.runner = home.build()
        return home.runner.start, self.withdraw(home)

    def taken_back_or_done(self, home: Home, told: list[Any]) -> str | None:
        """What was taken back is not done, and nothing else is asked anew."""
        right = ("completed", 1) if told[1] is None else ("cancelled", 0)
        after = (home.state(self.run), home.sent)
        return None if after == right else f"{told}: {after}: {home.events(self.run)}"

    def same_key(self, home: Home) -> tuple[Act, Act]:
        call = home.call("open", key="k")
        return lambda: home.runner.submission.submit(call), lambda: home.runner.submission.submit(call)

    def one_run(self, home: Home, told: list[Any]) -> str | None:
        """Both are told of one run, which is done once."""
        runs = {run.id for run in told}
        return None if len(runs) == home.sent == 1 else f"{len(runs)} runs, sent {home.sent} times"


class _Settling(Pairs):
    """Around a run that is in doubt."""

    def prepare(self, home: Home) -> None:
        home.write("open", manifest("open", step("send"), gated=False))
        home.runner.check_changes()
        home.connector.script.append(NO_ANSWER)
        self.run = home.submit("open")

    def two_people(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.settle(home, True), self.settle(home, False)

    def against_look(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        home.connector.findings.append(Finding(True, {"found": True}))
        return self.settle(home, False), lambda: home.runner.reconciliation.find_out(self.run.id, OPERATOR)

    def one_person(self, home: Home, told: list[Any]) -> str | None:
        """One of them is told yes, and it is as that one said; the other is refused."""
        said, events = [each.state for each in told if each is not None], home.events(self.run)
        right = said == [home.state(self.run)] and events.count("run.settled") == home.sent == 1
        return None if right else f"{said}: {home.state(self.run)}, sent {home.sent} times: {events}"

    def one_word(self, home: Home, told: list[Any]) -> str | None:
        """One of them settles it, and it stays as that one said."""
        state = home.state(self.run)
        ways = {"run.settled": None, "execution.reconciled": "completed"}
        first = next((event for event in home.events(self.run) if event in ways), None)
        said = ("completed", "failed") if first is None or ways[first] is None else (ways[first],)
        if first is None or state not in said or home.sent != 1:
            return f"{state}, sent {home.sent} times: {home.events(self.run)}"
        return None


def races() -> tuple[Race, ...]:
    """All of them."""
    deciding, beginning, settling = _Deciding(), _Beginning(), _Settling()
    one, back = "one is told yes, and that is what becomes of it", "what was taken back is never done"
    return (
        Race("approve, deny", one, deciding.against_denial, deciding.one_decided),
        Race("approve, approve", "one is told yes, one effect", deciding.twice, deciding.one_decided),
        Race("approve, withdraw", back, deciding.against_withdrawal, deciding.taken_back_or_done),
        Race("approve, expiry", "a yes that was told is done", deciding.against_expiry, deciding.expired_or_done),
        Race("approve, pause", "begins before, or not at all", deciding.against_pause, deciding.paused_or_done),
        Race("approve, lock", "done now, or once unlocked", deciding.against_lock, deciding.locked_or_done),
        Race("approve, action changes", "never another", deciding.against_change, deciding.never_another),
        Race("approve, edit", "never another", deciding.against_edit, deciding.never_another),
        Race("start, withdraw", back, beginning.start_against_withdrawal, beginning.taken_back_or_done),
        Race("call, call, one key", "one run, one effect", beginning.same_key, beginning.one_run),
        Race("settle, settle", "one word stands", settling.two_people, settling.one_person),
        Race("settle, look-up", "one word stands", settling.against_look, settling.one_word),
        *allowing(),
        *ending(),
        *voting(),
    )
