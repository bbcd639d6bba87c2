"""A connector on the bench, as each kind sets it up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import field, frozen

from aileron.addresses import Origin
from aileron.connectors import Spec

from ._double import Case, Double
from ._trials import Trial


@frozen
class Rig:
    """A connector on the bench.

    :ivar spec: its file, with what is on this machine replaced: programs, directories, descriptions of tools.
    :ivar base_url: where it talks to.
    :ivar origins: as of L{ProofNetwork}.
    :ivar cases: its operations.
    :ivar without: by operation, why it is not among them.
    :ivar trials: lists those of a case, given the secret.
    :ivar controls: lists those of a case with the checks that are to notice them, given a decoy.
    """

    spec: Spec
    base_url: str
    double: Double
    origins: Mapping[Origin, str]
    cases: Mapping[str, Case]
    trials: Callable[[Case, str], Iterator[Trial]] = field(repr=False)
    controls: Callable[[Case, str], Iterator[tuple[str, Trial]]] = field(repr=False)
    without: Mapping[str, str] = field(factory=dict)
