"""Actions as the rest of the daemon sees them: parsed, validated, pinned to the bytes they came from."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.json import JSON
from aileron.base.load_error import LoadError

_NUMBER = r"(?:0|[1-9][0-9]*)"
_LABEL = rf"(?:{_NUMBER}|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"

SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_LABEL}(?:\.{_LABEL})*)?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
"""The shape of a whole version (Semantic Versioning 2.0.0) as a regular expression, without groups of its own."""

is_action_name = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch
"""Tells whether an action can have this name, which is also that of its file."""


@frozen
class Input:
    """One declared argument.

    :ivar type: C{string integer number boolean array object}.
    :ivar items_type: element type, for arrays only.
    :ivar has_default: whether C{default} counts (a default may be false or empty).
    :ivar max_length: most characters of a string (65536 unless declared), or elements of an array if declared.
    :ivar format: a JSON Schema format for strings (C{email}, C{uri}, C{date}, C{date-time}), or L{None}.
    :ivar schema: the JSON Schema (2020-12) of the argument in the author's words, which C{type} is of; it says what
        else C{items_type}, C{enum}, C{minimum}, C{maximum}, C{max_length} and C{format} would, which are unset then.
    :ivar ask: for the person to say: where the call leaves it out and the agent's client can show a form, it is asked.
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
    """The one connector, version and (if written) content that an action was made for, and what it may call there."""

    name: str
    version: str
    capabilities: tuple[str, ...]
    hash: str | None = None


@frozen
class Step:
    """One operation of an action; C{inputs} may hold C{${args.x}} and C{${steps.<id>.<path>}}."""

    id: str
    connector: str
    operation: str
    inputs: Mapping[str, JSON] = field(factory=dict)
    idempotent: bool | None = None


@frozen
class PreviewRule:
    """The rule of a preview: one read of the service's side, rendered for the operator before they decide.

    :ivar operation: of the connector; declared a read, and idempotent.
    :ivar args: as a step's inputs; only C{${args.x}} is resolved.
    :ivar render: label and dotted path into the output, in the order in which they are shown.
    :ivar multiline: the labels whose text may be long.
    """

    connector: str
    operation: str
    args: Mapping[str, JSON] = field(factory=dict)
    render: tuple[tuple[str, str], ...] = ()
    multiline: tuple[str, ...] = ()


@frozen
class ApprovalRule:
    """The rule of approval in the manifest.

    :ivar undo_seconds: how long an approved run can still be taken back before it begins.
    :ivar cool_down_seconds: how long agents are refused the same call once it was denied.
    :ivar withdrawn_on_cancel: whether an agent's program that cancels its call takes back what still waits.
    """

    gated: bool = False
    expires_after_seconds: float | None = None
    preview: PreviewRule | None = None
    undo_seconds: float = 0.0
    cool_down_seconds: float = 600.0
    withdrawn_on_cancel: bool = False


@frozen
class Cap:
    """A cap on how many runs may begin within a time.

    :ivar seconds: of the window that ends now: an hour or a day.
    :ivar argument: counted for each value of this argument apart; L{None}: for the action.
    :ivar per_session: counted for each session apart.
    """

    most: int
    seconds: float
    argument: str | None = None
    per_session: bool = False


@frozen
class Inverse:
    """The action that undoes another one, and its arguments.

    :ivar arguments: as a step's inputs; C{${args.x}} and C{${steps.<id>.<path>}} of the run that is undone.
    """

    action: str
    arguments: Mapping[str, JSON] = field(factory=dict)


@frozen
class Action:
    """One action file, whole.

    :ivar digest: C{sha256:…} of the file's bytes, the very bytes this value was made from.
    :ivar tool_name: the name as an MCP tool: C{[a-z0-9_]}, kebab to snake.
    :ivar input_schema: JSON Schema (2020-12) of the arguments; C{additionalProperties} is false.
    :ivar timeout_seconds: wall-clock limit of one execution, retries included.
    :ivar description: the Markdown that the model reads.
    :ivar text: the file's text, whole: what the operator is asked to trust.
    :ivar output_schema: JSON Schema of the last step's output, where the file declares it.
    :ivar inverse: what undoes a completed run, where the file declares it.
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

    def order_arguments(self, arguments: Mapping[str, JSON]) -> dict[str, JSON]:
        """Return the arguments of a run in the order of the inputs; those that are no inputs any more come last."""
        names = (*(each.name for each in self.inputs), *arguments)
        return {name: arguments[name] for name in names if name in arguments}


@frozen
class ActionFile:
    """The text of an action file, as it is on disk or would be.

    :ivar action: what it declares; L{None}: it has faults.
    :ivar faults: every one, where the text was checked just now.
    """

    text: str = field(repr=False)
    digest: str
    action: Action | None
    faults: tuple[LoadError, ...] = ()


@frozen
class Catalogue:
    """The directory of actions at one moment.

    :ivar generation: grows with each change; never repeats in another life of the daemon.
    """

    generation: int
    actions: Mapping[str, Action]
    load_errors: tuple[LoadError, ...] = ()

    def after_a_look(self, actions: Mapping[str, Action], load_errors: tuple[LoadError, ...]) -> Catalogue:
        """Return the catalogue that a look at the directory makes of this one: itself, if it found nothing new."""
        found = evolve(self, actions=actions, load_errors=load_errors)
        return self if found == self else evolve(found, generation=self.generation + 1)


@frozen
class Offer:
    """An action that can run: its connectors are there, in the pinned version, with the named operations.

    :ivar read_only: every step is a declared read.
    :ivar idempotent: every step is declared idempotent (or a read).
    :ivar destructive: a step may change or remove what was there.
    :ivar open_world: a step talks to something outside of the daemon.
    :ivar output_schema: the action's, else that of its last step's operation, where one of them declares it.
    """

    action: Action
    enabled: bool
    read_only: bool
    idempotent: bool
    destructive: bool = True
    open_world: bool = True
    output_schema: Mapping[str, JSON] | None = None


@frozen
class Offering:
    """The offer of the daemon at one moment; same rules for C{generation} as in L{Catalogue}."""

    generation: int
    offers: Mapping[str, Offer]
    load_errors: tuple[LoadError, ...] = ()
