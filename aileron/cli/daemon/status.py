"""C{aileron status} and C{aileron version}."""

from __future__ import annotations

import click

from aileron import __version__
from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import note, say, say_json, values
from aileron.cli.records.confirming import in_status, in_words, tell_tampering

from .gateway import notable, proxies, relayed


@click.command()
@_options.as_json
@pass_cli
def status(cli: CliContext, as_json: bool) -> None:
    """Say how the daemon does.

    Its vault, what waits for you, who is at work; providers of the gateway that
    are not as they come, and proxies.
    """
    found = cli.running()
    answer = cli.probe(found.url, "/v1/status", found.launch_key)
    if as_json:
        say_json(answer)
        return
    counts, record = answer.get("counts", {}), in_status(answer)
    say("Aileron {version} has run for {uptime}.", version=answer.get("version"), uptime=_duration(answer))
    values(
        {
            "vault": answer.get("vault_state"),
            "waiting for you": counts.get("pending_approvals"),
            "sessions": counts.get("sessions"),
            "actions": counts.get("actions"),
            **relayed(answer),
            "files that did not load": counts.get("load_errors"),
            "for agents": found.url,
            "for you": found.operator_url,
            **in_words(record),
            **{f"provider {each.name}": each.in_words for each in notable(answer)},
            **proxies(answer),
        },
        "  ",
    )
    tell_tampering(record)
    for name in answer.get("notifications", {}).get("failing", ()):
        note("You are not told by {name} at present: aileron notification list", name=name)
    pause = answer.get("pause")
    if pause:
        because = f" ({pause['reason']})" if pause.get("reason") else ""
        note("PAUSED since {since}{because}: aileron resume", since=pause["since"], because=because)
    if counts.get("pending_approvals"):
        note("Look at what waits: aileron approval list, or aileron open")


@click.command()
@_options.as_json
def version(as_json: bool) -> None:
    """Print the version."""
    if as_json:
        say_json({"version": __version__})
    else:
        say("aileron {version}", version=__version__)


def _duration(answer: object) -> str:
    seconds = answer.get("uptime_seconds", 0) if isinstance(answer, dict) else 0
    minutes, left = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {left} s" if minutes else f"{left} s"
