"""Connectors, one for each service: found by a registry, declared by a file or written in Python."""

from ._answer import AddressRefused, Flight, OutgoingRequest, ServiceAnswer, ServiceUnreachable, TooLarge
from ._connection import ConnectionOpener
from ._fixtures import Replayed, replay
from ._foreign import LoadedKinds, load_kinds
from ._forwarding import FORWARDED_INPUTS
from ._registry import Registry, check, read_descriptions
from ._samples import find_specimens, keys_of
from ._schema import make_schema, read_file
from ._screened import Screened
from ._spec import BaseSpec
from ._transport import HttpExchange, HttpFetch, HttpTransport, system_resolver, system_transport
from ._trying import NotTried, TriedRequest, build_request
from .kind import ConnectorKind, NotMade, RecordedAnswers, Spec, Specimen, Workshop
from .kinds import KindTable
from .kinds.command import CommandConnector, CommandSpec
from .kinds.git import PROBE as GIT_PROBE
from .kinds.git import (
    PUSH_INPUTS,
    SHOW_PUSH,
    GitConnector,
    GitHost,
    GitPush,
    GitSpec,
    HostKey,
    NotGit,
    RemoteRepository,
    SshTransport,
    read_push,
    write_packet,
    write_report,
)
from .kinds.http import SHOW_PACKAGE, HttpConnector, HttpSpec, Sample
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
from .packages import NotAPackage, PackageUpload, UploadRequest, read_upload
from .programs import Confinement, Enclose, Enclosure, ProgramEnvironment

__all__ = [
    "FORWARDED_INPUTS",
    "GIT_PROBE",
    "LOADING_VARIABLES",
    "PUSH_INPUTS",
    "SHOW_PACKAGE",
    "SHOW_PUSH",
    "AddressRefused",
    "ApiRelay",
    "BaseSpec",
    "CommandConnector",
    "CommandSpec",
    "Confinement",
    "ConnectionOpener",
    "ConnectorKind",
    "Enclose",
    "Enclosure",
    "Flight",
    "GitConnector",
    "GitHost",
    "GitPush",
    "GitSpec",
    "HostKey",
    "HttpConnector",
    "HttpExchange",
    "HttpFetch",
    "HttpSessions",
    "HttpSpec",
    "HttpTransport",
    "KindTable",
    "LoadedKinds",
    "LocalServers",
    "LocalSessions",
    "MailConnector",
    "MailSpec",
    "McpConnector",
    "McpSpec",
    "NotAPackage",
    "NotGit",
    "NotMade",
    "NotTried",
    "OutgoingRequest",
    "PackageUpload",
    "ProgramEnvironment",
    "RecordedAnswers",
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
    "TooLarge",
    "TriedRequest",
    "UploadRequest",
    "Workshop",
    "build_request",
    "check",
    "digest_tree",
    "find_foreign_modules",
    "find_specimens",
    "keys_of",
    "load_kinds",
    "make_schema",
    "read_descriptions",
    "read_file",
    "read_push",
    "read_upload",
    "replay",
    "system_resolver",
    "system_transport",
    "write_packet",
    "write_report",
]
