"""A home as a version left it: its files, and what was true of it."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOKEN, PORT = "xoxb-golden", 28917
"""The service's, which the connector in the home names: below what systems give out by themselves."""

REPORT = "file-report"
REPORTED: Mapping[str, Any] = {
    "channel": "#engineering",
    "title": "Grüße, 世界 👋 <b>&amp;</b>\n\tline\u2028two",
    "count": -7,
    "ratio": 0.1,
    "large": 9007199254740991,
    "urgent": True,
    "labels": ["b", "a", "ä", ""],
    "details": {"z": [1, 2.5, None, False], "a": {"nested": "\u0001"}, "": 1e-7},
}
"""Arguments of each type, with numbers and texts whose canonical form is easy to get wrong."""

REPORT_ACTION = """\
+++
name = "file-report"
version = "2.1.0"
timeout_seconds = 45

[match]
intent = "File a report"

[[requires.connectors]]
name = "local://me/slack"
version = "1.0.0"
capabilities = ["post_message", "list_channels"]

[[inputs]]
name = "channel"
type = "string"
description = "Where"

[[inputs]]
name = "title"
type = "string"
label = "Headline"
multiline = true
description = "What"

[[inputs]]
name = "count"
type = "integer"
description = "How many"

[[inputs]]
name = "ratio"
type = "number"
description = "How much"

[[inputs]]
name = "large"
type = "integer"
description = "A large number"

[[inputs]]
name = "urgent"
type = "boolean"
description = "Whether at once"

[[inputs]]
name = "labels"
type = "array"
items_type = "string"
description = "Which"

[[inputs]]
name = "details"
type = "object"
description = "More"

[[inputs]]
name = "severity"
type = "string"
enum = ["low", "high"]
default = "low"
description = "How bad"

[[execute]]
id = "look"
connector = "local://me/slack"
op = "list_channels"
inputs = { limit = "${args.count}" }

[[execute]]
id = "first"
connector = "local://me/slack"
op = "post_message"
inputs = { channel = "${args.channel}", text = "${args.title}: ${args.count}, ${args.ratio}, ${args.severity}" }

[[execute]]
id = "second"
connector = "local://me/slack"
op = "post_message"
inputs = { channel = "${args.channel}", text = "${args.large} ${args.urgent}" }

[approval]
required = true
undo_seconds = 1
+++
# File a report

Files a report in two messages.
"""

_HOMES = Path(__file__).with_name("homes")
_FOLDER = "home"


def versions() -> list[str]:
    """The versions that left a home."""
    return sorted(path.name for path in _HOMES.iterdir())


def unpack(version: str, home: Path) -> Mapping[str, Any]:
    """Put the home of a version there; what was true of it, as L{pack} was told."""
    with tarfile.open(_HOMES / version / "home.tar.xz") as archive:
        archive.extractall(home.parent, filter="data")
    (home.parent / _FOLDER).rename(home)
    return dict(json.loads((_HOMES / version / "facts.json").read_text(encoding="utf-8")))


def pack(version: str, home: Path, facts: Mapping[str, Any]) -> None:
    """Keep the home of a stopped daemon."""
    directory = _HOMES / version
    directory.mkdir(parents=True)
    with tarfile.open(directory / "home.tar.xz", "w:xz") as archive:
        archive.add(home, _FOLDER)
    text = json.dumps(facts, indent=1, ensure_ascii=False, sort_keys=True)
    (directory / "facts.json").write_text(text + "\n", encoding="utf-8")
