"""What the SDK logs, without the values: its messages repeat what clients sent."""

from __future__ import annotations

import logging

from twisted.logger import Logger

_LOGGERS = ("mcp", "sse_starlette", "aileron.mcp", "asyncio")

_log = Logger()


class Hush(logging.Handler):
    """Says of each record who made it where, and the kind of the failure; nothing of its message."""

    def emit(self, record: logging.LogRecord) -> None:
        """See L{logging.Handler.emit}."""
        kind = record.exc_info[0].__qualname__ if record.exc_info and record.exc_info[0] else "no exception"
        place = f"{record.pathname}:{record.lineno}"
        _log.warn("{name} complains at {place}: {kind}", name=record.name, place=place, kind=kind)


def hush(level: int = logging.ERROR) -> None:
    """Have the loggers of the SDK, and ours beside it, say no more than that; twice is safe."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = [Hush(level)]
        logger.propagate = False
