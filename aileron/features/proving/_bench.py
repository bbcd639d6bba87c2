"""The environment of a proof: a runner in a temporary home, a double of the service, and a clock for tests.

The clock advances when all is idle. A proof is the test of a connector by C{aileron connector prove}.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.interfaces import IProtocol
from twisted.internet.task import Clock, deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from aileron.actions import DirectoryCatalogue
from aileron.audit import GENESIS, payload_digest, seal
from aileron.base.bridge import LoopOnDemand
from aileron.base.converter import to_json
from aileron.base.json import JSON, digest_of_bytes, utc
from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.connectors import LocalServers
from aileron.credentials import TokenAnswer, TokenRequest
from aileron.home.paths import Home, prepare
from aileron.model.audit import Actor
from aileron.model.authority import LoopLimits
from aileron.model.interfaces.connectors import IConnector
from aileron.model.queries import AuditQuery
from aileron.model.runs import Call, Decision, RunState
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import CredentialStatus, NewBinding
from aileron.runner import Collaborators, Runner, build
from aileron.store import Seals, Store, Tuning, make_store
from aileron.vault import Approvers, Passkeys, Renewals, Vault
from aileron.vault.keys import create, generate_words

from ._connectors import ProofConnectors
from ._double import Double
from ._network import ProofNetwork, ProofReactor

_T = TypeVar("_T")
_PROVER = Actor("human", "prove")
_MOST_JUMPS, _MOST_REAL_SECONDS = 200, 30.0
_STILL_TURNS, _STILL_TURNS_BESIDE = 4, 10  # the latter if a thread or a process works outside the reactor
_PAUSE_SECONDS = 0.002
_GONE_SECONDS = 3.0
_RESTLESS = (
    f"something was still busy after {_MOST_REAL_SECONDS:g} seconds, so the proof went on without waiting for it"
)
_ENDS = (RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN)


@frozen
class Seen:
    """Everything that was observed of one run in a proof, after the run has ended.

    :ivar states: the final states of the run, in order: C{UNKNOWN} may be followed by another one.
    :ivar recorded: the run's row, its audit events and the log, as one text.
    :ivar message: why the run did not complete; empty if it did.
    :ivar left: a clause about what still runs, from L{Double.left}, or that the bench never became idle; empty if
        nothing runs any more.
    """

    states: Sequence[RunState]
    recorded: str = field(default="", repr=False)
    message: str = ""
    left: str = ""


@frozen
class _RunnerParts:
    """The runner of a proof, with the collaborators that the bench uses too."""

    connectors: ProofConnectors
    store: Store
    vault: Vault
    runner: Runner


@define(eq=False)
class Bench:
    """Runs actions one after the other, and advances the clock whenever everything is idle.

    :ivar double: the double of the service whose connector is tested.
    :ivar processes: a reactor that starts real programs but uses the clock of the proof.
    :ivar loop: the asyncio loop in which the client of MCP servers runs.
    :ivar servers: the local MCP servers.
    """

    home: Home
    clock: Clock
    double: Double
    network: ProofNetwork
    processes: ProofReactor
    loop: LoopOnDemand
    servers: LocalServers
    _parts: _RunnerParts
    _logged: list[str] = field(factory=list, init=False)

    @property
    def away(self) -> Path:
        """The directory for the double's files, outside of the home: the secret may be in none of the home's files."""
        return self.home.root.parent

    async def bind(self, new: NewBinding) -> None:
        """Store a credential and revoke all others.

        :raises InvalidRequest, Conflict: if the credential cannot be stored.
        :raises VaultLocked: if the vault is not unlocked.
        """
        for each in self._parts.vault.list():
            await self._parts.vault.revoke(each.name)
        await self._parts.vault.set_up(new)

    @property
    def needs_binding(self) -> bool:
        """Return whether the credential has become unusable, for example because the service refused its token."""
        states = (self._parts.vault.credential_state(each) for each in self._parts.vault.list())
        return any(each.status is CredentialStatus.NEEDS_YOU for each in states)

    def offer(self, connector: IConnector, name: str, text: bytes) -> None:
        """Install the connector and one action, trust both, and remove the previous action.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if trust cannot be stored.
        """
        about, path = connector.describe(), self.home.actions / "proof.md"
        path.unlink(missing_ok=True)  # a new file is noticed even within one tick of the file system's clock
        path.write_bytes(text)
        self._parts.connectors.add(connector)
        now, action = utc(self.clock.seconds()), (TrustKind.ACTION, name, digest_of_bytes(text))
        words = (action, (TrustKind.CONNECTOR, about.name, about.content_hash))
        self._parts.vault.put([Trusted(*word, now, _PROVER.id) for word in words])
        self._parts.runner.check_changes()

    def check(self, name: str, arguments: Mapping[str, JSON]) -> None:
        """Check that an action accepts arguments, with a dry run.

        :raises AileronError: if the action refuses the arguments.
        """
        self._parts.runner.submission.dry_run(name, arguments)

    async def run(self, name: str, step: str, arguments: Mapping[str, JSON]) -> Seen:
        """Run an action until it has ended and no timer is due. Approve it at once if it needs approval.

        :param step: the id of the action's only step.
        :raises AileronError: if the action refuses the call.
        """
        run = await self._parts.runner.submission.submit(Call(name, arguments, _PROVER))
        self.double.key, states, rests = f"{run.effect_key}.{step}", list[RunState](), True
        for _ in range(_MOST_JUMPS):
            rests = await self._settle() and rests
            run = await self._parts.runner.submission.run(run.id)
            if run.state is RunState.PENDING:
                await self._approve(run.id)
                continue
            if run.state in _ENDS and run.state not in states[-1:]:
                states.append(run.state)
            self.double.looking = run.state is RunState.UNKNOWN
            due = [each.getTime() for each in self.clock.getDelayedCalls()]
            if not due or (run.state in _ENDS and not self.double.looking):
                break
            self.clock.advance(max(0.0, min(due) - self.clock.seconds()) + 0.001)
        left = await self._find_left() if rests else _RESTLESS
        self.double.drop()
        await self._settle()
        records = (await self._parts.store.audit.list(AuditQuery(run_id=run.id, limit=100))).items
        recorded = repr([to_json(run), [to_json(each.event) for each in records], self._logged])
        self._logged.clear()
        return Seen(states, recorded, "" if run.fault is None else run.fault.message, left)

    async def _find_left(self) -> str:
        """Return what L{Double.left} says still runs, after waiting up to a few seconds for killed processes to end."""
        since = time.monotonic()
        while (left := self.double.left()) and time.monotonic() - since < _GONE_SECONDS:
            await deferLater(self.network.reactor, _PAUSE_SECONDS)
        return left

    async def _approve(self, run_id: str) -> None:
        approval = await self._parts.runner.decisions.approval(run_id)
        await self._parts.runner.decisions.decide(run_id, Decision(True, approval.digest, _PROVER.id))

    async def _settle(self) -> bool:
        """Wait until everything is idle except connections that the double holds open.

        :return: True if idle, or False if the time limit passed first.
        """
        still, since = 0, time.monotonic()
        while still < (_STILL_TURNS_BESIDE if self.double.beside else _STILL_TURNS):
            await deferLater(self.network.reactor, _PAUSE_SECONDS if self.processes.running else 0)
            before = self.double.heard
            await self.double.rest()
            moves = self.network.dialing or self.double.busy() or self.double.heard != before
            still = 0 if moves else still + 1
            if time.monotonic() - since > _MOST_REAL_SECONDS:
                return False
        return True

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Record all log events while the context is entered."""

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            self._logged.append(repr(event))

        globalLogPublisher.addObserver(observe)
        try:
            yield
        finally:
            globalLogPublisher.removeObserver(observe)

    async def close(self) -> None:
        """Stop everything, even in the middle of a run, advancing the clock of the proof meanwhile."""
        closing = Deferred.fromCoroutine(self._close())
        while not closing.called:
            self.clock.advance(1.0)
            await deferLater(self.network.reactor, _PAUSE_SECONDS)
        await closing

    async def _close(self) -> None:
        self.double.drop()
        await self.servers.stop()
        self.processes.kill()
        await self._parts.runner.stop(0.0)
        await self._parts.store.close()
        await self.network.close()
        await (self.loop.stop() or succeed(None))


