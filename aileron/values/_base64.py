"""How a text shows inside the base64 of a longer one."""

from __future__ import annotations

import base64
from collections.abc import Iterator

LONG_ENOUGH = 6
"""Bytes.  Of anything shorter, hexadecimal and base64 would be met by chance; as it is, it is always looked for."""


def base64_inside(secret: bytes) -> Iterator[bytes]:
    """What base64 makes of C{secret} alone, whatever stands before and behind it: one text for each alignment."""
    for shift in range(3):
        whole = base64.b64encode(bytes(shift) + secret).rstrip(b"=")
        # The first characters mix with what stands before the secret, the last with what follows it.
        yield whole[(0, 2, 3)[shift] : len(whole) - bool((shift + len(secret)) % 3)]
