"""C{aileron setup}: from an empty home to an action that an agent can request, in one go."""

from __future__ import annotations

import re

import click

from aileron.addresses import BaseUrl, is_loopback, read_base_url
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import heading, say
from aileron.cli.actions.connect import connect_service, open_vault, tell_agents
from aileron.cli.actions.services import ReadyAction, ReadyService, find_services, read_service
from aileron.cli.actions.trusting import ask, pick
from aileron.credentials import only
from aileron.drafting import Draft, Wanted, text_of
from aileron.home import prepare

_CONNECTOR = """\
[connector]
name = "{fqn}"
version = "1.0.0"
description = "The API of {host}."
base_url = {{ default = "{origin}", bindable = false }}
hosts = ["{place}"]
{private}
[credential]
kind = "api_key"
header = "{header}"
format = "{format}"

[operations.create]
description = "Sends a POST request to {path}."
method = "POST"
path = "{path}"
json = {{ {fields} }}
effect = "write"
idempotent = false
"""
_PRIVATE = "private_network = true\n"
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}").fullmatch
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}").fullmatch
_MOST_FIELDS = 20


def read_address(text: str) -> BaseUrl:
    """Read the address that a POST request goes to.

    :raises ValueError: what it must be, as the end of a sentence that begins with its name.
    """
    found = read_base_url(text, exact=True)
    if not found.path:
        raise ValueError("must have a path, such as /api/issues")
    return found


def read_fields(text: str) -> tuple[str, ...]:
    """Read the names of the fields that an agent gives, separated by commas.

    :raises ValueError: what they must be, as the end of a sentence.
    """
    names = tuple(each.strip() for each in text.split(","))
    if len(set(names)) < len(names) or len(names) > _MOST_FIELDS or not all(map(_FIELD, names)):
        raise ValueError(f"must be up to {_MOST_FIELDS} different names of a-z, 0-9 and _, separated by commas")
    return names


read_name = only(_NAME, "must be of a-z, 0-9 and hyphens")
read_header = only(_HEADER, "must be the name of a header, such as Authorization or X-API-Key")
read_sentence = only(
    lambda text: text and text.isprintable() and not text.startswith(("#", "+++")), "must be a sentence"
)


def make_sample(address: BaseUrl, name: str, about: str, fields: tuple[str, ...], header: str) -> ReadyService:
    """Make a connector and an action that sends a POST request with these fields in its JSON body.

    :param about: one line that describes the action for the model.
    """
    fqn, origin = f"local://me/{name}", address.origin
    value = "Bearer {key}" if header.lower() == "authorization" else "{key}"
    connector = _CONNECTOR.format(
        fqn=fqn,
        host=origin.host,
        origin=origin.url,
        place=origin.host_and_port,
        private=_PRIVATE if is_loopback(origin.host) else "",
        header=header,
        format=value,
        path=address.path,
        fields=", ".join(f'{each} = "${{in.{each}}}"' for each in fields),
    )
    draft = Draft(
        f"{name}-create",
        fqn,
        "1.0.0",
        "create",
        inputs=tuple(Wanted(each) for each in fields),
        takes=fields,
        about=about,
    )
    return ReadyService(
        title=name,
        connector=fqn,
        steps=(f"Get the key that {origin.host} expects in the header {header}. It is sent as: {value}",),
        secret="Key",
        actions=(ReadyAction(draft.name, text_of(draft), about),),
        chosen=(draft.name,),
        connector_file=(f"{name}.toml", connector),
    )


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
    connect_service(cli, service, key, usual=True)
    heading("3. Agent")
    tell_agents(cli, service)


def _choose(cli: CliContext) -> ReadyService:
    services = {**find_services(), "": ("A REST API of your own", "one POST request with a JSON body")}
    for number, (title, about) in enumerate(services.values(), 1):
        say("  {number:>2}  {title} ({about})", number=str(number), title=title, about=about)
    name = pick(cli, list(services))
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
