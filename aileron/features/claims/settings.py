"""The key C{claims} in the gateway's settings, which switches the claim check on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aileron.base.yaml_keys import Key, NotConfig, scalar

if TYPE_CHECKING:
    from yaml import Node

SETTING = "claims"


def _is_on(node: Node, name: str, line: int) -> bool:
    text = scalar(node, "str") or scalar(node, "bool")  # YAML parses on and off as booleans
    if text not in {"on", "off"}:
        raise NotConfig(f"{name} must be on or off", line)
    return text == "on"


KEYS: Mapping[str, Key] = {
    f"gateway.{SETTING}": Key(
        _is_on,
        "whether last answers are checked for [effects that no run had](gateway.md#claims-without-a-run)",
        "`on`",
    )
}
