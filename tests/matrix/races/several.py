"""Two daemons on one database that act at once, each with its own vault in memory, runner and connections.

No notice reaches the other daemon: what holds here holds by what the transactions compare.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._several import Company
from aileron.model.daemons import ProcessFacts
from aileron.model.queries import RunQuery
from aileron.model.runs import Decision, Run, RunState
from aileron.runner import Runner
from aileron.store import Store, Tuning, _daemons, read_address
from aileron.testing import MemoryConnectors, ScriptedConnector, unopened_store
from aileron.vault import Approvers, Passkeys, Vault
from aileron.vault.keys import DataKey, create
from tests.functional.postgresql import Server, start_server
from tests.matrix.crash.furnished import PASSPHRASE
from tests.promises.case import OPERATOR
from tests.runner.kit import OPERATOR_URL, manifest, step

from .orders import Act, Home, Race

_LEASE_SECONDS = 3600.0
_HALF = 0.0005
_ALL = RunQuery()


@frozen
class Side:
    """One of the daemons."""

    vault: Vault
    store: Store
    runner: Runner
    company: Company


@define
class _Template:
    """A new vault, which takes long to make, and the key that opens it."""

    document: bytes
    key: bytes = field(repr=False)

    @classmethod
    @cache
    def make(cls) -> _Template:
        from tests.matrix.crash.trial import spelled

        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "secrets.json"
            key = create(path, PASSPHRASE)
            return cls(path.read_bytes(), bytes.fromhex(spelled(key)))


class TwoHomes(Home):
    """Two homes whose daemons share a database. What a race does by default the first daemon does."""

    shared = True
    sides: tuple[Side, ...] = ()

    def setUp(self) -> None:
        """A gated and an ungated action, trusted by both daemons."""
        SynchronousTestCase.setUp(self)
        self.patch(_daemons, "MOST_SKEW_SECONDS", _LEASE_SECONDS)
        self.server: Server = start_server()
        self.server.prepare_template(self)
        self.name = self.server.lend()
        self.addCleanup(self.server.take_back, self.name)
        self.clock = Clock()
        self.clock.advance(time.time())
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.connector = ScriptedConnector(clock=self.clock)
        self.connectors = MemoryConnectors.of([self.connector])
        self.begin_bare()
        first = self._open("one")
        self.write("gated", manifest("gated", step("post")))
        self.write("open", manifest("open", step("post"), gated=False))
        self.believe_connectors()
        self.sides = (first, self._open("other"))
        self.use(0)
        self.catch_up()

    def _open(self, name: str) -> Side:
        path, template = Path(self.mktemp()), _Template.make()
        path.write_bytes(template.document)
        path.chmod(0o600)
        process = ProcessFacts(name, "here", 1, "1")
        tuning = Tuning(busy_seconds=2.0, durable=False, process=process, several=True, lease_seconds=_LEASE_SECONDS)
        address = read_address(self.server.url(self.name))
        store = unopened_store(address, self.clock, lambda *_: self.pool, tuning)
        self.sync(store.open())
        self.addCleanup(lambda: self.sync(store.close()))
        shared = store.shared
        assert shared is not None
        vault = Vault(path, self.clock, lambda: True, DataKey(template.key))
        vault.share(shared.vaults, shared.renewal_turns)
        company = Company(self.clock, store, shared, vault)
        self.sync(shared.daemons.join())
        self._take(vault, store)
        runner = self.build()
        self.sync(runner.start())
        company._runner = runner
        shared.daemons.known, shared.daemons.catch_up = company._decided, company._catch_up
        return Side(vault, store, runner, company)

    def _take(self, vault: Any, store: Store) -> None:
        self.vault = self.trust = self.control = self.bindings = self.operator_limits = vault
        self.grants, self.store = vault.grants, store
        self.refresh_vault = vault.refresh  # type: ignore[method-assign]
        self.passkeys = Passkeys(vault, lambda: (OPERATOR_URL,), self.clock)
        self.approvers = Approvers(self.passkeys, "life", lambda _: None, self.clock, needs_signatures=False)

    def use(self, number: int) -> None:
        """Let a daemon be the one that does things by default."""
        side = self.sides[number]
        self._take(side.vault, side.store)
        self.runner = side.runner

    def catch_up(self) -> None:
        """Let both learn of everything."""
        for side in self.sides:
            self.sync(side.company._catch_up())
            self.sync(side.runner.load_recorded(None, None))

    def end_lease(self, number: int) -> None:
        """The database's clock passes the end of a lease."""
        holder = self.daemons(number).id
        with self.server.connect(self.name) as connection:
            connection.execute("UPDATE daemons SET until = 1 WHERE id = %s", [holder])

    def daemons(self, number: int) -> Any:
        """The leases, as a daemon has them."""
        shared = self.sides[number].store.shared
        assert shared is not None
        return shared.daemons


