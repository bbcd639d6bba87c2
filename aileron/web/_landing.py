"""What a reader gets whom a link of another site led here: an empty page, which then asks for its place by itself."""

from __future__ import annotations

from ._parts import STATIC

LANDING_POLICY = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def landing() -> bytes:
    """The page, the same whatever the path and whoever asks."""
    return (STATIC / "landing.html").read_bytes()
