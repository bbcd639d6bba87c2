"""Git repositories: reads of a local one; updates of a remote one, and the files of its tags, over HTTP or SSH."""

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
