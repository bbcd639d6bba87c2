"""The tests of installed programs under one name: ``trial tests.installed``.

Those marked `tests.extent.seldom` are left out unless everything is wanted, and so is half of the tests of some rooms:
another half for each state of the sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from unittest import TestCase, TestSuite

from twisted.trial.runner import TestLoader

from tests.extent import is_all, longest_first, place_among
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
_IN_TURN: tuple[str, ...] = (
    "tests.attacks.test_agent.",
    "tests.attacks.test_breakout.",
    "tests.attacks.test_browser.",
    "tests.attacks.test_floods.",
    "tests.attacks.test_gateway_memory.",
    "tests.attacks.test_neighbours.",
    "tests.attacks.test_operator_door.",
    "tests.attacks.test_own_tools_way.",
    "tests.attacks.test_passkeys.",
    "tests.attacks.test_phone.",
    "tests.attacks.test_planted.",
    "tests.attacks.test_process.",
    "tests.attacks.test_rollback.",
    "tests.attacks.test_sandbox_git.",
    "tests.attacks.test_sandbox_links.",
    "tests.attacks.test_sandbox_work.",
    "tests.attacks.test_second_user.",
    "tests.attacks.test_slow_text.",
    "tests.functional.test_approval_pages.",
    "tests.functional.test_browser_notices.",
    "tests.functional.test_configuration.",
    "tests.functional.test_connector_page.",
    "tests.functional.test_credentials.",
    "tests.functional.test_daemon_process.",
    "tests.functional.test_deciding.",
    "tests.functional.test_demo.",
    "tests.functional.test_egress.",
    "tests.functional.test_entering.",
    "tests.functional.test_finding.",
    "tests.functional.test_first_run.",
    "tests.functional.test_foreign_kind.",
    "tests.functional.test_full_disk.",
    "tests.functional.test_gateway_agents.",
    "tests.functional.test_gateway_sdks.",
    "tests.functional.test_inband_agents.",
    "tests.functional.test_inband_sdks.",
    "tests.functional.test_inbox.",
    "tests.functional.test_keyboard.",
    "tests.functional.test_lapse.",
    "tests.functional.test_mcp_api.",
    "tests.functional.test_mcp_process.",
    "tests.functional.test_notifications.",
    "tests.functional.test_one_page.",
    "tests.functional.test_other_pages.",
    "tests.functional.test_own_tools.",
    "tests.functional.test_own_tools_aws.",
    "tests.functional.test_own_tools_git.",
    "tests.functional.test_own_tools_publishing.",
    "tests.functional.test_own_tools_services.",
    "tests.functional.test_pages.",
    "tests.functional.test_passkey.",
    "tests.functional.test_phone_push.",
    "tests.functional.test_phone_traffic.",
    "tests.functional.test_prompts.",
    "tests.functional.test_push.",
    "tests.functional.test_security_keys.",
    "tests.functional.test_signing_in.",
    "tests.functional.test_spending.",
    "tests.functional.test_store_contracts.",
    "tests.functional.test_store_daemon.",
    "tests.functional.test_traces.",
    "tests.functional.test_transit.",
    "tests.functional.test_twenty.",
    "tests.functional.test_writing.",
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
    return (test for test in each_test(suite) if is_all() or not (is_seldom(test) or is_left_to_others(test)))


def is_seldom(test: TestCase) -> bool:
    """Whether a test is marked so."""
    return hasattr(getattr(test, test.id().rpartition(".")[2], None), "seldom")


def is_left_to_others(test: TestCase) -> bool:
    """Whether a test is one of those that take turns, and it is not its turn with these sources."""
    return test.id().startswith(_IN_TURN) and place_among(test.id(), 2) == 0


def each_test(suite: TestSuite) -> Iterator[TestCase]:
    """The tests of a suite and of the suites in it."""
    for test in suite:
        if isinstance(test, TestSuite):
            yield from each_test(test)
        else:
            yield test
