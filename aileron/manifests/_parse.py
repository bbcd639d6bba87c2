"""An action file's bytes as an action, or every reason why they are none."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.logger import Logger

from aileron.values import JSON, SEMVER, Action, ConnectorPin, LoadError, digest_of_bytes, schema_problem

from ._approval import read_approval, with_preview
from ._faults import UNREADABLE, Faults, ManifestFault, brief
from ._inputs import MAX_INPUTS, read_inputs
from ._json_schema import input_schema
from ._limits import read_limits
from ._source import read_source
from ._steps import MAX_STEPS, Scope, read_steps
from ._table import Rule, Table, repeated
from ._tool_names import tool_name

_log = Logger()

MAX_CONNECTORS = 16
DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS = 60.0, 3600.0
RESERVED_TOOL_NAMES = frozenset(
    {"check_action_status", "aileron_diagnostics", "search_actions", "describe_action", "run_action"}
)

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_OWNED = rf"(?:github|gitlab|hub|local)://{_SEGMENT}(?:/{_SEGMENT})+"

_NAME = Rule.shape(r"[a-z0-9][a-z0-9._-]{0,63}", "must match ^[a-z0-9][a-z0-9._-]*$, with at most 64 characters")
_VERSION = Rule.shape(SEMVER, "must be a semantic version such as 1.0.0, without a leading v")
_SOURCE = Rule.shape(rf"{_OWNED}@{SEMVER}", "must look like github://owner/path@1.0.0 (or gitlab, hub, local)")
_FQN = Rule.shape(
    rf"builtin://{_SEGMENT}|{_OWNED}", "must look like builtin://name or github://owner/path (or gitlab, hub, local)"
)
_HASH = Rule.shape(r"sha256:\S+", "must begin with sha256: and go on")

_KEYS = (
    "name",
    "version",
    "source",
    "requires",
    "match",
    "inputs",
    "execute",
    "approval",
    "limits",
    "output",
    "timeout_seconds",
)
_LATER_KEYS = ("late_fields",)


def parse(data: bytes, path: str) -> Action:
    """The action that C{data} describes.

    :param path: where the bytes came from; faults and the action name it.
    :raises ManifestFault: with every fault of the file, each with its line.
    """
    try:
        return _parsed(data, path)
    except ManifestFault:
        raise
    except Exception as error:  # whatever a file makes of our reading, the other files are read
        _log.failure("reading the action file {path}", path=path)
        raise ManifestFault((LoadError(UNREADABLE, f"the file cannot be read: {brief(repr(error))}", path),)) from error


def _parsed(data: bytes, path: str) -> Action:
    source = read_source(data, path)
    root = Table(source.toml.values, (), Faults(path, source.toml, source.offset))
    action = _read_action(root, data, source.body, path)
    root.faults.raise_if_any()
    return action


def _read_action(root: Table, data: bytes, body: str, path: str) -> Action:
    name, version = _read_name(root), root.text("version", _VERSION)
    requires = _read_pins(root)
    inputs = read_inputs(root.tables("inputs", MAX_INPUTS, required=False))
    asking = root.table("approval")
    approval = read_approval(asking)
    pins, names = {pin.name: pin for pin in requires}, {one.name for one in inputs}
    scope = Scope(pins, names, approval.required, "preview" in asking.values)
    steps = read_steps(root.tables("execute", MAX_STEPS), scope)
    action = Action(
        name=name,
        version=version,
        source=root.text("source", _SOURCE, required=False) or f"local://me/{name}@{version}",
        intent=_read_intent(root, body),
        body=body,
        tool_name=tool_name(name),
        requires=requires,
        inputs=inputs,
        steps=steps,
        approval=with_preview(approval, asking, scope, steps),
        timeout_seconds=_read_timeout(root),
        input_schema=input_schema(inputs),
        digest=digest_of_bytes(data),
        path=path,
        text=data.decode("utf-8"),
        caps=read_limits(root.table("limits"), {one.name for one in inputs}),
        output_schema=_read_output(root),
    )
    root.close(_KEYS, _LATER_KEYS)
    return action


def _read_name(root: Table) -> str:
    name = root.text("name", _NAME)
    if tool_name(name) in RESERVED_TOOL_NAMES:
        root.fault("name", f"the tool name `{tool_name(name)}` is Aileron's own; choose another name")
    return name


def _read_pins(root: Table) -> tuple[ConnectorPin, ...]:
    requires = root.table("requires", required=True)
    requires.close(("connectors",))
    if "requires" not in root.values:
        return ()
    tables = requires.tables("connectors", MAX_CONNECTORS)
    pins = [_read_pin(table) for table in tables]
    for index in repeated([pin.name for pin in pins]):
        tables[index].fault("name", f"the connector `{pins[index].name}` is required twice")
    return tuple(pins)


def _read_pin(table: Table) -> ConnectorPin:
    name = table.text("name", _FQN)
    pin = ConnectorPin(
        name=name,
        version=table.text("version", _VERSION),
        capabilities=table.texts("capabilities"),
        hash=table.text("hash", _HASH, required=not name.startswith(("builtin://", "local://"))) or None,
    )
    table.close(("name", "version", "hash", "capabilities"))
    return pin


def _read_intent(root: Table, body: str) -> str:
    match = root.table("match")
    match.close(("intent",))
    if not body.strip() and not match.values:
        root.fault(None, "write a body, or `[match] intent`: the model must be told what the action is for")
    return match.text("intent", required=isinstance(root.values.get("match"), dict))


def _read_output(root: Table) -> Mapping[str, JSON] | None:
    schema = root.json("output") if "output" in root.values else None
    if not isinstance(schema, Mapping):
        if "output" in root.values:
            root.fault("output", "`output` must be a table")
        return None
    problem = schema_problem(schema)
    if problem is not None:
        root.fault("output", f"`output` {problem}")
    return schema


def _read_timeout(root: Table) -> float:
    seconds = root.number("timeout_seconds", 1, MAX_TIMEOUT_SECONDS)
    return DEFAULT_TIMEOUT_SECONDS if seconds is None else float(seconds)
