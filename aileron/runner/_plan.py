"""What a run would do, worked out in full, and the digest that binds it."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from aileron.errors import BindingRequired, NotFound
from aileron.interfaces import IBindings, IConnector, IConnectors
from aileron.manifests import resolve, uses_outputs
from aileron.values import (
    JSON,
    Action,
    Binding,
    ConnectorDescription,
    Request,
    Run,
    Step,
    digest,
)

_DIGEST_TAG = "aileron.approval.v1"


@frozen
class PlannedStep:
    """One step with everything it will use.

    :ivar request: L{None} where it uses an earlier step's result: built when that is there.
    """

    step: Step
    connector: IConnector
    description: ConnectorDescription
    binding: Binding | None
    base_url: str
    request: Request | None

    @property
    def effect(self) -> str:
        """C{read} or C{write}, as the connector declares."""
        return self.description.operations[self.step.operation].effect

    @property
    def idempotent(self) -> bool:
        """As the connector declares; the action may only narrow it."""
        return self.description.operations[self.step.operation].idempotent and self.step.idempotent is not False

    def pinned(self) -> dict[str, JSON]:
        """What the digest binds of this step."""
        return {
            "id": self.step.id,
            "connector": self.description.fqn,
            "version": self.description.version,
            "content_hash": self.description.content_hash,
            "operation": self.step.operation,
            "base_url": self.base_url,
            "binding": None if self.binding is None else self.binding.as_json(),
            "request": None if self.request is None else self.request.as_json(),
        }


@frozen
class Plan:
    """A whole run, worked out."""

    action: Action
    arguments: Mapping[str, JSON]
    steps: tuple[PlannedStep, ...]

    def digest(self, run: Run) -> str:
        """SHA-256 that binds all of it to C{run}: what the operator approves by naming it."""
        return digest(
            {
                "tag": _DIGEST_TAG,
                "run": run.id,
                "session": run.session_id,
                "action": self.action.name,
                "manifest": self.action.digest,
                "arguments": self.arguments,
                "steps": [planned.pinned() for planned in self.steps],
                "preview": None,
            }
        )

    def review(self) -> dict[str, JSON]:
        """What the operator is shown: every argument, and every request as it will leave."""
        return {
            "action": {"name": self.action.name, "version": self.action.version, "source": self.action.source},
            "manifest_digest": self.action.digest,
            "fields": [
                {
                    "name": given.name,
                    "label": given.label or given.name,
                    "value": self.arguments[given.name],
                    "multiline": given.multiline,
                }
                for given in self.action.inputs
                if given.name in self.arguments
            ],
            "steps": [planned.pinned() for planned in self.steps],
        }

    def request_for(self, planned: PlannedStep, effect_key: str, outputs: Mapping[str, JSON]) -> Request:
        """The request of a step, now that earlier steps have answered.

        :raises AileronError: the answers make no request.
        """
        if planned.request is not None:
            return planned.request
        inputs = resolve(planned.step, self.arguments, outputs)
        return planned.connector.prepare(
            planned.step.operation, inputs, planned.base_url, step_key(effect_key, planned.step)
        )


def step_key(effect_key: str, step: Step) -> str:
    """The effect key of one step: the same for all its attempts, another for each step and run."""
    return f"{effect_key}.{step.id}"


@frozen
class Planner:
    """Works out plans from what is there now."""

    _connectors: IConnectors
    _bindings: IBindings

    def plan(self, action: Action, arguments: Mapping[str, JSON], effect_key: str) -> Plan:
        """What C{action} would do with C{arguments} (validated, after defaults).

        :raises NotFound: a connector is gone.
        :raises BindingRequired: a connector needs a binding and none, or more than one, is there.
        :raises InvalidRequest, CapabilityDenied: the arguments make no request.
        """
        steps = tuple(self._step(step, arguments, effect_key) for step in action.steps)
        return Plan(action, arguments, steps)

    def _step(self, step: Step, arguments: Mapping[str, JSON], effect_key: str) -> PlannedStep:
        connector = self._connectors.get(step.connector)
        if connector is None:
            raise NotFound(f"The connector {step.connector} is not there.")
        description = connector.describe()
        binding = self._binding(description)
        base_url = _base_url(description, binding)
        request = None
        if not uses_outputs(step):
            inputs = resolve(step, arguments, {})
            request = connector.prepare(step.operation, inputs, base_url, step_key(effect_key, step))
        return PlannedStep(step, connector, description, binding, base_url, request)

    def _binding(self, description: ConnectorDescription) -> Binding | None:
        bound = self._bindings.for_connector(description.fqn)
        if len(bound) > 1:
            raise BindingRequired(
                f"More than one credential is bound to {description.fqn}: revoke all but one.",
                {"connector": description.fqn, "candidates": [binding.name for binding in bound]},
            )
        if not bound and (description.credential is not None or description.base_url is None):
            raise BindingRequired(
                f"Nothing is bound to {description.fqn} yet: run `aileron binding setup {description.fqn}`.",
                {"connector": description.fqn},
            )
        return bound[0] if bound else None


def _base_url(description: ConnectorDescription, binding: Binding | None) -> str:
    chosen = binding.base_url if binding is not None and description.bindable else None
    base_url = chosen or description.base_url
    if base_url is None:
        raise BindingRequired(
            f"The binding of {description.fqn} names no base URL, and the connector has none of its own.",
            {"connector": description.fqn},
        )
    return base_url
