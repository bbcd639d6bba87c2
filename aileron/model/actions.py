"""Actions as the rest of the daemon sees them: parsed, validated, and pinned to the bytes of their files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.json import JSON
from aileron.base.load_error import LoadError

from .people import ApproverRule

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"

SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
"""The regular expression, without groups, of a full version (Semantic Versioning 2.0.0)."""

is_action_name = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch
"""A function that returns a match if a text is a valid action name, which is also the name of its file, else None."""


@frozen
class Input:
    """One declared argument of an action.

    :ivar type: C{string integer number boolean array object}.
    :ivar items_type: element type, for arrays only.
    :ivar has_default: True if C{default} is set, even to a false or empty value.
    :ivar max_length: the most characters of a string (65536 unless declared), or elements of an array if declared.
    :ivar format: a JSON Schema format for strings (C{email}, C{uri}, C{date}, C{date-time}), or None.
    :ivar schema: the JSON Schema (2020-12) that the author wrote for the argument, or None. It then contains the
        constraints, and C{items_type}, C{enum}, C{minimum}, C{maximum}, C{max_length} and C{format} are unset.
    :ivar ask: True if the person is asked for the value by a form when the call omits it and the client shows forms.
    """

    name: str
    type: str
    description: str
    items_type: str | None = None
    required: bool = True
    label: str | None = None
    multiline: bool = False
    enum: tuple[JSON, ...] | None = None
    default: JSON = None
    has_default: bool = False
    minimum: float | int | None = None
    maximum: float | int | None = None
    max_length: int | None = None
    format: str | None = None
    schema: Mapping[str, JSON] | None = None
    ask: bool = False


@frozen
class ConnectorPin:
    """The connector, version and (if written) content that an action was made for, with the operations it may call."""

    name: str
    version: str
    capabilities: tuple[str, ...]
    hash: str | None = None


@frozen
class Step:
    """One operation that an action performs. C{inputs} may contain C{${args.x}} and C{${steps.<id>.<path>}}."""

    id: str
    connector: str
    operation: str
    inputs: Mapping[str, JSON] = field(factory=dict)
    idempotent: bool | None = None


@frozen
class PreviewRule:
    """The rule of a preview: one read from the service whose result is shown to the operator before they decide.

    :ivar operation: the connector's operation, declared as an idempotent read.
    :ivar args: its inputs, like those of a step. Only C{${args.x}} is resolved.
    :ivar render: the label and the dotted path into the output of each field, in display order.
    :ivar multiline: the labels of fields that may be long.
    """

    connector: str
    operation: str
    args: Mapping[str, JSON] = field(factory=dict)
    render: tuple[tuple[str, str], ...] = ()
    multiline: tuple[str, ...] = ()


@frozen
class ApprovalRule:
    """The approval rule of an action file.

    :ivar undo_seconds: the seconds between an approval and the start of the run, in which the run can be withdrawn.
    :ivar cool_down_seconds: the seconds after a denial in which agents' identical calls are refused.
    :ivar withdrawn_on_cancel: True if a client's cancellation of its call withdraws the run while it is pending.
    :ivar replaced_on_repeat: True if an identical later request, of any session, withdraws the run while it is pending.
    :ivar by: see L{ApproverRule}.
    :ivar not_requester: see L{ApproverRule}.
    :ivar count: see L{ApproverRule}.
    """

    gated: bool = False
    expires_after_seconds: float | None = None
    preview: PreviewRule | None = None
    undo_seconds: float = 0.0
    cool_down_seconds: float = 600.0
    withdrawn_on_cancel: bool = False
    replaced_on_repeat: bool = False
    by: tuple[str, ...] = ()
    not_requester: bool = False
    count: int = 1

    @property
    def approvers(self) -> ApproverRule:
        """The rule about the people who may approve."""
        return ApproverRule((self.by,) if self.by else (), self.not_requester, self.count)


@frozen
class Cap:
    """A cap on the runs that may start within a time.

    :ivar seconds: the length of the window that ends now: an hour or a day.
    :ivar argument: the argument for each value of which runs are counted separately, or None to count all runs.
    :ivar per_session: True if runs are counted for each session separately.
    """

    most: int
    seconds: float
    argument: str | None = None
    per_session: bool = False


@frozen
class Inverse:
    """The action that undoes another action, and its arguments.

    :ivar arguments: templates like a step's inputs, with C{${args.x}} and C{${steps.<id>.<path>}} of the run to undo.
    """

    action: str
    arguments: Mapping[str, JSON] = field(factory=dict)


@frozen
class Action:
    """The complete content of one action file.

    :ivar digest: C{sha256:…} of the bytes that this value was parsed from.
    :ivar tool_name: the name as an MCP tool: only C{[a-z0-9_]}, with hyphens as underscores.
    :ivar input_schema: the JSON Schema (2020-12) of the arguments. C{additionalProperties} is false.
    :ivar timeout_seconds: the wall-clock limit of one execution, including retries.
    :ivar description: the Markdown for the model.
    :ivar text: the whole text of the file, which the operator is asked to trust.
    :ivar output_schema: the JSON Schema of the last step's output, if the file declares it.
    :ivar inverse: the action that undoes a completed run, if the file declares one.
    :ivar tags: words by which profiles select the action.
    """

    name: str
    version: str
    source: str
    intent: str
    description: str
    tool_name: str
    connectors: tuple[ConnectorPin, ...]
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    approval: ApprovalRule
    timeout_seconds: float
    input_schema: Mapping[str, JSON]
    digest: str
    path: str
    text: str = field(default="", repr=False)
    limits: tuple[Cap, ...] = ()
    output_schema: Mapping[str, JSON] | None = None
    inverse: Inverse | None = None
    tags: tuple[str, ...] = ()

    def order_arguments(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the arguments of a run in the order of the inputs. Arguments that are no longer inputs come last."""
        names = (*(each.name for each in self.inputs), *arguments)
        return {name: arguments[name] for name in names if name in arguments}


