"""Connectors to a git repository: reads of a local one, and updates of a remote one over smart HTTP or SSH."""

from ._connector import GitConnector
from ._spec import OPERATIONS, GitSpec, read_git
from ._ssh import SshTransport

__all__ = ["OPERATIONS", "GitConnector", "GitSpec", "SshTransport", "read_git"]
