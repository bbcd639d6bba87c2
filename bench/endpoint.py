"""The run endpoint with everything but a socket behind it, and what it is compared to; L{bench.serving} serves it.

C{bare}: a Klein route that reads JSON and answers.  C{contract}: one that also checks a token's hash and two schemas;
an agent's server takes it for a daemon.
C{noop}: the whole daemon's path, an ungated action whose connector does nothing, audit durable.  C{http}: the same
through the declarative connector to a service on loopback.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from attrs import evolve, field, frozen
from jsonschema import Draft202012Validator
from klein import Klein
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.stdio import StandardIO
from twisted.internet.task import deferLater
from twisted.web.server import Site
from zope.interface import implementer

from aileron.actions import DirectoryCatalogue
from aileron.api import AGENT_TOKEN, Dependencies, GuardedSite, SiteRules, agent_site, mint, token_digest
from aileron.audit import GENESIS, payload_digest, seal
from aileron.base.json import JSON, utc
from aileron.connectors import Registry, Workshop, system_transport
from aileron.daemon import HomeActionFiles, fresh_ids, settle_heap
from aileron.home.paths import Home
from aileron.model.audit import DAEMON, Event
from aileron.model.authority import LoopLimits, PendingLimits
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.interfaces.connectors import ICatalogue, IConnector, IConnectors
from aileron.model.interfaces.vault import ICredential
from aileron.model.sessions import Session
from aileron.model.trust import Trusted, TrustKind
from aileron.runner import Collaborators, Runner, build
from aileron.runner.session_filters import SessionFilters
from aileron.store import Seals, Store, make_store
from aileron.testing import (
    MemoryBindings,
    MemoryConnectors,
    MemoryControl,
    MemoryGrants,
    MemoryOperatorLimits,
    MemoryOperators,
    MemoryPasskeyBook,
    MemoryRecordKeys,
    MemoryTrust,
    MemoryVault,
    example_signer,
    scripted_description,
)
from aileron.vault import Approvers, Passkeys

ACTION = """+++
name = "noop"
version = "1.0.0"
[[requires.connectors]]
name = "{connector}"
version = "1.0.0"
capabilities = ["{operation}"]
[[inputs]]
name = "text"
type = "string"
description = "What to say"
[[execute]]
id = "only"
connector = "{connector}"
op = "{operation}"
inputs = {{ text = "${{args.text}}" }}
[limits]
per_hour = 1000000
+++
Does nothing.
"""
CONNECTOR = """[connector]
name = "local://bench/service"
version = "1.0.0"
base_url = {{ default = "http://127.0.0.1:{port}", bindable = false }}
hosts = ["127.0.0.1:{port}"]
private_network = true
[operations.say]
method = "POST"
path = "/say"
json = {{ text = "${{in.text}}" }}
effect = "write"
"""


@implementer(IConnector)
@frozen
class Noop:
    """Answers at once."""

    description: ConnectorDescription = field(factory=scripted_description)

    def describe(self) -> ConnectorDescription:
        return self.description

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        return Request(self.description.name, operation, "write", False, "POST", base_url, (("Key", effect_key),))

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        return Outcome({"done": True})

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        return Outcome({"done": True})

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        return Finding(None)


def contract() -> Klein:
    """The least that the contract asks of a route that keeps nothing: a token's hash, JSON, a schema, JSON."""
    app = Klein()
    known = hashlib.sha256(b"none").digest()
    body_properties = {"args": {"type": "object"}, "idempotency_key": {"type": "string"}}
    schema = {"type": "object", "properties": body_properties, "additionalProperties": False}
    inputs = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    body_checks, checks = Draft202012Validator(schema), Draft202012Validator(inputs)

    @app.route("/v1/actions/<name>/run", methods=["POST"])
    async def run(request: Any, name: str) -> bytes:
        token = (request.getHeader(b"authorization") or b"").removeprefix(b"Bearer ")
        body = json.loads(request.content.read())
        right = hmac.compare_digest(hashlib.sha256(token).digest(), known)
        if not right or list(body_checks.iter_errors(body)) or list(checks.iter_errors(body["args"])):
            raise ValueError(name)
        answer = json.dumps({"run_id": name, "audit_id": name, "result": body["args"]}).encode()
        request.setHeader(b"Content-Type", b"application/json")
        request.setHeader(b"Content-Length", b"%d" % len(answer))
        return answer

    @app.route("/v1/actions")
    async def actions(request: Any) -> bytes:
        """One, for an agent's server that is put in front; it stays as it is."""
        from twisted.internet import reactor

        await deferLater(cast("Any", reactor), float(request.args.get(b"wait", [b"0"])[0]))
        flags = {"enabled": True, "gated": False, "read_only": False, "idempotent": False}
        noop = {"name": "noop", "tool_name": "noop", "intent": "Does nothing.", "input_schema": inputs, **flags}
        return json.dumps({"generation": 1, "items": [noop], "load_errors": []}).encode()

    return app


