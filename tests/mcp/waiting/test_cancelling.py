"""What a client cancels, and what only looks like it."""

from __future__ import annotations

import asyncio

import mcp.types as t

from tests.mcp.case import Era, in_a_loop, in_both_eras
from tests.mcp.waiting.case import WaitingCase, WaitingTools, connected


class CancellingTests(WaitingCase):
    """From the client to the calls."""

    @in_both_eras
    async def test_cancelled(self, era: Era) -> None:
        """A call that is cancelled ends its wait, and is named as one to be taken back."""
        tools = WaitingTools()
        async with connected(tools, era) as client:
            calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
            await tools.began.wait()
            calling.cancel()
            await tools.ended.wait()
            if era == "legacy":  # the newer era's client in memory has no wire that its wish could take
                await self.soon(lambda: tools.withdrawn)
                self.assertEqual(tools.withdrawn, [tools.manners[0].key])

    @in_a_loop
    async def test_too_late(self) -> None:
        """Cancelling a call that was answered, or that never was, is ignored, and the next call goes on."""
        tools = WaitingTools()
        tools.decide()
        async with connected(tools, "legacy") as client:
            await client.call_tool("ship_update", {})
            for number in range(5):
                params = t.CancelledNotificationParams(request_id=number)
                await client.session.send_notification(t.CancelledNotification(params=params))
            await client.call_tool("ship_update", {})
        self.assertEqual(tools.withdrawn, [])

    @in_a_loop
    async def test_gone(self) -> None:
        """A client that goes away cancels nothing."""
        tools = WaitingTools()
        async with connected(tools, "legacy") as client:
            calling = asyncio.ensure_future(client.call_tool("ship_update", {}))
            await tools.began.wait()
        await asyncio.gather(calling, return_exceptions=True)
        await tools.ended.wait()
        await asyncio.sleep(0.02)
        self.assertEqual(tools.withdrawn, [])
