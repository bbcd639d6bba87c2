"""C{python -m aileron}: the same as the C{aileron} command, which is the one to use.

What Python loads before this line comes from the directory that it was started in, but for C{python -P -m aileron}.
"""

from ._start import command_line

if __name__ == "__main__":
    command_line()
