"""Approvals of several people, and what happens at the moment of the last one."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from aileron.base.json import utc
from aileron.model.audit import Actor
from aileron.model.people import AccountLogin, PersonAccount, Role
from aileron.model.runs import Decision, Run
from aileron.testing import example_event
from tests.promises.case import OPERATOR
from tests.runner.kit import manifest, step

from .orders import Act, Home, Race
from .pairs import Pairs

_PEOPLE = {"alice": Role.APPROVER, "bob": Role.APPROVER, "eve": Role.APPROVER, "root": Role.ADMINISTRATOR}

_SHOWN_ANEW = {"approval.requested", "approval.modified", "approval.stale"}


class Voting(Pairs):
    """Around a run that needs two people."""

    logins: dict[str, AccountLogin]

    def prepare(self, home: Home, *voted: str) -> None:
        """Add the accounts, and let these people approve a new run."""
        self.logins = {name: self._add(home, name, role) for name, role in _PEOPLE.items()}
        home.write("gated", manifest("gated", step("post"), expires="count = 2"))
        home.runner.check_changes()
        self.run: Run = home.submit()
        for name in voted:
            home.sync(self.vote(home, name)())

    def _add(self, home: Home, name: str, role: Role) -> AccountLogin:
        account = PersonAccount(f"per_{name}", name, role, 1, utc(home.clock.seconds()))
        assert home.sync(home.store.people.add(account, ()))
        home.accounts[account.id] = account.digest
        return account.login

    def vote(self, home: Home, name: str, login: str = "ab12", **how: Any) -> Act:
        """The decision of a person on what is shown now."""
        digest = home.yes(self.run).digest
        word = Decision(True, digest, f"{name}.{login}", account=self.logins[name])
        return lambda: home.runner.decisions.decide(self.run.id, evolve(word, **how))

    # the races ---------------------------------------------------------------------------------------------------

    def two_last(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")
        return self.vote(home, "bob"), self.vote(home, "eve")

    def first_and_last(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.vote(home, "alice"), self.vote(home, "bob")

    def one_person(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home)
        return self.vote(home, "alice"), self.vote(home, "alice", "cd34")

    def against_denial(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")
        last = self.vote(home, "bob")
        home.clock.advance(1.0)
        return last, self.vote(home, "eve", approved=False)

    def against_force(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")
        return self.vote(home, "bob"), self.vote(home, "root", forced=True, reason="The site is down.")

    def against_edit(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")
        actor = Actor("human", "eve.ab12")
        return self.vote(home, "bob"), lambda: home.runner.decisions.edit(self.run.id, {"text": "edited"}, None, actor)

    def against_edit_and_back(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")

        async def edit_twice() -> None:
            for text in ("edited", "hello"):
                await home.runner.decisions.edit(self.run.id, {"text": text}, None, OPERATOR)

        return self.vote(home, "bob"), edit_twice

    def against_removal(self, home: Home) -> tuple[Act, Act]:
        self.prepare(home, "alice")
        last, people = self.vote(home, "bob"), home.store.people
        account = home.sync(people.get("per_alice"))
        assert account is not None

        async def remove() -> None:
            del home.accounts[account.id]
            assert await people.remove(account, [example_event("people.removed", at=utc(home.clock.seconds()))])

        return last, remove

    def against_role(self, home: Home) -> tuple[Act, Act]:
        """The last vote is that of the person whose role is changed."""
        self.prepare(home, "alice")
        last, people = self.vote(home, "bob"), home.store.people
        account = home.sync(people.get("per_bob"))
        assert account is not None
        changed = evolve(account, role=Role.VIEWER, revision=2)

        async def change() -> None:
            event = example_event("people.role_changed", at=utc(home.clock.seconds()))
            assert await people.change(changed, 1, [event])
            home.accounts[account.id] = changed.digest

        return last, change

    # what holds --------------------------------------------------------------------------------------------------

    def _told(self, home: Home, told: list[Any]) -> str:
        return f"{told}: {home.state(self.run)}, sent {home.sent} times: {home.events(self.run)}"

    def _types(self, home: Home) -> list[str]:
        return [record.event.type for record in home.records()]

    def one_confirmed(self, home: Home, told: list[Any]) -> str | None:
        """One of the two was confirmed, and is what became of it: once, and nothing is on record as tampering."""
        confirmed, types = [each for each in told if each is not None], self._types(home)
        decided = types.count("approval.approved") + types.count("approval.denied")
        if len(confirmed) != 1 or decided != 1 or "tamper.detected" in types:
            return self._told(home, told)
        if home.shared and "approval.stale" in types:  # a denial that came too late had withdrawn the first vote
            return None if (home.state(self.run), home.sent) == ("pending_approval", 0) else self._told(home, told)
        right = ("completed", 1) if confirmed[0].approved else ("denied", 0)
        return None if (home.state(self.run), home.sent) == right else self._told(home, told)

    def both_count(self, home: Home, told: list[Any]) -> str | None:
        """Both were confirmed, and the run is done once."""
        types = self._types(home)
        counts = types.count("approval.voted"), types.count("approval.approved"), home.sent
        right = None not in told and counts == (1, 1, 1) and home.state(self.run) == "completed"
        return None if right else self._told(home, told)

    def one_vote(self, home: Home, told: list[Any]) -> str | None:
        """One of the two was confirmed, and somebody else is still needed."""
        votes = self._types(home).count("approval.voted")
        right = (told.count(None), votes, home.sent, home.state(self.run)) == (1, 1, 0, "pending_approval")
        return None if right else self._told(home, told)

    def shown_or_nothing(self, home: Home, told: list[Any]) -> str | None:
        """What is done is what two people saw; else an earlier approval is void, and two must approve what is there."""
        sent, types = [each.request.body for each in home.connector.sendings], self._types(home)
        if "tamper.detected" in types:
            return self._told(home, told)
        if not sent:
            if home.state(self.run) != "pending_approval":
                return self._told(home, told)
            latest = max(at for at, each in enumerate(types) if each in _SHOWN_ANEW)
            for name in ("eve", "root")[: 2 - types[latest:].count("approval.voted")]:
                if home.sent:
                    return f"before {name} approved, {self._told(home, told)}"
                home.sync(self.vote(home, name)())
        elif sent != [b'{"text":"hello"}']:
            return f"{sent}: {self._told(home, told)}"
        return None if (home.state(self.run), home.sent) == ("completed", 1) else self._told(home, told)

    def before_or_not(self, home: Home, told: list[Any]) -> str | None:
        """The run is done if it was approved before the account was removed or changed; else it still waits."""
        types = self._types(home)
        if "tamper.detected" in types:
            return self._told(home, told)
        changed = next(each for each in types if each.startswith("people."))
        approved = "approval.approved" in types
        if approved and types.index(changed) < types.index("approval.approved"):
            return f"approved afterwards: {types}"
        right = ("completed", 1) if approved else ("pending_approval", 0)
        return None if (home.state(self.run), home.sent) == right else self._told(home, told)


def voting() -> tuple[Race, ...]:
    """The races of people of whom two must approve."""
    of, one = Voting(), "one is told yes, and that is what becomes of it"
    shown, before = "what two people saw, or nothing", "approved before, or not at all"
    return (
        Race("last vote, last vote", one, of.two_last, of.one_confirmed),
        Race("first vote, last vote", "both count, one effect", of.first_and_last, of.both_count),
        Race("vote, vote, one person", "one person counts once", of.one_person, of.one_vote),
        Race("last vote, deny", one, of.against_denial, of.one_confirmed),
        Race("last vote, force", one, of.against_force, of.one_confirmed),
        Race("last vote, edit", shown, of.against_edit, of.shown_or_nothing),
        Race("last vote, edit and back", shown, of.against_edit_and_back, of.shown_or_nothing),
        Race("last vote, a voter is removed", before, of.against_removal, of.before_or_not),
        Race("last vote, its voter's role", before, of.against_role, of.before_or_not),
    )
