"""Git connectors: read a local repository, read a remote over HTTP or SSH, and update its refs."""

from ._connector import GitConnector
from ._fetch import RemoteRepository
from ._host import GitHost
from ._host_spec import PUSH_INPUTS, SHOW_PUSH
from ._kind import GIT
from ._push import PROBE, GitPush, read_push, write_report
from ._remote import NotGit, write_packet
from ._spec import OPERATIONS, GitSpec, HostKey, read_git
from ._ssh import SshTransport

__all__ = [
    "GIT",
    "OPERATIONS",
    "PROBE",
    "PUSH_INPUTS",
    "SHOW_PUSH",
    "GitConnector",
    "GitHost",
    "GitPush",
    "GitSpec",
    "HostKey",
    "NotGit",
    "RemoteRepository",
    "SshTransport",
    "read_git",
    "read_push",
    "write_packet",
    "write_report",
]
