"""Text that a service wrote, made fit to be shown: one line, bounded, every unseen character visible."""

from __future__ import annotations

import unicodedata

MAX_SHOWN = 200

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def shown(text: str, most: int = MAX_SHOWN) -> str:
    """C{text} with control, escape, bidi and zero-width characters as code points, cut after C{most} characters."""
    cut = text[:most]
    ending = "…" if len(text) > most else ""
    return "".join(map(_visible, cut)) + ending


def _visible(character: str) -> str:
    return f"\\u{{{ord(character):x}}}" if unicodedata.category(character) in _UNSEEN else character
