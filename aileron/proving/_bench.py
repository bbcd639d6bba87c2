"""The test bench of a proof: a runner in a temporary home, a service, and a clock that advances when all is idle."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from attrs import define, field, frozen
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock, deferLater
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from aileron.home import Home, prepare
from aileron.interfaces import IConnector
from aileron.manifests import DirectoryCatalogue
from aileron.runner import Collaborators, Runner, build
from aileron.store import Store
from aileron.testing import MemoryConnectors, unopened_store
from aileron.values import (
    JSON,
    Actor,
    AuditQuery,
    Call,
    ConnectorDescription,
    LoopLimits,
    NewBinding,
    RunState,
    Trusted,
    TrustKind,
    digest_of_bytes,
    to_json,
    utc,
)
from aileron.vault import Passkeys, Vault
from aileron.vault.keys import create, generate_words

from ._double import DoubleConnection, ServiceDouble
from ._network import ProofNetwork

_T = TypeVar("_T")
_PROVER = Actor("human", "prove")
_ACTION, _STEP = "proof", "only"
_MOST_JUMPS, _STILL_TURNS, _MOST_REAL_SECONDS = 200, 4, 30.0
_ENDS = (RunState.COMPLETED, RunState.FAILED, RunState.UNKNOWN)
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


@frozen
class Seen:
    """All that can be seen of a run afterwards.

    :ivar states: in which it came to rest, one after the other.
    :ivar told: its row, its events and the log.
    :ivar message: why it did not complete.
    """

    states: Sequence[RunState]
    told: str = field(default="", repr=False)
    message: str = ""


@define(eq=False)
class Bench:
    """Runs one operation after the other, and advances the clock whenever everything else is idle."""

    home: Home
    clock: Clock
    double: ServiceDouble
    network: ProofNetwork
    _connectors: MemoryConnectors
    _store: Store
    _vault: Vault
    _runner: Runner
    _logged: list[str] = field(factory=list)

    async def bind(self, new: NewBinding) -> None:
        """Store a credential in place of any other."""
        for each in self._vault.list():
            await self._vault.revoke(each.name)
        await self._vault.set_up(new)

    def offer(self, connector: IConnector, operation: str, inputs: Mapping[str, JSON]) -> None:
        """Offer one operation as a trusted action that needs no approval."""
        about, path = connector.describe(), self.home.actions / f"{_ACTION}.md"
        text = _write_action(about, operation, inputs)
        path.unlink(missing_ok=True)  # another file, even within a tick of the file system's clock
        path.write_bytes(text)
        self._connectors.add(connector)
        now, action = utc(self.clock.seconds()), (TrustKind.ACTION, _ACTION, digest_of_bytes(text))
        words = (action, (TrustKind.CONNECTOR, about.fqn, about.content_hash))
        self._vault.put([Trusted(*word, now, _PROVER.id) for word in words])
        self._runner.look()

    async def run(self, inputs: Mapping[str, JSON]) -> Seen:
        """Run it until nothing more happens by itself."""
        values = {f"a{number}": value for number, value in enumerate(inputs.values())}
        run = await self._runner.submission.submit(Call(_ACTION, values, _PROVER))
        self.double.key, states = f"{run.effect_key}.{_STEP}", list[RunState]()
        for _ in range(_MOST_JUMPS):
            await self._settle()
            run = await self._runner.submission.run(run.id)
            if run.state in _ENDS and run.state not in states[-1:]:
                states.append(run.state)
            self.double.looking = run.state is RunState.UNKNOWN
            due = [each.getTime() for each in self.clock.getDelayedCalls()]
            if not due or (run.state in _ENDS and not self.double.looking):
                break
            self.clock.advance(max(0.0, min(due) - self.clock.seconds()) + 0.001)
        for each in list(self.double.open):
            each.drop()
        await self._settle()
        records = (await self._store.audit.list(AuditQuery(run_id=run.id, limit=100))).items
        told = repr([to_json(run), [to_json(each.event) for each in records], self._logged])
        self._logged.clear()
        return Seen(states, told, "" if run.fault is None else run.fault.message)

    async def _settle(self) -> None:
        """Wait until every connection is idle, except those that the service holds open."""
        still, since = 0, time.monotonic()
        while still < _STILL_TURNS and time.monotonic() - since < _MOST_REAL_SECONDS:
            await deferLater(self.network.reactor, 0)
            moves = self.network.dialing or not all(each.held for each in self.double.open)
            still = 0 if moves else still + 1

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what is logged."""

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            self._logged.append(repr(event))

        globalLogPublisher.addObserver(observe)
        try:
            yield
        finally:
            globalLogPublisher.removeObserver(observe)

    async def close(self) -> None:
        """Stop everything."""
        await self._runner.stop(0.0)
        await self._store.close()
        await self.network.close()


async def with_bench(reactor: Any, work: Callable[[Bench], Awaitable[_T]]) -> _T:
    """Do C{work} on a bench, and delete it afterwards."""
    with TemporaryDirectory(prefix="aileron-prove-") as root:
        bench = await _build(reactor, Home(Path(root)))
        try:
            with bench.listening():
                return await work(bench)
        finally:
            await bench.close()


async def _build(reactor: Any, home: Home) -> Bench:
    prepare(home)
    clock, connectors = Clock(), MemoryConnectors()
    clock.advance(time.time())
    store = unopened_store(home.database, clock)
    await store.open()
    vault = Vault(home.secrets, clock, lambda: False, create(home.secrets, generate_words()))
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
            brakes=vault,
            passkeys=Passkeys(vault, lambda: (), clock),
            clock=clock,
            ids=lambda: secrets.token_hex(13),
            chance=lambda: 0.0,
            loops=LoopLimits(same_calls=10**6, same_calls_of_all=10**6, writes_an_hour=None),
        )
    )
    await runner.start()
    double = ServiceDouble(clock)
    network = ProofNetwork(reactor, Factory.forProtocol(lambda: DoubleConnection(double)))
    return Bench(home, clock, double, network, connectors, store, vault, runner)


def _write_action(about: ConnectorDescription, operation: str, inputs: Mapping[str, JSON]) -> bytes:
    """Write the action file of one operation, with an argument for each input."""
    fqn, version, name = (json.dumps(each) for each in (about.fqn, about.version, operation))
    lines = [f'name = "{_ACTION}"', 'version = "1.0.0"', "timeout_seconds = 3600"]
    lines += ["[[requires.connectors]]", f"name = {fqn}", f"version = {version}", f"capabilities = [{name}]"]
    for number, value in enumerate(inputs.values()):
        kind = _TYPES.get(type(value), "string")
        declared = f'schema = {{ type = "{kind}" }}' if kind in ("array", "object") else f'type = "{kind}"'
        lines += ["[[inputs]]", f'name = "a{number}"', 'description = "An input."', declared]
    given = ", ".join(f'{json.dumps(each)} = "${{args.a{number}}}"' for number, each in enumerate(inputs))
    lines += ["[[execute]]", f'id = "{_STEP}"', f"connector = {fqn}", f"op = {name}", f"inputs = {{ {given} }}"]
    return "\n".join(("+++", *lines, "+++", "Runs one operation for a proof.", "")).encode()
