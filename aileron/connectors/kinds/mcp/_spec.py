"""The file of a connector to an MCP server: the tables C{[mcp]} and C{[operations.…]}."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from attrs import evolve, frozen

from aileron.base.addresses import read_origin
from aileron.base.tables import FileTable, TextRule
from aileron.connectors._answer import DEFAULT_MAX_RESPONSE_BYTES, MOST_RESPONSE_BYTES
from aileron.connectors._credentials import read_credential
from aileron.connectors._operations import Identity, present, read_declared, read_operations
from aileron.connectors._places import own_base_url
from aileron.connectors._spec import BaseSpec
from aileron.connectors.programs.environment import read_program_credential
from aileron.credentials import KINDS, SshKey
from aileron.model.connectors import READ, WRITE, ConnectorDescription, CredentialNeed, Operation
from aileron.model.titles import is_removal, to_words

from ._api import API
from ._local import LocalServer, read_local

LIST_TOOLS = "list_tools"
"""The operation that every such connector has."""

_SECONDS, MOST_SECONDS = 60.0, 3600.0
_TOOL = TextRule(lambda text: 0 < len(text) <= 256 and text.isprintable(), "must be the name of a tool")
_PIN = TextRule.shape(r"sha256:[0-9a-f]{64}", "must be sha256: and 64 digits, as `aileron connector import` writes it")
_OBJECTS = ("title", "name", "subject", "path", "file_path", "query", "sql", "command", "url", "id", "key")
_NO_INPUTS: Mapping[str, Any] = MappingProxyType({})


@frozen
class McpOperation:
    """A tool that may be called.

    :ivar tool: the tool's name at the server.
    :ivar pin: the digest of the tool's description as reviewed.
    """

    operation: Operation
    tool: str
    pin: str

    @property
    def inputs(self) -> frozenset[str]:
        """An empty set, because the inputs are declared by the server and by action files."""
        return frozenset()


@frozen
class McpSpec(BaseSpec):
    """The content of an MCP connector's file.

    :ivar operations: the declared operations, without L{LIST_TOOLS}.
    :ivar url: the URL of the server's endpoint, or the one that stands for a local program.
    :ivar private_network: whether the server or the API may be at a loopback or private address.
    :ivar local: the program if the server is local, else None.
    """

    operations: Mapping[str, McpOperation]
    url: str
    private_network: bool
    max_response_bytes: int
    local: LocalServer | None = None


def read_mcp(document: FileTable, head: FileTable, identity: Identity) -> McpSpec:
    """Return the spec read from a connector file: C{[connector]}, C{[mcp]}, C{[credential]} and C{[operations.…]}.

    Faults are added to the tables.
    """
    private_network = head.flag("private_network", default=False)
    need = _read_need(document, head, private_network=private_network)
    table = document.table("mcp", required=True)
    is_local = "command" in table.values
    local = read_local(table, need, private_network=private_network) if is_local else None
    api = local.api if local else None
    if local is not None:
        url = local.url
    else:
        url = table.read("url", lambda text: _endpoint(text, private_network=private_network), "", required=True)
    most = table.integer("max_response_bytes", 1, MOST_RESPONSE_BYTES) or DEFAULT_MAX_RESPONSE_BYTES
    table.close()
    server = identity[0].rpartition("/")[2]
    declared = read_operations(document, partial(_operation, server)) if "operations" in document.values else {}
    if LIST_TOOLS in declared:
        document.fault("operations", f"has {LIST_TOOLS!r}, which every such connector has already")
    listing = Operation(
        LIST_TOOLS,
        READ,
        idempotent=True,
        description="Lists the tools of the server, with the digests that pin them.",
        timeout_seconds=_SECONDS,
        destructive=False,
    )
    reached = api.base.url if api else "" if local else url
    description = ConnectorDescription(
        *identity,
        base_url=url,
        bindable=False,
        hosts=(read_origin(reached).host_and_port,) if reached else (),
        operations={LIST_TOOLS: listing, **{name: each.operation for name, each in declared.items()}},
        credential=evolve(need, settings={**need.settings, API: api.base.url}) if need and api else need,
    )
    return McpSpec(description, declared, url, private_network, most, local)


def _read_need(document: FileTable, head: FileTable, *, private_network: bool) -> CredentialNeed | None:
    """Return the credential read from C{[credential]}: for a remote server, a local program, or the program's API.

    Return None if there is no such table, or its kind is not permitted. Faults are added to the tables.
    """
    table, server = document.optional_table("credential"), document.table("mcp").values
    is_local, url = "command" in server, server.get("url")
    if is_local and "api" not in server:
        return read_program_credential(table, stdin=False)
    resource = url if isinstance(url, str) else ""
    need = read_credential(table, {}, private_network=private_network, resource=resource)
    if is_local and need is not None and (need.kind == SshKey.name or need.path):
        head.faults.add(("credential", "kind"), "`kind` must be one that fills a header or a parameter")
    if need is not None and not is_local and not KINDS[need.kind].placed:
        head.faults.add(("credential", "kind"), "`kind` must be one that fills a header, the same for each message")
    return need


def _endpoint(text: str, *, private_network: bool) -> str:
    base = own_base_url(text, private_network=private_network)
    if text not in (base.url, f"{base.url}/"):
        raise ValueError(f"must be written as {base.url}")
    return text


def _operation(server: str, name: str, table: FileTable) -> McpOperation:
    effect = table.choice("effect", (READ, WRITE), WRITE)
    tool, pin = table.text("tool", _TOOL), table.text("pin", _PIN)
    about = read_declared(name, table, effect, most_seconds=MOST_SECONDS, usual_seconds=_SECONDS)
    if about.idempotent and effect == WRITE:
        table.fault("idempotent", "must not be true of a write: a server has no way to recognise a repeated call")
    table.close()
    removes = is_removal(tool) and about.destructive
    about = present(about, "delete" if removes else "request", *_write_titles(tool, server))
    irreversible = about.irreversible or (removes and "irreversible" not in table.values)
    return McpOperation(evolve(about, pin=pin, irreversible=irreversible), tool, pin)


def _write_titles(tool: str, server: str) -> tuple[str, ...]:
    """Return titles with the tool's name: one for each input that usually names the tool's object, and one without."""
    about = f"{to_words(tool)} in {server}".replace("${", "$ {")
    return (*(f"{about}: ${{in.{each}}}" for each in _OBJECTS), about)
