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
    "demo": ".daemon.demo:demo",
    "launch": ".daemon.launch:launch",
    "open": ".entering.open:open_pages",
    "approval": ".approvals.approval:approval",
    "grant": ".approvals.grant:grant",
    "pause": ".approvals.pausing:pause",
    "resume": ".approvals.pausing:resume",
    "cap": ".approvals.cap:cap",
    "status": ".daemon.status:status",
    "gateway": ".daemon.gateway:gateway",
    "action": ".actions.action:action",
    "runs": ".records.runs:runs",
    "audit": ".records.audit:audit",
    "vault": ".vault.command:vault",
    "binding": ".vault.binding:binding",
    "notification": ".vault.notification:notification",
    "connector": ".actions.connector:connector",
    "config": ".actions.config:config",
    "sessions": ".records.sessions:sessions",
    "mcp": ".clients.command:mcp",
    "daemon": ".daemon.command:daemon",
    "doctor": ".doctor.command:doctor",
    "operator": ".entering.operator:operator",
    "completion": ".completing.command:completion",
    "version": ".daemon.status:version",
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