def bare() -> Klein:
    app = Klein()

    @app.route("/v1/actions/noop/run", methods=["POST"])
    def run(request: Any) -> bytes:
        body = json.loads(request.content.read())
        request.setHeader(b"Content-Type", b"application/json")
        answer = json.dumps({"result": body["args"]}).encode()
        request.setHeader(b"Content-Length", b"%d" % len(answer))
        return answer

    return app


def service(reactor: Any) -> int:
    """Stands for the world."""
    app = Klein()

    @app.route("/say", methods=["POST"])
    def say(request: Any) -> bytes:
        request.setHeader(b"Content-Type", b"application/json")
        return b'{"done":true}'

    site = Site(app.resource())
    site.log = lambda request: None  # type: ignore[method-assign]
    port: int = reactor.listenTCP(0, site, interface="127.0.0.1").getHost().port
    return port


def furnished(reactor: Any, home: Path, through_http: bool) -> IConnectors:
    """A connector, and in C{home} the action that uses it."""
    (home / "actions").mkdir()
    (home / "connectors").mkdir()
    names = {"connector": "local://test/scripted", "operation": "post"}
    connectors: Any = MemoryConnectors.of([Noop()])
    if through_http:
        names = {"connector": "local://bench/service", "operation": "say"}
        (home / "connectors/service.toml").write_text(CONNECTOR.format(port=service(reactor)))
        transport = system_transport(reactor, set)
        connectors = Registry(home / "connectors", Workshop(reactor, transport))
    (home / "actions/noop.md").write_text(ACTION.format(**names))
    return cast("IConnectors", connectors)


def _words(reactor: Any, catalogue: ICatalogue, connectors: IConnectors) -> Iterator[Trusted]:
    """All that is there, trusted as it is."""
    now = utc(reactor.seconds())
    for action in catalogue.current().actions.values():
        yield Trusted(TrustKind.ACTION, action.name, action.digest, now, "bench", True)
    for each in connectors.descriptions():
        yield Trusted(TrustKind.CONNECTOR, each.name, each.content_hash, now, "bench", True)


async def started(
    reactor: Any,
    store: Store,
    home: Path,
    connectors: IConnectors,
    bindings: MemoryBindings,
    limits: PendingLimits | None = None,
) -> Runner:
    """A runner of what C{home} holds, all of it trusted and its vault open."""
    vault = MemoryVault()
    control = MemoryControl(vault)
    catalogue = DirectoryCatalogue(str(home / "actions"), 1)
    catalogue.refresh()
    runner = build(
        Collaborators(
            runs=store.runs,
            audit=store.audit,
            contents=store.contents,
            watermarks=store.watermarks,
            catalogue=catalogue,
            connectors=connectors,
            vault=vault,
            bindings=bindings,
            operator_limits=MemoryOperatorLimits(vault),
            trust=MemoryTrust(vault, [*_words(reactor, catalogue, connectors)]),
            control=control,
            grants=MemoryGrants(vault, control, reactor),
            approvers=_approvers(vault, reactor),
            clock=reactor,
            ids=fresh_ids(reactor),
            chance=lambda: 0.0,
            limits=limits or PendingLimits(),
            loops=LoopLimits(10**9, 10**9, 10**9, 10**9, None),  # the load is an agent in a loop
        )
    )
    await runner.start()
    return runner


