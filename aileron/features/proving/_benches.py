"""Sets up the test of a connector for each kind of connector, and makes connectors as the daemon does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from aileron.connectors import ConnectorKind, Specimen, Workshop
from aileron.model.interfaces.connectors import IConnector

from ._bench import Bench
from ._git import set_up_git
from ._http import set_up_http
from ._mail import set_up_mail
from ._mcp import set_up_mcp
from ._network import STRANGER
from ._program import set_up_program
from ._trials import Rig

Make = Callable[[Any, Bench], IConnector]
"""Makes the connector under test from its specification, as adapted to the bench."""

BENCHES: Mapping[str, Callable[[Specimen, Bench], Rig | str]] = {
    "http": set_up_http,
    "git": set_up_git,
    "mail": set_up_mail,
    "command": set_up_program,
    "mcp": set_up_mcp,
}
"""The functions that set up the bench for built-in kinds. Every other kind brings its own."""


def set_up(specimen: Specimen, bench: Bench) -> Rig | str:
    """Set up the test of a connector: return a L{Rig}, or a clause with the reason why it cannot be tested."""
    kind = specimen.kind
    if kind is None:
        return "its file has faults"
    own = BENCHES.get(kind.name)
    found: Rig | str = kind.bench(specimen, bench) if own is None else own(specimen, bench)
    return found


def maker_of(kind: ConnectorKind[Any]) -> Make:
    """Return a function that makes connectors of a kind as the daemon does, but without sandboxes and threads."""

    def make(spec: Any, bench: Bench) -> IConnector:
        transport, servers, bridge = bench.network.transport, bench.servers, bench.loop.bridge
        return kind.make(
            spec, Workshop(bench.processes, transport, _SampleEnvironment(), servers=servers, bridge=bridge)
        )

    return make


@frozen
class _SampleEnvironment(Mapping[str, str]):
    """An environment in which every variable has a value.

    Iteration yields only L{STRANGER}, a variable that no connector's file declares.
    """

    def __getitem__(self, name: str) -> str:
        return "yes" if name == STRANGER else "sample"

    def __iter__(self) -> Iterator[str]:
        return iter((STRANGER,))

    def __len__(self) -> int:
        return 1
