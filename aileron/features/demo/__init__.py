"""The demo: an agent's call, approved and recorded in a home of its own, which is deleted at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aileron.features.feature import Feature
from aileron.model.features import Command


class DemoFeature(Feature):
    """The feature with the command C{aileron demo}, which shows an approval with a made-up service."""

    name = "demo"
    summary = "Shows how a call is approved and recorded, in a few seconds."

    def commands(self) -> Mapping[str, Command]:
        return {"demo": Command("aileron.features.demo.commands:demo", "Start", 10, front=True)}

    def next_steps(self, state: str) -> Sequence[str]:
        return ("aileron demo",) if state == "missing" else ()


FEATURE = DemoFeature()
