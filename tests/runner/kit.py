"""A runner over a real store, real action files and scripted connectors, on one clock, without a thread or a socket."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import DirectoryCatalogue
from aileron.base.json import JSON, digest_of_bytes, utc
from aileron.base.unthreaded import UnthreadedPool
from aileron.model.audit import Actor, Event
from aileron.model.authority import LoopLimits, PendingLimits
from aileron.model.connectors import Outcome
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.interfaces.store import IRuns
from aileron.model.people import OperatorRule, Owner
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Call, Decision, Run, RunState
from aileron.model.sessions import Session
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import VaultState
from aileron.runner import Collaborators, OtherDaemons, Runner, build
from aileron.store import Store
from aileron.store._call_counts import SQLCallCounts
from aileron.store._rate_limits import SQLRateLimits
from aileron.testing import (
    MemoryBindings,
    MemoryConnectors,
    MemoryControl,
    MemoryGrants,
    MemoryOperatorLimits,
    MemoryPasskeyBook,
    MemoryTrust,
    MemoryVault,
    ScriptedConnector,
    memory_store,
    seals,
)
from aileron.vault import Approvers, Passkeys

T = TypeVar("T")
OPERATOR_URL = "http://localhost:7001"
START = 1_800_000_000.0
AGENT = Actor("agent", "session-1")
OPERATOR = Actor("human", "operator-1")

MANIFEST = """+++
name = "{name}"
version = "1.0.0"
{top}
[[requires.connectors]]
name = "local://test/scripted"
version = "1.0.0"
capabilities = ["look", "post", "put"{more}]

[[inputs]]
name = "text"
type = "string"
description = "What to say"

[[inputs]]
name = "times"
type = "integer"
required = false
description = "How often"

