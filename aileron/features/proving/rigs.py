"""The names that a kind of connector needs to set up its own bench."""

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
