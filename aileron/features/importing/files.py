"""Converts a description of an API to files: a connector file, and an action file for each operation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import tomlkit
from attrs import evolve, frozen
from tomlkit.items import AoT, InlineTable, Item, Table
from tomlkit.toml_document import TOMLDocument

from aileron.actions import MAX_CHOICES, MAX_LENGTH, ManifestFault, parse
from aileron.base.json import JSON, strings_in
from aileron.base.text import visible
from aileron.model.connectors import READ

from ._fitting import fit
from ._headlines import write_presentation
from .description import ARGUMENT, BODY, HEADER, QUERY, ApiDescription, ApiOperation, ApiParameter, NotImported

MOST_WORDS, MOST_BODY = 400, 2000
VERSION = "1.0.0"
_HTTP = "http"
_OPTIONAL = "optional_body"
_ANY_CONNECTOR = "local://me/x"
MARK = "TODO(import): "

_MOST_COLUMNS = 120
_MOST_NAME = 64
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_REFERENCE = re.compile(r"\$\{in\.([a-z][a-z0-9_]*)\}")
_TAG = re.compile(r"<[/a-zA-Z][^<>]{0,200}>")
_BLANKS = re.compile(r"\s+")
_KEYS = {"minimum": "minimum", "maximum": "maximum", "maxLength": "max_length", "format": "format", "enum": "enum"}
_FORMATS = ("email", "uri", "date", "date-time")


@frozen
class WrittenFile:
    """The name and text of a file that is not stored yet.

    :ivar name: the file's name, without a directory.
    """

    name: str
    text: str


@frozen
class WrittenFiles:
    """The files of one import.

    :ivar marks: texts about what could not be derived; the files contain the same texts as TODO lines.
    :ivar refused: the reasons of the operations that are in no file, by name.
    :ivar replaced: the operations that the existing connector file defined differently.
    """

    connector: WrittenFile
    actions: tuple[WrittenFile, ...]
    marks: tuple[str, ...]
    refused: Mapping[str, str]
    replaced: tuple[str, ...] = ()


def write_connector(description: ApiDescription, *, existing: str = "", with_actions: bool = True) -> WrittenFiles:
    """Make the connector file, and an action file for each operation. Nothing is stored.

    :param existing: the text of a connector file to which the operations are added, replacing those of the same name;
        empty to make a new file.
    :raises NotImported: if C{existing} belongs to another connector or leads to another host.
    """
    fitted = [_written(fit(each), with_actions=with_actions) for each in description.operations]
    operations = [each for each in fitted if not each.refused]
    document = _extended(existing, description) if existing else _head(description)
    tables = document.setdefault("operations", tomlkit.table(is_super_table=True))
    replaced = []
    for each in operations:
        table = _operation_table(each, with_actions=with_actions)
        known = tables.get(each.name)
        if known is None or known.unwrap() != table.unwrap():
            replaced += [] if known is None else [each.name]
            tables[each.name] = table
    short = description.name.rpartition("/")[2]
    named = dict(zip(_action_names(short, operations), operations, strict=True)) if with_actions else {}
    actions = [_action(description.name, name, each) for name, each in named.items()]
    marks = [*description.marks, *(description.credential.marks if description.credential else ())]
    marks += [f"{each.name}: {mark}" for each in operations for mark in _all_marks(each)]
    return WrittenFiles(
        WrittenFile(f"{short}.toml", tomlkit.dumps(document)),
        tuple(actions),
        tuple(map(one_line, marks)),
        {each.name: one_line(each.refused) for each in fitted if each.refused},
        tuple(replaced),
    )


def _written(operation: ApiOperation, *, with_actions: bool) -> ApiOperation:
    """Return the operation as it is, or refused with a reason if no valid files can be made of it."""
    if operation.refused:
        return operation
    try:
        table = _operation_table(operation, with_actions=with_actions).unwrap()
        action = _action(_ANY_CONNECTOR, "action", operation)
        if with_actions:
            parse(action.text.encode(), action.name)
    except ManifestFault as fault:
        return evolve(operation, refused=f"its action would have an error: {fault.errors[0].message}")
    except ValueError as problem:
        return evolve(operation, refused=str(problem))
    lost = ", ".join(_lost_inputs(operation, table))
    return evolve(operation, refused=f"{lost} would not reach its request") if lost else operation


def _lost_inputs(operation: ApiOperation, table: Mapping[str, JSON]) -> list[str]:
    """Return the names of inputs that no part of the operation's request uses."""
    request = {key: each for key, each in table.items() if key != "present"}
    used = {name for text in strings_in(request) for name in _REFERENCE.findall(text)}
    return [each.name for each in operation.parameters if operation.method and each.name not in used]


def one_line(text: str, most: int = MOST_WORDS) -> str:
    """Return foreign text as one line: without HTML tags, with invisible characters escaped, and shortened."""
    plain = visible(_BLANKS.sub(" ", _TAG.sub("", text[: most * 4])).strip())
    return plain if len(plain) <= most else plain[: most - 1].rstrip() + "…"


