"""The kinds of connectors: how each is put on the bench, and made as the daemon makes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aileron.base.addresses import read_origin
from aileron.base.json import utc
from aileron.connectors import (
    CommandConnector,
    CommandSpec,
    GitConnector,
    GitSpec,
    HttpConnector,
    HttpSessions,
    HttpSpec,
    LocalSessions,
    MailConnector,
    MailSpec,
    McpConnector,
    McpSpec,
    Screened,
    Specimen,
)
from aileron.model.interfaces.connectors import IConnector

from ._bench import Bench
from ._double import Case, ServiceDouble
from ._git import set_up_git
from ._mail import set_up_mail
from ._mcp import set_up_mcp
from ._network import HTTP, STRANGER
from ._program import set_up_program
from ._trials import Rig, list_controls, list_trials

Make = Callable[[Any, Bench], IConnector]
"""Makes the connector that is put to the proof, of its file as it is on the bench."""


def set_up(specimen: Specimen, bench: Bench) -> Rig | str:
    """Put a connector on the bench; where there is no double for it, return why."""
    if isinstance(specimen.spec, HttpSpec) and not isinstance(specimen.spec, GitSpec):
        return _set_up_http(specimen.spec, specimen, bench)
    return _SET_UP[type(specimen.spec)](specimen.spec, specimen.base_url, bench)


def _set_up_http(spec: HttpSpec, specimen: Specimen, bench: Bench) -> Rig:
    base_url = specimen.base_url
    cases = {
        name: Case(
            operation=each.operation.operation,
            inputs=each.inputs,
            looks=each.found is not None,
            certain=each.operation.lookup is not None and each.operation.lookup.certain,
            sample=each,
            method=each.operation.method,
            form=each.operation.answer,
            good=each.done("sample")[0],
            most_bytes=each.operation.max_response_bytes,
        )
        for name, each in specimen.samples.items()
    }
    urls = (base_url, *(spec.description.url_of(each, base_url) for each in spec.description.places))
    origins = {read_origin(each): HTTP for each in urls}
    double = ServiceDouble(bench.clock)
    return Rig(spec, base_url, double, origins, cases, list_trials, list_controls, specimen.without)


_SET_UP: Mapping[type, Callable[[Any, str, Bench], Rig | str]] = {
    GitSpec: set_up_git,
    McpSpec: set_up_mcp,
    MailSpec: set_up_mail,
    CommandSpec: set_up_program,
}


def make_connector(spec: Any, bench: Bench) -> IConnector:
    """Make a connector as the daemon does, but without sandboxes and threads."""
    clock, transport = bench.clock, bench.network.transport

    def now() -> Any:
        return utc(clock.seconds())

    if isinstance(spec, CommandSpec):
        return Screened(CommandConnector(spec, bench.processes, _environment(spec.environment)))
    if isinstance(spec, GitSpec):
        return Screened(GitConnector(transport, clock, now, spec=spec))
    if isinstance(spec, MailSpec):
        return MailConnector(spec, transport.opener, clock, now)
    if not isinstance(spec, McpSpec):
        return HttpConnector(spec, transport, clock, now)
    about, local = spec.description, spec.local
    if local is None:
        return Screened(McpConnector(spec, HttpSessions(bench.loop.bridge, transport, clock, spec), clock))
    environment, shared = _environment(local.environment), bench.servers.of(about.fqn)
    sessions = LocalSessions(about, local, shared, environment, None, spec.max_response_bytes)
    return Screened(McpConnector(spec, sessions, clock))


def _environment(declared: Any) -> Mapping[str, str]:
    """Return a daemon's environment, with a variable that is nobody's business."""
    return {STRANGER: "yes", **dict.fromkeys(declared.inherited, "sample")}
