"""C{aileron daemon run}: a process that systemd, launchd or a container can supervise, and that ends with the daemon.

C{aileron vault unlock} replaces the daemon by a process that is not a child of the service manager. This process stays
and watches the home instead of a process.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import say
from aileron.cli.vault.unlocking import any_key, restart_with, start_with
from aileron.home.discovery import live_discovery
from aileron.home.lock import running_pid
from aileron.home.paths import Home

from .process import START_SECONDS, STOP_SECONDS, NoHome, is_being_replaced, last_words, stop

if TYPE_CHECKING:
    from aileron.cli.vault.unattended import UnattendedUnlock
    from aileron.vault.keys import DataKey

POLL_SECONDS = 1.0
_REPLACED_POLL_SECONDS = 0.1
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_PATIENCE_MICROSECONDS = 60_000_000
REPLACED_SECONDS = 30.0
"""How long the home may be without a daemon during a replacement."""


@click.command("run")
@_options.passphrase_fd
@click.option("--passphrase-file", type=click.Path(path_type=Path), help="Unlock with the passphrase in this file.")
@click.option("--locked", is_flag=True, help="Leave the vault locked, and ask for no passphrase.")
@pass_cli
def run_daemon(cli: CliContext, passphrase_fd: int | None, passphrase_file: Path | None, locked: bool) -> None:
    """Start the daemon unless it is running, and stay until it ends. For systemd, launchd and containers.

    The daemon may be replaced meanwhile, as `aileron vault unlock` does. SIGTERM and Ctrl-C stop it. The exit code is 1
    if it ended without being told to. While a key source cannot be asked, it is asked again, so that the vault is
    unlocked later.
    """
    from aileron.cli.vault.unattended import UnattendedUnlock

    for each in _SIGNALS:
        signal.signal(each, signal.default_int_handler)
    cli.conceal()  # this process's environment may contain the passphrase until the process ends
    found = live_discovery(cli.home)
    unattended = UnattendedUnlock(cli)
    if locked:
        unattended.stop()  # and remove what an earlier start stored
    key = None if locked or found is not None else any_key(cli, passphrase_fd, passphrase_file, unattended)
    try:
        if unattended.is_waiting and cli.home.is_moved():
            key = wait_for_key(cli, unattended)
        with ending_later():
            start_with(cli, key)
        unattended.watch()
        say("The daemon is running (PID {pid}).", pid=running_pid(cli.home))
        notify_ready(cli.environ)
        wait_for_end(cli, cli.home, lambda: _unlock_later(cli, unattended))
    except KeyboardInterrupt as told:
        end(cli)
        if isinstance(told.__cause__, NoHome):
            raise told.__cause__ from None
    finally:
        unattended.stop()
    say("The daemon has stopped.")


def wait_for_key(cli: CliContext, unattended: UnattendedUnlock) -> DataKey | None:
    """Wait until a key source gives the vault's key. A daemon whose store is on a server does not start without it.

    :return: the key, or None if all sources refused, or another command has started a daemon.
    """
    say("The daemon starts as soon as its vault can be unlocked.")
    key = None
    while key is None and unattended.is_waiting and live_discovery(cli.home) is None:
        _notify(cli.environ, f"EXTEND_TIMEOUT_USEC={_PATIENCE_MICROSECONDS}")
        cli.sleep(POLL_SECONDS)
        key = unattended.ask_again()
    if key is None:
        unattended.stop()
    return key


def _unlock_later(cli: CliContext, unattended: UnattendedUnlock) -> None:
    """Unlock the vault of the running daemon, if a key source that could not be asked before gives the key now."""
    key = unattended.ask_again()
    if key is not None:
        with ending_later():
            restart_with(cli, key)
        say("The vault is unlocked (PID {pid}).", pid=running_pid(cli.home))


@contextmanager
def ending_later() -> Iterator[None]:
    """Delay signals until the end of the block, because a starting daemon cannot be stopped yet.

    :raises KeyboardInterrupt: if a signal arrived. Its cause is the exception of the block, if any.
    """
    told: list[int] = []
    failed: BaseException | None = None
    before = {each: signal.signal(each, lambda number, _frame: told.append(number)) for each in _SIGNALS}
    try:
        yield
    except BaseException as error:
        failed = error
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if told:
            raise KeyboardInterrupt from failed


def wait_for_end(cli: CliContext, home: Home, at_each_look: Callable[[], None] = lambda: None) -> None:
    """Return when no daemon has served the home for L{REPLACED_SECONDS}.

    :param at_each_look: called about every second.
    :raises CommandError: if the last daemon ended unexpectedly: its files are still in the home.
    """
    last = cli.seconds()
    while cli.seconds() - last < REPLACED_SECONDS:
        cli.sleep(POLL_SECONDS)
        _reap()
        at_each_look()
        if running_pid(home) is not None:
            last = cli.seconds()
        elif home.discovery.exists() and running_pid(home) is None:
            raise CommandError("The daemon ended without being told to.", f"Its log is in {home.log}", last_words(home))


def end(cli: CliContext) -> None:
    """Stop the daemon, and any daemon that a command is starting in its place.

    :raises CommandError: if a daemon takes too long.
    """
    stop(cli)
    began = cli.seconds()
    while is_being_replaced(cli.home) and cli.seconds() - began < START_SECONDS + STOP_SECONDS:
        cli.sleep(_REPLACED_POLL_SECONDS)
    stop(cli)


def notify_ready(environ: Mapping[str, str]) -> None:
    """Notify the service manager that the daemon is healthy, by sd_notify(3).

    If the variable was inherited from a program whose manager has ended, do nothing.
    """
    _notify(environ, "READY=1")


def _notify(environ: Mapping[str, str], message: str) -> None:
    address = environ.get("NOTIFY_SOCKET", "")
    if address.startswith(("/", "@")):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifying:
            notifying.sendto(message.encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)


def _reap() -> None:
    """Reap ended children: in a container this is the first process and inherits every daemon."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
