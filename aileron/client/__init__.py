"""The daemon's HTTP client, for whoever is not the daemon.  Importing it loads no server and no reactor."""

from ._agent import Daemon, IDaemon, OpenedSession
from ._connections import Connections
from ._faults import AnswerNotUnderstood, DaemonError, DaemonFault, DaemonUnreachable
from ._lease import Lease
from ._operator import Operator
from ._session import LEAN, LONGEST_WAIT_SECONDS, SessionEnvironment
from ._wire import Answer, Wire

__all__ = [
    "LEAN",
    "LONGEST_WAIT_SECONDS",
    "Answer",
    "AnswerNotUnderstood",
    "Connections",
    "Daemon",
    "DaemonError",
    "DaemonFault",
    "DaemonUnreachable",
    "IDaemon",
    "Lease",
    "OpenedSession",
    "Operator",
    "SessionEnvironment",
    "Wire",
]
