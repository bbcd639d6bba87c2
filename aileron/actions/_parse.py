"""Parses the bytes of an action file into the action, or into every fault of the file."""

from __future__ import annotations

import re

from attrs import define, frozen
from twisted.logger import Logger

from aileron.base.files import Unreadable, printable, read_file
from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.tables import FileFaults, FileTable, TextRule, brief, repeated
from aileron.base.toml import NotToml, Toml, read_toml
from aileron.model.actions import SEMVER, Action, ConnectorPin, Inverse, Step, is_action_name

from ._inputs import MAX_INPUTS, read_inputs
from ._rules import read_approval, read_limits, with_preview
from ._steps import MAX_STEPS, Place, StepScope, read_inputs_of, read_steps
from ._tool import input_schema, tool_name

_ONLY_HEADING = "the body is only a heading: write below it what the action does and when to use it, for the model"
MAX_FILE_BYTES = 256 * 1024
_FENCE = "+++"


@define(eq=False)
class ManifestFault(Exception):
    """Raised if a file is not a valid action.

    :ivar errors: every fault found, in the order of lines. Never empty.
    """

    errors: tuple[LoadError, ...]

    def __str__(self) -> str:
        """Return one line for each fault."""
        return "\n".join(f"{error.file}:{error.line or 1}: {error.message}" for error in self.errors)


def unreadable(fault: Unreadable) -> LoadError:
    """Return the fault of a file or directory that cannot be read."""
    return LoadError("unreadable", fault.problem, fault.path)


@frozen
class ActionSource:
    """The parts of an action file.

    :ivar toml: the front matter.
    :ivar offset: the number of lines before the front matter.
    :ivar body: the text after the front matter, verbatim.
    """

    toml: Toml
    offset: int
    body: str


def read_source(data: bytes, file: str) -> ActionSource:
    """Split C{data} into its parts: TOML between two lines of C{+++}, then the body.

    A byte order mark, blank lines before the first C{+++} and either kind of line end are accepted.

    :param file: the name of the file in faults.
    :raises ManifestFault: if C{data} is too large or no UTF-8, or has no front matter between two lines of C{+++}.
    """
    lines = _decode(data, file).split("\n")
    opening = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[opening].rstrip() != _FENCE:
        raise _fault(file, opening + 1, "the file must begin with a line `+++`, before anything else")
    closing = next((n for n, line in enumerate(lines) if n > opening and line.rstrip() == _FENCE), None)
    if closing is None:
        raise _fault(file, opening + 1, "the front matter that begins here has no closing line `+++`")
    text = "\n".join([*lines[opening + 1 : closing], ""]).replace("\r\n", "\n")
    return ActionSource(
        _front_matter(text, file, opening + 1, closing + 1), opening + 1, "\n".join(lines[closing + 1 :])
    )


def _decode(data: bytes, file: str) -> str:
    if len(data) > MAX_FILE_BYTES:
        raise _fault(file, None, f"the file is larger than {MAX_FILE_BYTES // 1024} KiB")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _fault(file, data[: error.start].count(b"\n") + 1, "the file is not UTF-8") from None


def _front_matter(text: str, file: str, offset: int, end: int) -> Toml:
    try:
        return read_toml(text)
    except NotToml as error:
        line = end if error.at_end else offset + (error.line or 0)
        raise _fault(file, line, f"the front matter {error.problem}") from None


def _fault(file: str, line: int | None, message: str) -> ManifestFault:
    return ManifestFault((LoadError("parse_error", message, file, line),))


_log = Logger()

MAX_CONNECTORS = 16
MAX_TAGS = 16
DEFAULT_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS = 60.0, 3600.0
RESERVED_TOOL_NAMES = frozenset(
    {"check_action_status", "aileron_diagnostics", "search_actions", "describe_action", "run_action"}
)

_SEGMENT = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_OWNED = rf"(?:github|gitlab|hub|local)://{_SEGMENT}(?:/{_SEGMENT})+"

_NAME = TextRule(is_action_name, "must match ^[a-z0-9][a-z0-9._-]*$, with at most 64 characters")
_VERSION = TextRule.shape(SEMVER, "must be a semantic version such as 1.0.0, without a leading v")
_SOURCE = TextRule.shape(rf"{_OWNED}@{SEMVER}", "must look like github://owner/path@1.0.0 (or gitlab, hub, local)")
_FQN = TextRule.shape(
    rf"builtin://{_SEGMENT}|{_OWNED}", "must look like builtin://name or github://owner/path (or gitlab, hub, local)"
)
_TAG = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_HASH = TextRule.shape(r"sha256:\S+", "must begin with sha256: and go on")


def parse(data: bytes, path: str) -> Action:
    """Parse the action that C{data} describes. An unexpected exception is logged, and becomes a fault.

    :param path: the path of the file, named by faults and by the action.
    :raises ManifestFault: if the file has faults. The error lists every fault with its line.
    """
    try:
        return _parse(data, path)
    except ManifestFault:
        raise
    except Exception as error:  # a parser bug triggered by one file must not prevent reading the others
        _log.failure("reading the action file {path}", path=path)
        raise ManifestFault(
            (unreadable(Unreadable(path, f"the file cannot be read: {brief(repr(error))}")),)
        ) from error