def _all_marks(operation: ApiOperation) -> Iterator[str]:
    yield from operation.marks
    for each in operation.parameters:
        yield from (f"{each.name}: {mark}" for mark in each.marks)


def _head(description: ApiDescription) -> TOMLDocument:
    document = tomlkit.document()
    keys: dict[str, JSON] = {"name": description.name, "version": VERSION, "description": one_line(description.title)}
    if description.kind != _HTTP:
        keys["kind"] = description.kind
    if description.base_url or description.kind == _HTTP:
        keys["base_url"] = description.base_url or {"bindable": True}
    if description.base_url.startswith("http://"):
        keys["private_network"] = True
    document.add("connector", _table({key: value for key, value in keys.items() if value}, description.marks))
    if description.variables:
        document.add("variables", _variables(description))
    if description.hosts:
        document.add("hosts", _table(description.hosts))
    for name, further in description.extra.items():
        document.add(name, _table(further))
    if description.credential is not None:
        document.add("credential", _table(description.credential.keys, description.credential.marks))
    return document


def _extended(existing: str, description: ApiDescription) -> TOMLDocument:
    """Return the text of an existing connector file with the hosts and scopes added that further operations need.

    :raises NotImported: if the file belongs to another connector, or its base URL or hosts contradict the description.
    """
    document = tomlkit.parse(existing)
    head = document.get("connector", {})
    if head.get("name") != description.name:
        problem = f"The connector file belongs to another connector: {head.get('name')}. Nothing was written."
        raise NotImported(problem, "Choose another --name.")
    base_url = head.get("base_url")
    if description.base_url and isinstance(base_url, str) and base_url != description.base_url:
        problem = (
            f"The connector file leads to {base_url}, and this document to {description.base_url}. Nothing was written."
        )
        raise NotImported(problem, f"Choose another --name. If it is the same service: --base-url {base_url}")
    hosts = document.setdefault("hosts", tomlkit.table()) if description.hosts else {}
    for name, url in description.hosts.items():
        if hosts.setdefault(name, url) != url:
            raise NotImported(
                f"The connector file has another host named {name}. Nothing was written.", "Choose another --name."
            )
    known = document.get("credential", {}).get("scopes")
    for scope in (each for operation in description.operations for each in operation.scopes):
        if known is not None and scope not in known:
            known.append(scope)
    return document


def _variables(description: ApiDescription) -> Table:
    table = tomlkit.table(is_super_table=True)
    for each in description.variables:
        said = {"title": each.title, "pattern": each.pattern, "example": each.example, "default": each.default}
        table.add(each.name, _table({key: text for key, text in said.items() if text is not None}))
    return table


def _operation_table(operation: ApiOperation, *, with_actions: bool) -> Table:
    keys: dict[str, JSON] = {"description": one_line(operation.title or operation.description)}
    if operation.host:
        keys["host"] = operation.host
    request = _request(operation) if operation.method else {}
    if operation.body not in request:
        operation = evolve(operation, extra={key: each for key, each in operation.extra.items() if key != _OPTIONAL})
    keys |= {**request, **{key: value for key, value in operation.extra.items() if key not in request}}
    keys["effect"] = operation.effect
    if operation.effect != READ:
        keys["destructive"] = operation.destructive
    presentation = write_presentation(operation)
    if presentation is not None:
        keys["present"] = presentation
    if operation.scopes:
        keys["scopes"] = list(operation.scopes)
    keys |= {key: value for key, value in (("error", operation.error), ("pages", operation.pages)) if value}
    marks = operation.marks if with_actions else tuple(_all_marks(operation))
    return _table({key: value for key, value in keys.items() if value != ""}, marks)


def _request(operation: ApiOperation) -> dict[str, JSON]:
    """Return the keys of the request, with a reference to an input for each parameter."""
    keys: dict[str, JSON] = {"method": operation.method, "path": _PLACEHOLDER.sub(r"${in.\1}", operation.path)}
    for key, place in (("query", QUERY), ("headers", HEADER)):
        same = operation.extra.get(key)
        if own := _references(operation, place):
            keys[key] = {**own, **(same if isinstance(same, Mapping) else {})}
    if operation.body and (body := _body(operation)) is not None:
        keys[operation.body] = body
    return keys


def _references(operation: ApiOperation, place: str) -> dict[str, JSON]:
    return {each.steps[0]: f"${{in.{each.name}}}" for each in operation.parameters if each.place == place}


def _body(operation: ApiOperation) -> JSON:
    """Return the template of the body, or None if the body is empty."""
    body: dict[str, JSON] = {}
    for steps, value in operation.constant:
        _put(body, steps, value)
    for each in operation.parameters:
        if each.place == BODY and not each.steps:
            return f"${{in.{each.name}}}"
        if each.place == BODY:
            _put(body, each.steps, f"${{in.{each.name}}}")
    return body or None


