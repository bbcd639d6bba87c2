"""A service that gives a credential back: what goes on record, and what the binding's owner is told."""

from __future__ import annotations

from typing import cast

from attrs import evolve

from aileron.base.json import JSON
from aileron.model.connectors import CredentialNeed, Outcome
from aileron.model.errors import ExternalApiError
from aileron.model.runs import RunState
from aileron.model.vault import Binding
from aileron.testing import ScriptedConnector, new_binding, scripted_description

from .kit import RunnerCase, step

_NEED = CredentialNeed("api_key", "Authorization", "Bearer {key}")
_NOTES = {"echoed": ["plain", "base64"]}


class EchoTests(RunnerCase):
    """An answer that held the credential."""

    def setUp(self) -> None:
        """One bound credential."""
        super().setUp()
        self.connector = ScriptedConnector(scripted_description(credential=_NEED), clock=self.clock)
        self.connectors.add(self.connector)
        self.bound = self.bind()
        self.runner.check_changes()

    def bind(self) -> Binding:
        """Bind a credential for where the connector talks to."""
        scope = self.connector.description.scope("https://scripted.invalid")
        return self.bindings.add(evolve(new_binding(), connector="local://test/scripted", scope=scope))

    def flagged(self) -> dict[str, int]:
        """Which bindings are flagged, each with the revision that is."""
        return {name: flag.revision for name, flag in self.sync(self.store.flags.all()).items()}

    def test_recorded(self) -> None:
        """It is on record before the run's end, with the connector and the binding, and the binding is flagged.

        Without an echo nothing is recorded and nothing flagged.
        """
        self.connector.script.append(Outcome({"done": True}, notes={"echoed": [], "other": 1}))
        self.submit("open")
        self.assertEqual((self.recorded("secret.echoed"), self.flagged()), ([], {}))
        self.connector.script.append(Outcome({"done": True}, notes=_NOTES))
        run = self.submit("open")
        self.assertEqual(self.events(run), ["execution.started", "secret.echoed", "execution.succeeded"])
        (event,) = self.recorded("secret.echoed")
        self.assertEqual(event.connector, "local://test/scripted")
        self.assertEqual(
            {key: event.payload[key] for key in ("step", "binding", "forms")},
            {"step": "only", "binding": self.bound.name, "forms": ["plain", "base64"]},
        )
        self.assertEqual(self.flagged(), {self.bound.name: self.bound.revision})
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_each_attempt(self) -> None:
        """An answer to an attempt that failed counts too, and is written before the next one leaves."""
        self.offer("open", step("put"), gated=False)
        fault = evolve(ExternalApiError("Later.").fault(), retriable=True)
        self.connector.script.append(Outcome(fault=fault, notes=_NOTES))
        run = self.submit("open")
        self.clock.advance(1.0)
        self.assertEqual(
            self.events(run), ["execution.started", "secret.echoed", "execution.attempt", "execution.succeeded"]
        )

    def test_another_scope(self) -> None:
        """A credential that was bound for another place opens for none here: nothing is sent."""
        description = evolve(self.connector.description, hosts=("scripted.invalid:443", "more.invalid:443"))
        self.connector.description = description
        run = self.submit("open")
        fault = self.fault(run)
        self.assertEqual((fault.kind, self.connector.sendings), ("binding_failed", []))

    def test_refused(self) -> None:
        """What a server asked for during the step, and did not get, is on record with the attempt."""
        self.connector.script.append(Outcome({"done": True}, notes={"refused": ["elicitation/create"]}))
        self.submit("open")
        (event,) = self.recorded("execution.succeeded")
        attempts = cast("list[dict[str, JSON]]", event.payload["attempts"])
        self.assertEqual([["elicitation/create"]], [each.get("refused") for each in attempts])
