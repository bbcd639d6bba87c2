"""The rules of the house as pure functions over source text; tests/test_architecture.py applies them."""

from ._calls import connector_calls, foreign_readers, secrets_opened
from ._chains import long_chains, needless_chains
from ._database import database_access
from ._docstrings import fragments, package_modules, undescribed_methods
from ._files import list_files
from ._interfaces import one_sided_interfaces
from ._layers import LAYERS, circles, layers
from ._rooms import ALLOWED, FEATURES, OFFLINE_DOORS, arrows
from ._shape import (
    class_names,
    long_functions,
    module_level_reactor,
    possessive_groups,
    swallowed_exceptions,
    wide_constructors,
)
from ._source import ELSEWHERE, Rule, Source, read_tree
from ._testing import async_tests_never_run, mocks, undescribed_tests

__all__ = [
    "ALLOWED",
    "ELSEWHERE",
    "FEATURES",
    "LAYERS",
    "OFFLINE_DOORS",
    "Rule",
    "Source",
    "arrows",
    "async_tests_never_run",
    "circles",
    "class_names",
    "connector_calls",
    "database_access",
    "foreign_readers",
    "fragments",
    "layers",
    "list_files",
    "long_chains",
    "long_functions",
    "mocks",
    "module_level_reactor",
    "needless_chains",
    "one_sided_interfaces",
    "package_modules",
    "possessive_groups",
    "read_tree",
    "secrets_opened",
    "swallowed_exceptions",
    "undescribed_methods",
    "undescribed_tests",
    "wide_constructors",
]
