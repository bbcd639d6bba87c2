"""Reads the files in which users keep an agent's settings, as careful as with any that is not ours."""

from __future__ import annotations

from pathlib import Path

MOST_BYTES = 4 * 1024 * 1024


def text_of(path: Path, encoding: str = "utf-8") -> str | None:
    """The text of a file; L{None} where there is nothing.

    :raises ValueError: what lies there is no file, too long, not ours to read, or no text.
    """
    try:
        if not path.exists():
            return None
        # Not a pipe, which would have us wait.
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise ValueError("it is no file that could be settings")
        return path.read_text(encoding)
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None
