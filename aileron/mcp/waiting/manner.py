"""What crosses from the loop to the reactor about how a call is to be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from aileron.mcp._cards import Card
from aileron.mcp._forms import Answers
from aileron.mcp._texts import Said
from aileron.values import JSON


@frozen
class Manner:
    """How one call is made.

    :ivar key: its idempotency key: a call that is made again with it is the same run.
    :ivar wait_seconds: how long it waits for a person, at most.
    :ivar early: whether it answers as soon as it waits for a person, so that this person can be shown where.
    :ivar answers: what a person said of what the call leaves out; L{None}: nobody was asked yet.
    """

    key: str
    wait_seconds: float
    early: bool = False
    answers: Answers | None = None


class ICalls(Protocol):
    """The calls that can be made, as awaited from the loop."""

    async def actions(self) -> Sequence[Card]:
        """Every action."""

    async def call(self, tool: str, arguments: Mapping[str, JSON], manner: Manner) -> Said:
        """Call a tool."""

    async def withdraw(self, key: str) -> None:
        """The client cancelled the call of this key: take it back if its action says so, and it still waits."""

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """How a run of this session stands.

        :raises DaemonError: it cannot be told; or there is none.
        """

    async def withdraw_run(self, run_id: str) -> None:
        """The same as L{withdraw}, by the run's id.

        :raises DaemonError: there is no such run, or it cannot be told.
        """
