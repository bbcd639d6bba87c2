"""Puts the programs of connectors into sandboxes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from attrs import field, frozen
from zope.interface import implementer

from aileron.connectors import Confinement, Enclosure
from aileron.model.interfaces.connectors import ISandboxes

from .layout import SandboxLayout, installed_programs
from .program import build_program_sandbox
from .sandbox import Sandbox, find_sandbox


@implementer(ISandboxes)
@frozen
class ProgramSandboxes:
    """Makes sandboxes for the programs of connectors.

    :ivar sandbox: the sandboxes of this machine.
    :ivar environment: the daemon's environment.
    """

    sandbox: Sandbox
    environment: Mapping[str, str] = field(repr=False)

    def enclose(
        self,
        directory: str,
        network: bool,
        repository: bool,
        *,
        state: str,
        in_thread: Callable[..., Awaitable[Any]],
    ) -> Enclosure:
        layout = SandboxLayout(
            home=self.environment.get("HOME", "/"),
            state=state,
            project=directory,
            programs=installed_programs(),
            whole_repository=repository,
        )
        inside = self.sandbox.entry(Enclosure.api_port, Enclosure.meeting_descriptor), self.sandbox.listen
        build = partial(build_program_sandbox, network=network, first_descriptor=Enclosure.first_descriptor)

        async def confine() -> Confinement:
            built = await in_thread(build, layout, self.environment)

            async def changes() -> tuple[str, ...]:
                found: tuple[str, ...] = await in_thread(built.changes)
                return found

            argv = (self.sandbox.program, *built.options, "--seccomp", str(Enclosure.filter_descriptor), "--")
            return Confinement(argv, built.opened, built.is_current, changes)

        return Enclosure(layout.root, confine, self.sandbox.seccomp, *(() if network else inside))


def find_program_sandboxes(reactor: Any, environment: Mapping[str, str]) -> ProgramSandboxes:
    """Test the sandboxes of this machine, and return their factory.

    :raises NotFound, Forbidden: if this machine cannot make sandboxes.
    """
    return ProgramSandboxes(find_sandbox(reactor, environment, "--bind-fd", "0", "/"), environment)
