"""The contracts of the store, and the tests of its parts, on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from twisted.trial.unittest import SkipTest

from tests.functional.postgresql import OnServer
from tests.store import (
    test_audit,
    test_call_counts,
    test_in_band,
    test_memories,
    test_people,
    test_rate_limits,
    test_renewal_turns,
    test_runs,
    test_sessions,
    test_snoozes,
    test_spending,
    test_store,
    test_tool_claims,
    test_usage,
    test_votes,
    test_wakes,
)

_MODULES: tuple[ModuleType, ...] = (
    test_audit,
    test_call_counts,
    test_in_band,
    test_memories,
    test_people,
    test_rate_limits,
    test_renewal_turns,
    test_runs,
    test_sessions,
    test_snoozes,
    test_spending,
    test_store,
    test_tool_claims,
    test_usage,
    test_votes,
    test_wakes,
)

_LEFT_OUT = {
    "StoreTests.test_files": "about files",
    "ChainProperties.test_every_event_once": "about files",
    "WritingTests.test_once": "would need a database for each of a hundred examples",
}


def _skip(why: str) -> Callable[[object], None]:
    """A test that is skipped."""

    def test(self: object) -> None:
        raise SkipTest(why)

    return test


def _make() -> dict[str, type]:
    found = {}
    for module in _MODULES:
        for name, case in vars(module).items():
            if isinstance(case, type) and case.__module__ == module.__name__ and hasattr(case, "run"):
                own = name.replace("Tests", "OnPostgreSQLTests")
                left_out = {
                    each.removeprefix(f"{name}."): _skip(why)
                    for each, why in _LEFT_OUT.items()
                    if each.startswith(f"{name}.")
                }
                content = {"__module__": __name__, "__doc__": case.__doc__, **left_out}
                found[own] = type(own, (OnServer, case), content)
    return found


globals().update(_make())
