"""Draws texts as QR codes in a terminal (ISO/IEC 18004), by the optional library C{segno}."""

from __future__ import annotations

import io

from aileron.base.packages import find_package

_BORDER = 2


def can_draw_qr() -> bool:
    """Return whether QR codes can be drawn, which needs the extra C{aileron[phone]}."""
    return find_package("segno") is not None


def draw_qr(text: str, columns: int) -> str | None:
    """Return the QR code of a text for a terminal, or None if it is wider than C{columns} or the text is too long.

    Call it only if L{can_draw_qr}.
    """
    import segno

    try:
        code = segno.make_qr(text.encode(), error="l", boost_error=False)
    except segno.DataOverflowError:
        return None
    width, _ = code.symbol_size(border=_BORDER)
    if width > columns:
        return None
    drawn = io.StringIO()
    code.terminal(drawn, border=_BORDER, compact=True)
    return drawn.getvalue()
