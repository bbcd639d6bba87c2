"""A runner of its own for proofs: real store, real vault and the one executor, in a temporary home, on a clock of its own."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool
from zope.interface import implementer

from aileron.audit import GENESIS, payload_digest, seal
from aileron.home import Home, prepare
from aileron.interfaces import ICatalogue, IConnector, IConnectors
from aileron.manifests import parse
from aileron.runner import Collaborators, Runner, build
from aileron.store import Seals, Store, Tuning, make_store
from aileron.values import (
    JSON,
    Action,
    Actor,
    AuditQuery,
    Call,
    Candidate,
    Catalogue,
    ConnectorDescription,
    LoadError,
    LoopLimits,
    NewBinding,
    Run,
    RunState,
    Trusted,
    TrustKind,
    to_json,
    utc,
)
from aileron.vault import Passkeys, Vault
from aileron.vault.keys import create, generate_words

from ._double import ServiceDouble
from ._network import ProofNetwork

PROVER = Actor("human", "prove")

_STEP = "only"
_MOST_JUMPS = 200
_STILL_TURNS = 3
_MOST_REAL_SECONDS = 5.0
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


class InlinePool(ThreadPool):
    """A pool without threads: what it is given is done before the call returns.

    :ivar given: how often it was given something.
    """

    def __init__(self, least: int = 0, most: int = 0) -> None:
        super().__init__(0, 0)
        self.given = 0

    def start(self) -> None:
        """There is nothing to start."""
        self.started = True

    def stop(self) -> None:
        """There is nothing to stop."""

    def callInThreadWithCallback(
        self, onResult: Callable[[bool, Any], object] | None, func: Callable[..., Any], *args: Any, **kw: Any
    ) -> None:
        """Do it, and hand over what came of it."""
        self.given += 1
        try:
            succeeded, result = True, func(*args, **kw)
        except BaseException:  # noqa: BLE001 - as a thread pool does: whatever it is goes to the callback
            succeeded, result = False, Failure()
        if onResult is not None:
            onResult(succeeded, result)


@implementer(IConnectors, ICatalogue)
@define(eq=False)
class Offered:
    """The one connector and the one action that a proof offers at a time."""

    connectors: Mapping[str, IConnector] = field(factory=dict)
    catalogue: Catalogue = field(factory=lambda: Catalogue(1, {}))

    def put(self, connector: IConnector, action: Action) -> None:
        """Offer these from now on."""
        self.connectors = {connector.describe().fqn: connector}
        self.catalogue = Catalogue(self.catalogue.generation + 1, {action.name: action})

    def get(self, fqn: str) -> IConnector | None:
        return self.connectors.get(fqn)

    def descriptions(self) -> tuple[ConnectorDescription, ...]:
        return tuple(each.describe() for each in self.connectors.values())

    def candidates(self) -> tuple[Candidate, ...]:
        return ()

    def problems(self) -> tuple[LoadError, ...]:
        return ()

    def generation(self) -> int:
        return self.catalogue.generation

    def current(self) -> Catalogue:
        return self.catalogue

    def refresh(self) -> Any:
        return self.catalogue


@frozen
class Seen:
    """What can be seen of one run afterwards.

    :ivar states: in which it came to rest, one after the other.
    :ivar told: all that was told of it: its row, and its events.
    :ivar logged: what was logged meanwhile.
    """

    states: Sequence[RunState]
    told: str
    logged: str
    message: str = ""


@define(eq=False)
class Bench:
    """Runs one operation at a time, and goes on to the next moment whenever nothing moves any more."""

    reactor: Any
    home: Home
    clock: Clock
    pool: InlinePool
    store: Store
    vault: Vault
    offered: Offered
    runner: Runner
    logged: list[str] = field(factory=list)

    async def bind(self, new: NewBinding) -> None:
        """Keep a credential, in the place of all others."""
        for each in self.vault.list():
            await self.vault.revoke(each.name)
        await self.vault.set_up(new)

    def offer(self, connector: IConnector, operation: str, inputs: Mapping[str, JSON]) -> None:
        """Offer one operation, as an action that its operator trusts and lets run unasked."""
        about = connector.describe()
        action = parse(_action_text(about, operation, inputs), "proof.md")
        self.offered.put(connector, action)
        now = utc(self.clock.seconds())
        words = ((TrustKind.CONNECTOR, about.fqn, about.content_hash), (TrustKind.ACTION, action.name, action.digest))
        self.vault.put([Trusted(*word, now, PROVER.id) for word in words])
        self.runner.look()

    async def run(self, inputs: Mapping[str, JSON], double: ServiceDouble, network: ProofNetwork) -> Seen:
        """Run it, until nothing more comes of it by itself."""
        self.logged.clear()
        values = {f"a{number}": value for number, value in enumerate(inputs.values())}
        run = await self.runner.submission.submit(Call("proof", values, PROVER))
        double.key = f"{run.effect_key}.{_STEP}"
        states: list[RunState] = []
        for _ in range(_MOST_JUMPS):
            await self._settle(double, network)
            run = await self.runner.submission.run(run.id)
            if run.state in (RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN) and run.state not in states[-1:]:
                states.append(run.state)
            double.looking = run.state is RunState.UNKNOWN
            if (run.state.settled and not double.looking) or not self._jump():
                break
        for each in list(double.open):
            each.drop()
        await self._settle(double, network)
        return await self._seen(run, states)

    async def _seen(self, run: Run, states: Sequence[RunState]) -> Seen:
        records = (await self.store.audit.list(AuditQuery(run_id=run.id, limit=100))).items
        told = repr([to_json(run), *(to_json(each.event) for each in records)])
        return Seen(states, told, "\n".join(self.logged), "" if run.fault is None else run.fault.message)

    async def _settle(self, double: ServiceDouble, network: ProofNetwork) -> None:
        """Wait until nothing moves: neither a connection nor the store."""
        still, since = 0, time.monotonic()
        while still < _STILL_TURNS and time.monotonic() - since < _MOST_REAL_SECONDS:
            before = self.pool.given
            await deferLater(self.reactor, 0)
            moves = network.connections > double.held or self.pool.given != before
            still = 0 if moves else still + 1

    def _jump(self) -> bool:
        """Go on to the next moment that something waits for; C{False}: nothing does."""
        due = [each.getTime() for each in self.clock.getDelayedCalls()]
        if due:
            self.clock.advance(max(0.0, min(due) - self.clock.seconds()) + 0.001)
        return bool(due)


@contextmanager
def _logging(to: list[str]) -> Iterator[None]:
    @implementer(ILogObserver)
    def observe(event: LogEvent) -> None:
        to.append(repr(event))

    globalLogPublisher.addObserver(observe)
    try:
        yield
    finally:
        globalLogPublisher.removeObserver(observe)


async def with_bench(reactor: Any, work: Callable[[Bench], Any]) -> Any:
    """Do C{work} on a bench in a home of its own, of which nothing is left afterwards."""
    with TemporaryDirectory(prefix="aileron-prove-") as root:
        bench = await _build(reactor, Home(Path(root)))
        try:
            with _logging(bench.logged):
                return await work(bench)
        finally:
            await bench.runner.stop(0.0)
            await bench.store.close()


async def _build(reactor: Any, home: Home) -> Bench:
    prepare(home)
    clock, pool, offered = Clock(), InlinePool(), Offered()
    clock.advance(time.time())
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(16), None)
    store = make_store(home.database, reactor, clock, seals, Tuning(durable=False), lambda *_: pool)
    await store.open()
    vault = Vault(home.secrets, clock, lambda: False, create(home.secrets, generate_words()))
    runner = build(
        Collaborators(
            runs=store.runs,
            audit=store.audit,
            contents=store.contents,
            watermarks=store.watermarks,
            catalogue=offered,
            connectors=offered,
            vault=vault,
            bindings=vault,
            trust=vault,
            grants=vault.grants,
            control=vault,
            brakes=vault,
            passkeys=Passkeys(vault, lambda: (), clock),
            clock=clock,
            ids=lambda: secrets.token_hex(13),
            chance=lambda: 0.0,
            loops=LoopLimits(same_calls=10**6, same_calls_of_all=10**6, writes_an_hour=None),
        )
    )
    await runner.start()
    return Bench(reactor, home, clock, pool, store, vault, offered, runner)


def _action_text(about: ConnectorDescription, operation: str, inputs: Mapping[str, JSON]) -> bytes:
    """Write the action file of one operation, with an argument for each input."""
    lines = ['name = "proof"', 'version = "1.0.0"', "timeout_seconds = 3600"]
    fqn, version, name = (json.dumps(each) for each in (about.fqn, about.version, operation))
    lines += ["[[requires.connectors]]", f"name = {fqn}", f"version = {version}", f"capabilities = [{name}]"]
    for number, value in enumerate(inputs.values()):
        lines += ["[[inputs]]", f'name = "a{number}"', 'description = "An input."', f"{_declared(value)}"]
    given = ", ".join(f'{json.dumps(each)} = "${{args.a{number}}}"' for number, each in enumerate(inputs))
    lines += ["[[execute]]", f'id = "{_STEP}"', f"connector = {fqn}", f"op = {name}", f"inputs = {{ {given} }}"]
    return "\n".join(("+++", *lines, "+++", "Runs one operation for a proof.", "")).encode()


def _declared(value: JSON) -> str:
    kind = _TYPES.get(type(value), "string")
    return f'schema = {{ type = "{kind}" }}' if kind in ("array", "object") else f'type = "{kind}"'