def _put(body: dict[str, JSON], steps: Sequence[str], value: JSON) -> None:
    for step in steps[:-1]:
        inside = body.setdefault(step, {})
        if not isinstance(inside, dict):
            raise ValueError(f"the body has {step} as a value and as an object")
        body = inside
    body[steps[-1]] = value


def _action_names(short: str, operations: Sequence[ApiOperation]) -> Sequence[str]:
    """Return a unique name of an action for each operation, made of the connector's and the operation's names."""
    found: dict[str, None] = {}
    for each in operations:
        plain = f"{short}-{each.name.removeprefix(f'{short}_')}".replace("_", "-")[:_MOST_NAME].rstrip("-.")
        number, name = 1, plain
        while name in found:
            number += 1
            name = f"{plain[: _MOST_NAME - 5]}-{number}"
        found[name] = None
    return [*found]


def _action(connector: str, name: str, operation: ApiOperation) -> WrittenFile:
    document = tomlkit.document()
    document.add("name", tomlkit.item(name))
    document.add("version", tomlkit.item(VERSION))
    requires = tomlkit.table(is_super_table=True)
    pin: dict[str, JSON] = {"name": connector, "version": VERSION, "capabilities": [operation.name]}
    requires.add("connectors", AoT([_table(pin)]))
    document.add("requires", requires)
    if operation.parameters:
        document.add("inputs", AoT([_input(each) for each in operation.parameters]))
    step = {"id": operation.name[:32].rstrip("_"), "connector": connector, "op": operation.name}
    given = {
        each.steps[0] if each.place == ARGUMENT else each.name: f"${{args.{each.name}}}"
        for each in operation.parameters
    }
    document.add("execute", AoT([_table({**step, "inputs": given} if given else step)]))
    document.add("approval", _table({"required": operation.effect != READ or operation.asked}))
    title = one_line(operation.title, 100) or operation.name.replace("_", " ").capitalize()
    words = one_line(operation.description, MOST_BODY)
    words = words if words and words != title else _words(title, operation)
    return WrittenFile(f"{name}.md", f"+++\n{tomlkit.dumps(document).strip()}\n+++\n# {title}\n\n{words}\n")


def _words(title: str, operation: ApiOperation) -> str:
    """Return a text for the model about an operation, if the document has no description of it."""
    request = f"{operation.method} {operation.path}" if operation.method else f"{operation.name}"
    given = [f"{each.name}{'' if each.required else ' (optional)'}" for each in operation.parameters]
    takes = f" It takes {', '.join(given)}." if given else ""
    return one_line(f"{title.rstrip('.')}. Calls {request}.{takes}", MOST_BODY)


def _input(parameter: ApiParameter) -> Table:
    schema = dict(parameter.schema)
    said = one_line(parameter.description or str(schema.pop("description", "")))
    schema.pop("description", None)
    keys: dict[str, JSON] = {"name": parameter.name}
    plain = _plain_keys(schema)
    keys |= plain if plain is not None else {}
    keys["description"] = said or parameter.name.replace("_", " ").capitalize()
    if not parameter.required:
        keys["required"] = False
    if plain is None:
        keys["schema"] = schema
    return _table(keys, parameter.marks)


def _plain_keys(schema: Mapping[str, JSON]) -> dict[str, JSON] | None:
    """Return the plain keys of an input that express a schema, or None if only the key C{schema} can express it."""
    keys: dict[str, JSON] = {"type": schema["type"]}
    for key, value in schema.items():
        if key == "items" and isinstance(value, Mapping) and value.keys() <= {"type"} and value.get("type") != "array":
            keys |= {"items_type": value["type"]} if value else {}
        elif key in _KEYS and _is_plain(schema["type"], key, value):
            keys[_KEYS[key]] = value
        elif key != "type":
            return None
    return keys


def _is_plain(kind: JSON, key: str, value: JSON) -> bool:
    if key == "format":
        return value in _FORMATS
    if key == "enum":
        return kind != "boolean" and isinstance(value, list) and len(value) <= MAX_CHOICES
    return key != "maxLength" or (isinstance(value, int) and 1 <= value <= MAX_LENGTH)


def _table(keys: Mapping[str, JSON], marks: Sequence[str] = ()) -> Table:
    """Make a TOML table, with C{marks} as comment lines first. A value too long for a line becomes a table below."""
    table = tomlkit.table()
    for each in marks:
        table.add(tomlkit.comment(MARK + one_line(each)))
    below: dict[str, Table] = {}
    for key, value in keys.items():
        item = _item(value)
        if isinstance(item, InlineTable) and isinstance(value, Mapping) and len(item.as_string()) > _MOST_COLUMNS:
            below[key] = _table(value)
        else:
            table.add(key, item)
    for key, inside in below.items():
        table.add(key, inside)
    return table


def _item(value: JSON) -> Item:
    if isinstance(value, Mapping):
        inline = tomlkit.inline_table()
        for key, each in value.items():
            inline.append(key, _item(each))
        return inline
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        for each in value:
            array.append(_item(each))
        return array
    return tomlkit.item(value)
