"""Which calls a client can still cancel.

The SDK ends our wait as soon as a client cancels, and just so when the client is gone.  Only the first is a wish, and
only the client's notification tells it apart.  One that names a call which was answered already is no wish either.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult

from .clients import Context

MOST = 256
_SESSION_HEADER = "mcp-session-id"

_Name = tuple[str, str]


class Cancelling:
    """Calls by their clients' names for them.

    :param withdraw: takes back the call of this key, if its action says so.
    """

    def __init__(self, withdraw: Callable[[str], Awaitable[None]]) -> None:
        self._withdraw = withdraw
        self._keys: OrderedDict[_Name, str] = OrderedDict()

    @contextmanager
    def calling(self, ctx: Context, key: str) -> Iterator[None]:
        """While a call lasts: it can be cancelled; and just after it was cut off, until the client says why."""
        name = _name(ctx, ctx.request_id)
        self._keys[name] = key
        while len(self._keys) > MOST:
            self._keys.popitem(last=False)
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._keys.pop(name, None)
            raise
        else:
            self._keys.pop(name, None)

    async def listen(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The SDK's middleware: hear of what is cancelled."""
        if ctx.method == "notifications/cancelled":
            key = self._keys.pop(_name(ctx, (ctx.params or {}).get("requestId")), None)
            if key is not None:
                await self._withdraw(key)
        return await call_next(ctx)


def _name(ctx: Context, request_id: object) -> _Name:
    """Every connection counts its requests for itself; over HTTP it is the header that tells them apart."""
    headers: Mapping[str, Any] = getattr(ctx.request, "headers", None) or {}
    return str(headers.get(_SESSION_HEADER, "")), f"{type(request_id).__name__}:{request_id}"
