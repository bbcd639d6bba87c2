"""The collector of cycles, told what kind of program this is."""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 10_000, 10, 10


def settle_heap() -> None:
    """Look no more at what is there now, and seldom at what is new; for when everything is built and begins to serve.

    Loading leaves nothing that is worth a search first.  Nearly all that a request makes goes with its last reference:
    looking for cycles at every 700 objects, as Python does, took a twentieth of its time, and so half of that.
    """
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
