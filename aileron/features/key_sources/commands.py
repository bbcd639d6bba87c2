"""C{aileron vault key-source}: security keys, credentials of systemd and transit engines that unlock the vault."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron.base.json import JSON, utc
from aileron.cli import options as _options
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.opening import open_with_passphrase
from aileron.cli.output import Columns, note, say, time_at
from aileron.cli.session import OperatorCommand, as_operator, operator_command, plain_command, reading_command
from aileron.model.vault import KeySourceKind

from .transit.options import TransitOptions, transit_options

if TYPE_CHECKING:
    from aileron.client import Operator

_PROGRAM = "systemd-creds"
_SECONDS = 60.0


@click.group("key-source")
def key_source() -> None:
    """Add what unlocks the vault beside your passphrase.

    A security key does it when you touch it; a credential of systemd, or a transit key
    of HashiCorp Vault or OpenBao, when the daemon starts.
    """


@key_source.command("list")
@_options.exact_times
@reading_command
def list_sources(command: OperatorCommand) -> None:
    """List what unlocks the vault beside your passphrase."""
    columns: Columns = {"ID": "id", "NAME": "name", "KIND": "kind", "SINCE": time_at("made_at")}
    command.list(
        command.get("vault", "key-sources"), columns, "No key sources: only your passphrase unlocks the vault."
    )


@key_source.command("add")
@click.argument("name")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False, resolve_path=True),
    help="Make a credential of systemd, and write it, encrypted, to this new file.",
)
@click.option("--user", "for_user", is_flag=True, help="Encrypt it for your user's units (systemd 256 or later).")
@click.option("--security-key", is_flag=True, help="Add the FIDO2 security key that is plugged in.")
@transit_options
@plain_command
def add(
    command: OperatorCommand,
    /,
    name: str,
    output: Path | None,
    *,
    for_user: bool,
    security_key: bool,
    transit: TransitOptions | None,
) -> None:
    """Add a security key, a credential of systemd, or a transit key, that unlocks the vault. Needs your passphrase.

    A security key is touched at each unlock, after its PIN if it has one. A credential of systemd and a transit key
    need nobody, but every program that can read the credential of the running unit, or the daemon's token, has the
    vault's key, and can decide. Use them only where agents run as another user, in a sandbox, or on another machine.
    """
    if (security_key, output is not None, transit is not None).count(True) != 1:
        raise click.UsageError("Give one of: --security-key, --output FILE or --url URL.")
    if transit is not None:
        _add_transit(command, name, transit)
    elif output is None:
        _add_security_key(command, name)
    else:
        _add_credential(command, name, output, for_user=for_user)


def _add_security_key(command: OperatorCommand, name: str) -> None:
    """Make a credential on the security key that is plugged in, and add it to the vault as a key source.

    :raises CommandError: if there is no terminal, or the security key fails.
    """
    from aileron.vault.keys import find_security_keys, make_security_key_source, operator_key

    from .security_key import enrol

    cli = command.cli
    cli.running()  # before anything is made on the security key
    key, _ = open_with_passphrase(cli, command.passphrase_fd)
    try:
        made, secret = enrol(cli, find_security_keys(cli.home.secrets))
        entry, proof = make_security_key_source(cli.home.secrets, key, name, utc(cli.wall()), made, secret)
        _store(cli, operator_key(key), entry, proof)
    finally:
        key.wipe()
    say("Key source {name} added. Touch the security key when you are asked to at the next unlock.", name=name)
    say("Keep your passphrase: without this security key, only the passphrase unlocks the vault.")
    if not made.verified:
        note("This security key has no PIN. Anyone who has it and a copy of the vault's file can unlock the vault.")
        note("To change that, set a PIN on it, remove this key source, and add it again.")


def _add_transit(command: OperatorCommand, name: str, transit: TransitOptions) -> None:
    """Have a transit engine encrypt a new secret, and add the engine to the vault as a key source.

    :raises CommandError: if the engine cannot be asked or refuses.
    """
    from aileron.vault.keys import make_derived_source, operator_key, vault_id

    from .transit.source import encrypt_secret

    cli = command.cli
    cli.running()  # before anything is asked of the server
    key, _ = open_with_passphrase(cli, command.passphrase_fd)
    try:
        vault = vault_id(cli.home.secrets)
        secret, settings = encrypt_secret(cli, vault, transit.settings, transit.encrypt_token_file)
        stored, made_at = settings.to_stored(), utc(cli.wall())
        entry, proof = make_derived_source(
            cli.home.secrets, key, name, made_at, secret, stored, KeySourceKind.TRANSIT, cli.randomness
        )
        _store(cli, operator_key(key), entry, proof)
    finally:
        key.wipe()
    say("Key source {name} added. It unlocks the vault when a daemon starts that can read", name=name)
    say("  {path}", path=settings.secret_file)
    say("Keep your passphrase: without {server}, only the passphrase unlocks the vault.", server=settings.server)


def _store(cli: CliContext, secret: bytes, entry: JSON, proof: str) -> None:
    body: dict[str, JSON] = {"entry": entry, "proof": proof}

    async def work(operator: Operator) -> None:
        await operator.post("vault", "key-sources", body=body)

    as_operator(cli, None, work, key=secret)


def _add_credential(command: OperatorCommand, name: str, output: Path, *, for_user: bool) -> None:
    """Make a private key that unlocks the vault, encrypt it into a file by systemd, and add the key source.

    :param output: the file to write.
    :raises CommandError: if the file exists, or systemd's program is missing or fails.
    """
    from aileron.vault.keys import make_key_source, operator_key

    cli = command.cli
    if output.exists():
        raise CommandError(f"{output} exists already. Nothing was added.", "Choose another file.")
    program = shutil.which(_PROGRAM, path=cli.environ.get("PATH"))
    if program is None:
        raise CommandError(
            f"{_PROGRAM} is not found on PATH. Nothing was added.", "It comes with systemd 250 or later."
        )
    key, _ = open_with_passphrase(cli, command.passphrase_fd)
    try:
        made_at = utc(cli.wall())
        secret, entry, proof = make_key_source(cli.home.secrets, key, KeySourceKind.SYSTEMD, name, made_at)
        _encrypt(cli, program, secret, output, for_user=for_user)
        try:
            _store(cli, operator_key(key), entry, proof)
        except BaseException:
            note("The key source was not added: {path} unlocks nothing. Delete it.", path=output)
            raise
    finally:
        key.wipe()
    say("Key source {name} added. Its credential: {path}", name=name, path=output)
    say("Use it in the daemon's unit: aileron daemon install --credential {path}", path=output)


def _encrypt(cli: CliContext, program: str, secret: bytes, output: Path, *, for_user: bool) -> None:
    """Encrypt a private key with systemd's program into a file. The key is passed through a pipe.

    :raises CommandError: if that failed.
    """
    from aileron.vault.keys import CREDENTIAL

    command = (program, *(["--user"] if for_user else []), "encrypt", f"--name={CREDENTIAL}", "-", str(output))
    try:
        done = subprocess.run(
            command, input=secret, capture_output=True, check=False, timeout=_SECONDS, env=dict(cli.environ)
        )
        failure = None if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    if failure is not None:
        raise CommandError(f"{_PROGRAM} failed: {failure}. Nothing was added.")


@key_source.command("remove")
@click.argument("source_id", metavar="ID")
@operator_command
def remove(command: OperatorCommand, /, source_id: str) -> None:
    """Remove a key source. To make old copies of the vault's file useless to it, also change the passphrase."""

    async def look(operator: Operator) -> None:
        known = (await operator.get("vault", "key-sources"))["items"]
        if source_id not in {each["id"] for each in known}:
            raise CommandError(
                f"There is no key source {source_id}. Nothing was removed.", "List them: aileron vault key-source list"
            )

    removed = command.ask(lambda operator: operator.delete("vault", "key-sources", source_id), look)
    command.say(removed, "Key source {name} removed.", name=removed["name"])
