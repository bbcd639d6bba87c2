"""Builds the launcher of a command: it finds or starts the daemon, and shows lines in the terminal."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING, cast

from aileron.cli.context import CliContext, Links
from aileron.cli.output import note
from aileron.client import Daemon, Lease
from aileron.features.gateway.values import BUILT_IN_PROVIDERS
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.ports import load_ports
from aileron.model.errors import InvalidRequest

from ._bell import Bell, is_multiplexed
from ._launch import Launcher
from .ensuring import ensure_daemon
from .plan import DaemonFacts
from .registration import Upstream

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime


def make_launcher(cli: CliContext, links: Links, *, rings: bool) -> Launcher:
    """Return the launcher of a command.

    :param rings: whether pending approvals are announced in the terminal.
    """
    from twisted.internet import reactor

    def find_pages() -> str | None:
        found = _find_discovery(cli)
        return None if found is None else found.operator_url

    bell = Bell(say_line, _to_terminal, sys.stderr.isatty(), is_multiplexed(cli.environ), find_pages)

    async def ensure() -> DaemonFacts:
        return facts_of(cli, ensure_daemon(cli))

    return Launcher(
        reactor=reactor,
        ensure_daemon=ensure,
        connect=links.daemon,
        say=say_line,
        interpreter=sys.executable,
        lease=Lease(partial(find_daemon, cli, links), cast("IReactorTime", reactor)),
        bell=bell if rings else None,
    )


def say_line(line: str) -> None:
    """Show the user one line, on standard error."""
    note("{line}", line=line)


def find_daemon(cli: CliContext, links: Links) -> Daemon | None:
    """Return a client of the running daemon, with the launch key, or None if none runs."""
    found = _find_discovery(cli)
    return None if found is None else links.daemon(found.url, found.launch_key)


def _to_terminal(text: str) -> None:
    os.write(sys.stderr.fileno(), text.encode("utf-8"))


def _find_discovery(cli: CliContext) -> Discovery | None:
    """Return the running daemon, or None if none runs or it is being replaced."""
    try:
        return live_discovery(cli.home)
    except InvalidRequest:
        return None


def facts_of(cli: CliContext, found: Discovery | None) -> DaemonFacts:
    """Return the facts of the daemon. If no daemon runs, return likely facts: its last ports, and no launch key.

    The likely upstreams are the default ones, or None if config.yaml turns the gateway off. They may be wrong, because
    only the running daemon knows whether config.yaml is trusted.
    """
    if found is None:
        ports = load_ports(cli.home)
        url, operator_url = f"http://127.0.0.1:{ports.agent or 0}", f"http://localhost:{ports.operator or 0}"
        built_in = {each.name: Upstream(each.base_url, prefix=each.prefix) for each in BUILT_IN_PROVIDERS}
        upstreams = None if "gateway" in cli.features.off else built_in
        off = cli.features.off
        return DaemonFacts(
            url, operator_url, "", upstreams, lists_prompts="prompts" not in off, wakes="wake" not in off
        )
    status = cli.probe(found.url, "/v1/status", found.launch_key)
    gateway, prompts, wake = status.get("gateway"), status.get("prompts") or {}, status.get("wake")
    # None if the feature is off, or the daemon's version is older.
    upstreams = gateway and {
        each["name"]: Upstream(each["base_url"], each["credential"], each["prefix"]) for each in gateway["providers"]
    }
    return DaemonFacts(
        found.url,
        found.operator_url,
        found.launch_key,
        upstreams,
        lists_prompts=prompts.get("inbox") is True,
        checks_calls=prompts.get("checks") is True,
        wakes=wake is not None,
        resumes=wake is not None and wake["resume"] is True,
    )
