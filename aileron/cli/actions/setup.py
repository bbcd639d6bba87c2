"""C{aileron setup}: from an empty home to an action that an agent can request, in one go."""

from __future__ import annotations

import click

from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import heading, say
from aileron.cli.actions.connect import connect_service, open_vault, tell_agents
from aileron.cli.actions.samples import make_sample, read_address, read_fields, read_header, read_name, read_sentence
from aileron.cli.actions.services import ReadyService, find_services, read_service
from aileron.cli.actions.trusting import ask
from aileron.home import prepare


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
    numbered = {str(number): name for number, name in enumerate([*services, ""], 1)}
    for number, name in numbered.items():
        title, about = services.get(name, ("A REST API of your own", "one POST request with a JSON body"))
        say("  {number:>2}  {title} ({about})", number=number, title=title, about=about)

    def read(text: str) -> str:
        if text not in numbered:
            raise ValueError(f"must be between 1 and {len(numbered)}")
        return numbered[text]

    name = ask(cli, "Number", read)
    return read_service(name) if name else _describe_service(cli)


def _describe_service(cli: CliContext) -> ReadyService:
    """Ask about a service that takes a POST request with a JSON body."""
    address = ask(cli, "URL that takes a POST request", read_address)
    words = address.origin.host.rpartition(".")[0].split(".")[-1]

    def read_new(text: str) -> str:
        name = read_name(text)
        if (cli.home.connectors / f"{name}.toml").exists():
            again = f"aileron action trust, then aileron binding setup local://me/{name}"
            raise ValueError(f"is the name of a service that you have; to finish that one, run {again}")
        return name

    name = ask(cli, "Name of the service", read_new, words if words.isalnum() and words.islower() else None)
    about = ask(cli, "What it does, in a sentence for the model", read_sentence)
    fields = ask(cli, "Fields of its JSON body", read_fields, "title, body")
    header = ask(cli, "Header that carries the key", read_header, "Authorization")
    return make_sample(address, name, about, fields, header)
