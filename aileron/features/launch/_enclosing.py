"""Puts agents into sandboxes, with the network and the services that the user lets them reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from attrs import evolve, field, frozen

from aileron.features.own_tools.client import OpenedServices
from aileron.features.own_tools.logins import lay_out_logins
from aileron.features.own_tools.trust import TrustFiles, lay_out_trust
from aileron.features.sandbox.project import SandboxProject
from aileron.features.sandbox.sandbox import ProcessPlan, Sandbox
from aileron.features.sandbox.way_out import WayOut

from ._launch import Enclosed
from ._services import SessionServices, find_direct
from .plan import LaunchPlan


@frozen
class LaunchSandbox:
    """Puts an agent into a sandbox.

    :ivar services: opens the services and connections of the session.
    :ivar environment: the user's environment.
    :ivar say: shows the user one line.
    """

    sandbox: Sandbox
    project: SandboxProject
    services: SessionServices
    environment: Mapping[str, str] = field(repr=False)
    say: Callable[[str], object]

    async def open(self, session_id: str) -> Enclosed:
        """Open the services for the session's tools, and return the function that puts a launch into the sandbox.

        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        opened = await self.services.open(session_id, "In the sandbox")
        return partial(self._enclose, session_id, opened)

    @contextmanager
    def _enclose(
        self, session_id: str, opened: OpenedServices | None, plan: LaunchPlan, url: str
    ) -> Iterator[LaunchPlan]:
        words = self.services.list_hosts(opened)
        dial = partial(self.services.dial, session_id)
        way_out = WayOut(words, dial, opened is not None, find_direct(opened)) if words else None
        directories = () if plan.directory is None else (plan.directory,)
        with self._lay_out(opened) as trust:
            environment = plan.environment if opened is None else opened.replace_credentials(plan.environment)
            process = ProcessPlan(
                plan.argv, {**environment, **trust.variables}, directories, plan.descriptors, trust.mounts
            )
            with self.sandbox.around(process, self.project, url, way_out) as inside:
                yield evolve(plan, argv=inside.argv, environment=inside.environment, descriptors=inside.descriptors)

    @contextmanager
    def _lay_out(self, opened: OpenedServices | None) -> Iterator[TrustFiles]:
        """Provide the files that an agent in a sandbox needs for the opened services, within the context.

        Some make programs trust the session's certificate authority. Others hide stored logins, or replace them by
        placeholders.
        """
        if opened is None:
            yield TrustFiles({})
            return
        with (
            lay_out_trust(opened.certificate, self.environment, self.say) as trust,
            lay_out_logins(opened.variables, opened.hosts, self.environment) as logins,
        ):
            # guard of own tools: a login that a tool has stored cannot be read in the sandbox
            #    -> features.launch.test_enclosing.LaunchSandboxTests.test_logins, instead yield trust
            yield TrustFiles({**trust.mounts, **logins.mounts}, {**trust.variables, **logins.variables})
