"""What the table of guards is made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

PROMISES = {
    2: "tests.promises.test_2_no_effect_without_decision",
    3: "tests.promises.test_3_what_was_approved_runs",
    4: "tests.promises.test_4_nothing_is_lost",
    5: "tests.promises.test_5_nothing_twice",
    6: "tests.promises.test_6_everything_on_record",
}
"""Where each promise is held."""


ATTACKS = 1
"""Stands for the attacks on the installed programs, of which doc/attacks.md tells."""

RELAY = 7
"""Stands for the relay by which a local MCP server uses a credential that it does not have (ADR 63)."""

_MODULES = {ATTACKS: "tests.attacks", RELAY: "tests.connectors.test_mcp_api", **PROMISES}


@frozen
class Guard:
    """One guard: where it stands, and what stands there when it is disabled.

    :ivar promise: which one it keeps, or C{ATTACKS} or C{RELAY}.
    :ivar what: in a few words.
    :ivar file: below the package.
    :ivar text: exactly as it stands there, once.
    :ivar instead: what disables it.
    :ivar also: of a guard that stands twice, one behind the other, the second: file, text, and what disables it.
    :ivar test: the class, or class and method, of the promise's module that must turn red; for an attack with the
        module before it.
    """

    promise: int
    what: str
    file: str
    text: str
    instead: str
    test: str
    also: tuple[tuple[str, str, str], ...] = ()

    @property
    def test_id(self) -> str:
        """As trial takes it."""
        return f"{_MODULES[self.promise]}.{self.test}"

    def problem(self, root: Path) -> str | None:
        """Why it cannot be disabled, if so."""
        for file, text, instead in self.places:
            source = (root / "aileron" / file).read_text(encoding="utf-8")
            if source.count(text) != 1:
                return f"its text is {source.count(text)} times in {file}"
            try:
                ast.parse(source.replace(text, instead))
            except SyntaxError as error:
                return f"what stands there instead is no Python: {error}"
        return None

    @property
    def places(self) -> tuple[tuple[str, str, str], ...]:
        """Each place where it stands."""
        return (self.file, self.text, self.instead), *self.also

    @contextmanager
    def disabled(self, root: Path) -> Iterator[None]:
        """Do without it for a while."""
        before = {root / "aileron" / file: "" for file, _, _ in self.places}
        for path in before:
            before[path] = path.read_text(encoding="utf-8")
        try:
            for file, text, instead in self.places:
                path = root / "aileron" / file
                path.write_text(path.read_text(encoding="utf-8").replace(text, instead), encoding="utf-8")
            yield
        finally:
            for path, source in before.items():
                path.write_text(source, encoding="utf-8")
