"""The daemon's HTTP client for all other processes. Importing it loads no server and no reactor."""

from ._answers import AnswerNotUnderstood, DaemonAnswer, DaemonError, DaemonFault, DaemonUnreachable
from ._connections import Connections
from ._requests import DaemonClient, InProcessClient, RequestOptions
from ._session import LEAN, LONGEST_WAIT_SECONDS, TOKEN, URL, SessionEnvironment, wait_variables
from ._signing import OperatorLogin, TerminalKey, item_of
from ._sites import Daemon, Lease, OpenedSession, Operator

__all__ = [
    "LEAN",
    "LONGEST_WAIT_SECONDS",
    "TOKEN",
    "URL",
    "AnswerNotUnderstood",
    "Connections",
    "Daemon",
    "DaemonAnswer",
    "DaemonClient",
    "DaemonError",
    "DaemonFault",
    "DaemonUnreachable",
    "InProcessClient",
    "Lease",
    "OpenedSession",
    "Operator",
    "OperatorLogin",
    "RequestOptions",
    "SessionEnvironment",
    "TerminalKey",
    "item_of",
    "wait_variables",
]
