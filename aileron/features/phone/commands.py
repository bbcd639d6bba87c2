"""The group of commands C{aileron phone}: they pair, list and remove phones, and set up the TLS certificate for them.

A phone uses the operator's pages at the address C{phone.public_url} of config.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext, Conversation
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, line_width, note, say, time_at
from aileron.cli.qr import can_draw_qr, draw_qr
from aileron.cli.session import OperatorCommand, operator_command, plain_command, reading_command
from aileron.cli.vault.terminal import note_multiplexer
from aileron.model.errors import InvalidRequest
from aileron.model.sessions import HandOverState

if TYPE_CHECKING:
    from aileron.client import Operator

_POLL_SECONDS = 0.5
_COLUMNS = 80
_SHOWN = """Scan this with the phone's camera within two minutes, or open the address on the phone:
{code}
  {url}
"""
_WHY = {
    HandOverState.LATE: "It took longer than two minutes, so no phone was paired.",
    HandOverState.TWICE: "The code was used twice, so no phone was paired. If you did not open it twice, somebody else "
    "saw it. This is recorded in the audit log.",
}


@click.group()
def phone() -> None:
    """Approve on your phone, at the address `phone.public_url` of config.yaml."""


@phone.command("list")
@_options.exact_times
@reading_command
def list_phones(command: OperatorCommand, /) -> None:
    """List the paired phones, and say whether the address is served."""
    answer = command.get("phone")
    columns: Columns = {
        "NAME": "name",
        "SINCE": time_at("made_at"),
        "PASSKEY": lambda item: "also on your other devices" if item["synced"] else "on this device",
        "ID": "id",
    }
    command.list(answer, columns, "No phones. Pair one: aileron phone pair")
    if not command.as_json:
        state = answer["phone"]
        say("{url}: {told}", url=state["url"], told=state["problem"] or "served")


@phone.command("pair")
@click.option("--name", default="Phone", show_default=True, help="The name of the phone in lists.")
@plain_command
def pair(command: OperatorCommand, /, name: str) -> None:
    """Pair a phone: scan the QR code, make a passkey on the phone, and enter the two words that it shows.

    The code works once, within two minutes.
    """
    cli = command.cli
    note_multiplexer(cli.environ)
    try:
        with cli.terminal() as terminal:
            paired = command.ask(lambda operator: _pair(cli, terminal, operator, name))
    except InvalidRequest:
        raise CommandError(
            "The code can only be shown in a terminal. No phone was paired, so nothing was changed."
        ) from None
    say("Paired: {name}.", name=paired["name"])
    if paired["synced"]:
        note("Its passkey is copied to your other devices by their maker's account.")


async def _pair(cli: CliContext, terminal: Conversation, operator: Operator, name: str) -> Mapping[str, Any]:
    begun = await operator.post("phone", "pairing", body={"name": name})
    url = f"{begun['url']}/pair#{begun['code']}"
    terminal.say(_SHOWN.format(code=draw_pairing_code(url), url=url))
    terminal.put("The two words that the phone shows: ")
    while True:
        typed = terminal.answered()
        while typed is None:
            await _check(operator)
            await cli.pause(_POLL_SECONDS)
            typed = terminal.answered()
        if typed.strip():
            return await operator.post("phone", "pairing", "confirm", body={"words": typed})
        terminal.put("The two words that the phone shows: ")


async def _check(operator: Operator) -> None:
    """Check that the pairing of the phone has not ended.

    :raises CommandError: if it has ended.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    state = HandOverState((await operator.get("phone", "pairing"))["state"])
    if state not in (HandOverState.MADE, HandOverState.OPENED):
        raise CommandError(_WHY.get(state, "The pairing has ended."), "Try again: aileron phone pair")


def draw_pairing_code(url: str) -> str:
    """Return the QR code of an address as lines of text, or a note if it cannot be drawn here."""
    if not can_draw_qr():
        return "(No QR code: add the extra `phone` as the installation guide says.)"
    columns = line_width() or _COLUMNS
    code = draw_qr(url, columns)
    return f"(No QR code: it is wider than these {columns} columns.)" if code is None else code.rstrip("\n")


@phone.command("remove")
@click.argument("name")
@operator_command
def remove(command: OperatorCommand, /, name: str) -> None:
    """Remove a lost or replaced phone, by NAME or ID. It is logged out at once."""

    async def work(operator: Operator) -> Mapping[str, Any]:
        return await operator.delete("phone", await find(operator))

    async def find(operator: Operator) -> str:
        items = (await operator.get("phone"))["items"]
        found = [each["id"] for each in items if name in (each["name"], each["id"])]
        if len(found) != 1:
            raise CommandError(f"There is no phone {name}. Nothing was removed.", "List them: aileron phone list")
        return str(found[0])

    command.say(command.ask(work, find), "{name} is removed.", name=name)


@phone.command("certificate")
@click.option(
    "--import", "given", type=(Path, Path), metavar="CERTIFICATE KEY", help="PEM files to store in the vault."
)
@click.option("--output", type=Path, metavar="FILE", help="Write what the phone or the proxy trusts to this file.")
@operator_command
def certificate(command: OperatorCommand, /, given: tuple[Path, Path] | None, output: Path | None) -> None:
    """Make or import the certificate of the address, and show what a phone or a proxy has to trust.

    Without `--import`, Aileron makes an authority that can vouch for this one name, and a certificate. Their keys are
    stored in the vault. With `--import`, use a certificate that your phone trusts already, such as of `tailscale cert`.
    """
    body: dict[str, JSON] = {}
    if given is not None:
        body = dict(zip(("certificate", "key"), map(_read, given), strict=True))
    found = command.post("phone", "certificate", body=body)
    if output is not None:
        _write(output, found["pem"])
    command.show(found, lambda answer: _show(answer, output))


def _show(found: Mapping[str, Any], output: Path | None) -> None:
    say("Valid until {ends_at}", ends_at=str(found["ends_at"])[:10])
    say("SHA-256 {fingerprint}", fingerprint=found["fingerprint"])
    if output is None:
        click.echo(found["pem"], nl=False)
    else:
        say("Written to {output}", output=output)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise CommandError(f"{path} cannot be read as PEM. Nothing was changed.") from None


def _write(path: Path, pem: str) -> None:
    try:
        path.write_text(pem, encoding="ascii")
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}. Nothing was changed.") from None
