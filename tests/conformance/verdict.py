"""What the suite wrote of each check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from pathlib import Path

import yaml
from attrs import frozen

from tests.conformance import judges

FAILED, WARNED = "FAILURE", "WARNING"

_DIRECTORY = re.compile(r"(?:server-)?(.+?)-\d{4}-\d\d-\d\dT.*")


@frozen
class Check:
    """One of them."""

    scenario: str
    id: str
    status: str

    @property
    def name(self) -> str:
        """As the lists of what is expected have it."""
        return f"{self.scenario}:{self.id}"


def scored(revision: str, of: str = "server") -> frozenset[str]:
    """The scenarios that a revision requires of a server, or of a client."""
    path = judges.script(judges.CONFORMANCE, f"requirements/{revision}.yaml")
    return frozenset(yaml.safe_load(Path(path).read_text())[of])


def checked(results: Path, scenarios: Set[str]) -> list[Check]:
    """Whatever was checked of these."""
    return [check for check in _checks(results) if check.scenario in scenarios]


def _checks(results: Path) -> Iterator[Check]:
    for path in results.rglob("checks.json"):
        named = _DIRECTORY.fullmatch(path.parent.relative_to(results).as_posix())
        assert named is not None, path
        for check in json.loads(path.read_text()):
            yield Check(named[1], check["id"], check["status"])
