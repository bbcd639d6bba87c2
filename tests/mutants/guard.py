"""The guards, as their marks in the sources tell them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen

from .marks import BadMark, Mark, disable, read_marks

PROMISES = {
    "of promise 2": "tests.promises.test_2_no_effect_without_decision",
    "of promise 3": "tests.promises.test_3_what_was_approved_runs",
    "of promise 4": "tests.promises.test_4_nothing_is_lost",
    "of promise 5": "tests.promises.test_5_nothing_twice",
    "of promise 6": "tests.promises.test_6_everything_on_record",
}
"""The module in which each promise is held."""

ATTACKS = "against attack"
"""Marks the guards that stop the attacks on the installed programs, of which doc/attacks.md tells."""

RELAY = "of the relay"
"""Marks the guards of the relay by which a local MCP server uses a credential that it does not have (ADR 63)."""

SIGNING = "of signing"
"""Marks the guards of the signatures of decisions (ADR 78), and of the vault's key sources (ADR 83)."""

PHONE = "of the phone"
"""Marks the guards of the listener for the public name (ADR 80), and of what is sent to phones (ADR 79)."""

PROMPTS = "of prompts"
"""Marks the guards of the agents' own permission prompts (ADR 84)."""

OWN_TOOLS = "of own tools"
"""Marks the guards of the requests of agents' own tools (ADR 94)."""

SPENDING = "of spending"
"""Marks the guards of limits on spending (ADR 85)."""

WAKING = "of waking"
"""Marks the guards of waking agents (ADR 91)."""

ROLES = "of roles"
"""Marks the guards of accounts and their roles (ADR 101)."""

SIGN_IN = "of sign-in"
"""Marks the guards of the sign-in with a provider (ADR 108)."""

STORE = "of the store"
"""Marks the guards of where the store is (ADR 93)."""

DAEMONS = "of several daemons"
"""Marks the guards of several daemons on one database (ADR 100)."""

MONITORING = "of monitoring"
"""Marks the guards of the log and of traces (ADR 109)."""

_MODULES = {
    ATTACKS: "tests.attacks",
    DAEMONS: "tests",
    MONITORING: "tests",
    OWN_TOOLS: "tests",
    PHONE: "tests.features",
    PROMPTS: "tests.features.prompts",
    ROLES: "tests",
    RELAY: "tests.connectors.kinds.mcp.test_mcp_api",
    SIGNING: "tests",
    SIGN_IN: "tests",
    SPENDING: "tests.features.spending",
    STORE: "tests",
    WAKING: "tests.features",
    **PROMISES,
}


@frozen
class Guard:
    """One guard.

    :ivar keeper: what it keeps, as its marks say it: a promise, the relay, or C{ATTACKS}.
    :ivar what: in a few words.
    :ivar test: the class, or class and method, of the promise's module that must fail; for an attack with the module
        before it.
    :ivar files: the modules in which its marks stand, below the package.
    """

    keeper: str
    what: str
    test: str
    files: tuple[str, ...]

    @property
    def test_id(self) -> str:
        """The test's full name."""
        return f"{_MODULES[self.keeper]}.{self.test}"

    @contextmanager
    def disabled(self, root: Path) -> Iterator[None]:
        """Disable the guard in the package below root until the context ends.

        :raises BadMark: if a mark stands above nothing that can be disabled.
        """
        before = {root / "aileron" / file: (root / "aileron" / file).read_text(encoding="utf-8") for file in self.files}
        after = {path: ast.unparse(disable(source, self.select(read_marks(source)))) for path, source in before.items()}
        try:
            for path, source in after.items():
                path.write_text(source, encoding="utf-8")
            yield
        finally:
            for path, source in before.items():
                path.write_text(source, encoding="utf-8")

    def select(self, marks: list[Mark]) -> list[Mark]:
        """Return the marks of this guard among the marks of a module."""
        return [mark for mark in marks if (mark.keeper, mark.what) == (self.keeper, self.what)]


def find_guards(root: Path) -> list[Guard]:
    """Return the guards that are marked in the package below root, by what they keep and where they stand.

    :raises BadMark: if the marks of a guard name no test, or several.
    """
    found = dict[tuple[str, str], Guard]()
    for path in sorted((root / "aileron").rglob("*.py")):
        file = path.relative_to(root / "aileron").as_posix()
        for mark in read_marks(path.read_text(encoding="utf-8")):
            guard = found.get((mark.keeper, mark.what), Guard(mark.keeper, mark.what, "", ()))
            if guard.test and mark.test:
                raise BadMark(f"{mark.what!r} is marked twice, and both marks name a test")
            files = guard.files if file in guard.files else (*guard.files, file)
            found[mark.keeper, mark.what] = evolve(guard, test=guard.test or mark.test or "", files=files)
    missing = [guard.what for guard in found.values() if not guard.test]
    if missing:
        raise BadMark(f"no mark names the test of {missing}")
    order = [*_MODULES]
    return sorted(found.values(), key=lambda guard: order.index(guard.keeper))
