"""Sandboxes: bubblewrap around launched agents and the programs of connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aileron.features.feature import Feature


class Sandboxes(Feature):
    """The feature that puts launched agents and the programs of connectors into sandboxes."""

    name = "sandbox"
    summary = "Runs agents and programs of connectors in sandboxes (bubblewrap)."

    doctor_advice: ClassVar[Mapping[str, tuple[str, str]]] = {
        "tracing": ("An agent in a sandbox cannot.", "aileron launch --sandbox AGENT")
    }

    def find_sandboxes(self, reactor: Any, environment: Mapping[str, str]) -> Any:
        from .enclosing import find_program_sandboxes

        return find_program_sandboxes(reactor, environment)


FEATURE = Sandboxes()
