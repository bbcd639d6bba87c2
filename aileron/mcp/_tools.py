"""The tools as they are awaited from the loop: what is offered, and the calls that can be made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from aileron.values import JSON

from ._definitions import ToolDefinition
from ._forms import Answers
from ._texts import ToolResult


class IOffers(Protocol):
    """The tools, actions and runs of a session, as awaited from the loop."""

    async def offered(self, *, hears_changes: bool) -> Sequence[ToolDefinition]:
        """Every tool that is listed, in order: actions by name, then our own by name.

        :param hears_changes: whether the caller is told of tools that are added later; if not, the tools that find
            unlisted actions are there too.
        """

    async def actions(self) -> Sequence[ToolDefinition]:
        """Every action, listed or not, by name."""

    async def recent_runs(self) -> Sequence[Mapping[str, Any]]:
        """The session's newest runs, newest first.

        :raises DaemonError: they cannot be told.
        """

    async def run_status(self, run_id: str) -> Mapping[str, Any]:
        """How a run of this session stands, with its result.

        :raises DaemonError: it cannot be told; or there is none.
        """


@frozen
class CallOptions:
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

    async def actions(self) -> Sequence[ToolDefinition]:
        """Every action."""

    async def call(self, tool: str, arguments: Mapping[str, JSON], options: CallOptions) -> ToolResult:
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


class ITools(IOffers, ICalls, Protocol):
    """Everything that can be listed and called, as awaited from the loop."""
