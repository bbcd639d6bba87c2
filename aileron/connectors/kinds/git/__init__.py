"""Git connectors: read a local repository, read a remote over HTTP or SSH, and update its refs."""

from ._connector import GitConnector
from ._fetch import RemoteRepository
from ._kind import GIT
from ._spec import OPERATIONS, GitSpec, HostKey, read_git
from ._ssh import SshTransport

__all__ = [
    "GIT",
    "OPERATIONS",
    "GitConnector",
    "GitSpec",
    "HostKey",
    "RemoteRepository",
    "SshTransport",
    "read_git",
]
