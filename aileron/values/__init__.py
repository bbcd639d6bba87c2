"""The frozen values that travel between rooms, and nothing that acts."""

from ._actions import (
    Action,
    ApprovalRule,
    Catalogue,
    ConnectorPin,
    Input,
    LoadError,
    Offer,
    Offering,
    Step,
)
from ._audit import DAEMON, Actor, AuditQuery, Event, Link, Record
from ._connectors import (
    READ,
    WRITE,
    ConnectorDescription,
    CredentialNeed,
    Operation,
    Outcome,
    Request,
)
from ._faults import Fault
from ._json import JSON, bare, canonical, compact, digest, digest_of_bytes, plain, strings_in
from ._pages import Page
from ._plainly import plainly
from ._runs import (
    Approval,
    Ask,
    AttemptRow,
    Call,
    Decision,
    PendingLimits,
    Progress,
    Run,
    RunQuery,
    RunState,
    StepRow,
    Transition,
)
from ._sessions import HandOver, HandOverState, OperatorSession, Process, Session
from ._strict import json_pointer, json_problems, loads_strict
from ._time import from_timestamp, timestamp, utc
from ._trust import Candidate, Mark, Trusted, TrustItem, TrustKind, TrustState
from ._vault import Binding, BindingFlag, NewBinding, Scope, VaultState
from ._versions import SEMVER
from ._violations import violation
from ._visible import visible

__all__ = [
    "DAEMON",
    "JSON",
    "READ",
    "SEMVER",
    "WRITE",
    "Action",
    "Actor",
    "Approval",
    "ApprovalRule",
    "Ask",
    "AttemptRow",
    "AuditQuery",
    "Binding",
    "BindingFlag",
    "Call",
    "Candidate",
    "Catalogue",
    "ConnectorDescription",
    "ConnectorPin",
    "CredentialNeed",
    "Decision",
    "Event",
    "Fault",
    "HandOver",
    "HandOverState",
    "Input",
    "Link",
    "LoadError",
    "Mark",
    "NewBinding",
    "Offer",
    "Offering",
    "Operation",
    "OperatorSession",
    "Outcome",
    "Page",
    "PendingLimits",
    "Process",
    "Progress",
    "Record",
    "Request",
    "Run",
    "RunQuery",
    "RunState",
    "Scope",
    "Session",
    "Step",
    "StepRow",
    "Transition",
    "TrustItem",
    "TrustKind",
    "TrustState",
    "Trusted",
    "VaultState",
    "bare",
    "canonical",
    "compact",
    "digest",
    "digest_of_bytes",
    "from_timestamp",
    "json_pointer",
    "json_problems",
    "loads_strict",
    "plain",
    "plainly",
    "strings_in",
    "timestamp",
    "utc",
    "violation",
    "visible",
]
