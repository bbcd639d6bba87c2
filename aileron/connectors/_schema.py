"""From the bytes of a connector file to its specification, or to every fault with its line."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from attrs import frozen

from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.base.tables import ANY_TEXT, FileFaults, FileTable, TextRule
from aileron.base.toml import NotToml, read_toml
from aileron.credentials import DISCOVER, KINDS, PRIVATE_NETWORK, RESOURCE, CredentialKind, SettingRule, SshKey
from aileron.model.actions import SEMVER
from aileron.model.connectors import READ, ConnectorDescription, CredentialNeed
from aileron.model.places import fill

from ._files import BOUNDARY, ConnectorFile
from ._headers import credential_format, header_name
from ._operations import Identity, read_operations
from ._places import read_places
from .kinds.command import CommandSpec, read_command
from .kinds.command._environment import read_program_credential
from .kinds.git import OPERATIONS, read_git
from .kinds.http import HttpOperation, HttpSpec, Lookup, read_operation
from .kinds.mail import LOGIN_HEADER, LOGINS, MailSpec, read_mail
from .kinds.mcp import McpSpec, read_mcp

HTTP, GIT, COMMAND, MAIL, MCP = "http", "git", "command", "mail", "mcp"
KINDS_OF_CONNECTOR = (HTTP, GIT, COMMAND, MAIL, MCP)
"""What a connector file can be about."""

_SEGMENT = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?"
NAME = rf"(builtin|local)://{_SEGMENT}(?:/{_SEGMENT})*"
_NAME = TextRule.shape(
    NAME,
    "must be local:// and one or more parts of a-z, 0-9, '-' and '_', such as local://me/tracker",
)
_VERSION = TextRule.shape(SEMVER, "must be a version such as 1.0.0")

Spec = HttpSpec | CommandSpec | MailSpec | McpSpec
"""What is read of a connector file, whatever its kind."""


@frozen
class FileReading:
    """The result of reading a file: a specification, or faults."""

    spec: Spec | None
    problems: tuple[LoadError, ...] = ()


def read_connector(file: ConnectorFile) -> FileReading:
    """Read a connector file as it was found."""
    if file.data is None:
        return FileReading(None, (file.problem,) if file.problem else ())
    return read_file(file.data, file.name, file.scheme)


@lru_cache(maxsize=64)
def read_file(data: bytes, file: str, scheme: str | None = None) -> FileReading:
    """Read the bytes of a connector file; what ships with the package is read several times by some commands.

    :param file: its name, for the faults.
    :param scheme: C{builtin} or C{local}, if the name must begin with it.
    """
    try:
        toml = read_toml(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _refuse_unparsed("is not UTF-8", file)
    except NotToml as error:
        return _refuse_unparsed(error.problem, file, error.line)
    faults = FileFaults(file, toml, BOUNDARY)
    spec = read_document(FileTable(toml.values, (), faults), digest_of_bytes(data), scheme)
    return FileReading(None, faults.in_order()) if faults.found else FileReading(spec)


def _refuse_unparsed(what: str, file: str, line: int | None = None) -> FileReading:
    return FileReading(None, (LoadError("parse_error", what, file, line, BOUNDARY),))


def read_document(document: FileTable, content_hash: str, scheme: str | None) -> Spec:
    """Read the whole of a file; faults go where the table's go, and then what is returned is of no use."""
    head = document.table("connector", required=True)
    kind = head.choice("kind", KINDS_OF_CONNECTOR, HTTP)
    head.text("description", ANY_TEXT, required=False)  # for people who read the file
    identity = _name(head, scheme), head.text("version", _VERSION), content_hash
    private_network = kind != COMMAND and head.flag("private_network", default=False)
    spec: Spec
    if kind == COMMAND:
        spec = read_command(document, identity)
    elif kind == MAIL:
        table = document.optional_table("credential")
        need = _credential(table, {}, private_network=private_network, header=LOGIN_HEADER)
        spec = read_mail(document, need, identity, private_network=private_network)
    elif kind == MCP:
        spec = _read_server(document, head, identity, private_network=private_network)
    else:
        spec = _read_service(document, head, identity, private_network=private_network, is_git=kind == GIT)
    head.close()
    document.close()
    return spec


