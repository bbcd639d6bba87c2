"""C{python -m aileron}: the same as the C{aileron} command."""

if __name__ == "__main__":
    from aileron.cli import main

    main()
