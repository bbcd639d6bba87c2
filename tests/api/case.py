"""A daemon's two sites over memory, and callers of every kind; every answer is held against its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen
from jsonschema import Draft202012Validator
from treq.testing import StubTreq
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import IResource

from aileron.actions import DirectoryCatalogue
from aileron.api import Dependencies, agent_site, mint, operator_site, token_digest
from aileron.api._sites import SiteRoutes, agent_routes, operator_routes
from aileron.api.agent_routes import AgentRoutes
from aileron.api.shapes.openapi import components
from aileron.api.shapes.schemas import ref
from aileron.base.json import utc
from aileron.daemon import HomeActionFiles
from aileron.features import FeatureSet, RunningFeature, RunningFeatures
from aileron.home.paths import Home, prepare
from aileron.model.queries import AuditQuery
from aileron.model.vault import VaultState
from aileron.runner.session_filters import SessionFilters
from aileron.testing import (
    MemoryBindings,
    MemoryConnectors,
    MemoryControl,
    MemoryOperators,
    MemoryPasskeyBook,
    MemoryRecordKeys,
    MemorySshKeyBook,
    MemoryVault,
    ScriptedConnector,
    ScriptedRunner,
    SigningBrowser,
    example_signer,
    memory_store,
    scripted_offer,
)
from aileron.vault import Approvers, Passkeys, SshKeys

NOW = 1_760_000_000.0
COOKIE = "aileron_life"
LAUNCH_KEY = mint("ail_l_", lambda count: b"L" * count)
LOCAL_KEY = mint("ail_c_", lambda count: b"C" * count)


def with_components(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give a schema what its own references need."""
    return {**schema, "components": {"schemas": components(FeatureSet().members)}}


FAILURE = Draft202012Validator(with_components(ref("Failure")))


def running(*features: RunningFeature) -> RunningFeatures:
    """Return features as a daemon has started them."""
    return RunningFeatures(FeatureSet(), features)


@frozen
class Heard:
    """An answer."""

    status: int
    json: Any
    headers: Mapping[str, str]
    text: str

    @property
    def kind(self) -> str:
        """The class of the failure in it."""
        return str(self.json["error"]["class"])


class ApiCase(SynchronousTestCase):
    """Dependencies in memory, both sites over them."""

    vault_state = VaultState.UNLOCKED

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOW)
        self.vault = MemoryVault(self.vault_state)
        self.operators = MemoryOperators(self.vault, self.clock)
        self.passkey_book = MemoryPasskeyBook(self.vault)
        self.passkeys = Passkeys(self.passkey_book, lambda: (MemoryOperators.ADDRESS,), self.clock)
        self.ssh_keys = SshKeys(MemorySshKeyBook(self.vault), self.clock)
        life = MemoryOperators.INSTANCE
        self.approvers = Approvers(self.passkeys, life, self.operators.require_key, self.clock, ssh_keys=self.ssh_keys)
        self.runner = ScriptedRunner.of(scripted_offer(), scripted_offer("look-up", gated=False), clock=self.clock)
        self.filters = SessionFilters()
        self.store = memory_store(self, self.clock)
        self.control, self.record_keys = MemoryControl(self.vault), MemoryRecordKeys(self.vault)
        self.signer = example_signer(self.store, self.record_keys, self.control, self.clock)
        self.connector = ScriptedConnector()
        self.state_directory = Home(Path(self.mktemp()).absolute())
        prepare(self.state_directory)
        self.action_files = HomeActionFiles(
            self.state_directory, DirectoryCatalogue(str(self.state_directory.actions), 0)
        )
        self._ids = 0
        self._random = 0
        self.deps = Dependencies(
            submission=self.runner,
            decisions=self.runner,
            trust=self.runner,
            grants=self.runner,
            limits=self.runner,
            filters=self.filters,
            reconciliation=self.runner,
            sessions=self.store.sessions,
            audit=self.store.audit,
            signer=self.signer,
            vault=self.vault,
            bindings=MemoryBindings(self.vault),
            flags=self.store.flags,
            snoozes=self.store.snoozes,
            usage=self.store.usage,
            daemons=self.store.daemons,
            connectors=MemoryConnectors.of([self.connector]),
            operators=self.operators,
            passkeys=self.passkeys,
            approvers=self.approvers,
            action_files=self.action_files,
            launch_key_digest=token_digest(LAUNCH_KEY),
            local_key_digest=token_digest(LOCAL_KEY),
            clock=self.clock,
            ids=self.fresh_id,
            randomness=self.randomness,
            version="1.2.3",
            started_at=utc(NOW - 60),
            review_url=lambda run_id: f"http://localhost:7001/approvals/{run_id}",
            instance="life",
        )
        self.build()

    def build(self, runner: Any = None, **changes: Any) -> None:
        """Have both sites made anew of the deps, some of them changed.

        :param runner: what stands for all parts of the runner from now on.
        """
        if runner is not None:
            changes |= dict.fromkeys(("submission", "decisions", "trust", "grants", "limits", "reconciliation"), runner)
        self.deps = self.built = evolve(self.deps, **changes)
        self.deps.operators.report_lapses(self.deps.access_log.report_lapse)
        for name in ("agent_side", "routes", "agents", "operator"):
            vars(self).pop(name, None)

    @cached_property
    def agent_side(self) -> tuple[IResource, AgentRoutes]:
        """The agent site's resource and routes, made when a test first uses one of them."""
        return agent_site(self.built)

    @cached_property
    def routes(self) -> AgentRoutes:
        """The agent site's routes for callers in this process."""
        return self.agent_side[1]

    @cached_property
    def agents(self) -> Site:
        """The agent site."""
        return Site(self, self.agent_side[0], agent_routes())

    @cached_property
    def operator(self) -> Site:
        """The operator site, made when a test first uses it."""
        return Site(self, operator_site(self.built), operator_routes())

    def fresh_id(self) -> str:
        """An id that sorts after those before."""
        self._ids += 1
        return f"01JA{self._ids:022d}"

    def randomness(self, count: int) -> bytes:
        """Bytes that differ at each call."""
        self._random += 1
        return self._random.to_bytes(count, "big")

    def open_session(self, agent: str = "opencode") -> dict[str, str]:
        """A fresh agent session, as its opener is told of it."""
        opened = self.agents.ask("POST", "/v1/sessions", LAUNCH_KEY, {"agent": agent, "working_dir": "/src"})
        self.assertEqual(opened.status, 201, opened.text)
        return cast("dict[str, str]", opened.json)

    def agent_token(self) -> str:
        """The token of a fresh agent session."""
        return self.open_session()["token"]

    def operator_token(self) -> str:
        """The token of a fresh operator session."""
        return self.operators.log_in()[0]

    def logged(self) -> list[Any]:
        """Whatever warnings and errors are logged from now on."""
        found: list[Any] = []
        observe = cast(
            "ILogObserver", lambda event: found.append(event) if event["log_level"] >= LogLevel.warn else None
        )
        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return found

    def events(self) -> list[str]:
        """Types of the events on record, oldest first."""
        page = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery())))
        return [record.event.type for record in reversed(page.items)]


