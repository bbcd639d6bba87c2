"""The names that a package with its own kind of connector imports, to make the kind testable by C{connector prove}."""

from ._bench import Bench
from ._double import Case, Double, Move, ServiceDouble, wire
from ._network import HTTP
from ._trials import Rig, Trial, list_controls, list_trials

__all__ = [
    "HTTP",
    "Bench",
    "Case",
    "Double",
    "Move",
    "Rig",
    "ServiceDouble",
    "Trial",
    "list_controls",
    "list_trials",
    "wire",
]
