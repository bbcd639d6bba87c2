"""Runs the C{aileron} command as C{python -m aileron}. Prefer the installed command C{aileron}.

Python starts C{-m} with the working directory first in C{sys.path}, so the modules that Python imports before this file
may come from there. C{python -P -m aileron} avoids that.
"""

from ._start import command_line

if __name__ == "__main__":
    command_line()
