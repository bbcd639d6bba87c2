"""The LLM gateway: relays requests of agents to their providers, byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from aileron.base.json import JSON
from aileron.features.core import Core
from aileron.features.feature import Feature, RunningFeature
from aileron.model.audit import EventName
from aileron.model.features import Command

if TYPE_CHECKING:
    from aileron.cli.context import CliContext
    from aileron.home.discovery import Discovery


class GatewayFeature(Feature):
    """The feature that relays agents' requests to language models, and counts them."""

    name = "gateway"
    summary = "Relays LLM traffic of agents to their providers, and counts it."
    targets: ClassVar[Mapping[str, str]] = {"gateway://": "provider of the gateway"}
    navigation: ClassVar[Mapping[str, str]] = {"/gateway": "LLM traffic"}

    @property
    def variables(self) -> Sequence[str]:  # type: ignore[override]
        """The environment variables that set the addresses of providers and proxies."""
        from .values import BASE_URL_VARIABLES, PROXY_VARIABLES

        return (*BASE_URL_VARIABLES.values(), *PROXY_VARIABLES, *(name.upper() for name in PROXY_VARIABLES))

    def commands(self) -> Mapping[str, Command]:
        return {"gateway": Command("aileron.features.gateway.commands:gateway", "Inspect", 50)}

    def settings(self) -> Mapping[str, Any]:
        from .settings import GATEWAY

        return {"gateway": GATEWAY}

    def event_types(self) -> Mapping[str, EventName]:
        return {"completion.recorded": EventName("Model answered", "sessions")}

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        from .shapes import SESSION, STATUS

        return {"status": {"gateway": STATUS}, "Session": {"gateway": SESSION}}

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        from .page import draw_gateway

        return {"/gateway": draw_gateway}

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        from .commands import find_upstreams

        return (find_upstreams,)

    def status_lines(self, status: Mapping[str, Any]) -> Mapping[str, JSON]:
        from .commands import describe_status

        return describe_status(status)

    def list_targets(self, status: Mapping[str, Any]) -> Iterator[str]:
        from .values import GATEWAY

        return (f"{GATEWAY}{each['name']}" for each in status.get("gateway", {}).get("providers", ()))

    def explain_binding(self, target: str, credential: str) -> Sequence[str]:
        from .commands import explain_binding

        return explain_binding(target, credential)

    def choose_environment(self, cli: CliContext) -> CliContext:
        from .routing import choose_routing

        return choose_routing(cli)

    def check_environment(self, cli: CliContext, found: Discovery) -> None:
        from .routing import check_routing

        check_routing(cli, found)

    def check_variables(self, environ: Mapping[str, str]) -> None:
        from .settings import GatewayEnvironment

        GatewayEnvironment.read(environ)

    def announce_environment(self, environ: Mapping[str, str]) -> Sequence[str]:
        from .routing import announce_upstreams

        return announce_upstreams(environ)

    async def start(self, core: Core) -> RunningFeature:
        from .running import start_gateway
        from .values import GatewaySettings

        return start_gateway(core, core.settings.get("gateway") or GatewaySettings())


FEATURE = GatewayFeature()