@frozen
class ActionFile:
    """The text of an action file, on disk or not yet written.

    :ivar action: the action that it declares, or None if the file has faults.
    :ivar faults: every fault, if the text was checked just now.
    """

    text: str = field(repr=False)
    digest: str
    action: Action | None
    faults: tuple[LoadError, ...] = ()


@frozen
class Catalogue:
    """The directory of actions at one moment.

    :ivar generation: a number that grows with each change and never repeats, even after a restart of the daemon.
    """

    generation: int
    actions: Mapping[str, Action]
    load_errors: tuple[LoadError, ...] = ()

    def updated(self, actions: Mapping[str, Action], load_errors: tuple[LoadError, ...]) -> Catalogue:
        """Return the catalogue after a read of the directory. If nothing changed, return this one."""
        found = evolve(self, actions=actions, load_errors=load_errors)
        return self if found == self else evolve(found, generation=self.generation + 1)


@frozen
class Offer:
    """An action that can run: its connectors are installed in the pinned version with the named operations.

    :ivar read_only: True if every step is a declared read.
    :ivar idempotent: True if every step is declared idempotent or a read.
    :ivar destructive: True if a step may change or remove existing things.
    :ivar irreversible: True if a change made by a step cannot be reversed, and no action undoes the step.
    :ivar own_hosts: the hosts of the base URLs that the files of its connectors declare.
    :ivar open_world: True if a step talks to something outside of the daemon.
    :ivar output_schema: the action's output schema, else that of its last step's operation, if declared.
    :ivar tools_only: True if only the requests of an agent's own tools may use it: agents are not offered it.
    """

    action: Action
    enabled: bool
    read_only: bool
    idempotent: bool
    destructive: bool = True
    open_world: bool = True
    output_schema: Mapping[str, JSON] | None = None
    irreversible: bool = False
    own_hosts: frozenset[str] = frozenset()
    tools_only: bool = False


@frozen
class Offering:
    """All actions that the daemon offers at one moment. Each change increases C{generation}."""

    generation: int
    offers: Mapping[str, Offer]
    load_errors: tuple[LoadError, ...] = ()