def _parse(data: bytes, path: str) -> Action:
    source = read_source(data, path)
    faults = FileFaults(path, source.toml, "action", source.offset)
    action = _read_action(FileTable(source.toml.values, (), faults), data, source.body, path)
    if faults.found:
        raise ManifestFault(faults.in_order())
    return action


def _read_action(root: FileTable, data: bytes, body: str, path: str) -> Action:
    name, version = _read_name(root), root.text("version", _VERSION)
    requires = _read_pins(root)
    inputs = read_inputs(root.tables("inputs", MAX_INPUTS, required=False))
    asking = root.table("approval")
    approval = read_approval(asking)
    pins, names = {pin.name: pin for pin in requires}, {one.name for one in inputs}
    scope = StepScope(pins, names, approval.gated, "preview" in asking.values)
    steps = read_steps(root.tables("execute", MAX_STEPS), scope)
    action = Action(
        name=name,
        version=version,
        source=root.text("source", _SOURCE, required=False) or f"local://me/{name}@{version}",
        intent=_read_intent(root, body),
        description=body,
        tool_name=tool_name(name),
        connectors=requires,
        inputs=inputs,
        steps=steps,
        approval=with_preview(approval, asking, scope, steps),
        timeout_seconds=_read_timeout(root),
        input_schema=input_schema(inputs),
        digest=digest_of_bytes(data),
        path=path,
        text=data.decode("utf-8"),
        limits=read_limits(root.table("limits"), {one.name for one in inputs}),
        output_schema=root.output_schema(),
        inverse=_read_inverse(root, scope, steps),
        tags=_read_tags(root),
    )
    root.close()
    return action


def _read_name(root: FileTable) -> str:
    name = root.text("name", _NAME)
    if tool_name(name) in RESERVED_TOOL_NAMES:
        root.fault("name", f"makes the tool name `{tool_name(name)}`, which is Aileron's own; choose another name")
    return name


def _read_pins(root: FileTable) -> tuple[ConnectorPin, ...]:
    requires = root.table("requires", required=True)
    if "requires" not in root.values:
        return ()
    tables = requires.tables("connectors", MAX_CONNECTORS)
    requires.close()
    pins = [_read_pin(table) for table in tables]
    for index in repeated([pin.name for pin in pins]):
        tables[index].fault("name", f"{pins[index].name!r} is required twice")
    return tuple(pins)


def _read_pin(table: FileTable) -> ConnectorPin:
    name = table.text("name", _FQN)
    pin = ConnectorPin(
        name=name,
        version=table.text("version", _VERSION),
        capabilities=table.texts("capabilities"),
        hash=table.text("hash", _HASH, required=not name.startswith(("builtin://", "local://"))) or None,
    )
    table.close()
    return pin


def _read_inverse(root: FileTable, scope: StepScope, steps: tuple[Step, ...]) -> Inverse | None:
    table = root.optional_table("undo")
    if table is None:
        return None
    place = Place("undo", {step.id for step in steps})
    inverse = Inverse(table.text("action", _NAME), read_inputs_of(table, "args", scope, place))
    table.close()
    return inverse


def _read_intent(root: FileTable, body: str) -> str:
    match = root.optional_table("match")
    if match is None:
        if not body.strip() and "match" not in root.values:
            root.faults.add((), "write a body, or `[match] intent`: the model must be told what the action is for")
        return ""
    intent = match.text("intent")
    match.close()
    return intent


def _read_tags(root: FileTable) -> tuple[str, ...]:
    tags = root.texts("tags", required=False)
    if len(tags) > MAX_TAGS or not all(map(_TAG.fullmatch, tags)) or len(set(tags)) < len(tags):
        root.fault("tags", f"must be at most {MAX_TAGS} different words of a-z, 0-9, ., _ and -")
        return ()
    return tags


def _read_timeout(root: FileTable) -> float:
    seconds = root.number("timeout_seconds", 1, MAX_TIMEOUT_SECONDS)
    return DEFAULT_TIMEOUT_SECONDS if seconds is None else float(seconds)


def check(path: str) -> list[LoadError]:
    """Return every fault of the action file at C{path}, or an empty list. Other files are not read.

    In addition to the faults that prevent loading, a body that is only a heading is a fault.
    """
    try:
        action = parse(read_file(path, MAX_FILE_BYTES).data, printable(path))
    except Unreadable as fault:
        return [unreadable(fault)]
    except ManifestFault as fault:
        return list(fault.errors)
    if not action.intent.strip() and not any(map(_is_told, action.description.splitlines())):
        return [LoadError("validation_error", _ONLY_HEADING, printable(path))]
    return []


def _is_told(line: str) -> bool:
    """Return whether a line of the body is text for the model. A heading is not: it becomes the title of the tool."""
    return bool(line.strip()) and not line.lstrip().startswith("#")
