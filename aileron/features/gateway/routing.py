"""The user's choice of providers' addresses when a new daemon replaces the running one.

The running daemon has the environment variables of the terminal, launcher or service that started it. The new daemon
would have the variables of the terminal that unlocks. Either set may be manipulated, so if they differ, the user sees
both and chooses. There is no default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from aileron.base.addresses import read_base_url
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import note
from aileron.home.discovery import Discovery, live_discovery

from .values import BASE_URL_VARIABLES, PROXY_VARIABLES

_KEEP, _HERE = "daemon", "terminal"
_NOTHING = "not set"
_UNREADABLE = "(unreadable)"
_USER = re.compile(r"(^|://)[^/?#]*@")
_REST = re.compile(r"(?<![:/])/.*")
_ELSEWHERE = "LLM traffic would go elsewhere than the running daemon was told:"
_STAYS = "Nothing was changed."
_HOW = "To use this terminal's, run: aileron daemon stop, then this command again"
_MOVED = "Your environment ({names}) changes the address of a provider. Check it: aileron status"
_FOR_GOOD = "To set an address for good: gateway.providers in config.yaml"


@attrs.frozen
class _Difference:
    """A variable that differs between the running daemon and this terminal. None means that it is not set."""

    variable: str
    daemon: str | None
    terminal: str | None

    def __str__(self) -> str:
        return f"  {self.variable}: daemon {self.daemon or _NOTHING}, this terminal {self.terminal or _NOTHING}"


def announce_upstreams(environ: Mapping[str, str]) -> Sequence[str]:
    """Return a warning line if the environment changes a provider's address: the user may not have set it.

    Else return no line.
    """
    names = ", ".join(variable for variable in BASE_URL_VARIABLES.values() if environ.get(variable))
    return [_MOVED.format(names=names)] if names else []


def choose_routing(cli: CliContext) -> CliContext:
    """Return the context with the environment for the daemon that replaces the running one.

    If the terminal's environment differs from the running daemon's, ask the user which to use. If they agree or no
    daemon runs, return C{cli} unchanged.

    :raises CommandError: if the environments differ, and there is no terminal to ask or the user chose neither.
    """
    found = live_discovery(cli.home)
    differences = [] if found is None else [*_differences(cli, found)]
    if not differences:
        return cli
    lines = [_ELSEWHERE, *map(str, differences)]
    if not cli.interactive():
        raise CommandError("\n".join([*lines, _STAYS]), _HOW, _FOR_GOOD)
    note("{lines}", lines="\n".join(lines))
    chosen = cli.ask(f"Use which? Type {_KEEP} or {_HERE}; anything else cancels: ").strip()
    if chosen == _HERE:
        return cli
    if chosen != _KEEP:
        raise CommandError(_STAYS, _FOR_GOOD)
    return attrs.evolve(cli, environ=_as_the_daemon(cli.environ, differences))


def check_routing(cli: CliContext, found: Discovery) -> None:
    """Check that the running daemon relays LLM traffic to the addresses that this environment sets for providers.

    :raises CommandError: if this environment sets an address, and the running daemon uses another one.
    """
    bases = frozenset(BASE_URL_VARIABLES.values())
    set_here = [each for each in _differences(cli, found) if each.variable in bases and each.terminal]
    if set_here:
        lines = [_ELSEWHERE, *map(str, set_here), "No agent was started."]
        raise CommandError("\n".join(lines), _HOW, _FOR_GOOD)


def _differences(cli: CliContext, found: Discovery) -> Iterator[_Difference]:
    gateway = cli.probe(found.url, "/v1/status", found.launch_key).get("gateway") or {}
    told = {each["name"]: each for each in gateway.get("providers", ())}
    for name, variable in BASE_URL_VARIABLES.items():
        daemon, terminal = _base_of(told.get(name, {})), _plain_url(cli.environ.get(variable))
        if name in told and daemon != terminal and not (daemon is None and told[name]["base_url"] == terminal):
            yield _Difference(variable, daemon, terminal)
    proxies = {each["variable"]: each["value"] for each in gateway.get("proxies", ())}
    for variable in PROXY_VARIABLES if "proxies" in gateway else ():
        daemon = proxies.get(variable)
        terminal = _plain_proxy(variable, cli.environ.get(variable, cli.environ.get(variable.upper())))
        if daemon != terminal and _UNREADABLE not in (daemon or ""):
            yield _Difference(variable, daemon, terminal)


def _base_of(provider: Mapping[str, Any]) -> str | None:
    return provider["base_url"] if provider.get("source") == "environment" else None


def _plain_url(text: str | None) -> str | None:
    """Return a base URL in the daemon's spelling, or None if it is not set.

    An invalid URL is returned as it is, without its user information.
    """
    try:
        return read_base_url(text).url if text else None
    except ValueError:
        return _USER.sub(r"\1", text or "")


def _plain_proxy(variable: str, text: str | None) -> str | None:
    """Return the value of a proxy variable in the daemon's spelling, or None if it is not set.

    A URL is returned without user, password and path.
    """
    if not text:
        return None
    if variable == "no_proxy":
        return ",".join(text.replace(",", " ").split())
    return _REST.sub("", _USER.sub(r"\1", text))


def _as_the_daemon(environ: Mapping[str, str], differences: list[_Difference]) -> Mapping[str, str]:
    """Return the environment with the daemon's values of the variables that differ. Passwords of proxies are lost."""
    changed = {each.variable: each.daemon for each in differences}
    kept = {name: text for name, text in environ.items() if name not in changed and name.lower() not in changed}
    return kept | {name: text for name, text in changed.items() if text is not None}
