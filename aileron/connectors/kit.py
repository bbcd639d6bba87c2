"""The parts from which other packages build kinds of connector."""

from aileron.base.tables import FileTable

from ._answer import Flight, OutgoingRequest, ServiceAnswer
from ._operations import Identity, read_declared, read_operations
from ._reach import Reach, encode_json, refuse_strangers
from ._sending import FAILURES, describe_failure, open_credential, wait_in_time, with_credential
from ._services import DeclaredService, read_service
from ._spec import BaseSpec
from ._template import ReferenceScope
from .kind import ConnectorKind, NotMade, RecordedAnswers, Spec, Specimen, Workshop

__all__ = [
    "FAILURES",
    "BaseSpec",
    "ConnectorKind",
    "DeclaredService",
    "FileTable",
    "Flight",
    "Identity",
    "NotMade",
    "OutgoingRequest",
    "Reach",
    "RecordedAnswers",
    "ReferenceScope",
    "ServiceAnswer",
    "Spec",
    "Specimen",
    "Workshop",
    "describe_failure",
    "encode_json",
    "open_credential",
    "read_declared",
    "read_operations",
    "read_service",
    "refuse_strangers",
    "wait_in_time",
    "with_credential",
]
