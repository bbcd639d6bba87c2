"""The sources of a passphrase: the terminal, a descriptor, and, only to unlock, environment or file.

Never a command line, which every process of the machine can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import frozen

from aileron.home.private_files import read_private
from aileron.model.errors import InvalidRequest
from aileron.vault.keys import check_passphrase, generate_words

from .terminal import Terminal

VARIABLE = "AILERON_VAULT_PASSPHRASE"
_MAX_BYTES = 4096
_ATTEMPTS = 5
_OFFER = """\
Your passphrase:

    {words}

Write it down: it is not shown again, and nobody can recover it.
Type it to go on, or type one of your own (at least 12 characters).
"""


@frozen
class Unattended:
    """Sources of the passphrase that do not prove that a person is present, for C{daemon start} and C{vault unlock}.

    A passphrase from them can only unlock the vault. It cannot confirm a decision.

    :ivar environ: the environment in which L{VARIABLE} may be set.
    :ivar file: a file of this user that others cannot read.
    """

    environ: Mapping[str, str]
    file: Path | None = None

    @property
    def given(self) -> bool:
        """Return whether the environment or a file gives a passphrase, so that nobody need type it."""
        return self.file is not None or VARIABLE in self.environ


def read_passphrase(prompt: str, descriptor: int | None = None, unattended: Unattended | None = None) -> str:
    """Read the passphrase of an existing vault.

    :param prompt: the prompt, without the colon.
    :param descriptor: inherited, from C{--passphrase-fd}. It is read to its end and closed.
    :param unattended: given only by callers that need no person.
    :raises InvalidRequest: if there is no terminal, or the input cannot be read, is empty, too long or not text.
    """
    if descriptor is not None:
        return from_descriptor(descriptor)
    found = None if unattended is None else _from_unattended(unattended)
    if found is not None:
        return found
    with Terminal.open() as terminal:
        return terminal.ask_secret(f"{prompt}: ")


def new_passphrase(descriptor: int | None = None, generate: Callable[[], str] = generate_words) -> str:
    """Return a passphrase for a new vault: six generated words that are shown, or a text typed twice.

    The words are erased from the screen, because an agent started there later may read the terminal's content.

    :raises WeakPassphrase: if the passphrase from the descriptor is too weak. On the terminal the person is asked
        again.
    :raises InvalidRequest: if there is no terminal, the input is not text, or too many attempts failed.
    """
    if descriptor is not None:
        passphrase = from_descriptor(descriptor)
        check_passphrase(passphrase)
        return passphrase
    with Terminal.open() as terminal, terminal.apart():
        return _choose(terminal, generate)


def from_descriptor(descriptor: int) -> str:
    """Read an inherited descriptor to its end, strip one final newline, and close it.

    :raises InvalidRequest: if the descriptor is not open, or its content is empty, too long, or not UTF-8.
    """
    try:
        with open(descriptor, "rb", buffering=0) as source:
            return _text(_read_all(source.read), "the descriptor")
    except (OSError, ValueError) as error:  # ValueError: a negative number
        raise InvalidRequest("Cannot read the passphrase from its descriptor.") from error


def _read_all(read: Callable[[int], bytes | None]) -> bytes:
    data = b""
    while len(data) <= _MAX_BYTES and (piece := read(_MAX_BYTES + 1 - len(data))):
        data += piece
    return data


def _from_unattended(unattended: Unattended) -> str | None:
    if unattended.file is not None:
        return _from_file(unattended.file)
    value = unattended.environ.get(VARIABLE)
    return None if value is None else _text(os.fsencode(value), VARIABLE)


def _from_file(path: Path) -> str:
    data = read_private(path, _MAX_BYTES)
    if data is None:
        raise InvalidRequest(f"The file {path} does not exist.")
    if path.stat().st_mode & 0o077:
        raise InvalidRequest(f"Other users can read {path}: run `chmod 600` on it first.")
    return _text(data, "the file")


def _text(data: bytes, source: str) -> str:
    if len(data) > _MAX_BYTES:
        raise InvalidRequest(f"The passphrase from {source} is longer than {_MAX_BYTES} bytes.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"The passphrase from {source} is not UTF-8.") from None
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        raise InvalidRequest(f"The passphrase from {source} is empty.")
    return text


def _choose(terminal: Terminal, generate: Callable[[], str]) -> str:
    words = generate()
    terminal.say(_OFFER.format(words=words))
    for _ in range(_ATTEMPTS):
        typed = terminal.ask_secret("New passphrase: ")
        if " ".join(typed.split()) == words:
            return words
        if not typed:
            terminal.say("Nothing was typed. Type the passphrase that is shown, or one of your own.\n")
            continue
        try:
            check_passphrase(typed)
        except InvalidRequest as error:
            terminal.say(f"{error.message}\n")
            continue
        terminal.say("This is not the passphrase that is shown. To use your own, type it once more.\n")
        if terminal.ask_secret("Repeat the passphrase: ") == typed:
            return typed
        terminal.say("The passphrases do not match.\n")
    raise InvalidRequest("No passphrase was set.")
