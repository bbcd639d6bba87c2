"""C{python -m bench [seconds] [part…]}: one table.  Times of a shared machine say little: read the ratios."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import NoReturn

from bench import (
    audit,
    commands,
    decision,
    endurance,
    gateway,
    in_band,
    inbox,
    mcp,
    own_tools,
    pages,
    phone,
    requests,
    searching,
    table,
)
from bench import store as stores

PARTS: Mapping[str, Callable[[float], None]] = {
    "requests": requests.report,
    "store": stores.report,
    "commands": commands.report,
    "mcp": mcp.report,
    "search": searching.report,
    "audit": audit.report,
    "endurance": endurance.report,
    "gateway": gateway.report,
    "gateway-endurance": gateway.endure,
    "gateway-pace": gateway.report_pace,
    "own-tools": own_tools.report,
    "in-band": in_band.report,
    "pages": pages.report,
    "inbox": inbox.report,
    "decision": decision.report,
    "phone": phone.report,
}
USUAL = ("requests", "store", "commands")
"""What runs where no part is named: the rest takes minutes."""


def main(arguments: list[str]) -> int:
    """Print the rows of the parts that are named, or of all."""
    named = [each for each in arguments if each in PARTS]
    numbers = [each for each in arguments if each not in PARTS]
    try:
        (seconds,) = map(float, numbers or ["2"])
    except ValueError:
        print(f"python -m bench [seconds for each figure] [{' | '.join(PARTS)}]", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _leave)
    table.heading()
    for part in named or USUAL:
        PARTS[part](seconds)
    return 0


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    """End as by Ctrl-C, so that what was started is ended and what was written is removed; once is enough."""
    signal.signal(number, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
