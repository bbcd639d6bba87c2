"""Talks to one service each; found by registry, declared by interface or by file."""

from ._answer import AddressRefused, OutgoingRequest, ServiceAnswer, ServiceUnreachable
from ._connection import ConnectionOpener
from ._fixtures import Replayed, replay
from ._plugins import Screened
from ._registry import Make, Registry, check, read_descriptions
from ._samples import Sample, Specimen, find_specimens, keys_of
from ._schema import Spec, read_file
from ._transport import HttpExchange, HttpFetch, HttpTransport, system_resolver, system_transport
from ._trying import NotTried, TriedRequest, build_request
from .kinds.command import CommandConnector, CommandSpec, Confinement, Enclosure, ProgramEnvironment
from .kinds.git import GitConnector, GitSpec, HostKey, RemoteRepository, SshTransport
from .kinds.http import HttpConnector, HttpSpec
from .kinds.mail import MailConnector, MailSpec
from .kinds.mcp import (
    LOADING_VARIABLES,
    ApiRelay,
    HttpSessions,
    LocalServers,
    LocalSessions,
    McpConnector,
    McpSpec,
    digest_tree,
    find_foreign_modules,
)

__all__ = [
    "LOADING_VARIABLES",
    "AddressRefused",
    "ApiRelay",
    "CommandConnector",
    "CommandSpec",
    "Confinement",
    "ConnectionOpener",
    "Enclosure",
    "GitConnector",
    "GitSpec",
    "HostKey",
    "HttpConnector",
    "HttpExchange",
    "HttpFetch",
    "HttpSessions",
    "HttpSpec",
    "HttpTransport",
    "LocalServers",
    "LocalSessions",
    "MailConnector",
    "MailSpec",
    "Make",
    "McpConnector",
    "McpSpec",
    "NotTried",
    "OutgoingRequest",
    "ProgramEnvironment",
    "Registry",
    "RemoteRepository",
    "Replayed",
    "Sample",
    "Screened",
    "ServiceAnswer",
    "ServiceUnreachable",
    "Spec",
    "Specimen",
    "SshTransport",
    "TriedRequest",
    "build_request",
    "check",
    "digest_tree",
    "find_foreign_modules",
    "find_specimens",
    "keys_of",
    "read_descriptions",
    "read_file",
    "replay",
    "system_resolver",
    "system_transport",
]
