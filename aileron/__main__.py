"""C{python -m aileron}: the same as the C{aileron} command, which is the one to use.

Python looks for what a module imports in the directory that it was started in first, and anybody may have put files
there.  So that directory goes before anything is imported that Python has not loaded by itself, C{__future__} among it.
What Python loads before this line comes from there all the same, but for C{python -P -m aileron}.
"""

import os
import sys


def _working_directory() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it is gone, so nothing is looked for there
        return None


if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] == _working_directory():
        del sys.path[0]

    from aileron.cli import main

    main()
