"""The command C{aileron gateway}, and the gateway's part of other commands' output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.doctor.findings import DoctorFinding, remark
from aileron.cli.output import Columns, listed, say
from aileron.cli.tokens import describe_tokens, group_digits

from .values import BASE_URL_VARIABLES, GATEWAY

_EXCEPTIONS = "no_proxy"
_AGAIN = "aileron daemon stop, then aileron vault unlock"


@click.group(invoke_without_command=True)
@_options.as_json
@pass_cli
@click.pass_context
def gateway(context: click.Context, cli: CliContext, as_json: bool) -> None:
    """Show LLM traffic through the gateway.

    Calls, tokens, responses and endings of each provider; also the tools that providers were asked to run, if these are
    noted or refused.
    """
    if context.invoked_subcommand is not None:
        return
    found = cli.running()
    totals = cli.probe(found.url, "/v1/status", found.launch_key).get("gateway", {}).get("totals", {})
    answer = {**totals, "items": totals.get("providers", [])}
    columns: Columns = {
        "PROVIDER": "name",
        "CALLS": "requests",
        "IN PROGRESS": "under_way",
        "TOKENS": describe_tokens,
        "CACHED": "cached_tokens",
        "RESPONSES": lambda provider: _counts(provider["answers"]),
        "ENDED": lambda provider: _counts(provider["endings"]),
        "BYTES OUT": "sent_bytes",
        "BYTES IN": "received_bytes",
    }
    listed(as_json, answer, columns, "No LLM traffic yet.")
    if not as_json:
        for tool in totals.get("provider_tools", ()):
            say("{provider} was asked to run {kind}: {requests} (refused: {refused})", **_tool(tool))


def _tool(tool: Mapping[str, Any]) -> Mapping[str, object]:
    requests = tool["requests"]
    return {**tool, "requests": f"{group_digits(requests)} request{'' if requests == 1 else 's'}"}


def _counts(counted: Mapping[str, int]) -> str | None:
    """Return the counts that are not zero as text, or None if all are zero."""
    return ", ".join(f"{name}: {count}" for name, count in counted.items() if count) or None


def describe_status(status: Mapping[str, Any]) -> Mapping[str, JSON]:
    """Return the gateway's lines of C{aileron status}, by label: its totals, notable providers and proxies."""
    places = {f"provider {name}": place for name, place, _ in _notable(status)}
    return {**_relayed(status), **places, **_proxies(status)}


def _relayed(status: Mapping[str, Any]) -> Mapping[str, JSON]:
    """Return the line of the gateway's totals, by its label, or nothing before the first call.

    :param status: the response of C{GET /v1/status}. An older daemon sends no gateway.
    """
    totals = status.get("gateway", {}).get("totals", {})
    if not totals.get("requests"):
        return {}
    return {"LLM calls": f"{group_digits(totals['requests'])} (tokens: {describe_tokens(totals)})"}


def _notable(status: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """Yield the providers whose address was changed, that were added, or that have a key in the vault.

    :param status: the response of C{GET /v1/status}. An older daemon sends no gateway.
    :return: the name, the address in words, and the setting that changed the address, or None if it is the default.
    """
    for each in status.get("gateway", {}).get("providers", ()):
        name, environment = each["name"], BASE_URL_VARIABLES.get(each["name"], "the environment")
        said_by = {"config": "config.yaml", "environment": environment}.get(each["source"])
        if said_by is not None or each["credential"]:
            said = "" if said_by is None else f", set by {said_by}"
            key = ", key from the vault" if each["credential"] else ""
            yield name, f"{each['base_url']} (at {each['prefix']}{said}{key})", said_by


def _proxies(status: Mapping[str, Any]) -> Mapping[str, JSON]:
    """Return the proxies by variable, without user and password. If there are none, omit C{no_proxy} too."""
    told = {each["variable"]: each["value"] for each in status.get("gateway", {}).get("proxies", ())}
    return told if set(told) - {_EXCEPTIONS} else {}


def find_upstreams(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Yield remarks on proxies, and on providers that were moved, added or given a key from the vault.

    These are remarks, not faults, because only the operator knows whether the settings are intended.
    """
    for name, place, said_by in _notable(status):
        unset = f"If you did not set this, unset {said_by}, then restart: {_AGAIN}"
        by_variable = said_by in BASE_URL_VARIABLES.values()
        yield remark(f"LLM traffic to {name} goes to {place}.", unset if by_variable else None)
    for variable, value in _proxies(status).items():
        if variable != _EXCEPTIONS:
            yield remark(
                f"The gateway uses the proxy {value} ({variable.upper()}).",
                f"If you did not set this, unset it, then restart: {_AGAIN}",
            )


def explain_binding(target: str, credential: str) -> Sequence[str]:
    """Return the lines that explain how to use a credential bound to a provider."""
    provider = target.removeprefix(GATEWAY)
    return (
        f"To use it, add to config.yaml, under gateway: providers: {provider}:",
        f"  credential: vault:{credential}",
    )
