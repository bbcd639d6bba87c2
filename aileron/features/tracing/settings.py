"""The key C{tracing} of C{config.yaml}: where traces are sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.yaml_keys import Key, Keys, absolute_path, base_url, match_text, section

if TYPE_CHECKING:
    from yaml import Node

_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@frozen
class TracingSettings:
    """The settings of the feature.

    :ivar endpoint: the URL to which spans are posted, or None to send none.
    :ivar service_name: the name of this service in traces.
    :ivar token_file: a file with a token for the collector, or None.
    """

    endpoint: str | None = None
    service_name: str = "aileron"
    token_file: Path | None = None


def _service_name(node: Node, name: str, line: int) -> str:
    return match_text(node, _SERVICE, line, f"{name} must be a name of letters, digits, '.', '_' and '-', 63 at most")[
        0
    ]


_KEYS: Keys = {
    "endpoint": Key(
        base_url,
        "address of an OpenTelemetry collector for [traces](monitoring.md#traces), such as "
        "`https://collector.example.org/v1/traces`: `https`, or `http` to this machine",
        "none are sent",
    ),
    "service_name": Key(_service_name, "name of this daemon in traces", "`aileron`"),
    "token_file": Key(absolute_path, "absolute path of a file of yours with a bearer token for the collector", "none"),
}
TRACING = section(TracingSettings, _KEYS)
