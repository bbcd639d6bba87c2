"""The key C{in_band_turns} in the gateway's settings: the most turns in which a model may call actions."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.base.yaml_keys import Key, WholeNumber

SETTING = "in_band_turns"
MOST_TURNS = 8
"""The turns of one reply in which the model may call actions, if the operator sets no other number."""

KEYS: Mapping[str, Key] = {
    f"gateway.{SETTING}": Key(WholeNumber(100), "turns of a reply in which actions are called", MOST_TURNS)
}