def _passkeys(vault: MemoryVault, reactor: Any) -> Passkeys:
    """None, and no rule that asks for one."""
    return Passkeys(MemoryPasskeyBook(vault), lambda: (MemoryOperators.ADDRESS,), reactor)


def _approvers(vault: MemoryVault, reactor: Any) -> Approvers:
    """They need no signature: what is measured is a run, not who approved it."""
    return Approvers(_passkeys(vault, reactor), "bench", lambda _: None, reactor, needs_signatures=False)


async def opened(reactor: Any, home: Path) -> Store:
    """The durable store in C{home}."""
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(16))
    store = make_store(home / "aileron.db", reactor, reactor, seals)
    await store.open()
    return store


async def whole(reactor: Any, home: Path, through_http: bool) -> tuple[GuardedSite, str, str]:
    """The agent site over a durable store, a token for it, and the key that opens further sessions."""
    store = await opened(reactor, home)
    vault, connectors, ids = MemoryVault(), furnished(reactor, home, through_http), fresh_ids(reactor)
    bindings = MemoryBindings(vault)
    token, key, now = mint(AGENT_TOKEN, secrets.token_bytes), secrets.token_urlsafe(), utc(reactor.seconds())
    event = Event(ids(), "session.started", now, DAEMON)
    session = Session(ids(), "bench", "/", now, now)
    await store.sessions.open(session, token_digest(token), secrets.token_bytes(32), [event])
    runner = await started(reactor, store, home, connectors, bindings)
    parts = Dependencies(
        submission=runner.submission,
        decisions=runner.decisions,
        trust=runner.trust,
        grants=runner.grants,
        limits=runner.limits,
        reconciliation=runner.reconciliation,
        sessions=store.sessions,
        audit=store.audit,
        signer=example_signer(store, MemoryRecordKeys(vault), MemoryControl(vault), reactor),
        vault=vault,
        bindings=bindings,
        action_files=HomeActionFiles(Home(home), DirectoryCatalogue(str(home / "actions"), 0)),
        flags=store.flags,
        snoozes=store.snoozes,
        usage=store.usage,
        connectors=connectors,
        operators=MemoryOperators(vault, reactor),
        filters=SessionFilters(),
        passkeys=_passkeys(vault, reactor),
        approvers=_approvers(vault, reactor),
        daemons=store.daemons,
        launch_key_digest=token_digest(key),
        local_key_digest=token_digest("local"),
        clock=reactor,
        ids=ids,
        randomness=secrets.token_bytes,
        version="bench",
        started_at=now,
        review_url=lambda run_id: run_id,
        instance="bench",
    )
    site, _routes = agent_site(parts)
    return GuardedSite(site, SiteRules(), reactor), token, key


class _UntilEnd(ProcessProtocol):
    """Fires when standard input ends."""

    def __init__(self) -> None:
        self.ended: Deferred[None] = Deferred()

    def makeConnection(self, transport: Any) -> None: ...
    def dataReceived(self, data: bytes) -> None: ...
    def connectionLost(self, reason: Any) -> None:
        self.ended.callback(None)


ROUTES = {"bare": bare, "contract": contract}


async def main(reactor: Any, kind: str) -> None:
    """Print the port, a session's token and the key that opens sessions, then serve until the input ends."""
    with tempfile.TemporaryDirectory() as directory:
        if kind in ROUTES:
            site: Any = Site(ROUTES[kind]().resource())
            site.log = lambda request: None
            token = key = "none"
        else:
            site, token, key = await whole(reactor, Path(directory).resolve(), kind == "http")
        port = reactor.listenTCP(0, site, interface="127.0.0.1", backlog=1000).getHost().port
        if kind not in ROUTES:
            site.rules = evolve(site.rules, hosts=(f"127.0.0.1:{port}",))
        print(json.dumps({"port": port, "token": token, "key": key}), flush=True)
        settle_heap()
        until = _UntilEnd()
        StandardIO(until)
        began = time.process_time()
        await until.ended
        print(json.dumps({"cpu_seconds": time.process_time() - began}), flush=True)
