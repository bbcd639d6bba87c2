"""C{aileron gateway}: what went through it since the daemon's start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import _options
from aileron.cli._output import listed
from aileron.cli._surroundings import Surroundings, pass_surroundings

from .traffic import tokens

_TITLES = ("PROVIDER", "CALLS", "UNDER WAY", "TOKENS", "CACHED", "ANSWERS", "ENDED", "BYTES OUT", "BYTES IN")


@click.command()
@_options.as_json
@pass_surroundings
def gateway(around: Surroundings, as_json: bool) -> None:
    """Say what agents asked their models by the gateway: of each provider its calls, tokens, answers and endings."""
    found = around.running()
    totals = around.probe(found.url, "/v1/status", found.launch_key).get("gateway", {}).get("totals", {})
    answer = {**totals, "items": totals.get("providers", [])}
    listed(as_json, answer, _TITLES, map(_row, answer["items"]), "Nothing went through the gateway yet.")


def _row(provider: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        provider["name"],
        provider["requests"],
        provider["under_way"],
        tokens(provider),
        provider["cached_tokens"],
        _counts(provider["answers"]),
        _counts(provider["endings"]),
        provider["sent_bytes"],
        provider["received_bytes"],
    )


def _counts(counted: Mapping[str, int]) -> str | None:
    """What was counted at all."""
    return ", ".join(f"{name}: {count}" for name, count in counted.items() if count) or None
