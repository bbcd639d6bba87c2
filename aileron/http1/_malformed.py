"""What is not HTTP, or could be read in more than one way."""

from __future__ import annotations


class Malformed(Exception):
    """The bytes are not one unambiguous HTTP/1.1 message; the text says why."""
