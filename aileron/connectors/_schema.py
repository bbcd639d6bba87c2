"""Parses the bytes of a connector file into a specification, or all faults with their lines."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from attrs import frozen

from aileron.base.json import JSON, digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.tables import ANY_TEXT, FileFaults, FileTable
from aileron.base.toml import NotToml, read_toml

from ._files import BOUNDARY, ConnectorFile
from ._identity import USUAL_KIND, read_identity
from .kind import ConnectorKind
from .kinds import KindTable


@frozen
class FileReading:
    """The result of reading a file: a specification and its kind, or faults."""

    spec: Any
    problems: tuple[LoadError, ...] = ()
    kind: ConnectorKind[Any] | None = None


def read_connector(file: ConnectorFile, kinds: KindTable) -> FileReading:
    """Parse a connector file, or return the error of reading it."""
    if file.data is None:
        return FileReading(None, (file.problem,) if file.problem else ())
    return read_file(file.data, file.name, file.scheme, kinds)


@lru_cache(maxsize=64)
def read_file(data: bytes, file: str, scheme: str | None = None, kinds: KindTable | None = None) -> FileReading:
    """Parse the bytes of a connector file. If the file has faults, the result contains only the faults.

    The result is cached, since some commands read shipped files several times.

    :param file: its name, for the faults.
    :param scheme: C{builtin} or C{local}, if the name must begin with it.
    :param kinds: the known kinds, or None for those that ship with Aileron.
    """
    try:
        toml = read_toml(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _refuse_unparsed("is not UTF-8", file)
    except NotToml as error:
        return _refuse_unparsed(error.problem, file, error.line)
    faults = FileFaults(file, toml, BOUNDARY)
    found = read_document(FileTable(toml.values, (), faults), digest_of_bytes(data), scheme, kinds or KindTable())
    return FileReading(None, faults.in_order()) if faults.found else found


def _refuse_unparsed(what: str, file: str, line: int | None = None) -> FileReading:
    return FileReading(None, (LoadError("parse_error", what, file, line, BOUNDARY),))


def read_document(document: FileTable, content_hash: str, scheme: str | None, kinds: KindTable) -> FileReading:
    """Read the whole of a file. Faults are added to the document. If there are any, the result is not valid."""
    head = document.table("connector", required=True)
    name = head.choice("kind", kinds.names, USUAL_KIND)
    head.text("description", ANY_TEXT, required=False)  # for people who read the file
    kind = kinds.find(name)
    spec = kind.read(document, head, read_identity(head, content_hash, scheme))
    head.close()
    document.close()
    return FileReading(spec, kind=kind)


def make_schema(kinds: KindTable) -> dict[str, Any]:
    """Return the JSON Schema of connector files: a form for each kind. Files without a kind use the default form."""
    forms: dict[str, dict[str, Any]] = {each.name: dict(each.schema()) for each in kinds.known}
    shared: dict[str, Any] = {}
    for form in forms.values():
        shared |= form.pop("$defs", {})
    chosen: dict[str, JSON] = {"$ref": f"#/$defs/{USUAL_KIND}"}
    for name in filter(lambda each: each != USUAL_KIND, forms):
        named: JSON = {"required": ["kind"], "properties": {"kind": {"const": name}}}
        is_it: JSON = {"required": ["connector"], "properties": {"connector": named}}
        chosen = {"if": is_it, "then": {"$ref": f"#/$defs/{name}"}, "else": chosen}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A connector file of Aileron",
        **chosen,
        "$defs": {**forms, **shared},
    }
