"""The actions that a proof runs: one generated for each operation, and installed ones with sample arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from attrs import field, frozen

from aileron.actions import check_arguments
from aileron.base.json import JSON
from aileron.model.actions import Action
from aileron.model.connectors import ConnectorDescription
from aileron.model.errors import InvalidRequest

from ._double import Case

_NAME, _STEP = "proof", "only"
_MOST = 10_000
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
_ARGUMENT = re.compile(r"\$\{args\.(\w+)\}")
_FORMATS = {
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
}


@frozen
class ProofCall:
    """An action that a proof runs, with its arguments.

    :ivar step: the id of the action's only step.
    :ivar text: the text of the action file.
    """

    name: str
    step: str
    text: bytes = field(repr=False)
    arguments: Mapping[str, JSON] = field(repr=False)


def make_call(about: ConnectorDescription, case: Case) -> ProofCall:
    """Generate an action for one operation under test, with an argument for each input."""
    fqn, version, name = (json.dumps(each) for each in (about.name, about.version, case.operation.name))
    lines = [f'name = "{_NAME}"', 'version = "1.0.0"', "timeout_seconds = 3600"]
    lines += ["[[requires.connectors]]", f"name = {fqn}", f"version = {version}", f"capabilities = [{name}]"]
    for number, value in enumerate(case.inputs.values()):
        kind = _TYPES.get(type(value), "string")
        declared = f'schema = {{ type = "{kind}" }}' if kind in ("array", "object") else f'type = "{kind}"'
        lines += ["[[inputs]]", f'name = "a{number}"', 'description = "An input."', declared]
    given = ", ".join(f'{json.dumps(each)} = "${{args.a{number}}}"' for number, each in enumerate(case.inputs))
    lines += ["[[execute]]", f'id = "{_STEP}"', f"connector = {fqn}", f"op = {name}", f"inputs = {{ {given} }}"]
    if about.operations[case.operation.name].needs_approval:
        lines += ["[approval]", "required = true"]
    text = "\n".join(("+++", *lines, "+++", "Runs one operation for a proof.", "")).encode()
    return ProofCall(_NAME, _STEP, text, {f"a{number}": each for number, each in enumerate(case.inputs.values())})


def call_action(action: Action, about: ConnectorDescription, cases: Mapping[str, Case]) -> ProofCall | str:
    """Return a call of an installed action with sample arguments, or a clause why it cannot run in the proof.

    :raises InvalidRequest: if the action refuses the generated arguments.
    """
    step, preview = action.steps[0], action.approval.preview
    if len(action.steps) != 1:
        return f"it has {len(action.steps)} steps, and the double answers one"
    if preview is not None:
        return f"its preview reads {preview.operation}, and the double answers one operation"
    if step.operation not in cases:
        return f"there is no sample of {step.operation}"
    if not any((each.name, each.version) == (about.name, about.version) for each in action.connectors):
        return "it is for another version of the connector"
    arguments = _make_arguments(action, step.inputs, cases[step.operation].inputs)
    return ProofCall(action.name, step.id, action.text.encode("utf-8"), arguments)


def _make_arguments(action: Action, templates: Mapping[str, JSON], inputs: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Generate arguments: from the operation's sample for inputs passed on unchanged, else from the action's schema.

    :raises InvalidRequest: if the action refuses the arguments.
    """
    properties: Any = action.input_schema["properties"]
    made = {one.name: make_value(properties[one.name]) for one in action.inputs if one.required}
    found = {name: _ARGUMENT.fullmatch(each) for name, each in templates.items() if isinstance(each, str)}
    known = {match[1]: inputs[name] for name, match in found.items() if match is not None and name in inputs}
    with suppress(InvalidRequest):  # an action may accept less than its operation
        return check_arguments(action, {**made, **known})
    return check_arguments(action, made)


def make_value(schema: Mapping[str, Any], most: int = _MOST) -> JSON:
    """Generate a value that usually satisfies a JSON Schema.

    :param most: the maximal number of parts or characters, whatever the schema demands.
    """
    given: list[JSON] = [schema[key] for key in ("const", "default") if key in schema]
    given += [schema[key][0] for key in ("enum", "examples") if schema.get(key)]
    if given:
        return given[0]
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return make_value(options[0], most)
    kind = schema.get("type", "string")
    return _MAKERS[kind if isinstance(kind, str) else kind[0]](schema, most)


def _make_text(schema: Mapping[str, Any], most: int) -> str:
    text = _FORMATS.get(schema.get("format", ""), "sample")
    return text.ljust(min(schema.get("minLength", 0), most), "x")[: schema.get("maxLength")]


def _make_array(schema: Mapping[str, Any], most: int) -> JSON:
    count = max(1, min(schema.get("minItems", 1), most))
    return [make_value(schema.get("items", {}), most // count)] * count


def _make_number(schema: Mapping[str, Any], _most: int) -> JSON:
    usual: float = min(1, schema.get("maximum", 1))
    least: float = schema.get("minimum", usual)
    return max(usual, least)


def _make_object(schema: Mapping[str, Any], most: int) -> JSON:
    properties = schema.get("properties", {})
    return {name: make_value(properties.get(name, {}), most) for name in schema.get("required", ())}


_MAKERS: Mapping[str, Callable[[Mapping[str, Any], int], JSON]] = {
    "string": _make_text,
    "integer": _make_number,
    "number": _make_number,
    "boolean": lambda *_: True,
    "array": _make_array,
    "object": _make_object,
    "null": lambda *_: None,
}