class Site:
    """One site, spoken to through treq and a whole twisted.web, without a socket."""

    def __init__(self, case: SynchronousTestCase, resource: IResource, routes: SiteRoutes) -> None:
        self._case = case
        self.resource = resource
        self.treq: Any = StubTreq(resource)
        self._schemas = [
            (endpoint.method, _pattern(endpoint.path), endpoint.answers) for endpoint, _allowed in routes.endpoints
        ]

    def start(
        self,
        method: str,
        path: str,
        token: str | None = None,
        body: Any = None,
        headers: Mapping[str, str | bytes] | None = None,
        browser: SigningBrowser | None = None,
    ) -> Deferred[Heard]:
        """Send a request; its answer comes when C{treq.flush} finds one."""
        fields: dict[str, str | bytes] = {"Content-Type": "application/json"} if body is not None else {}
        if token is not None:
            fields["Authorization"] = f"Bearer {token}"
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        if browser is not None:
            fields.update(browser.headers(COOKIE, method, path, data or b""))
        sent = self.treq.request(
            method, "http://localhost:7001" + path, headers={**fields, **(headers or {})}, data=data
        )
        self.treq.flush()
        return Deferred.fromCoroutine(self._heard(method, path.partition("?")[0], sent))

    def ask(self, method: str, path: str, token: str | None = None, body: Any = None, **more: Any) -> Heard:
        """Send a request and have its answer, which must come at once."""
        if body is None and method != "GET":
            body = {}
        return self._case.successResultOf(self.start(method, path, token, body, **more))

    async def _heard(self, method: str, path: str, sent: Any) -> Heard:
        response = await sent
        text = (await self.treq.content(response)).decode()
        headers = {name.decode().lower(): values[0].decode() for name, values in response.headers.getAllRawHeaders()}
        shown = json.loads(text) if headers.get("content-type") == "application/json" and method != "HEAD" else None
        if shown is not None and path != "/v1/openapi.json":
            self._check(method, path, response.code, shown)
        return Heard(response.code, shown, headers, text)

    def _check(self, method: str, path: str, status: int, shown: Any) -> None:
        if status >= 400:
            validator = FAILURE
        else:
            declared = [
                answers for verb, pattern, answers in self._schemas if verb == method and pattern.fullmatch(path)
            ]
            validator = Draft202012Validator(with_components(declared[0][status]))
        faults = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(shown)]
        self._case.assertEqual(faults, [], f"{method} {path} {status}: {shown}")


def _pattern(path: str) -> re.Pattern[str]:
    """What matches the paths of a route."""
    return re.compile(re.sub(r"<\w+>", "[^/]+", re.sub(r"<path:\w+>", ".+", path)))