def _read_service(
    document: FileTable, head: FileTable, identity: Identity, *, private_network: bool, is_git: bool
) -> HttpSpec:
    places = read_places(document, head, private_network=private_network, ssh=is_git)
    need = _credential(document.optional_table("credential"), places.examples, private_network=private_network)
    if not is_git and need is not None and need.kind == SshKey.name:
        head.faults.add(("credential", "kind"), f"`kind` must not be {SshKey.name}, which is for git over ssh")
    operations = OPERATIONS if is_git else _operations(document, need, places.others)
    description = ConnectorDescription(
        *identity,
        base_url=places.base_url,
        bindable=places.bindable,
        hosts=places.hosts,
        operations={name: each.operation for name, each in operations.items()},
        credential=need,
        template=places.template,
        places=places.others,
    )
    spec = HttpSpec(description, operations, private_network)
    return read_git(spec, document.table("git", required=True), need) if is_git else spec


def _read_server(document: FileTable, head: FileTable, identity: Identity, *, private_network: bool) -> McpSpec:
    table, server = document.optional_table("credential"), document.table("mcp").values
    is_local, url = "command" in server, server.get("url")
    if is_local and "api" not in server:
        need = read_program_credential(table, stdin=False)
    else:
        resource = url if isinstance(url, str) else ""
        need = _credential(table, {}, private_network=private_network, resource=resource)
        if is_local and need is not None and (need.kind == SshKey.name or need.path):
            head.faults.add(("credential", "kind"), "`kind` must be one that fills a header or a parameter")
    if need is not None and not is_local and not KINDS[need.kind].placed:
        head.faults.add(("credential", "kind"), "`kind` must be one that fills a header, the same for each message")
    return read_mcp(document, need, identity, private_network=private_network)


def _name(head: FileTable, scheme: str | None) -> str:
    name = head.text("name", _NAME)
    if _NAME.holds(name) and scheme is not None and not name.startswith(f"{scheme}://"):
        head.fault("name", f"must begin with {scheme}:// here")
    return name


def _credential(
    table: FileTable | None,
    variables: Mapping[str, str],
    *,
    private_network: bool,
    header: str = "",
    resource: str = "",
) -> CredentialNeed | None:
    """Read what a connector needs.

    :param variables: of the base URL, with examples of their values.
    :param header: where it goes, if that is no matter of the file's: then it is something to log in with.
    :param resource: for which alone tokens are asked for (RFC 8707): the URL of an MCP server.
    """
    if table is None:
        return None
    kind = KINDS.get(table.choice("kind", LOGINS if header else KINDS))
    if kind is None:
        table.skip(*table.values)  # which keys there are, the kind says
        return None
    settings = _settings(table, kind, variables)
    settings |= _implied(kind, private_network=private_network, resource=resource)
    try:
        kind.check_settings(settings)
    except ValueError as error:
        table.faults.add((*table.path, "kind"), str(error))
    if header:
        table.close()
        return CredentialNeed(kind.name, header, kind.format, settings)
    header, credential = kind.header, kind.format
    in_url = [key for key in ("query", "path") if key in kind.settings and key in table.values]
    if in_url:
        header = ""
        for key in sorted({"header", "format", *in_url[1:]} & table.values.keys()):
            table.skip(key)
            table.fault(key, f"must not stand beside `{in_url[0]}`")
    elif kind.placed:
        header = table.read("header", header_name, header, required=not header)
        credential = table.read("format", credential_format, credential)
    table.close()
    return CredentialNeed(kind.name, header, credential, settings)


def _settings(table: FileTable, kind: CredentialKind, variables: Mapping[str, str]) -> dict[str, str]:
    """Read the keys that are the kind's own.

    :param variables: what the variables of the base URL, to which they may refer, are for example.
    """
    found = {}
    for name, rule in kind.settings.items():
        if rule.flag:
            found[name] = "true" if table.flag(name, default=False) else ""
        elif rule.several:
            found[name] = " ".join(table.texts(name, required=False))
        else:
            found[name] = table.read(name, _reading(rule, variables), "")
    return {name: text for name, text in found.items() if text}


def _implied(kind: CredentialKind, *, private_network: bool, resource: str) -> Mapping[str, str]:
    """Return the settings that the rest of the file makes."""
    network = {PRIVATE_NETWORK: "true"} if kind.exchanges and private_network else {}
    return network | ({RESOURCE: resource} if resource and DISCOVER in kind.settings else {})


def _reading(rule: SettingRule, variables: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        example = fill(text, variables)
        found = rule.read(example)
        return found if example == text else text

    return read


def _operations(
    document: FileTable, need: CredentialNeed | None, places: Collection[str]
) -> Mapping[str, HttpOperation]:
    found = read_operations(document, lambda name, inside: read_operation(name, inside, need, places))
    for name, operation in found.items():
        if operation.lookup is not None and operation.lookup.operation:
            place = (*document.path, "operations", name, "reconcile")
            _check_lookup(operation.lookup, FileTable({}, place, document.faults), found)
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
            table.fault("inputs", f"has {name!r}, which {lookup.operation} does not take")
