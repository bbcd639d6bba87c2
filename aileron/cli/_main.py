"""The root of the command line, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from ._errors import FAILED, report
from ._lazy import LazyGroup
from ._surroundings import Surroundings, around_us

_COMMANDS = {
    "demo": "._demo:demo",
    "launch": "._launch:launch",
    "open": "._open:open_pages",
    "approval": "._approval:approval",
    "grant": "._grant:grant",
    "pause": "._pausing:pause",
    "resume": "._pausing:resume",
    "cap": "._cap:cap",
    "status": "._status:status",
    "action": "._action:action",
    "runs": "._runs:runs",
    "audit": "._audit:audit",
    "vault": "._vault:vault",
    "binding": "._binding:binding",
    "connector": "._connector:connector",
    "config": "._config:config",
    "sessions": "._sessions:sessions",
    "daemon": "._daemon:daemon",
    "doctor": "._doctor:doctor",
    "operator": "._operator:operator",
    "version": "._status:version",
}


@click.group(
    cls=LazyGroup,
    commands_at=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def aileron() -> None:
    """Let coding agents act in the world: without a key, and only as you approve.

    Begin with `aileron demo`, or with `aileron vault init` and `aileron launch`.
    """


def run(arguments: Sequence[str], around: Surroundings) -> int:
    """Run one command; its exit code: 0, 1 for anything wrong, 2 usage, 75 pending, 130 interrupted.

    :param arguments: without the program's name.
    """
    try:
        code = aileron.main(args=list(arguments), prog_name="aileron", standalone_mode=False, obj=around)
    except BrokenPipeError:
        _let_go_of_output()
        return FAILED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the command line's rim: never a traceback
        return report(error)
    return code if isinstance(code, int) else 0


def main() -> None:
    """The C{aileron} command."""
    sys.exit(run(sys.argv[1:], around_us()))


def _let_go_of_output() -> None:
    # Whoever read us has gone: what is still buffered must not fail once more at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
