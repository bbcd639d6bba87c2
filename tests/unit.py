"""Every test but those of installed programs under one name: ``trial tests.unit``.

Those marked `tests.extent.seldom` are left out unless everything is wanted.
"""

from __future__ import annotations

import pkgutil
from unittest import TestSuite

from twisted.trial.runner import TestLoader

import tests
from tests.extent import longest_first
from tests.installed import each_wanted

_LONGEST = (
    "tests.matrix.",
    "tests.web.test_hostile.",
    "tests.test_linear_expressions.",
    "tests.test_architecture.",
    "tests.test_packaging.",
    "tests.connectors.test_format.",
    "tests.runner.machine.",
)
_INSTALLED = ("tests.functional", "tests.attacks", "tests.agents", "tests.conformance")


def names() -> list[str]:
    """List the test packages and modules that need no installed wheel and no process."""
    found = pkgutil.iter_modules(tests.__path__, "tests.")
    rooms = [module.name for module in found if module.ispkg or module.name.startswith("tests.test_")]
    return [name for name in rooms if name not in _INSTALLED]


def test_suite() -> TestSuite:
    """Collect those tests; trial calls this by its name."""
    return TestSuite(longest_first(each_wanted(TestLoader().loadByNames(names(), recurse=True)), _LONGEST))
