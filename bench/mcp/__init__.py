"""C{aileron-mcp} beside other servers on standard input that lead to the same daemon: one table, in one run."""

from ._contenders import PEERS
from ._table import report

__all__ = ["PEERS", "report"]
