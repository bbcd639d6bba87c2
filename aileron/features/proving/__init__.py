"""Tests connectors against doubles of their services. A double misbehaves on purpose, for example answers too late."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.features.feature import Feature
from aileron.model.features import Command


class Proving(Feature):
    """The feature with C{aileron connector prove}, which tests connectors against a service that misbehaves."""

    name = "proving"
    summary = "Tests connectors against a local double of their service that fails in every way."

    def commands(self) -> Mapping[str, Command]:
        return {"connector prove": Command("aileron.features.proving.commands:prove_connectors", old=("prove",))}


FEATURE = Proving()
