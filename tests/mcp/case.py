"""What the tests of the MCP server share: a daemon in memory, and its answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Literal, TypeVar

from mcp.types import TextContent
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import Daemon, DaemonClient
from aileron.mcp._link import DaemonLink
from tests.scripted_site import ScriptedSite

PATIENCE_SECONDS = 60

Era = Literal["legacy", "auto"]
ERAS: tuple[Era, ...] = ("legacy", "auto")

CaseT = TypeVar("CaseT", bound=SynchronousTestCase)


def in_a_loop(test: Callable[[CaseT], Coroutine[Any, Any, None]]) -> Callable[[CaseT], None]:
    """Run a test in a loop of its own, for a minute at most."""

    @wraps(test)
    def run(case: CaseT) -> None:
        asyncio.run(asyncio.wait_for(test(case), PATIENCE_SECONDS))

    return run


def in_both_eras(test: Callable[[CaseT, Era], Coroutine[Any, Any, None]]) -> Callable[[CaseT], None]:
    """Run a test once for each era of the protocol, each time in a loop of its own."""

    @wraps(test)
    def run(case: CaseT) -> None:
        for era in ERAS:
            asyncio.run(asyncio.wait_for(test(case, era), PATIENCE_SECONDS))

    return run


def action(name: str = "ship-update", **more: Any) -> dict[str, Any]:
    """One action, as the daemon lists it."""
    return {
        "name": name,
        "version": "1.0.0",
        "tool_name": name.replace("-", "_"),
        "intent": "tell the team",
        "description": "# Ship update\n\nPosts a message.\n",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "enabled": True,
        "gated": False,
        "read_only": False,
        "idempotent": False,
        **more,
    }


def text_of(result: Any) -> str:
    """The text of a result."""
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


def offering(generation: int, *items: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What C{GET /v1/actions} answers."""
    return {"generation": generation, "items": list(items), "load_errors": [], **more}


def fault(kind: str, message: str = "No.", **details: Any) -> dict[str, Any]:
    """An error envelope."""
    inside = {"class": kind, "message": message, "retriable": False, "boundary": "user", "details": details}
    return {"error": inside}


class DaemonCase(SynchronousTestCase):
    """A real client, a daemon in memory, time by hand."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.site = ScriptedSite()
        self.changes = 0
        self.daemon = Daemon(DaemonClient(self.site.agent, "http://127.0.0.1:9", "t", self.clock))
        self.link = DaemonLink(self.daemon, self.clock, self.changed)

    def changed(self) -> None:
        """Count."""
        self.changes += 1

    def start(self) -> None:
        """Follow a daemon."""
        self.link.start()
        self.addCleanup(self.link.stop)

    def begin(self, *items: dict[str, Any]) -> None:
        """Follow a daemon that offers these."""
        self.start()
        self.site.answer(200, offering(1, *items))
        self.clock.advance(0.25)
        # From here on the long poll waits at the site; nothing else is scripted for it.

    @property
    def paths(self) -> list[str]:
        """What was asked for so far."""
        return [asked.path for asked in self.site.asked]
