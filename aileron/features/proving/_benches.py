"""The benches of the kinds of connector: what puts each on the bench, and makes it as the daemon does."""

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
"""Makes the connector that is put to the proof, of its file as it is on the bench."""

BENCHES: Mapping[str, Callable[[Specimen, Bench], Rig | str]] = {
    "http": set_up_http,
    "git": set_up_git,
    "mail": set_up_mail,
    "command": set_up_program,
    "mcp": set_up_mcp,
}
"""The benches of the kinds that ship with Aileron; every other kind has its own."""


def set_up(specimen: Specimen, bench: Bench) -> Rig | str:
    """Put a connector on the bench, or return why it cannot be proved if there is no double of its service."""
    kind = specimen.kind
    if kind is None:
        return "its file has faults"
    own = BENCHES.get(kind.name)
    found: Rig | str = kind.bench(specimen, bench) if own is None else own(specimen, bench)
    return found


def maker_of(kind: ConnectorKind[Any]) -> Make:
    """Return what makes connectors of a kind as the daemon does, but without sandboxes and threads."""

    def make(spec: Any, bench: Bench) -> IConnector:
        transport, servers, bridge = bench.network.transport, bench.servers, bench.loop.bridge
        return kind.make(
            spec, Workshop(bench.processes, transport, _SampleEnvironment(), servers=servers, bridge=bridge)
        )

    return make


@frozen
class _SampleEnvironment(Mapping[str, str]):
    """A daemon's environment with whatever variable a connector's file names, and one that none names."""

    def __getitem__(self, name: str) -> str:
        return "yes" if name == STRANGER else "sample"

    def __iter__(self) -> Iterator[str]:
        return iter((STRANGER,))

    def __len__(self) -> int:
        return 1
