"""Proving: tests connectors against doubles of services that misbehave, such as a service that answers too late."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.features.feature import Feature
from aileron.model.features import Command


class Proving(Feature):
    """The feature of C{aileron connector prove}."""

    name = "proving"
    summary = "Tests connectors against a local double of their service that fails in every way."

    def commands(self) -> Mapping[str, Command]:
        return {"connector prove": Command("aileron.features.proving.commands:prove_connectors", old=("prove",))}


FEATURE = Proving()
