"""Another passphrase, or another vault: the daemon ends first, and what fails leaves everything as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.cli._context import CliContext
from aileron.cli._errors import CommandError
from aileron.cli._output import note, say
from aileron.cli._session import PROMPT
from aileron.cli.daemon.process import start, stop
from aileron.home import Discovery, prepare

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey

WORD = "reset"


def _change(path: Path, old: str, new: str) -> DataKey:
    from aileron.vault.keys import change_passphrase

    return change_passphrase(path, old, new)


def _reset(path: Path, passphrase: str) -> DataKey:
    from aileron.vault.keys import reset

    return reset(path, passphrase, replace=True)


@frozen
class Steps:
    """What is done, in this order: the daemon ends, the file is written, the daemon starts."""

    stop: Callable[[CliContext], bool] = stop
    change: Callable[[Path, str, str], DataKey] = _change
    reset: Callable[[Path, str], DataKey] = _reset
    start: Callable[[CliContext, DataKey | None], Discovery] = start


def change_passphrase(
    cli: CliContext, descriptor: int | None, new_descriptor: int | None, steps: Steps | None = None
) -> Discovery:
    """The daemon with the vault under another passphrase.

    Both passphrases are known to be good before the daemon is asked to end.  If the file cannot be written the daemon
    starts again with the old one.

    :raises WrongPassphrase, WeakPassphrase, CommandError, StoreUnavailable: nothing was changed, or it was said before.
    """
    steps, path = steps or Steps(), cli.home.secrets
    old = cli.passphrase(PROMPT, descriptor, None)
    old_key = cli.open_vault(path, old)
    try:
        new = cli.new_passphrase(new_descriptor)
        steps.stop(cli)
        key = _or_as_before(cli, steps, old_key, lambda: steps.change(path, old, new))
    finally:
        old_key.wipe()
    say("The passphrase is changed. Copies of secrets.json from before open with the old one: delete them.")
    say("What you had approved and has not begun is asked again.")
    return _started(cli, steps, key)


def reset(cli: CliContext, new_descriptor: int | None, steps: Steps | None = None) -> Discovery:
    """The daemon with an empty vault in the place of the one that is lost, damaged, or shut for good.

    :raises CommandError: the person did not type L{WORD}; nothing was changed.
    :raises WeakPassphrase, StoreUnavailable: likewise.
    """
    steps = steps or Steps()
    prepare(cli.home)
    _tell_what_is_void(cli)
    if cli.ask(f"Type the word {WORD} to go on: ").strip() != WORD:
        raise CommandError("Nothing was changed.")
    passphrase = cli.new_passphrase(new_descriptor)
    ran = steps.stop(cli)
    try:
        key = steps.reset(cli.home.secrets, passphrase)
    except BaseException:
        if ran:
            steps.start(cli, None)
        raise
    say("There is an empty vault: {path}", path=cli.home.secrets)
    return _started(cli, steps, key)


def _or_as_before(cli: CliContext, steps: Steps, key: DataKey, change: Callable[[], DataKey]) -> DataKey:
    try:
        return change()
    except BaseException:
        note("The passphrase was not changed; the daemon starts again as it was.")
        steps.start(cli, key)
        raise


def _started(cli: CliContext, steps: Steps, key: DataKey) -> Discovery:
    try:
        return steps.start(cli, key)
    finally:
        key.wipe()


def _tell_what_is_void(cli: CliContext) -> None:
    note("An empty vault begins, under a passphrase of its own. With the old one go:")
    note("  every credential that was bound: each is to be bound anew;")
    note("  your trust in every action, connector and config.yaml: each is to be read and trusted anew;")
    note("  every approval that has not begun: it is asked anew.")
    note("What happened stays on record.")
    if cli.home.secrets.exists():
        note("The file that is there is put aside, as secrets.json.before-reset-<n>.")
    else:
        note("If you have a copy of secrets.json, put it back instead: then nothing is lost.")
