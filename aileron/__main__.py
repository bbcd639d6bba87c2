"""C{python -m aileron}: the same as the C{aileron} command."""

from aileron.cli import main

if __name__ == "__main__":
    main()
