"""Portable decisions: requests as text, decided on any machine by an enrolled SSH key (ADR 82)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aileron.features.feature import Feature
from aileron.model.audit import EventName
from aileron.model.features import Command


class Portable(Feature):
    """The feature that exports requests as text, and imports decisions that an SSH key has signed elsewhere."""

    name = "portable"
    summary = "Exports requests as text, and imports decisions that an SSH key or security key signed elsewhere."

    def commands(self) -> Mapping[str, Command]:
        return {
            "approval export": Command("aileron.features.portable.commands:export_approval"),
            "approval import": Command("aileron.features.portable.commands:import_decision"),
            "approver": Command("aileron.features.portable.commands:approver", "Maintain", 65),
        }

    def event_types(self) -> Mapping[str, EventName]:
        return {
            "operator.approver_added": EventName("SSH key of an approver added", "logins"),
            "operator.approver_removed": EventName("SSH key of an approver removed", "logins"),
        }

    def routes(self) -> Sequence[Any]:
        from .routes import TABLE

        return (TABLE,)


FEATURE = Portable()
