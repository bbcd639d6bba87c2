"""C{aileron launch --print}: what would be run, and nothing started."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aileron.cli._context import CliContext
from aileron.cli._output import block, heading, note, say, say_json, values
from aileron.home import Discovery, live_discovery, load_ports
from aileron.values import BUILT_IN_PROVIDERS

if TYPE_CHECKING:
    from aileron.launch import Agent, DaemonFacts, Invocation, LaunchPreview, Upstream

_NOWHERE = 0
"""The port that stands for the daemon's where none was ever chosen."""


def show_plan(
    cli: CliContext,
    agent: Agent,
    invocation: Invocation,
    *,
    through_gateway: bool,
    sandbox: bool,
    as_json: bool,
) -> None:
    """Print what a launch would do.

    :raises Forbidden: it would be refused: the vault's passphrase is in the environment.
    :raises NotFound: a program is not installed.
    :raises InvalidRequest: the user's own settings cannot be added to.
    """
    from aileron.launch import preview_launch

    found = live_discovery(cli.home)
    facts = _stand_in(cli) if found is None else _facts(cli, found)
    described = preview_launch(agent, invocation, facts, sys.executable, through_gateway=through_gateway)
    if as_json:
        say_json({"agent": agent.name, "daemon": found is not None, "sandbox": sandbox, **described.to_json()})
    else:
        _show(agent.name, described, sandbox=sandbox)
    if found is None:
        note("No daemon runs; a launch would start it. Its address is the last one that is known.")


def gateway_upstreams(cli: CliContext, found: Discovery) -> Mapping[str, Upstream] | None:
    """Where the daemon's gateway sends what comes for which provider; L{None}: it has none."""
    from aileron.launch import Upstream

    gateway = cli.probe(found.url, "/v1/status", found.launch_key).get("gateway")
    # None of a daemon that was started before an upgrade.
    return gateway and {
        each["name"]: Upstream(each["base_url"], each["credential"], each["prefix"]) for each in gateway["providers"]
    }


def _facts(cli: CliContext, found: Discovery) -> DaemonFacts:
    from aileron.launch import DaemonFacts

    return DaemonFacts(found.url, found.operator_url, "", gateway_upstreams(cli, found))


def _stand_in(cli: CliContext) -> DaemonFacts:
    """What is likely of a daemon that does not run: the address it had, and the providers as they come."""
    from aileron.launch import DaemonFacts, Upstream

    ports = load_ports(cli.home)
    upstreams = {each.name: Upstream(each.base_url, prefix=each.prefix) for each in BUILT_IN_PROVIDERS}
    url = f"http://127.0.0.1:{ports.agent or _NOWHERE}"
    return DaemonFacts(url, f"http://localhost:{ports.operator or _NOWHERE}", "", upstreams)


def _show(agent: str, described: LaunchPreview, *, sandbox: bool) -> None:
    heading("A launch of {agent} would run", agent=agent)
    for word in described.argv:
        block(word, "  ")
    values({"in": described.directory, "in a sandbox": "yes" if sandbox else "no"}, "  ")
    heading("with your environment, but without")
    say("  {names}", names=", ".join(described.removed) or "nothing left out")
    heading("and with")
    _texts(described.added)
    heading("It would write, for as long as the agent runs,")
    _texts(described.files)
    heading("Gateway")
    if described.gateway is None:
        say("  its LLM traffic is left alone")
    else:
        values({"at": described.gateway["url"], **described.gateway["upstreams"]}, "  ")
    heading("It would say")
    for line in described.notes or ("nothing",):
        say("  {line}", line=line)


def _texts(texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        say("  {name}", name=name)
        block(text, "    ")
    if not texts:
        say("  nothing")
