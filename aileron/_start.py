"""Entry points of the installed commands, which never import a module from the working directory.

Python searches the working directory first for C{python -m}, and for every command if C{PYTHONPATH} has an empty or
relative entry. Anybody may have put files there. So each entry point removes that directory from C{sys.path} before it
imports anything. Modules that Python itself imported earlier are not protected.
"""

import os
import sys


def command_line() -> None:
    """Run the C{aileron} command.  Ctrl-C ends it without a traceback while it still loads."""
    _leave_out_working_directory()
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .cli import main

    signal.signal(signal.SIGINT, before)
    main()


def mcp_server() -> None:
    """Run the C{aileron-mcp} command."""
    _leave_out_working_directory()
    from .mcp import main

    main()


def _leave_out_working_directory() -> None:
    """Remove from C{sys.path} the entries that depend on the working directory.

    Only the standard library and the directory of this package are kept, even if they are there.
    """
    try:
        here = os.getcwd()
    except OSError:  # it is gone, so nothing is looked for there
        return
    parts = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    relative = {os.path.abspath(part) for part in parts.split(os.pathsep) if parts and not os.path.isabs(part)}
    if not sys.flags.safe_path and sys.path[0] == here:
        relative.add(here)
    relative -= {os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(__file__))}
    # guard against attack: the directory of python -m is not looked through -> test_process.ModuleTests.test_directory
    sys.path[:] = [path for path in sys.path if path not in relative]
