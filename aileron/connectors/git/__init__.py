"""Connectors to a git repository: reads of a local one, and updates of a remote one over smart HTTP."""

from ._connector import GitConnector
from ._spec import OPERATIONS, GitSpec, read_git

__all__ = ["OPERATIONS", "GitConnector", "GitSpec", "read_git"]
