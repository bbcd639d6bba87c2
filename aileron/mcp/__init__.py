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
        # Loading takes half a second. Until the reactor runs, there is nothing to clean up at a signal.
        signal.signal(number, lambda _number, _frame: os._exit(0))
    gc.disable()  # collections while loading find no garbage
    from ._greeting import claim_standard_streams, greet
    from ._opening import Opening

    try:
        streams = claim_standard_streams()  # before any file is opened, which could get the number of a closed stream
    except OSError:
        return
    opening = Opening()
    rest = greet(*streams, opening)
    if rest is None:
        os._exit(0)
    from ._stdio import serve

    gc.freeze()
    gc.set_threshold(_YOUNG)  # reference counting alone frees nearly all objects of a call
    gc.enable()
    serve(os.environ, _STOP_SIGNALS, streams, opening, rest)
    # Nothing is left to clean up, and a regular exit would take most of the second in which we must end.
    os._exit(0)


def plain_tools(
    routes: IAgentRoutes, reactor: Any, generation: Callable[[], object], longest_wait_seconds: int
) -> PlainTools:
    """Make the tools of agents for a server that uses another protocol than MCP. The MCP SDK is not loaded.

    :param routes: the agent site's routes, through which the tools act.
    :param reactor: provides time.
    :param generation: returns a value that differs from the last one if the offered actions have changed.
    """
    from .plain import PlainTools

    return PlainTools(routes, reactor, generation, longest_wait_seconds)
