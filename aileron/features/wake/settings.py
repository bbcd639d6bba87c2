"""The key C{wake} of C{config.yaml}: when an agent is woken, and whether one that has ended is resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aileron.base.yaml_keys import Key, Keys, NotConfig, WholeNumber, scalar, section

from .values import WakeSettings

if TYPE_CHECKING:
    from yaml import Node

MOST_AFTER_SECONDS = 3600
MOST_RESUMES = 20
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


def _switch(node: Node, name: str, line: int) -> bool:
    text = scalar(node, "bool")
    if text not in _SWITCH:
        raise NotConfig(f"{name} must be on or off", line)
    return _SWITCH[text]


_KEYS: Keys = {
    "after_seconds": Key(
        WholeNumber(MOST_AFTER_SECONDS), "how long an outcome waits for the agent to fetch it by itself", 5
    ),
    "denied": Key(
        _switch,
        "whether requests that were denied, expired or were cancelled wake an agent too: `on` or `off`",
        "`off`",
    ),
    "resume": Key(
        _switch, "whether every launch [resumes an agent that has ended](waking.md#after-the-agent-has-ended)", "`off`"
    ),
    "most_resumes": Key(WholeNumber(MOST_RESUMES), "how often an agent is resumed in one session", 3),
}
WAKE = section(WakeSettings, _KEYS)
