"""The composition root: the only room that builds collaborators and hands them to each other.

Run by C{twistd aileron}, or in the foreground by L{serve}.
"""

from ._heap import settle_heap
from ._ids import fresh_ids
from ._run import makeService, serve
from ._settings import Options

__all__ = ["Options", "fresh_ids", "makeService", "serve", "settle_heap"]
