"""C{aileron setup}: from an empty home to an action that an agent can request, in one go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import heading, note, say
from aileron.cli._session import PROMPT, as_operator, vault_state
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.copying import Sort, tell_fault
from aileron.cli.actions.files import ACTIONS
from aileron.cli.actions.samples import (
    Sample,
    make_sample,
    read_address,
    read_fields,
    read_header,
    read_name,
    shipped_samples,
)
from aileron.cli.actions.trusting import TrustRequest, tell, trust
from aileron.cli.vault.binding import service_of
from aileron.cli.vault.command import make_vault
from aileron.cli.vault.unlocking import refuse_lost, restart_with
from aileron.home import atomic_write, live_discovery, prepare, read_private

if TYPE_CHECKING:
    from aileron.client import Operator

T = TypeVar("T")

_MAX_BYTES = 1024 * 1024


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
    key = _open_vault(cli)
    heading("2. Service")
    sample = _choose(cli)
    if sample.connector_file is not None:
        _add(cli, CONNECTORS, *sample.connector_file)
    paths = tuple(_add(cli, ACTIONS, *action) for action in sample.actions)
    heading("3. Trust and credential")
    as_operator(cli, None, lambda operator: _activate(cli, operator, sample, paths), key=key)
    heading("4. Agent")
    _tell_agents(cli, paths[0].stem)


def _open_vault(cli: CliContext) -> bytes | None:
    """Make or unlock the vault; the operator's key, or L{None}: the passphrase was not asked for yet."""
    from aileron.vault.keys import operator_key

    if not cli.home.secrets.exists():
        refuse_lost(cli)
        say("The vault stores your credentials, encrypted with a passphrase.")
        return make_vault(cli, None)
    found = live_discovery(cli.home)
    if found is not None and vault_state(cli, found) == "unlocked":
        say("The vault is unlocked.")
        return None
    key = cli.open_vault(cli.home.secrets, cli.passphrase(PROMPT, None, None))
    secret = operator_key(key)
    restart_with(cli, key)
    say("The vault is unlocked.")
    return secret


def _choose(cli: CliContext) -> Sample:
    samples = shipped_samples()
    for number, each in enumerate(samples, 1):
        say("  {number}  {title}", number=number, title=each.title)
    say("  {number}  A REST API of your own", number=len(samples) + 1)

    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= len(samples) + 1:
            raise ValueError(f"must be between 1 and {len(samples) + 1}")
        return int(text)

    number = _ask(cli, "Number", read, "1")
    return samples[number - 1] if number <= len(samples) else _describe_service(cli)


def _describe_service(cli: CliContext) -> Sample:
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


def _add(cli: CliContext, sort: Sort, name: str, text: str) -> Path:
    """Write a file into the home, or keep the one that is there.

    :raises CommandError: it has errors.
    """
    path = sort.directory(cli.home) / name
    if read_private(path, _MAX_BYTES) is None:
        atomic_write(path, text.encode(), replace=False)
        say("Written: {path}", path=path)
    else:
        say("{name} is already there, and is kept as it is.", name=name)
    faults = sort.faults(path)
    for fault in faults:
        note("{fault}", fault=tell_fault(fault))
    if faults:
        raise CommandError(f"{name} has errors, so it has no effect.", "Correct it, then run: aileron setup")
    return path


async def _activate(cli: CliContext, operator: Operator, sample: Sample, paths: tuple[Path, ...]) -> None:
    """Have the files trusted, and the credential bound; what is done already is not asked for again."""
    tell(await trust(cli, operator, TrustRequest("action", paths=paths)))
    bound = next((each for each in (await operator.bindings())["items"] if each["connector"] == sample.connector), None)
    if bound is not None:
        _tell_bound(bound)
        return
    say("Credential: {credential}", credential=sample.credential)
    made = await operator.set_up_binding(
        {
            "connector": sample.connector,
            "service": service_of(sample.connector),
            "secret": cli.secret(f"Secret for {sample.connector}", None),
        }
    )
    say("{name} is bound to {connector}.", name=made["name"], connector=sample.connector)


def _tell_bound(bound: Mapping[str, Any]) -> None:
    say("{name} is already bound to {connector}.", name=bound["name"], connector=bound["connector"])
    if not bound["fits"]:
        note("It cannot be used: the connector asks for another scope now.")
        note("  See the difference: aileron binding rebind {name}", name=bound["name"])


def _tell_agents(cli: CliContext, action: str) -> None:
    from aileron.launch import find_agents

    agents = find_agents()
    names = [name for name in agents if shutil.which(name, path=cli.environ.get("PATH"))]
    for name in names:
        say("  aileron launch {name}", name=name)
    if not names:
        say("No agent was found on PATH. Aileron works with {agents}.", agents=", ".join(agents))
    say(
        "Ask the agent to use {action}. Then approve its request in another terminal, or with aileron open:",
        action=action,
    )
    say("  aileron approval list")
    say("  aileron approval approve ID")
