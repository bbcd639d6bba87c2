"""Setup: guides the user from an empty home to an action that an agent can request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aileron.features.feature import Feature
from aileron.model.features import Command


class Setup(Feature):
    """The feature of C{aileron setup}, the guided first steps."""

    name = "setup"
    summary = "Sets up the vault, a service with its credential, and first actions, step by step."

    def commands(self) -> Mapping[str, Command]:
        return {
            "setup": Command("aileron.features.setup.commands:setup", "Start", 20, front=True),
            "connect": Command("aileron.features.setup.connect:connect", now="setup --choose"),
        }

    def next_steps(self, state: str) -> Sequence[str]:
        return ("aileron setup",) if state in ("missing", "running", "empty") else ()


FEATURE = Setup()
