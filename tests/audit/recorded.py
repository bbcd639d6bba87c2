"""The types of events, as the page on the audit log lists them for its readers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "doc" / "audit.md"
_ROW = re.compile(r"^\| `([a-z._]+)` \| (.+) \|$", re.MULTILINE)

RECORDED: Mapping[str, str] = dict(_ROW.findall(_PAGE.read_text(encoding="utf-8").partition("\n## Event types\n")[2]))
"""Each type, and the sentence that says what happened."""
