"""The daemon's actions as MCP tools: C{aileron-mcp} on standard input and output, and the servers of agents.

Importing this package loads nothing heavy, so that a signal during the slow imports finds its handler in place.
C{aileron-mcp} answers its client's first message before it loads Twisted, and the list of tools before it loads the
SDK, which takes most of a second and 31 MB: some clients stop waiting for a server after three seconds.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["main", "plain_tools"]

if TYPE_CHECKING:
    from aileron.model.interfaces.services import IAgentRoutes

    from .plain import PlainTools

_YOUNG = 10_000
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


_HELP = """\
Usage: aileron-mcp

Serve Aileron's actions as MCP tools on standard input and output. An MCP client starts this program. It takes no
arguments and ends with the client. Print the configuration for a client: aileron mcp config CLIENT
"""


def main() -> None:
    """Serve until standard input ends, standard output breaks, or a signal arrives. Exit with status 0 in each case."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        sys.stdout.write(_HELP)
        return
    for number in _STOP_SIGNALS:
        # Loading takes half a second; until the reactor runs there is nothing to clean up.
        signal.signal(number, lambda _number, _frame: os._exit(0))
    gc.disable()  # loading makes no garbage
    from ._greeting import claim_standard_streams, greet
    from ._opening import Opening

    try:
        streams = claim_standard_streams()  # first of all: a closed one's number would be taken for something else
    except OSError:
        return
    opening = Opening()
    rest = greet(*streams, opening)
    if rest is None:
        os._exit(0)
    from ._stdio import serve

    gc.freeze()
    gc.set_threshold(_YOUNG)  # nearly all that a call makes goes with its last reference
    gc.enable()
    serve(os.environ, _STOP_SIGNALS, streams, opening, rest)
    # Nothing is left to clean up, and taking the interpreter apart would take most of the second that we have.
    os._exit(0)


def plain_tools(
    routes: IAgentRoutes, reactor: Any, generation: Callable[[], object], longest_wait_seconds: int
) -> PlainTools:
    """Make the tools for a server that speaks another protocol to an agent's model. Loads no SDK.

    :param reactor: provides time.
    :param generation: returns a different value once the offered actions have changed.
    """
    from .plain import PlainTools

    return PlainTools(routes, reactor, generation, longest_wait_seconds)
