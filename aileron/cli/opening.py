"""Opens the vault with the passphrase, and asks again after a typing error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from aileron.model.errors import WrongPassphrase

from .context import CliContext
from .output import note

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey

    from .vault.passphrase import Unattended

T = TypeVar("T")

PROMPT = "Passphrase of the vault"
_TRIES = 3


def open_with_passphrase(
    cli: CliContext, descriptor: int | None, unattended: Unattended | None = None, *, path: Path | None = None
) -> tuple[DataKey, str]:
    """Return the vault's key, and the passphrase that opened the vault.

    If a typed passphrase is wrong, ask again, three times in all.

    :param descriptor: where the passphrase is read, or None for the terminal.
    :param unattended: other sources, for commands that only unlock.
    :param path: the vault's file, if not the home's.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises NoVault: if there is no vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    typed = descriptor is None and not (unattended is not None and unattended.given)

    def opens(passphrase: str) -> tuple[DataKey, str]:
        return cli.open_vault(path or cli.home.secrets, passphrase), passphrase

    return ask_until_right(lambda: cli.passphrase(PROMPT, descriptor, unattended), opens, typed=typed)


def ask_until_right(read: Callable[[], str], opens: Callable[[str], T], *, typed: bool) -> T:
    """Return the result of opening with a passphrase. If it is wrong, ask again.

    :param read: reads the passphrase.
    :param typed: whether a person types it, which allows three attempts instead of one.
    :raises WrongPassphrase: if the last passphrase is wrong too.
    """
    left = _TRIES if typed else 1
    while True:
        try:
            return opens(read())
        except WrongPassphrase as error:
            left -= 1
            if not left:
                raise
            note("{message} Try again.", message=error.message)
