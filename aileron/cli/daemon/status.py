"""C{aileron status} and C{version}: the state of the daemon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from aileron import __version__
from aileron.base.json import JSON
from aileron.base.text import duration
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.doctor.findings import Severity
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import note, say, say_json, show, values, when
from aileron.cli.records.confirming import in_status, in_words, tell_tampering
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.lock import running_pid
from aileron.home.unlocking import read_unlock_problem
from aileron.model.errors import AileronError

_UNTRUSTED = frozenset(("new", "changed"))
_TRUSTED = ("action", "connector", "config")
"""The kinds of files that can be trusted. Trusting an action includes the connectors that it needs."""

_CREATE = "aileron vault init"


@click.command()
@click.option("--short", is_flag=True, help="Print a few words on one line, for the status line of tmux.")
@_options.exact_times
@_options.as_json
@pass_cli
def status(cli: CliContext, short: bool, as_json: bool) -> None:
    """Show the state of the daemon. The exit code is 1 if it is not running.

    The vault, pending approvals and open sessions; also providers of the gateway
    that differ from the defaults, and proxies.
    """
    if short and as_json:
        raise click.UsageError("Use --short or --json, not both.")
    if short:
        say("aileron: {state}", state=_summarize(cli))
        return
    found = live_discovery(cli.home)
    if found is None:
        _tell_stopped(cli, as_json)
        click.get_current_context().exit(FAILED)
    answer = _ask(cli, found)
    where: dict[str, JSON] = {"running": True, "pid": found.pid, "home": str(cli.home.root)}
    urls: dict[str, JSON] = {"url": found.url, "operator_url": found.operator_url}
    show(as_json, {**where, **urls, **answer}, lambda: _tell(cli, answer, found))
    if not as_json and answer.get("counts", {}).get("pending_approvals"):
        note("Review pending approvals: aileron watch, or aileron open")


def _tell_stopped(cli: CliContext, as_json: bool) -> None:
    """Print that no daemon serves the home, or that one is starting or stopping.

    :raises CommandError: if no daemon runs, and the output is not JSON.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    pid = running_pid(cli.home)
    if as_json:
        say_json({"running": pid is not None, "pid": pid, "home": str(cli.home.root)})
    elif pid is None:
        _tell_unlock_problem(cli)
        cli.running()
    else:
        say("The daemon (PID {pid}) is starting or stopping.", pid=pid)


def _tell_unlock_problem(cli: CliContext) -> None:
    problem = read_unlock_problem(cli.home)
    if problem is not None:
        note("{problem}", problem=problem.sentence)


def tell_version(found: Discovery) -> None:
    """Print a note if the daemon's version differs from this command's."""
    if found.version != __version__:
        note(
            "The daemon is version {theirs}, this command is {ours}. Restart it: aileron daemon stop, then "
            "aileron daemon start",
            theirs=found.version,
            ours=__version__,
        )


def _summarize(cli: CliContext) -> str:
    """Return the daemon's state in a few words, even if the daemon does not run or respond."""
    try:
        found = live_discovery(cli.home)
        answer = None if found is None else _ask(cli, found)
    except (AileronError, CommandError):
        return "not responding"
    if answer is None:
        return "not running"
    counts, vault = answer.get("counts", {}), answer.get("vault_state")
    words = {
        f"{counts.get('pending_approvals')} pending": counts.get("pending_approvals"),
        f"{counts.get('unknown_outcomes')} unknown": counts.get("unknown_outcomes"),
        f"vault {vault}": vault != "unlocked",
        "paused": answer.get("pause"),
        "tampering": in_status(answer).get("tampered"),
    }
    return ", ".join(word for word, applies in words.items() if applies) or "ok"


def overview(cli: CliContext) -> None:
    """Print the daemon's state, as C{aileron status} does for a running daemon, and the next steps."""
    found = live_discovery(cli.home)
    if found is None:
        has_vault = cli.home.secrets.exists()
        say("The daemon is not running." if has_vault else "There is no vault yet.")
        steps: Sequence[str] = ("aileron daemon start",)
        if not has_vault:
            steps = cli.features.next_steps("missing") or (_CREATE,)
    else:
        answer = _ask(cli, found)
        _tell(cli, answer, found)
        steps = _next_steps(cli, found, answer)
    say()
    say("Next: {steps}", steps=", or ".join(steps))
    say("All commands: aileron --help")


def _next_steps(cli: CliContext, found: Discovery, answer: Mapping[str, Any]) -> Sequence[str]:
    counts = answer.get("counts", {})
    if answer.get("vault_state") != "unlocked":
        missing = answer.get("vault_state") == "missing"
        return (cli.features.next_steps("running") or (_CREATE,)) if missing else ("aileron vault unlock",)
    if counts.get("pending_approvals"):
        return ("aileron watch", "aileron open")
    if counts.get("load_errors"):
        return (_activating(cli, found),)
    if not counts.get("actions"):
        return (*cli.features.next_steps("empty"), "aileron action add FILE")
    return cli.features.next_steps("ready") or ("aileron mcp config CLIENT",)


def _activating(cli: CliContext, found: Discovery) -> str:
    """Return the command for inactive files: to trust those that can be trusted, else to show their errors."""
    if found.local_key is None:
        return "aileron doctor"
    items = cli.probe(found.operator_url, "/v1/trust", found.local_key).get("items", ())
    kinds = {item["kind"] for item in items if item["state"] in _UNTRUSTED and not item.get("lacks")}
    return next((f"aileron {kind} trust" for kind in _TRUSTED if kind in kinds), "aileron doctor")


def _ask(cli: CliContext, found: Discovery) -> Mapping[str, Any]:
    return cli.probe(found.url, "/v1/status", found.launch_key)


def _tell(cli: CliContext, answer: Mapping[str, Any], found: Discovery) -> None:
    counts, record = answer.get("counts", {}), in_status(answer)
    say(
        "Aileron {version}, running for {uptime}.",
        version=answer.get("version"),
        uptime=duration(answer.get("uptime_seconds", 0)),
    )
    values(
        {
            "vault": answer.get("vault_state"),
            "pending approvals": counts.get("pending_approvals"),
            "sessions": counts.get("sessions"),
            "actions": counts.get("actions"),
            "files not active": counts.get("load_errors"),
            "process": str(found.pid),
            "home": str(cli.home.root),
            "agent URL": found.url,
            "your pages": f"{found.operator_url} (aileron open)",
            **in_words(record),
            **cli.features.status_lines(answer),
        },
        "  ",
    )
    tell_version(found)
    if answer.get("vault_state") == "locked":
        _tell_unlock_problem(cli)
    tell_tampering(record)
    for finding in (each for check in cli.features.doctor_checks() for each in check(answer)):
        if finding.severity is Severity.WRONG:
            note("{says} {do}", says=finding.says, do=finding.do or "")
    pause = answer.get("pause")
    if pause:
        because = f" ({pause['reason']})" if pause.get("reason") else ""
        note(
            "Paused since {since}{because}. Resume: aileron resume",
            since=when(pause["since"], relative=False),
            because=because,
        )
    if counts.get("load_errors"):
        note("See which files are not trusted, or have errors: aileron doctor")
    if counts.get("unknown_outcomes"):
        note("Runs that may have happened or not: {runs}", runs=counts["unknown_outcomes"])
        note("Check them, then record the outcome: aileron run list --state unknown")


@click.command()
@_options.as_json
def version(as_json: bool) -> None:
    """Print the version."""
    show(as_json, {"version": __version__}, lambda: say("aileron {version}", version=__version__))
