"""The connector file of the user's own mail account, made from a few answers."""

from __future__ import annotations

import re

from attrs import evolve

from aileron.base.addresses import bracketed, is_loopback, read_host, read_host_and_port
from aileron.base.toml import read_toml
from aileron.cli.actions.trusting import ask, pick
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import heading, say
from aileron.home.private_files import read_private

from .services import MailProvider, ReadyService

_FILE = """\
[connector]
name = "{fqn}"
version = "1.0.0"
description = "The mail account {address}."
kind = "mail"
{private}
[mail]
from = "{address}"
user = "{user}"
save_sent = {save_sent}

[smtp]
{smtp}
[imap]
{imap}
[credential]
kind = "basic"
"""
_PRIVATE = "private_network = true\n"
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]{1,253}")
_IMPLICIT_TLS = {465, 993}
_MOST_BYTES = 64 * 1024


def describe_mail(cli: CliContext, service: ReadyService) -> ReadyService:
    """Ask for the account, and return the service with its connector file.

    If the file exists already, ask nothing: the returned service has no text to write, and the user of that file.

    :raises CommandError: if the account's provider accepts no password.
    """
    name = f"{service.connector.rpartition('/')[2]}.toml"
    there = read_private(cli.home.connectors / name, _MOST_BYTES)
    if there is not None:
        user = _find_user(there)
        secret = service.secret if user else "USER:PASSWORD"
        return evolve(service, connector_file=(name, ""), user=user, secret=secret)
    address = ask(cli, "Your mail address", _read_address)
    provider = _choose(cli, service, address.rpartition("@")[2].lower())
    if provider.instead:
        raise CommandError(
            f"{provider.title} takes no app password for SMTP and IMAP any more. Nothing was connected.",
            f"Connect the account: aileron setup {provider.instead}",
        )
    smtp, imap = provider.smtp, provider.imap
    if not smtp:
        smtp = ask(cli, "SMTP server, such as smtp.example.org:465", read_host_and_port)
        imap = ask(cli, "IMAP server, such as imap.example.org:993", read_host_and_port)
    user = ask(cli, "User name", _read_user, address)
    private = any(is_loopback(_split(each)[0]) for each in (smtp, imap))
    text = _FILE.format(
        fqn=service.connector,
        address=address,
        user=user,
        save_sent="true" if provider.save_sent else "false",
        smtp=_write_server(smtp),
        imap=_write_server(imap),
        private=_PRIVATE if private else "",
    )
    return evolve(service, steps=provider.steps, connector_file=(name, text), user=user)


def _choose(cli: CliContext, service: ReadyService, domain: str) -> MailProvider:
    known = next((each for each in service.providers if domain in each.domains), None)
    if known is not None:
        say("The provider is {title}.", title=known.title)
        return known
    heading("Provider")
    for number, each in enumerate(service.providers, 1):
        say("  {number}  {title}", number=number, title=each.title)
    return pick(cli, service.providers, str(len(service.providers)))


def _read_address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("must be an address such as ada@example.org")
    read_host(text.rpartition("@")[2])
    return text


def _read_user(text: str) -> str:
    if not text.isprintable() or {":", '"', "\\"} & set(text):
        raise ValueError("must have no colon, no quote, no backslash and no control characters")
    return text


def _find_user(file: bytes) -> str:
    """Return the login name in a connector file, or an empty text if it cannot be read."""
    try:
        return str(read_toml(file.decode("utf-8")).values["mail"]["user"])
    except (ValueError, LookupError, TypeError):
        return ""


def _split(place: str) -> tuple[str, int]:
    host, _, port = place.rpartition(":")
    return host.strip("[]"), int(port)


def _write_server(place: str) -> str:
    """Return the settings of a server: implicit TLS at its ports, else STARTTLS, or no TLS on loopback."""
    host, port = _split(place)
    tls = "implicit" if port in _IMPLICIT_TLS else "none" if is_loopback(host) else "starttls"
    return f'host = "{bracketed(host)}"\nport = {port}\ntls = "{tls}"\n'
