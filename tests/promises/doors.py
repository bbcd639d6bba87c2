"""Both sites of a daemon over a runner that a test drives, and the credentials that open them."""

from __future__ import annotations

from pathlib import Path

from aileron.actions import DirectoryCatalogue
from aileron.api import Dependencies, agent_site, mint, operator_site, token_digest
from aileron.api._sites import agent_routes, operator_routes
from aileron.base.json import utc
from aileron.daemon import HomeActionFiles
from aileron.features import FeatureSet, RunningFeatures
from aileron.home.paths import Home, prepare
from aileron.testing import MemoryOperators, MemoryRecordKeys, example_session, example_signer
from tests.api.case import LAUNCH_KEY, LOCAL_KEY, Site

from .case import PromiseCase


class DoorCase(PromiseCase):
    """A runner behind both sites, with an agent's session and operators."""

    TOKEN, KEY = mint("ail_a_", bytes), mint("ail_i_", bytes)

    def setUp(self) -> None:
        super().setUp()
        self.operators = MemoryOperators(self.vault, self.clock)
        digests = map(token_digest, (self.TOKEN, "gateway", self.KEY))
        token, gateway, key = digests
        self.sync(self.store.sessions.open(example_session("agent-1"), token, gateway, (), key))
        resource, self.routes = agent_site(self.dependencies())
        self.agents = Site(self, resource, agent_routes())
        self.operator = Site(self, operator_site(self.dependencies()), operator_routes())

    def dependencies(self, features: FeatureSet | None = None) -> Dependencies:
        """Return what the routes reach, over this runner.

        :param features: those that are on, of which none is started, or None for all that ship with Aileron.
        """
        home = Home(Path(self.mktemp()).absolute())
        prepare(home)
        return Dependencies(
            submission=self.runner.submission,
            decisions=self.runner.decisions,
            trust=self.runner.trust,
            grants=self.runner.grants,
            limits=self.runner.limits,
            filters=self.runner.submission.filters,
            reconciliation=self.runner.reconciliation,
            sessions=self.store.sessions,
            audit=self.store.audit,
            signer=example_signer(self.store, MemoryRecordKeys(self.vault), self.control, self.clock),
            vault=self.vault,
            bindings=self.bindings,
            flags=self.store.flags,
            snoozes=self.store.snoozes,
            usage=self.store.usage,
            daemons=self.store.daemons,
            connectors=self.connectors,
            operators=self.operators,
            passkeys=self.passkeys,
            approvers=self.approvers,
            action_files=HomeActionFiles(home, DirectoryCatalogue(str(home.actions), 0)),
            launch_key_digest=token_digest(LAUNCH_KEY),
            local_key_digest=token_digest(LOCAL_KEY),
            clock=self.clock,
            ids=self.fresh_id,
            randomness=bytes,
            version="1",
            started_at=utc(self.clock.seconds()),
            review_url=lambda run_id: f"http://localhost:1/approvals/{run_id}",
            instance="life",
            features=RunningFeatures(features or FeatureSet()),
        )
