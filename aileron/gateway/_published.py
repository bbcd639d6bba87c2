"""The route table as others are shown it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from werkzeug.routing import Rule

from aileron.values import GatewaySettings, RelayedPath

from ._routes import Asking, RelayTo, Upgrade, routes

_ANY = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
"""Of a route that takes every method those that clients use."""


def published(settings: GatewaySettings) -> tuple[RelayedPath, ...]:
    """Every path that the gateway takes from the agent site, with its methods and where it leads."""
    app = routes(settings)
    execute: Any = app.execute_endpoint  # typed for handlers that render

    def leads_to(rule: Rule, method: str, anthropic: bool) -> str:
        asking = Asking(method.encode("ascii"), rule.rule.encode("ascii"), False, anthropic)
        decision: RelayTo | Upgrade = execute(rule.endpoint, asking, **dict.fromkeys(rule.arguments, ""))
        return (decision.to if isinstance(decision, Upgrade) else decision).provider.name

    def paths() -> Iterator[RelayedPath]:
        for rule in app.url_map.iter_rules():
            for method in sorted(rule.methods or _ANY):
                providers = dict.fromkeys(leads_to(rule, method, anthropic) for anthropic in (False, True))
                yield RelayedPath(method, rule.rule, tuple(providers))

    return tuple(paths())
