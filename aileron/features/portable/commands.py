"""C{aileron approval export} and C{import}, and C{aileron approver}: decisions signed by SSH keys on any machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.errors import CommandError
from aileron.cli.ids import id_argument
from aileron.cli.output import Columns, line_width, note, say, time_at, when
from aileron.cli.qr import can_draw_qr, draw_qr
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.cli.things import APPROVAL
from aileron.home.private_files import atomic_write
from aileron.model.signing import NAMESPACE

if TYPE_CHECKING:
    from aileron.base.sshsig import SshPublicKey
    from aileron.client import Operator

_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_MAX_BYTES = 512 * 1024
_MAX_NAME = 64
_COLUMNS = 80
_PLAIN = (
    "This key is a file. Anyone who can read it, or use it through ssh-agent, can approve. That includes programs that "
    "run as you on the machine that has the key. No key was added."
)


@click.command("export")
@id_argument("approval_id", APPROVAL)
@click.option("--deny", is_flag=True, help="Write the request to be denied, instead of approved.")
@click.option("--reason", help="Reason; saved in the audit log and shown to the agent.")
@click.option("--short", is_flag=True, help="Write the digest in place of the details.")
@click.option("--qr", is_flag=True, help="Show it as a QR code in the terminal, short if it must be.")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write it to this new file.")
@reading_command
def export_approval(
    command: OperatorCommand,
    /,
    approval_id: str,
    *,
    deny: bool,
    reason: str | None,
    short: bool,
    qr: bool,
    output: Path | None,
) -> None:
    """Write a request as text, for an SSH key or security key to sign on any machine within one hour.

    Sign the whole file there, and import both. Programs that can read the text can read the request.
    """
    if qr and (output is not None or command.as_json):
        raise click.UsageError("--qr shows the code in the terminal: remove --output and --json.")
    if qr and not can_draw_qr():
        raise CommandError(
            "QR codes need the extra `phone`. Nothing was exported.", "Add it as the installation guide says."
        )
    path = ("action-approvals", approval_id, "export")
    body: dict[str, JSON] = {"approved": not deny, "short": short}
    if reason is not None:
        body["reason"] = reason
    answer = command.read(lambda operator: operator.post(*path, body=body))
    if qr:
        _show_code(command, path, body, answer)
    elif command.as_json or output is None:
        command.show(answer, lambda given: click.echo(str(given["text"]), nl=False))
    else:
        _write(output, str(answer["text"]))
        say("Written: {path}. Valid until {when}.", path=output, when=when(str(answer["until"])))
        say("Sign it with an enrolled key:")
        say("  ssh-keygen -Y sign -n {namespace} -f KEY {path}", namespace=NAMESPACE, path=output)
        say("Then import it here:")
        say("  aileron approval import {path}", path=output)


def _write(path: Path, text: str) -> None:
    try:
        atomic_write(path, text.encode(), replace=False)
    except FileExistsError:
        raise CommandError(f"{path} exists already and was left as it is.", "Choose another name.") from None


def _show_code(
    command: OperatorCommand, path: tuple[str, ...], body: Mapping[str, JSON], answer: Mapping[str, Any]
) -> None:
    """Print the QR code of a text, or of its short form if the code of the text is wider than the terminal.

    :raises CommandError: if the code is wider than the terminal.
    """
    columns = line_width() or _COLUMNS
    code = draw_qr(str(answer["text"]), columns)
    if code is None and body["short"] is False:
        note("The request is too long for a QR code in this terminal: the code has its digest, and no details.")
        short = command.read(lambda operator: operator.post(*path, body={**body, "short": True}))
        code = draw_qr(str(short["text"]), columns)
    if code is None:
        raise CommandError(
            f"The QR code is wider than this terminal ({columns} columns).",
            "Widen the terminal, or write a file with --output.",
        )
    click.echo(code)


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@reading_command
def import_decision(command: OperatorCommand, /, file: Path) -> None:
    """Decide a request by a signature that an enrolled key made elsewhere. No passphrase is needed.

    FILE is the exported file; its signature is read from FILE.sig, or from the end of FILE itself. With -, both are
    read from standard input, the text first.
    """
    text, mark, rest = _read(file).partition(_BEGIN)
    signature = mark + rest
    if not signature:
        beside = file.with_name(f"{file.name}.sig")
        if str(file) == "-" or not beside.exists():
            raise CommandError(
                "There is no signature. Nothing was decided.",
                f"Sign the file: ssh-keygen -Y sign -n {NAMESPACE} -f KEY {file if str(file) != '-' else 'FILE'}",
            )
        signature = _read(beside)
    body: dict[str, JSON] = {"text": text, "signature": signature}
    answer = command.read(lambda operator: operator.post("signed-decisions", body=body))
    command.say(answer, "Run {run} is {state}.", run=answer["run"]["id"], state=answer["run"]["state"])


def _read(path: Path) -> str:
    """Read a text file, or standard input for C{-}.

    :raises CommandError: if it cannot be read, is too large, or is not text.
    """
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read(_MAX_BYTES + 1)
        else:
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}. Nothing was decided.") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path} is not an exported request. Nothing was decided.") from None
    if len(data) > _MAX_BYTES:
        raise CommandError(f"{path} is too large to be an exported request. Nothing was decided.")
    return text


@click.group()
def approver() -> None:
    """List, add and remove SSH keys whose signatures decide, such as security keys."""


@approver.command("list")
@_options.exact_times
@reading_command
def list_approvers(command: OperatorCommand) -> None:
    """List the SSH keys that can decide. Passkeys are listed by `aileron passkey list`."""
    columns: Columns = {
        "ID": "id",
        "NAME": "name",
        "KIND": lambda item: f"{item['kind'].partition('@')[0]}{'' if item['hardware'] else ' (a file)'}",
        "SINCE": time_at("made_at"),
        "FINGERPRINT": "fingerprint",
    }
    command.list(command.get("operator", "approvers"), columns, "No SSH keys.")


@approver.command("add")
@click.option(
    "--ssh-key",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE.pub",
    help="The public key, as ssh-keygen wrote it.",
)
@click.option("--name", help="Its name in lists; the comment in the file unless given.")
@click.option("--plain", is_flag=True, help="Add a key that is a file, not a security key.")
@operator_command
def add(command: OperatorCommand, /, ssh_key: Path, name: str | None, *, plain: bool) -> None:
    """Let an SSH key decide requests. Needs your passphrase.

    A security key (ssh-keygen -t ed25519-sk -O verify-required) asks for your touch and PIN at each signature, and is
    accepted where a passkey is required. A plain key is not, and needs --plain.
    """
    line = _read(ssh_key)
    key, comment = _parse(ssh_key, line)
    if not key.is_hardware and not plain:
        raise CommandError(_PLAIN, "Use a security key, or a key that never lies on this machine, with --plain.")
    body: dict[str, JSON] = {"name": (name or comment or ssh_key.stem)[:_MAX_NAME], "public_key": key.write()}
    added = command.post("operator", "approvers", body=body)
    command.say(added, "Added {name} ({fingerprint}) as {id}.", **added)


def _parse(path: Path, line: str) -> tuple[SshPublicKey, str]:
    from aileron.base.sshsig import read_ssh_key

    if "PRIVATE KEY" in line:
        raise CommandError(f"{path} is a private key. Nothing was added.", "Name the file that ends with .pub.")
    try:
        return read_ssh_key(line.strip())
    except ValueError as error:
        raise CommandError(f"{path} {error}. Nothing was added.") from None


@approver.command("remove")
@click.argument("key_id", metavar="ID")
@operator_command
def remove(command: OperatorCommand, /, key_id: str) -> None:
    """Remove an SSH key at once. What it approved and has not started yet needs another approval."""

    async def look(operator: Operator) -> None:
        known = (await operator.get("operator", "approvers"))["items"]
        if key_id not in {each["id"] for each in known}:
            raise CommandError(
                f"There is no SSH key {key_id}. Nothing was removed.", "List them: aileron approver list"
            )

    removed = command.ask(lambda operator: operator.delete("operator", "approvers", key_id), look)
    command.say(removed, "Removed {name} ({fingerprint}).", **removed)
