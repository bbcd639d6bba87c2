"""Computes the plan of a run, which is everything that the run would do, and the digest that an approval covers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from attrs import evolve, frozen

from aileron.actions import KnownValues, check_arguments, preview_paths, resolve, resolve_preview, uses_outputs
from aileron.base.converter import to_json
from aileron.base.json import JSON, digest
from aileron.model.actions import Action, PreviewRule, Step
from aileron.model.connectors import READ, ConnectorDescription, Operation, Presentation, Request
from aileron.model.errors import BindingRequired, CapabilityDenied, Forbidden, InvalidRequest, NotFound
from aileron.model.faults import Fault
from aileron.model.interfaces.connectors import IConnector, IConnectors
from aileron.model.interfaces.vault import IBindings
from aileron.model.people import Owner
from aileron.model.reviews import (
    NOT_YET,
    Card,
    Preview,
    PreviewFault,
    PreviewStatus,
    Review,
    ReviewedAction,
    ReviewedArgument,
    ReviewedBinding,
    ReviewedPreview,
    ReviewedRequest,
    ReviewedStep,
)
from aileron.model.runs import Approval, Run
from aileron.model.titles import UNKNOWN, count_more, inputs_of_title, write_title
from aileron.model.vault import Binding

from .offerings import Offerings

_DIGEST_TAG = "aileron.approval.v1"
_PREVIEW_KEY = "-preview"  # not a valid step id, so that keys never collide


def make_unavailable(fault: Fault) -> Preview:
    """Return the preview that stands for a failed fetch, with the reason."""
    return Preview(PreviewStatus.UNAVAILABLE, fault=PreviewFault(fault.kind, fault.message))


@frozen
class PlannedStep:
    """A step of a run, ready to be sent: with its connector, credential, URL and request.

    :ivar request: the request, or None if it can be built only from an earlier step's output or C{lacks} is set.
    :ivar lacks: a sentence on the value that the step uses and the preview does not show, or None.
    """

    step: Step
    connector: IConnector
    description: ConnectorDescription
    binding: Binding | None
    base_url: str
    request: Request | None
    lacks: str | None = None

    @property
    def operation(self) -> Operation:
        """The operation as the connector declares it."""
        return self.description.operations[self.step.operation]

    @property
    def effect(self) -> str:
        """The effect that the connector declares: C{read} or C{write}."""
        return self.operation.effect

    @property
    def idempotent(self) -> bool:
        """True if the connector declares the operation as idempotent and the action does not forbid a repetition."""
        return (
            self.operation.idempotent
            # guard of promise 5: an action may forbid the repetition of a step -> OnceTests.test_narrowed
            and self.step.idempotent is not False
        )

    @property
    def account(self) -> tuple[str, str | None]:
        """The names of the connector and the credential, or None as the second if there is no credential.

        A service counts their requests together.
        """
        return self.description.name, None if self.binding is None else self.binding.name

    def review(self) -> ReviewedStep:
        """Return the step as the operator is shown it."""
        return ReviewedStep(
            id=self.step.id,
            connector=self.description.name,
            version=self.description.version,
            # guard of promise 3: the digest binds the connector's content -> ChangesTests.test_asked_anew, instead ""
            content_hash=self.description.content_hash,
            operation=self.step.operation,
            # guard of promise 3: the digest binds the place and the request -> ReviewedTests, instead ""
            base_url=self.base_url,
            # guard of promise 3: the digest binds the credential -> ChangesTests.test_asked_anew, instead None
            binding=None if self.binding is None else ReviewedBinding.of(self.binding),
            # guard of promise 3: the digest binds the place and the request, instead None
            request=None if self.request is None else ReviewedRequest.of(self.request),
        )

    def pinned(self) -> dict[str, JSON]:
        """Return what the operator is shown of the step as JSON, for the digest and the audit log."""
        return to_json(self.review())


@frozen
class PlannedPreview:
    """The read of a preview, and the preview that it returned.

    :ivar read: the planned read.
    :ivar carried: the paths into the preview that steps refer to.
    :ivar shown: the preview, or L{NOT_YET} if it was not fetched.
    """

    rule: PreviewRule
    read: PlannedStep
    carried: tuple[str, ...]
    shown: Preview

    def pinned(self) -> dict[str, JSON]:
        """Return the preview as JSON for the digest: the read, and the digest of its result.

        :raises ValueError: if a digest cannot cover the preview.
        """
        return {"read": self.read.pinned(), "shown": self.shown.digest()}

    def review(self, lacking: str | None) -> ReviewedPreview:
        """Return the preview as the operator is shown it.

        :param lacking: a sentence on the value that a step uses and the preview does not show, or None.
        """
        return ReviewedPreview(self.rule.connector, self.rule.operation, self.shown, self.read.review(), lacking)


@frozen
class Plan:
    """Everything that a run would do: its steps with their requests, and its preview."""

    action: Action
    arguments: Mapping[str, JSON]
    steps: tuple[PlannedStep, ...]
    preview: PlannedPreview | None = None

    @property
    def lacks(self) -> str | None:
        """The reason why the run cannot be approved, if the preview lacks a value that a step uses, else None."""
        return next((planned.lacks for planned in self.steps if planned.lacks), None)

    def digest(self, run: Run) -> str:
        """Return the SHA-256 over the plan and C{run}. The operator's decision covers this digest."""
        owned: dict[str, JSON] = {}
        # guard of roles: the digest binds the owner -> runner.test_owners.DigestTests.test_owner
        if run.owner is not None:
            owned["owner"] = run.owner.account
        return digest(
            {
                **owned,
                "tag": _DIGEST_TAG,
                # guard of promise 2: signature and digest cover the run's id
                "run": run.id,
                "session": run.session_id,
                "again": run.parent_id,
                **({} if run.undoes is None else {"undoes": run.undoes}),
                "effect_key": run.effect_key,
                "action": self.action.name,
                # guard of promise 3: the digest binds the action's file -> ChangesTests.test_asked_anew
                "manifest": self.action.digest,
                # guard of promise 3: the digest binds the arguments and the requests -> StillTests.test_arguments
                "arguments": self.arguments,
                # guard of promise 3: the digest binds the arguments and the requests
                "steps": [planned.pinned() for planned in self.steps],
                "preview": None if self.preview is None else self.preview.pinned(),
            }
        )

    def review(self) -> Review:
        """Return the plan as the operator is shown it: all arguments, requests as they will be sent, the preview."""
        return Review(
            action=ReviewedAction(self.action.name, self.action.version, self.action.source),
            manifest_digest=self.action.digest,
            arguments=tuple(
                ReviewedArgument(given.name, given.label or given.name, self.arguments[given.name], given.multiline)
                for given in self.action.inputs
                if given.name in self.arguments
            ),
            steps=tuple(planned.review() for planned in self.steps),
            preview=None if self.preview is None else self.preview.review(self.lacks),
            title=self.title(),
        )

    def title(self) -> str:
        """Return a title: the effect of the first write and the number of further writes, or of reads if there is none.

        An input that is not known yet is replaced by an ellipsis. If the connector declares no title, return an empty
        text.
        """
        steps = [planned for planned in self.steps if planned.effect != READ] or self.steps
        hint = steps[0].operation.presentation if steps else None
        if hint is None:
            return ""
        if steps[0].operation.tools_only:
            title = self._write_tool_title(steps[0], hint)
        else:
            names = {name for each in hint.titles for name in inputs_of_title(each)}
            title = write_title(hint.titles, self._find_inputs(steps[0], names))
        return count_more(title, len(steps) - 1) if title else ""

    def _write_tool_title(self, planned: PlannedStep, usual: Presentation) -> str:
        """Return the title of a tool's request: that of the operation that it was recognised as, or the usual one."""
        inputs = self._find_inputs(planned, planned.step.inputs.keys())
        hint, shown = planned.description.find_presented(planned.operation, inputs)
        return write_title(hint.titles if hint else (), shown) or write_title(usual.titles, inputs)

    def _find_inputs(self, planned: PlannedStep, names: Collection[str]) -> Mapping[str, JSON]:
        """Return the inputs of a step that C{names} lists. The value of one that is not known yet is L{UNKNOWN}."""
        found = dict[str, JSON]()
        for name in planned.step.inputs.keys() & names:
            try:
                found |= self.inputs_of(evolve(planned, step=_only_input(planned.step, name)), {})
            except InvalidRequest:
                found[name] = UNKNOWN
        return found

    def with_preview(self, effect_key: str, shown: Preview) -> Plan:
        """Return this plan with C{shown} as the result of its preview, or unchanged if the action has no preview.

        Only the requests of steps that use the preview are built again.

        :raises AileronError: if no request can be built from a value that the preview shows.
        """
        if self.preview is None:
            return self
        steps = tuple(
            _fill(planned, self.arguments, effect_key, shown) if preview_paths(planned.step.inputs) else planned
            for planned in self.steps
        )
        return evolve(self, steps=steps, preview=evolve(self.preview, shown=shown))

    def request_for(self, planned: PlannedStep, effect_key: str, outputs: Mapping[str, JSON]) -> Request:
        """Return the request of a step, built from the outputs of earlier steps if it was not planned.

        :raises CapabilityDenied: if the preview does not show a value that the step uses.
        :raises AileronError: if no request can be built from the outputs.
        """
        if planned.lacks is not None:
            raise CapabilityDenied(planned.lacks)
        if planned.request is not None:
            return planned.request
        return planned.connector.prepare(
            planned.step.operation,
            self.inputs_of(planned, outputs),
            planned.base_url,
            step_key(effect_key, planned.step),
        )

    def inputs_of(self, planned: PlannedStep, outputs: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """Return the inputs of a step, with references replaced by arguments, C{outputs} and values of the preview.

        :param outputs: the outputs of earlier steps, by step id.
        :raises InvalidRequest: if an input refers to a value that is missing.
        """
        return resolve(planned.step, KnownValues(self.arguments, outputs, self._carry()))

    def cards(self) -> Iterator[Card]:
        """Yield a card for each step whose connector declares how its inputs are presented.

        :raises InvalidRequest: if an input refers to a value that is missing.
        """
        for planned in self.steps:
            if planned.operation.presentation is None or planned.request is None:
                continue
            hint, inputs = planned.description.find_presented(planned.operation, self.inputs_of(planned, {}))
            if hint is None or not hint.parts:
                continue
            parts = (
                (part, tuple(inputs[name] for name in names if name in inputs)) for part, names in hint.parts.items()
            )
            yield Card(planned.step.id, hint.kind, tuple((part, values) for part, values in parts if values))

    def _carry(self) -> Mapping[str, JSON]:
        return {} if self.preview is None else self.preview.shown.carried


def _only_input(step: Step, name: str) -> Step:
    return evolve(step, inputs={name: step.inputs[name]})


def step_key(effect_key: str, step: Step) -> str:
    """Return the effect key of one step. All attempts of the step share the key. Other steps and runs have others."""
    # guard of promise 5: all attempts share one effect key -> OnceTests.test_idempotent,
    #    instead return f"{effect_key}.{id(object())}"
    return f"{effect_key}.{step.id}"


@frozen
class PlanOutline:
    """The connectors, operations and credentials that a run of an action uses, without its requests.

    :ivar read: the read of the preview, or None if the action has none.
    """

    action: Action
    steps: tuple[PlannedStep, ...]
    read: PlannedStep | None


@frozen
class Planner:
    """Computes plans from the present files, connectors and bindings."""

    _offerings: Offerings
    _connectors: IConnectors
    _bindings: IBindings
    _is_removed: Callable[[Owner], bool]

    def plan(
        self,
        action: Action,
        arguments: Mapping[str, JSON],
        effect_key: str,
        preview: Preview | None = None,
        owner: Owner | None = None,
    ) -> Plan:
        """Return the plan of C{action} for C{arguments}.

        :param arguments: the checked arguments with defaults.
        :param preview: the fetched preview, or None if the action has none or it is not fetched yet.
        :param owner: the owner of the run, or None for the operator.
        :raises Forbidden: if the owner's account was removed.
        :raises NotFound: if a connector is missing or has errors.
        :raises BindingRequired: if a connector needs a binding and has none, or has more than one.
        :raises InvalidRequest: if no request can be built from the arguments.
        :raises CapabilityDenied: if an operation needs an approval and the action is ungated, or the preview is not an
            idempotent read.
        """
        rule = action.approval.preview
        shown = NOT_YET if preview is None or rule is None else preview
        targets = (PlannedStep(*self._target(step, owner), None) for step in action.steps)
        steps = tuple(_fill(target, arguments, effect_key, shown) for target in targets)
        if not action.approval.gated:
            _check_unapproved(steps)
        return Plan(action, arguments, steps, self._preview(action, arguments, effect_key, shown, owner))

    def _check_owner(self, owner: Owner | None) -> None:
        # guard of roles: nothing is done for an account that was removed
        #    -> runner.test_owners.RemovedTests.test_approved
        if owner is not None and self._is_removed(owner):
            raise Forbidden(f"The account {owner.name}, for which it was requested, was removed.")

    def refresh(self) -> None:
        """Read the files again, so that the next plan uses their present content."""
        self._offerings.refresh()

    def generation(self) -> tuple[int, int]:
        """Return a value that changes whenever actions, connectors, trust or bindings do."""
        return self._offerings.generation(), self._bindings.bindings_generation()

    def plan_run(self, run: Run, preview: Preview | None = None) -> Plan:
        """Return the plan of what C{run} would do now.

        :param preview: the fetched preview, or None if it is not fetched yet.
        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises InvalidRequest: if the action no longer accepts the arguments.
        :raises NotFound, BindingRequired: if a connector or its binding is missing.
        :raises CapabilityDenied: if an operation or the preview may not run as the action declares it.
        :raises Forbidden: if the account for which it was requested was removed.
        """
        action = self._offerings.find(run.action).action
        return self.plan(action, check_arguments(action, run.arguments), run.effect_key, preview, run.owner)

    def plan_shown(self, approval: Approval) -> Plan:
        """Return the plan of the approval's run with the preview that is stored in the approval's row.

        Compare the plan's digest with the approval's: it differs if the stored preview was altered.

        :raises AileronError: if the run cannot be planned now, since a file or binding is missing or has changed.
        """
        return self.plan_run(approval.run, approval.review.shown_preview)

    def has_preview(self, run: Run) -> bool:
        """Return whether the action of C{run} has a preview.

        :raises NotFound, Conflict: if the action is not offered, or disabled.
        """
        return self._offerings.find(run.action).action.approval.preview is not None

    def plan_preview(self, run: Run) -> PlannedPreview | None:
        """Return the planned read of the preview of C{run}, or None if the action has no preview.

        :raises AileronError: if the run cannot be planned now, since a file or binding is missing or has changed.
        """
        action = self._offerings.find(run.action).action
        return self._preview(action, check_arguments(action, run.arguments), run.effect_key, NOT_YET, run.owner)

    def plan_read(
        self, connector: str, operation: str, inputs: Mapping[str, JSON], owner: Owner | None = None
    ) -> PlannedStep:
        """Return the planned read of a tool, which belongs to no run.

        :param owner: the owner of the tool's session, or None for the operator.
        :raises NotFound: if there is no such connector.
        :raises BindingRequired: if the connector needs a binding and has none, or has more than one.
        :raises InvalidRequest: if no request can be built from the inputs.
        :raises CapabilityDenied: if the connector has no such operation, or does not cover the host.
        """
        target = PlannedStep(*self._target(Step("read", connector, operation), owner), None)
        return _prepare(target, inputs, "")

    def outline(self, action_name: str, owner: Owner | None) -> PlanOutline:
        """Return the connectors and credentials that a run of the action uses. No requests are built.

        :param owner: the owner of the run, or None for the operator.
        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises NotFound, BindingRequired: if a connector or its binding is missing.
        """
        action = self._offerings.find(action_name).action
        rule = action.approval.preview
        steps = tuple(PlannedStep(*self._target(step, owner), None) for step in action.steps)
        read = None if rule is None else PlannedStep(*self._target(_reading(rule), owner), None)
        return PlanOutline(action, steps, read)

    def _preview(
        self, action: Action, arguments: Mapping[str, JSON], effect_key: str, shown: Preview, owner: Owner | None
    ) -> PlannedPreview | None:
        rule = action.approval.preview
        if rule is None:
            return None
        carried = tuple(dict.fromkeys(path for step in action.steps for path in preview_paths(step.inputs)))
        return PlannedPreview(rule, self._read(rule, arguments, effect_key, owner), carried, shown)

    def _read(
        self, rule: PreviewRule, arguments: Mapping[str, JSON], effect_key: str, owner: Owner | None
    ) -> PlannedStep:
        """Return the planned read of a preview with its request.

        :raises CapabilityDenied: if the operation is not an idempotent read, or needs an approval.
        :raises AileronError: if there is no such connector or binding, or no request can be built.
        """
        target = PlannedStep(*self._target(_reading(rule), owner), None)
        planned = _prepare(target, resolve_preview(rule, arguments), f"{effect_key}.{_PREVIEW_KEY}")
        if planned.effect != READ or not planned.idempotent:
            raise CapabilityDenied(f"{rule.connector} does not declare {rule.operation} as an idempotent read.")
        _check_unapproved((planned,))
        return planned

    def _target(self, step: Step, owner: Owner | None) -> _Target:
        self._check_owner(owner)
        connector = self._connectors.get(step.connector)
        if connector is None:
            raise NotFound(f"There is no connector {step.connector}, or its file has errors.")
        description = connector.describe()
        binding = self._binding(description, owner)
        return step, connector, description, binding, _base_url(description, binding)

    def _binding(self, description: ConnectorDescription, owner: Owner | None) -> Binding | None:
        """Return the credential that belongs to the owner, else the shared one, or None if none is needed."""
        serving = [each for each in self._bindings.for_connector(description.name) if each.serves(owner)]
        bound = [each for each in serving if each.owner is not None] or serving
        if len(bound) > 1:
            raise BindingRequired(
                f"More than one credential is bound to {description.name}: revoke all but one.",
                {"connector": description.name, "candidates": [binding.name for binding in bound]},
            )
        if not bound and (description.credential is not None or description.base_url is None):
            raise BindingRequired(_explain_unbound(description.name, owner), {"connector": description.name})
        return bound[0] if bound else None


def _explain_unbound(connector: str, owner: Owner | None) -> str:
    setup = f"aileron credential setup {connector}"
    if owner is None:
        return f"No credential is bound to {connector}. Run `{setup}`."
    told = f"No credential is bound to {connector} for {owner.name}, and none is shared."
    return f"{told} Run `{setup} --owner {owner.name}`, or `{setup}` for everybody."


_Target = tuple[Step, IConnector, ConnectorDescription, Binding | None, str]


def _fill(target: PlannedStep, arguments: Mapping[str, JSON], effect_key: str, shown: Preview) -> PlannedStep:
    """Return the step with its request. If an earlier output or a value of the preview is missing, omit the request."""
    step = target.step
    lacks = _lacking(step, shown)
    if lacks is not None or uses_outputs(step):
        return evolve(target, request=None, lacks=lacks)
    inputs = resolve(step, KnownValues(arguments, {}, shown.carried))
    return _prepare(evolve(target, lacks=None), inputs, step_key(effect_key, step))


def _prepare(target: PlannedStep, inputs: Mapping[str, JSON], key: str) -> PlannedStep:
    request = target.connector.prepare(target.step.operation, inputs, target.base_url, key)
    return evolve(target, request=request)


def _check_unapproved(steps: Iterable[PlannedStep]) -> None:
    """Refuse operations that need an approval, in steps that run without one.

    :raises CapabilityDenied: if the connector declares that an operation of C{steps} needs an approval.
    """
    for each in steps:
        if each.operation.needs_approval:
            raise CapabilityDenied(
                f"{each.step.operation} of {each.description.name} needs an approval before it runs: "
                f"{each.operation.needs_approval}. Set `required = true` under `[approval]` in the action's file."
            )


def _lacking(step: Step, shown: Preview) -> str | None:
    """Return a sentence on the value that C{step} uses and the preview does not show, or None if it shows all."""
    paths = preview_paths(step.inputs)
    if paths and shown.status is not PreviewStatus.SHOWN:
        return f"It cannot be approved without its preview, to which the step {step.id} is tied."
    missing = next((path for path in paths if path not in shown.carried), None)
    if missing is None:
        return None
    return f"It cannot be approved: the step {step.id} is tied to `{missing}`, which the preview does not show."


def _base_url(description: ConnectorDescription, binding: Binding | None) -> str:
    chosen = binding.base_url if binding is not None and description.bindable else None
    base_url = chosen or description.base_url
    if base_url is None:
        raise BindingRequired(
            f"The binding of {description.name} has no base URL, and the connector has no default.",
            {"connector": description.name},
        )
    return base_url


def _reading(rule: PreviewRule) -> Step:
    return Step("preview", rule.connector, rule.operation, rule.args)
