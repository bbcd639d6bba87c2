"""Several people, each at one of two daemons on one database: what they approve together happens once."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import gatherResults
from twisted.internet.threads import deferToThread

from aileron.home.lock import running_pid
from aileron.store import _daemons
from aileron.testing import SigningBrowser
from tests.extent import seldom
from tests.functional.operated import GATED
from tests.functional.people import PublicName, find_listening
from tests.functional.phoned import NAME
from tests.functional.reactor import Patience
from tests.functional.test_several import SeveralTestCase
from tests.matrix.races.several import TwoHomes
from tests.matrix.races.voting import Voting

_AUTHORITY = f"{NAME}:8443"
_PHONE = f"phone:\n  public_url: https://{_AUTHORITY}\n  listen: tcp:0:interface=127.0.0.1\n"
_RULES = f"approvals:\n  rules:\n    - {{action: {GATED}, count: 2}}\n"
_DELAYS = (0.0, 0.0, 0.003, -0.003, 0.01, -0.01, 0.03, -0.03)
_ROLES = {"alice": "approver", "bob": "approver", "carol": "approver", "root": "administrator"}
_DAY = 86_400.0

Told = tuple[int, str]


class VotingTests(SeveralTestCase):
    """Alice and the administrator at the first daemon, bob and carol at the second one."""

    more_config = _PHONE + _RULES

    async def furnish(self, config: str = "") -> None:
        """With the certificate of the public name, which both daemons serve."""
        await super().furnish(config or _PHONE)
        place = self.home.root / "ca.pem"
        await self.operator("phone", "certificate", "--output", str(place))
        self.trusted = ssl.create_default_context(cadata=place.read_text())

    async def begin(self, count: int = 2, **settings: int) -> None:
        """Two daemons, and the people, who have signed in."""
        await super().begin(count, **settings)
        self.names = [self.name_at(number) for number in range(count)]
        self.pages: dict[tuple[str, int], SigningBrowser] = {}
        for name, role in _ROLES.items():
            shown = await self.at(0, "people", "add", name, "--role", role)
            self.pages[name, 0] = self.names[0].join(shown.stdout)
            self.pages[name, 1] = self.names[1].sign_in(name)
        self.agent = await self.session()

    def name_at(self, number: int) -> PublicName:
        """The public name as this daemon serves it, at a port of its own."""
        pid, found = running_pid(self.homes[number]), self.found(number)
        assert pid is not None
        known = {int(str(found[each]).rpartition(":")[2]) for each in ("url", "operator_url")}
        (port,) = find_listening(pid) - known
        return PublicName(_AUTHORITY, port, self.trusted)

    async def ask(self, summary: str) -> dict[str, Any]:
        """A request of an agent, as it is shown."""
        reply = await self.call(0, self.agent, GATED, wait=None, summary=summary)
        self.assertEqual(reply.status, 202, reply.body)
        return await self.shown(str(reply.body["run_id"]))

    async def shown(self, run_id: str) -> dict[str, Any]:
        """The approval as a daemon shows it."""
        found: dict[str, Any] = await self.told_at(1, "approval", "show", run_id)
        return found

    def vote(self, name: str, number: int, run: dict[str, Any], **more: Any) -> Callable[[], Told]:
        """What this person does at this daemon."""
        page = self.pages[name, number]
        return lambda: self.names[number].decide(page, run, **more)

    async def at_once(self, first: Callable[[], Told], second: Callable[[], Told], delay: float) -> Sequence[Told]:
        """Both at the same moment; the second one later by some seconds, or the first one."""

        def after(seconds: float, act: Callable[[], Told]) -> Told:
            time.sleep(max(0.0, seconds))
            return act()

        works = deferToThread(after, -delay, first), deferToThread(after, delay, second)
        told: Sequence[Told] = await gatherResults(works)
        return told

    async def state_of(self, run: dict[str, Any], *states: str) -> str:
        """The state of a run, once it is one of these."""
        patience = Patience(self.reactor, 30)
        while True:
            found = str((await self.told_at(1, "run", "show", run["id"]))["state"])
            if found in states or patience.is_over:
                return found
            await self.pause(0.2)

    async def events(self, run: dict[str, Any]) -> list[str]:
        """The types of the events about a run."""
        return [each["type"] for each in await self.recorded() if each["run_id"] == run["id"]]

    async def recorded(self) -> list[dict[str, Any]]:
        """All events."""
        return list((await self.told_at(1, "audit", "list", "--limit", "500"))["items"])

    async def check_done(self, run: dict[str, Any], summary: str) -> None:
        """Check that a run was approved once, and done once."""
        self.assertEqual(await self.state_of(run, "completed"), "completed", summary)
        events = await self.events(run)
        self.assertEqual(
            [events.count(f"{each}") for each in ("approval.approved", "execution.started")], [1, 1], events
        )
        self.assertEqual(self.counts()[summary], 1)

    async def check_record(self) -> None:
        """Check that all that was decided is proved, and nothing was taken for tampering."""
        self.assertNotIn("tamper.detected", {each["type"] for each in await self.recorded()})
        self.assertIn("consistent", (await self.command("store", "verify", self.url)).stdout)

    @seldom
    async def test_at_once(self) -> None:
        """Of those who approve at the same moment at both daemons each counts once, and it is done once."""
        await self.begin()
        for number, delay in enumerate(_DELAYS):
            run = await self.ask(f"both {number}")
            told = await self.at_once(self.vote("alice", 0, run), self.vote("bob", 1, run), delay)
            self.assertEqual([status for status, _ in told], [200, 200], told)
            await self.check_done(run, f"both {number}")
        for number, delay in enumerate(_DELAYS):
            run = await self.ask(f"three {number}")
            self.assertEqual(self.vote("alice", 0, run)()[0], 200)
            force = self.vote("root", 0, run, forced=True, reason="The site is down.")
            other = force if number % 2 else self.vote("carol", 0, run)
            told = await self.at_once(other, self.vote("bob", 1, run), delay)
            self.assertEqual(sorted(status for status, _ in told), [200, 409], told)
            await self.check_done(run, f"three {number}")
        await self._deny_at_once()
        await self._vote_twice()
        await self.check_record()

    async def _deny_at_once(self) -> None:
        for number, delay in enumerate(_DELAYS):
            run = await self.ask(f"denied {number}")
            self.assertEqual(self.vote("alice", 0, run)()[0], 200)
            told = await self.at_once(self.vote("carol", 0, run, approved=False), self.vote("bob", 1, run), delay)
            self.assertEqual(sorted(status for status, _ in told), [200, 409], told)
            state = await self.state_of(run, "completed", "denied", "pending_approval")
            if state == "pending_approval":  # the denial came too late, and had withdrawn an approval before that
                self.assertIn("approval.stale", await self.events(run))
                run = await self.shown(run["id"])
                self.assertEqual([self.vote("alice", 0, run)()[0], self.vote("bob", 1, run)()[0]], [200, 200])
                state = await self.state_of(run, "completed")
            self.assertEqual(state, "denied" if told[0][0] == 200 else "completed", told)
            self.assertEqual(self.counts().get(f"denied {number}", 0), int(state == "completed"))

    async def _vote_twice(self) -> None:
        """One person counts once: by two logins at two daemons, and the operator by commands and at two daemons."""
        for number, delay in enumerate(_DELAYS[:4]):
            run = await self.ask(f"twice {number}")
            told = await self.at_once(self.vote("alice", 0, run), self.vote("alice", 1, run), delay)
            self.assertEqual(sorted(status for status, _ in told), [200, 409], told)
            self.assertEqual((await self.shown(run["id"]))["progress"], "1 of 2 approvals: alice")
        run = await self.ask("the operator")
        await self.at(0, "approval", "approve", run["id"], "--yes")
        refused = await self.operator_at(1, "approval", "approve", run["id"], "--yes")
        self.assertIn("You approved this already", refused)
        self.assertEqual(await self.state_of(run, "pending_approval"), "pending_approval")
        self.assertNotIn("the operator", self.counts())

    async def operator_at(self, number: int, *arguments: str) -> str:
        """What a command that fails tells its user."""
        finished = await self.operator_within({"AILERON_HOME": str(self.homes[number].root)}, *arguments)
        self.assertNotEqual(finished.exit_code, 0)
        return f"{finished.stdout}{finished.stderr}"

    @seldom
    async def test_between(self) -> None:
        """An approval is void at both daemons once the request is edited, or its account is changed or removed."""
        await self.begin()
        run = await self.ask("edited")
        self.assertEqual(self.vote("alice", 0, run)()[0], 200)
        body = {"args": {**run["run"]["arguments"], "summary": "anew"}}
        status, text = self.names[1].send(self.pages["root", 1], "POST", f"/v1/action-approvals/{run['id']}/edit", body)
        self.assertEqual(status, 200, text)
        self.assertEqual(self.vote("bob", 1, run)()[0], 409)
        anew = json.loads(text)
        self.assertEqual(self.vote("bob", 1, anew)()[0], 200)
        self.assertEqual((await self.shown(run["id"]))["progress"], "1 of 2 approvals: bob")
        self.assertEqual(self.vote("carol", 0, anew)()[0], 200)
        await self.check_done(run, "anew")
        await self._trust_between()
        for name, how in (("carol", ("role", "carol", "viewer")), ("alice", ("remove", "alice"))):
            run = await self.ask(f"of {name}")
            self.assertEqual(self.vote(name, 0, run)()[0], 200)
            await self.at(1, "people", *how)
            self.assertEqual(self.vote("bob", 0, run)()[0], 200)
            self.assertEqual((await self.shown(run["id"]))["progress"], "1 of 2 approvals: bob")
            for number in (0, 1):
                self.assertEqual(self.vote(name, number, run)()[0], 401)
            self.assertEqual(self.vote("root", 1, run)()[0], 200)
            await self.check_done(run, f"of {name}")
        await self.check_record()

    async def _trust_between(self) -> None:
        """A stricter rule that is trusted at one daemon holds at the other one for what waits there."""
        run = await self.ask("stricter")
        self.assertEqual(self.vote("alice", 0, run)()[0], 200)
        for number, count in ((1, 3), (0, 2)):
            path = self.homes[number].config
            path.write_text(re.sub("count: [0-9]", f"count: {count}", path.read_text()))
            await self.at(number, "config", "trust", "--yes")
            if count == 3:
                self.assertEqual(self.vote("bob", 0, run)()[0], 200)
                self.assertEqual((await self.shown(run["id"]))["progress"], "2 of 3 approvals: alice, bob")
                self.assertEqual(self.vote("root", 1, run)()[0], 200)
                await self.check_done(run, "stricter")

    @seldom
    async def test_killed(self) -> None:
        """An approval at a daemon that is killed right afterwards counts at the other one."""
        await self.begin()
        run = await self.ask("killed")
        self.assertEqual(self.vote("alice", 0, run)()[0], 200)
        await self.kill(0)
        self.assertEqual((await self.shown(run["id"]))["progress"], "1 of 2 approvals: alice")
        self.assertEqual(self.vote("alice", 1, run)()[0], 409)
        self.assertEqual(self.vote("bob", 1, run)()[0], 200)
        await self.check_done(run, "killed")
        await self.check_record()


class WeekTests(TwoHomes):
    """Two daemons whose clock is a test's."""

    def test_week(self) -> None:
        """An approval at one daemon counts at the other one for seven days, and not afterwards."""
        self.patch(_daemons, "MOST_SKEW_SECONDS", 30 * _DAY)
        voting = Voting()
        voting.prepare(self, "alice")
        self.catch_up()
        self.clock.advance(7 * _DAY - 1)
        self.assertEqual(self.names(voting), ["alice"])
        self.clock.advance(1)
        self.assertEqual(self.names(voting), [])
        for name, state in (("bob", "pending_approval"), ("eve", "completed")):
            self.use(1)
            self.sync(voting.vote(self, name)())
            self.assertEqual(self.state(voting.run), state)
        self.assertEqual(self.sent, 1)

    def names(self, voting: Voting) -> list[str]:
        """Whose approvals count at the other daemon."""
        self.use(1)
        return [vote.name for vote in self.shown(voting.run).votes]
