"""From the bytes of a connector file to its specification, or to every fault with its line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from aileron.addresses import BaseUrl, read_host_and_port
from aileron.credentials import KINDS
from aileron.toml import NotToml, Toml, read_toml
from aileron.values import READ, SEMVER, ConnectorDescription, CredentialNeed, LoadError, digest_of_bytes

from ._decode import shown
from ._headers import credential_format, credential_header
from ._lookup import Lookup
from ._operation import read_operation
from ._prepare import own_base_url
from ._spec import HttpOperation, HttpSpec
from ._table import FileFaults, FileTable

BOUNDARY = "connector_manifest"

_MOST_FAULTS = 50
_SEGMENT = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?"
_NAME = re.compile(rf"(builtin|local)://{_SEGMENT}(?:/{_SEGMENT})*")
_VERSION = re.compile(SEMVER)
_OPERATION = re.compile(r"[a-z][a-z0-9_]*")


@frozen
class FileReading:
    """The result of reading a file: a specification, or faults."""

    spec: HttpSpec | None
    problems: tuple[LoadError, ...] = ()


def read_file(data: bytes, file: str, scheme: str | None = None) -> FileReading:
    """Read the bytes of a connector file.

    :param file: its name, for the faults.
    :param scheme: C{builtin} or C{local}, if the name must begin with it.
    """
    try:
        toml = read_toml(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _unparsed("is not UTF-8", file)
    except NotToml as error:
        return _unparsed(error.problem, file, error.line)
    faults = FileFaults()
    spec = _connector(FileTable((), toml.values, faults), digest_of_bytes(data), scheme)
    return FileReading(None, _problems(faults, file, toml)) if faults.found else FileReading(spec)


def _unparsed(what: str, file: str, line: int | None = None) -> FileReading:
    return FileReading(None, (LoadError("parse_error", what, file, line, BOUNDARY),))


def _problems(faults: FileFaults, file: str, toml: Toml) -> tuple[LoadError, ...]:
    told = faults.found[:_MOST_FAULTS]
    return tuple(LoadError("validation_error", shown(what), file, toml.line(where), BOUNDARY) for where, what in told)


def _connector(document: FileTable, content_hash: str, scheme: str | None) -> HttpSpec:
    head = document.table("connector", required=True) or FileTable(("connector",), {}, FileFaults())
    need = _credential(document.table("credential"))
    private_network = head.flag("private_network", default=False)
    operations = _operations(document, need.header if need else None)
    chosen, bindable = _base_url(head, private_network=private_network)
    description = ConnectorDescription(
        fqn=_name(head, scheme),
        version=head.read("version", _version, "", required=True),
        content_hash=content_hash,
        base_url=chosen.url if chosen else None,
        bindable=bindable,
        hosts=_hosts(head, chosen, bindable=bindable),
        operations={name: each.operation for name, each in operations.items()},
        credential=need,
    )
    head.text("description")  # for whoever reads the file
    head.close()
    document.close()
    return HttpSpec(description, operations, private_network)


def _name(head: FileTable, scheme: str | None) -> str:
    name = head.text("name", required=True)
    if name and not _NAME.fullmatch(name):
        head.fault(
            "name", "must be local:// and one or more parts of a-z, 0-9, '-' and '_', such as local://me/tracker"
        )
    elif name and scheme is not None and not name.startswith(f"{scheme}://"):
        head.fault("name", f"must begin with {scheme}:// here")
    return name


def _version(text: str) -> str:
    if not _VERSION.fullmatch(text):
        raise ValueError("must be a version such as 1.0.0")
    return text


def _base_url(head: FileTable, *, private_network: bool) -> tuple[BaseUrl | None, bool]:
    table = head.table("base_url", required=True)
    if table is None:
        return None, False
    bindable = table.flag("bindable", default=False)
    chosen = table.read("default", lambda text: own_base_url(text, private_network=private_network), None)
    if "default" not in table.values and not bindable:
        table.fault("default", "is missing, and no binding may choose one")
    table.close()
    return chosen, bindable


def _hosts(head: FileTable, chosen: BaseUrl | None, *, bindable: bool) -> tuple[str, ...]:
    hosts = []
    for each in head.texts("hosts"):
        try:
            hosts.append(read_host_and_port(each))
        except ValueError as error:
            head.fault("hosts", f"{each!r} {error}")
    if chosen is not None and chosen.origin.host_and_port not in hosts:
        head.fault("hosts", f"must list the host of the base URL, {chosen.origin.host_and_port}")
    if not hosts and not bindable:
        head.fault("hosts", "must list at least one host:port")
    return tuple(hosts)


def _credential(table: FileTable | None) -> CredentialNeed | None:
    if table is None:
        return None
    need = CredentialNeed(
        kind=table.choice("kind", "", *KINDS),
        header=table.read("header", credential_header, "", required=True),
        format=table.read("format", credential_format, "{key}"),
    )
    table.close()
    return need


def _operations(document: FileTable, header: str | None) -> Mapping[str, HttpOperation]:
    table = document.table("operations", required=True)
    if table is None:
        return {}
    if not table.values:
        document.fault("operations", "must hold at least one operation")
    found = {}
    for name in table.values:
        inside = table.table(name)
        if not _OPERATION.fullmatch(name):
            table.fault(name, "must be named in a-z, 0-9 and '_'")
        if inside is not None:
            found[name] = read_operation(name, inside, header)
    for name, operation in found.items():
        if operation.lookup is not None and operation.lookup.operation:
            _check_lookup(operation.lookup, FileTable((*table.where, name, "reconcile"), {}, table.faults), found)
    return found


def _check_lookup(lookup: Lookup, table: FileTable, operations: Mapping[str, HttpOperation]) -> None:
    """Check that there is such a read, and that it takes what it would be given."""
    read = operations.get(lookup.operation)
    if read is None or read.operation.effect != READ:
        table.fault("op", "must name an operation of this file whose effect is read")
    elif read.answer != "json":
        table.fault("op", "must name a read whose answer is json")
    else:
        for name in sorted(set(lookup.inputs) - read.inputs):
            table.fault("inputs", f"{lookup.operation} takes no {name!r}")