{steps}
{approval}
+++
{body}
"""
STEP = """[[execute]]
id = "{id}"
connector = "local://test/scripted"
op = "{op}"
inputs = {{ {inputs} }}
"""


def step(operation: str, id_: str = "only", inputs: str = 'text = "${args.text}", times = "${args.times}"') -> str:
    """The text of one step."""
    return STEP.format(id=id_, op=operation, inputs=inputs)


def manifest(
    name: str, *steps: str, gated: bool = True, expires: str = "", top: str = "", body: str = "Says something."
) -> str:
    """The text of an action file."""
    more = ', "send"' if any('op = "send"' in each for each in steps) else ""
    approval = f"[approval]\nrequired = true\n{expires}" if gated else ""
    return MANIFEST.format(name=name, steps="\n".join(steps), approval=approval, top=top, body=body, more=more)


class RunnerCase(SynchronousTestCase):
    """One home: its files, its database, its clock.  L{restart} is a new life of the daemon on it."""

    shared, may_send = False, True
    """Whether other daemons use the same database, and whether none of them can have taken a run of this one."""

    removed: frozenset[str] = frozenset()
    """The accounts that were removed, by their IDs."""

    other: sqlite3.Connection | None = None
    """Holds the database's write lock, while it refuses."""

    def setUp(self) -> None:
        """A gated and an ungated action on a connector that does as it is told."""
        self.clock = Clock()
        self.clock.advance(START)
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.database = Path(self.mktemp())
        self.connector = ScriptedConnector(clock=self.clock)
        self.connectors = MemoryConnectors.of([self.connector])
        self.vault = MemoryVault()
        self.trust, self.control = MemoryTrust(self.vault), MemoryControl(self.vault)
        self.grants = MemoryGrants(self.vault, self.control, self.clock)
        self.bindings = MemoryBindings(self.vault)
        self.operator_limits = MemoryOperatorLimits(self.vault)
        self.passkeys = Passkeys(MemoryPasskeyBook(self.vault), lambda: (OPERATOR_URL,), self.clock)
        self.approvers = self.make_approvers()
        self.believe_connectors()
        self.write("gated", manifest("gated", step("post")))
        self.write("open", manifest("open", step("post"), gated=False))
        self.begin_bare()
        self.store = self.open_store()
        self.runner = self.build()
        self.sync(self.runner.start())

    def begin_bare(self) -> None:
        """What every home begins with, whatever its vault and its store."""
        self.points: list[str] = []
        self.accounts: dict[str, str] = {}
        self.rules: tuple[OperatorRule, ...] = ()
        self.settings: tuple[IConfigFile, ...] = ()
        self.limits, self.loops = PendingLimits(), LoopLimits()
        self._numbers = count(1)
        self.pool = UnthreadedPool()

    def make_approvers(self) -> Approvers:
        """Approvers that need no signature: most tests here are of what comes after it."""
        return Approvers(self.passkeys, "life", lambda _: None, self.clock, needs_signatures=False)

    def open_store(self) -> Store:
        """The database, opened."""
        return memory_store(self, self.clock, self.database, lambda *_: self.pool)

    def build(self, probe: Callable[[str], None] | None = None, runs: IRuns | None = None) -> Runner:
        """A runner, not yet started; by default over the runs of the store."""
        self.catalogue = DirectoryCatalogue(str(self.directory), int(self.clock.seconds()))
        self.catalogue.refresh()
        return build(
            Collaborators(
                runs=runs or self.store.runs,
                audit=self.store.audit,
                contents=self.store.contents,
                watermarks=self.store.watermarks,
                catalogue=self.catalogue,
                connectors=self.connectors,
                vault=self.vault,
                bindings=self.bindings,
                trust=self.trust,
                control=self.control,
                operator_limits=self.operator_limits,
                grants=self.grants,
                approvers=self.approvers,
                settings=self.settings,
                clock=self.clock,
                ids=self.fresh_id,
                chance=lambda: 0.0,
                limits=self.limits,
                loops=self.loops,
                monotonic=self.monotonic,
                probe=probe or self.points.append,
                may_send=lambda: self.may_send,
                is_removed=lambda owner: owner.account in self.removed,
                others=self.other_daemons() if self.shared else None,
                accounts=lambda: self.accounts,
                approver_rules=self.load_rules,
            )
        )

    def other_daemons(self) -> OtherDaemons:
        store = self.store
        return OtherDaemons(
            refresh_vault=self.refresh_vault,
            rate_limits=SQLRateLimits(store._writer, store._readers),
            call_counts=SQLCallCounts(store._writer, seals()),
        )

    async def load_rules(self) -> Sequence[OperatorRule]:
        """The operator's rules about who approves."""
        return self.rules

    def refresh_vault(self) -> None:
        """Here nobody else changes the vault."""

    def monotonic(self) -> float:
        """A clock that nobody sets."""
        return self.clock.seconds()

    def restart(self) -> Runner:
        """Another life of the daemon, on what the last one left in the files."""
        self.runner = self.build()
        self.sync(self.runner.start())
        return self.runner

    def next_life(self) -> None:
        """Stop in order, and start again."""
        self.sync(self.runner.stop(1.0))
        self.restart()

    def stop_late(self, seconds: float) -> None:
        """Stop a daemon that waits all of its patience for what is under way."""
        stopped = self.later(self.runner.stop(seconds))
        self.clock.advance(seconds)
        self.successResultOf(stopped)

    def unlock_anew(self, state: VaultState = VaultState.UNLOCKED) -> None:
        """Have the next life find the same vault, in C{state}."""
        self.vault = MemoryVault(state)
        self.trust._vault = self.control._vault = self.bindings._vault = self.operator_limits._vault = self.vault
        self.grants._vault = self.vault

    def believe(self, kind: TrustKind, name: str, digest: str, enabled: bool = True) -> None:
        """Let the operator have trusted a file."""
        self.trust.put([Trusted(kind, name, digest, utc(self.clock.seconds()), OPERATOR.id, enabled)])

    def believe_connectors(self) -> None:
        """Trust every connector as it is."""
        for each in self.connectors.descriptions():
            self.believe(TrustKind.CONNECTOR, each.name, each.content_hash)

    def fresh_id(self) -> str:
        """Ids that count."""
        return f"{next(self._numbers):026d}"

    def write(self, name: str, text: str, *, trusted: bool = True) -> None:
        """Put an action file there, or replace it; the operator trusts it at once, if the vault is unlocked."""
        path = self.directory / f"{name}.md"
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        if trusted and self.vault.state() is VaultState.UNLOCKED:
            self.believe(TrustKind.ACTION, name, digest_of_bytes(text.encode()))

    def offer(self, name: str, *steps: str, **rest: Any) -> None:
        """Write an action file, trusted, and have the daemon look: L{manifest} says of what."""
        self.write(name, manifest(name, *steps, **rest))
        self.runner.check_changes()

    def sync(self, work: Coroutine[Deferred[Any], Any, T]) -> T:
        """What C{work} answers at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def fails(self, work: Coroutine[Deferred[Any], Any, object], kind: type[Exception]) -> Any:
        """The error that C{work} raises at once."""
        return self.failureResultOf(Deferred.fromCoroutine(work), kind).value

    def later(self, work: Coroutine[Deferred[Any], Any, T]) -> Deferred[T]:
        """A Deferred for C{work}."""
        return Deferred.fromCoroutine(work)

    def call(
        self,
        action: str = "gated",
        arguments: Mapping[str, JSON] | None = None,
        key: str | None = None,
        session: str | None = "session-1",
    ) -> Call:
        """An agent's call."""
        return Call(
            action,
            {"text": "hello"} if arguments is None else arguments,
            AGENT if session else OPERATOR,
            None if session is None else self.session(session),
            key,
        )

    def session(self, id_: str, owner: Owner | None = None) -> Session:
        """A session, kept in the store at its first use."""
        found = self.sync(self.store.sessions.get(id_))
        if found is not None:
            return found
        now = utc(self.clock.seconds())
        session = Session(id_, "tester", "/nowhere", now, now, owner=owner)
        event = Event(self.fresh_id(), "session.started", now, AGENT, session_id=id_)
        token, gateway = (sha256(part + id_.encode()).digest() for part in (b"token", b"gateway"))
        self.sync(self.store.sessions.open(session, token, gateway, [event]))
        return session

    def submit(self, *args: Any, **kwargs: Any) -> Run:
        """Submit a call and take the answer."""
        return self.sync(self.runner.submission.submit(self.call(*args, **kwargs)))

    def approve(self, run: Run, approved: bool = True, reason: str | None = None) -> Approval:
        """Decide as the page would: for the digest that is shown now."""
        shown = self.sync(self.runner.decisions.approval(run.id))
        return self.decide(run, shown.digest, approved, reason)

    def decide(self, run: Run, digest: str, approved: bool = True, reason: str | None = None) -> Approval:
        """Decide for a digest."""
        return self.sync(self.runner.decisions.decide(run.id, Decision(approved, digest, OPERATOR.id, reason)))

    def shown(self, run: Run) -> Approval:
        """The approval as the operator sees it now."""
        return self.sync(self.runner.decisions.approval(run.id))

    def yes(self, run: Run) -> Decision:
        """An approval of what is shown now."""
        return Decision(True, self.shown(run).digest, OPERATOR.id)

    def state(self, run: Run) -> RunState:
        """Where a run stands."""
        return self.now(run).state

    def held(self, *args: object) -> Run:
        """A run that was approved, its decision sound, in a life that starts nothing more."""
        run = self.submit(*args)
        self.sync(self.runner.stop(1.0))
        self.approve(run)
        self.assertIs(self.state(run), RunState.APPROVED)
        return run

    def unanswered(self) -> Deferred[Outcome]:
        """The answer to the next request, which does not come before it is fired."""
        answer: Deferred[Outcome] = Deferred()
        self.connector.script.append(answer)
        return answer

    def fault(self, run: Run) -> Fault:
        """The fault of a run, which has one."""
        fault = self.now(run).fault
        assert fault is not None
        return fault

    def sql(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        """Run one statement in the database as another program would."""
        with closing(sqlite3.connect(self.database)) as database, database:
            return database.execute(statement, values).fetchall()

    def refuse(self) -> None:
        """Hold the database's write lock from outside: every commit is refused."""
        if self.other is None:
            self.other = sqlite3.connect(self.database, isolation_level=None)
            self.other.execute("BEGIN IMMEDIATE")

    def relent(self) -> None:
        """Give it back."""
        if self.other is not None:
            self.other.execute("ROLLBACK")
            self.other.close()
            self.other = None

    def copied(self) -> Path:
        """A copy of the database as it is."""
        copy = Path(self.mktemp())
        with closing(sqlite3.connect(self.database)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
        return copy

    def put_back(self, copy: Path) -> None:
        """End this life, and let the next one find the database as it was copied."""
        self.sync(self.runner.stop(1.0))
        self.sync(self.store.close())
        for suffix in ("-wal", "-shm"):
            self.database.with_name(self.database.name + suffix).unlink(missing_ok=True)
        shutil.copy(copy, self.database)
        self.store = self.open_store()

    def set_state(self, run: Run, state: str = "approved") -> None:
        """Let a run's row say another state."""
        self.sql("UPDATE runs SET state = ? WHERE id = ?", state, run.id)

    def recorded(self, type_: str, run: Run | None = None) -> list[Event]:
        """The events of a type, of one run or of all, oldest first."""
        query = AuditQuery(run_id=None if run is None else run.id, type=type_)
        return [record.event for record in reversed(self.sync(self.store.audit.list(query)).items)]

    def approved_and_locked(self) -> Run:
        """A run that was approved while the runner was held, and then the vault was locked."""
        run = self.submit()
        self.sync(self.runner.limits.hold())
        self.approve(run)
        self.vault.lock()
        return run

    def now(self, run: Run) -> Run:
        """The run as it stands."""
        return self.sync(self.runner.submission.run(run.id))

    def events(self, run: Run) -> list[str]:
        """Types of the events of a run, oldest first."""
        page = self.sync(self.store.audit.list(AuditQuery(run_id=run.id)))
        return [record.event.type for record in reversed(page.items)]