_FIRST = frozenset({"approve, expiry", "withdraw, end of undo window", "settle, late answer", "look-up, late answer"})
"""The races whose second act is the clock's or the service's, so that the other daemon has the first."""

_NOT = frozenset({"approve, lock", "start, withdraw"})
"""The races about what one daemon does alone."""


def _elsewhere(home: TwoHomes, act: Act) -> Act:
    """Let the other daemon act."""

    def begin() -> Any:
        home.use(1)
        try:
            return act()
        finally:
            home.use(0)

    return begin


def at_both(race: Race) -> Race:
    """Return a race whose two acts are at different daemons."""

    def begin(home: Home) -> tuple[Act, Act]:
        assert isinstance(home, TwoHomes)
        first, second = race.begin(home)
        home.catch_up()
        if race.name in _FIRST:
            return _elsewhere(home, first), second
        return first, _elsewhere(home, second)

    def check(home: Home, told: list[Any]) -> str | None:
        assert isinstance(home, TwoHomes)
        home.catch_up()
        return race.check(home, told)

    return Race(race.name, race.holds, begin, check, TwoHomes)


class _TakenOver:
    """Around a run of the first daemon, whose lease ends so that the other one takes it."""

    run: Run

    def take(self, home: TwoHomes) -> Act:
        """End the lease of the first daemon, and have the other one take its runs."""

        async def take() -> None:
            home.end_lease(0)
            await home.sides[1].runner.take_over(await home.daemons(1).take_left())

        return take

    def decide(self, approved: bool, home: Home) -> tuple[Act, Act]:
        """A decision at the first one."""
        assert isinstance(home, TwoHomes)
        self.run = home.submit()
        shown = home.yes(self.run)
        decision = Decision(approved, shown.digest, OPERATOR.id)
        return lambda: home.sides[0].runner.decisions.decide(self.run.id, decision), self.take(home)

    def approve(self, home: Home) -> tuple[Act, Act]:
        return self.decide(True, home)

    def deny(self, home: Home) -> tuple[Act, Act]:
        return self.decide(False, home)

    def call(self, home: Home) -> tuple[Act, Act]:
        """A call that nobody is asked about, under a key."""
        assert isinstance(home, TwoHomes)
        call = home.call("open", key="k")
        return lambda: home.sides[0].runner.submission.submit(call), self.take(home)

    def withdraw(self, home: Home) -> tuple[Act, Act]:
        """It is approved and waits for the end of its undo window at the first one, and is withdrawn there."""
        assert isinstance(home, TwoHomes)
        self.wait_undoable(home)
        return lambda: home.sides[0].runner.submission.withdraw(self.run.id, OPERATOR, None), self.take(home)

    def pause(self, home: Home) -> tuple[Act, Act]:
        """The same, and everything is paused at the first one."""
        assert isinstance(home, TwoHomes)
        self.wait_undoable(home)
        return lambda: home.sides[0].runner.limits.pause(None, None, OPERATOR), self.take(home)

    def wait_undoable(self, home: TwoHomes) -> None:
        """A run whose undo window has ended by the time of the race, as the other one sees it."""
        home.write("gated", manifest("gated", step("post"), expires=f"undo_seconds = {_HALF:g}"))
        home.catch_up()
        self.run = home.submit()
        home.approve(self.run)

    def answer(self, home: Home) -> tuple[Act, Act]:
        """It is executing at the first one, and the answer comes."""
        assert isinstance(home, TwoHomes)
        answer = home.unanswered()
        self.run = home.submit("open")

        async def answered() -> None:
            answer.callback(home.connector.usual)

        return answered, self.take(home)

    def once(self, home: Home, told: list[Any]) -> str | None:
        """It is done once, whoever does it, or it is unknown who did; nothing stays behind."""
        state, wanted = self._end(home), told[0] is not None
        if home.sent > 1 or (wanted and state not in ("completed", "unknown")) or (state == "completed") > home.sent:
            return f"{told}: {state}, sent {home.sent} times: {home.events(self.run)}"
        return None if wanted or (state, home.sent) == ("pending_approval", 0) else f"{told}: {state}, {home.sent}"

    def _end(self, home: Home) -> RunState:
        assert isinstance(home, TwoHomes)
        home.catch_up()
        home.sync(home.sides[1].runner.take_over(home.sync(home.daemons(1).take_left())))
        home.use(1)
        return home.state(self.run)

    def done_once(self, home: Home, told: list[Any]) -> str | None:
        """The call is one run, at whichever daemon, done at most once."""
        runs = home.sync(home.runner.submission.runs(_ALL)).items
        if not runs:
            return None if (told[0], home.sent) == (None, 0) else f"{told}: no run, sent {home.sent} times"
        (self.run,) = runs
        return self.once(home, [self.run])

    def denied(self, home: Home, told: list[Any]) -> str | None:
        """It is never done, and a denial that was confirmed stays."""
        state = self._end(home)
        right = "denied" if told[0] is not None else "pending_approval"
        return None if (state, home.sent) == (right, 0) else f"{told}: {state}, sent {home.sent} times"

    def withdrawn(self, home: Home, told: list[Any]) -> str | None:
        """If it was withdrawn it is not done."""
        state = self._end(home)
        right = (("completed", 1), ("unknown", 1)) if told[0] is None else (("cancelled", 0),)
        return None if (state, home.sent) in right else f"{told}: {state}, sent {home.sent}: {home.events(self.run)}"

    def paused(self, home: Home, told: list[Any]) -> str | None:
        """What began had begun before the pause was on record."""
        self._end(home)
        types = [record.event.type for record in home.records()]
        begun = types.index("execution.started") if "execution.started" in types else None
        if begun is not None and "pause.begun" in types and types.index("pause.begun") < begun:
            return f"it began after the pause, sent {home.sent} times: {types}"
        return None if home.sent == (begun is not None) else f"sent {home.sent} times: {types}"

    def settled(self, home: Home, told: list[Any]) -> str | None:
        """An answer counts, whether it comes before or after it was taken over."""
        state = self._end(home)
        return None if (state, home.sent) == ("completed", 1) else f"{state}, {home.sent}: {home.events(self.run)}"


def _taken_over() -> Iterator[Race]:
    taken = _TakenOver()
    once, back = "done once, or unknown", "what was taken back is never done"
    yield Race("approve, taken over", once, taken.approve, taken.once, TwoHomes)
    yield Race("deny, taken over", "never done", taken.deny, taken.denied, TwoHomes)
    yield Race("call, taken over", once, taken.call, taken.done_once, TwoHomes)
    yield Race("withdraw, taken over", back, taken.withdraw, taken.withdrawn, TwoHomes)
    yield Race("pause, taken over", "begins before, or not at all", taken.pause, taken.paused, TwoHomes)
    yield Race("answer, taken over", "the answer counts", taken.answer, taken.settled, TwoHomes)


def races_of_two(races: tuple[Race, ...]) -> tuple[Race, ...]:
    """Return the races of two daemons: those of one, with the two acts at different ones, and takeovers."""
    return (*(at_both(race) for race in races if race.name not in _NOT), *_taken_over())
