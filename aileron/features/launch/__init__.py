"""Launching: runs an agent in its own session, with Aileron's tools and the gateway set up for this run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aileron.features.feature import Feature
from aileron.model.features import Command


class LaunchFeature(Feature):
    """The feature with C{aileron launch}, which runs an agent in a session of its own."""

    name = "launch"
    summary = "Runs an agent in a session of its own."

    def commands(self) -> Mapping[str, Command]:
        return {
            "launch": Command("aileron.features.launch.commands:launch", "Start", 30, front=True),
            "own-tools run": Command("aileron.features.launch.tool_commands:run"),
        }

    def next_steps(self, state: str) -> Sequence[str]:
        if state == "first":
            return ("aileron launch claude",)
        if state != "ready":
            return ()
        from .agents import find_agents

        *others, last = sorted(find_agents())
        return (f"aileron launch AGENT ({', '.join(others)} or {last})",)


FEATURE = LaunchFeature()
