"""C{aileron daemon install} and C{uninstall}: systemd or launchd starts the daemon when the user logs in.

The service runs C{aileron daemon run}, so the vault stays locked unless a passphrase file is named. Until the vault is
unlocked, agents are offered no actions, no action runs, and the operator cannot log in.
"""

from __future__ import annotations

import plistlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from attrs import field, frozen

from aileron.cli.context import CliContext, pass_cli
from aileron.cli.daemon.process import STOP_SECONDS, command
from aileron.cli.errors import CommandError
from aileron.cli.output import note, say
from aileron.home.paths import Home, prepare
from aileron.home.private_files import atomic_write, read_private

_UNIT = "aileron.service"
_LABEL = "org.aileron.daemon"
_SYSTEMD_UNIT = """\
[Unit]
Description=Aileron agent gateway
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
Environment="AILERON_HOME={home}"
{credential}ExecStart={run}
KillMode=mixed
TimeoutStopSec={stop_seconds:.0f}
Restart=on-failure
RestartSec=5

[Install]
WantedBy=default.target
"""


@frozen
class Service:
    """The service file, and the system's commands that register it.

    :ivar enable: commands to run after the file is written.
    :ivar disable: commands to run before the file is deleted.
    """

    path: Path
    text: bytes = field(repr=False)
    enable: tuple[Sequence[str], ...]
    disable: tuple[Sequence[str], ...]


def systemd_service(
    home: Home, environ: Mapping[str, str], arguments: Sequence[str], credential: Path | None = None
) -> Service:
    """Return the systemd user unit.

    :param credential: the encrypted credential of a key source of the vault, or None.
    """
    from aileron.vault.keys import CREDENTIAL

    loads = "" if credential is None else f'LoadCredentialEncrypted="{CREDENTIAL}:{_escape(str(credential))}"\n'
    base = Path(environ.get("XDG_CONFIG_HOME") or Path(environ["HOME"], ".config"))
    text = _SYSTEMD_UNIT.format(
        home=_escape(str(home.root)),
        credential=loads,
        run=_systemd_line(command("daemon", "run", *arguments)),
        stop_seconds=2 * STOP_SECONDS,
    )
    control = ("systemctl", "--user")
    enable = ((*control, "daemon-reload"), (*control, "enable", "--now", _UNIT))
    return Service(base / "systemd" / "user" / _UNIT, text.encode(), enable, ((*control, "disable", "--now", _UNIT),))


def launchd_service(home: Home, environ: Mapping[str, str], arguments: Sequence[str]) -> Service:
    """Return the launch agent of macOS."""
    path = Path(environ["HOME"], "Library", "LaunchAgents", f"{_LABEL}.plist")
    text = plistlib.dumps(
        {
            "Label": _LABEL,
            "ProgramArguments": [*command("daemon", "run", *arguments)],
            "EnvironmentVariables": {"AILERON_HOME": str(home.root)},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ExitTimeOut": round(2 * STOP_SECONDS),
            "StandardErrorPath": str(home.log / "launchd.err"),
        }
    )
    return Service(path, text, (("launchctl", "load", "-w", str(path)),), (("launchctl", "unload", "-w", str(path)),))


@click.command("install")
@click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="Unlock the vault with the passphrase in this file. Every program of yours, agents included, can read it.",
)
@click.option(
    "--credential",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    help="Unlock the vault with this credential of `aileron vault key-source add`. Only with systemd.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the file; write nothing.")
@pass_cli
def install(cli: CliContext, passphrase_file: Path | None, credential: Path | None, only_print: bool) -> None:
    """Start the daemon whenever you log in: a systemd user unit on Linux, a launch agent on macOS.

    The vault stays locked until you unlock it, unless you name a passphrase file or a credential.
    """
    if credential is not None and (passphrase_file is not None or sys.platform == "darwin"):
        raise click.UsageError("--credential needs systemd, and excludes --passphrase-file.")
    arguments = ["--locked"] if passphrase_file is None else ["--passphrase-file", str(passphrase_file)]
    service = _service(cli, [] if credential is not None else arguments, credential)
    if only_print:
        click.echo(service.text.decode(), nl=False)
        return
    prepare(cli.home)
    service.path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(service.path, service.text, 0o644)
    _run_all(service.enable, service.path)
    say("Installed: {path}", path=service.path)
    say("The daemon starts now and at every login.")
    if passphrase_file is None and credential is None:
        note("The vault stays locked until you run: aileron vault unlock")


@click.command("uninstall")
@pass_cli
def uninstall(cli: CliContext) -> None:
    """Stop the daemon, and no longer start it when you log in. Nothing in the home is deleted."""
    service = _service(cli, [])
    if read_private(service.path) is None:
        say("Not installed: {path} does not exist.", path=service.path)
        return
    _run_all(service.disable, service.path)
    service.path.unlink()
    say("Uninstalled: {path} is deleted.", path=service.path)


def _service(cli: CliContext, arguments: Sequence[str], credential: Path | None = None) -> Service:
    if sys.platform == "darwin":
        return launchd_service(cli.home, cli.environ, arguments)
    return systemd_service(cli.home, cli.environ, arguments, credential)


def _run_all(commands: Sequence[Sequence[str]], path: Path) -> None:
    """Run the system's commands, in order.

    :raises CommandError: if a command is missing or failed. The service file is left as it is.
    """
    for each in commands:
        try:
            done = subprocess.run(each, capture_output=True, text=True, check=False)
            failure = done.stderr.strip() if done.returncode else None
        except OSError as error:
            failure = str(error.strerror)
        if failure is not None:
            raise CommandError(
                f"`{' '.join(each)}` failed: {failure}", f"{path} is written. Run the failed command yourself."
            )


def _systemd_line(arguments: Sequence[str]) -> str:
    """Return a command line quoted for systemd (systemd.service(5), Command lines)."""
    return " ".join(f'"{_escape(each).replace("$", "$$")}"' for each in arguments)


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