async def with_bench(reactor: Any, work: Callable[[Bench], Awaitable[_T]]) -> _T:
    """Call C{work} with a new bench, which runs actions for a proof in a temporary directory, and return the result.

    The bench is then closed and deleted.
    """
    with TemporaryDirectory(prefix="aileron-prove-") as root:
        bench = await _build(reactor, Home(Path(root).resolve() / "home"))
        try:
            with bench.listening():
                return await work(bench)
        finally:
            await bench.close()


async def _give_none(_asked: TokenRequest) -> TokenAnswer:
    """Answer like a token endpoint that never issues a token, so that a refused token stays unusable."""
    return TokenAnswer(404, b"{}")


def _make_store(home: Home, clock: Clock) -> Store:
    """Return a store without threads and without durable writes, as the proof is deleted afterwards."""
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(16))
    tuning = Tuning(busy_seconds=0, durable=False)
    return make_store(home.database, UnthreadedReactor(), clock, seals, tuning, UnthreadedPool)


def _accept_prover(vault: Vault, clock: Clock) -> Approvers:
    """Return a verifier that accepts decisions without a signature, because no person decides in a proof."""
    passkeys = Passkeys(vault, lambda: (), clock)
    return Approvers(passkeys, "", lambda _: None, clock, needs_signatures=False)


async def _build(reactor: Any, home: Home) -> Bench:
    prepare(home)
    clock, connectors = Clock(), ProofConnectors()
    clock.advance(time.time())
    store = _make_store(home, clock)
    await store.open()
    vault = Vault(home.secrets, clock, lambda: False, create(home.secrets, generate_words()), Renewals(_give_none))
    runner = build(
        Collaborators(
            runs=store.runs,
            audit=store.audit,
            contents=store.contents,
            watermarks=store.watermarks,
            catalogue=DirectoryCatalogue(str(home.actions), 1),
            connectors=connectors,
            vault=vault,
            bindings=vault,
            trust=vault,
            grants=vault.grants,
            control=vault,
            operator_limits=vault,
            approvers=_accept_prover(vault, clock),
            clock=clock,
            ids=lambda: secrets.token_hex(13),
            chance=lambda: 0.0,
            loops=LoopLimits(same_calls=10**6, same_calls_of_all=10**6, writes_an_hour=None),
        )
    )
    await runner.start()

    def speak(speech: str) -> IProtocol:
        return bench.double.speak(speech)  # the bench's double at the time of the connection

    network = ProofNetwork(reactor, speak)
    processes, loop = ProofReactor(reactor, clock), LoopOnDemand(reactor, "aileron-prove")
    servers = LocalServers(processes, loop.bridge, maybeDeferred)
    parts = _RunnerParts(connectors, store, vault, runner)
    bench = Bench(home, clock, Double(clock), network, processes, loop, servers, parts)
    return bench
