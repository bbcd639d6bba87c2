"""The tests of installed programs under one name: ``trial tests.installed``.

Those marked `tests.extent.seldom` are left out unless everything is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import TestCase, TestSuite

from twisted.trial.runner import TestLoader

from tests.extent import is_all, longest_first
from tests.functional.forkserver import ForkServer

_ROOMS = ["tests.functional", "tests.attacks"]
_LONGEST = (
    "tests.functional.test_orphans.",
    "tests.functional.test_foreign_kind.",
    "tests.functional.test_egress.AgentTests.",
    "tests.functional.test_gateway_agents.",
    "tests.functional.test_looks.",
    "tests.functional.test_demo.",
    "tests.attacks.test_slow_text.",
    "tests.functional.test_inband_agents.",
    "tests.functional.test_full_disk.",
    "tests.functional.test_keyboard.",
    "tests.attacks.test_second_user.",
    "tests.functional.test_mcp_process.EndTests.",
    "tests.functional.test_connector_page.",
    "tests.functional.test_browser_notices.",
    "tests.functional.test_deciding.",
    "tests.functional.test_entering.",
    "tests.functional.test_oauth_mcp.",
    "tests.functional.test_first_run.",
    "tests.functional.test_notifications.",
    "tests.functional.test_signing_in.",
    "tests.functional.test_passkey.",
    "tests.functional.test_twenty.",
    "tests.functional.test_other_pages.",
    "tests.attacks.test_gateway_memory.",
    "tests.attacks.test_agent.",
    "tests.agents.",
    "tests.attacks.test_floods.",
    "tests.attacks.test_process.",
    "tests.functional.test_moving.",
    "tests.functional.test_restart.",
    "tests.functional.test_canary.",
    "tests.functional.test_services.",
    "tests.functional.listings.test_first_run.",
    "tests.functional.listings.test_install.",
    "tests.attacks.test_gateway_key.",
    "tests.attacks.test_rollback.",
)


def test_suite() -> TestSuite:
    """Collect the tests; trial calls this by its name."""
    from tests.agents import turn

    ForkServer.share()
    rooms = each_wanted(TestLoader().loadByNames(_ROOMS, recurse=True))
    tests: list[TestCase] = [*rooms, *turn.scenarios(is_all())]
    ordered = longest_first(tests, _LONGEST, TestCase.id)
    return TestSuite(ordered)


def each_wanted(suite: TestSuite) -> Iterator[TestCase]:
    """The tests of a suite that are wanted now."""
    return (test for test in each_test(suite) if is_all() or not is_seldom(test))


def is_seldom(test: TestCase) -> bool:
    """Whether a test is marked so."""
    return hasattr(getattr(test, test.id().rpartition(".")[2], None), "seldom")


def each_test(suite: TestSuite) -> Iterator[TestCase]:
    """The tests of a suite and of the suites in it."""
    for test in suite:
        if isinstance(test, TestSuite):
            yield from each_test(test)
        else:
            yield test
