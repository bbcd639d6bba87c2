"""C{aileron setup}: from an empty home to an action that an agent can request, in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import heading, note, say
from aileron.cli.actions.connect import connect_service, open_vault, tell_agents
from aileron.cli.actions.samples import make_sample, read_address, read_fields, read_header, read_name
from aileron.cli.actions.services import ReadyService, find_services, read_service
from aileron.home import prepare

T = TypeVar("T")


@click.command()
@pass_cli
def setup(cli: CliContext) -> None:
    """Set up the vault, a service with its credential, and first actions, step by step.

    Run it again to add another service: what is there already is kept.
    """
    if not cli.interactive():
        raise CommandError(
            "Cannot ask questions: no terminal. Nothing was set up.", "Set up each part by itself: aileron vault init"
        )
    prepare(cli.home)
    heading("1. Vault")
    key = open_vault(cli)
    heading("2. Service")
    service = _choose(cli)
    connect_service(cli, service, key)
    heading("3. Agent")
    tell_agents(cli, service)


def _choose(cli: CliContext) -> ReadyService:
    services = find_services()
    names = list(services)
    for number, title in enumerate(services.values(), 1):
        say("  {number:>2}  {title}", number=number, title=title)
    say("  {number:>2}  A REST API of your own", number=len(names) + 1)

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= len(names) + 1:
            raise ValueError(f"must be between 1 and {len(names) + 1}")
        return int(text)

    number = _ask(cli, "Number", read)
    return read_service(names[number - 1]) if number <= len(names) else _describe_service(cli)


def _describe_service(cli: CliContext) -> ReadyService:
    """Ask about a service that takes a POST request with a JSON body."""
    address = _ask(cli, "URL that takes a POST request", read_address)
    words = address.origin.host.rpartition(".")[0].split(".")[-1]

    def read_new(text: str) -> str:
        name = read_name(text)
        if (cli.home.connectors / f"{name}.toml").exists():
            again = f"aileron action trust, then aileron binding setup local://me/{name}"
            raise ValueError(f"is the name of a service that you have; to finish that one, run {again}")
        return name

    name = _ask(cli, "Name of the service", read_new, words if words.isalnum() and words.islower() else None)
    about = _ask(cli, "What it does, in a sentence for the model", _read_sentence)
    fields = _ask(cli, "Fields of its JSON body", read_fields, "title, body")
    header = _ask(cli, "Header that carries the key", read_header, "Authorization")
    return make_sample(address, name, about, fields, header)


def _read_sentence(text: str) -> str:
    if not text or not text.isprintable() or text.startswith(("#", "+++")):
        raise ValueError("must be a sentence")
    return text


def _ask(cli: CliContext, what: str, read: Callable[[str], T], default: str | None = None) -> T:
    """Ask until the answer is one that C{read} takes."""
    question = f"{what}: " if default is None else f"{what} [{default}]: "
    while True:
        try:
            return read(cli.ask(question).strip() or default or "")
        except ValueError as error:
            note("The answer {problem}.", problem=str(error))
