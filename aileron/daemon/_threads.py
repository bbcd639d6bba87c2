"""Work that waits for something outside, in the reactor's own threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool


def in_thread(reactor: Any) -> Callable[..., Deferred[Any]]:
    """Calls a function in another thread; what it answers comes in this one."""
    return lambda work, *args: deferToThreadPool(reactor, reactor.getThreadPool(), work, *args)
