"""The key C{own_tools} of C{config.yaml}."""

from __future__ import annotations

from attrs import frozen

from aileron.base.yaml_keys import Key, WholeNumber, section

HOLD_SECONDS = 25
"""How long a connection is held while its run waits, unless set. Some tools give up after 30 seconds."""

MOST_HOLD_SECONDS = 300


@frozen
class OwnToolsSettings:
    """The settings of the feature.

    :ivar hold_seconds: how long the connection of a write is held while its run waits.
    """

    hold_seconds: int = HOLD_SECONDS


OWN_TOOLS = section(
    OwnToolsSettings,
    {
        "hold_seconds": Key(
            WholeNumber(MOST_HOLD_SECONDS),
            "seconds for which the connection of an agent's tool is held while its write waits for approval "
            "(some tools give up after 30)",
            HOLD_SECONDS,
        )
    },
)
