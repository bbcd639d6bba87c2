"""C{python -m aileron}: the same as the C{aileron} command."""

import gc

if __name__ == "__main__":
    gc.set_threshold(100_000)  # loading makes no garbage; looking for it took a fifth of the daemon's start

    from aileron.cli import main

    main()
