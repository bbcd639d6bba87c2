"""The command C{aileron setup}: guides the user from an empty home to an action that an agent can request."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aileron.cli import completion as _completion
from aileron.cli.actions.trusting import ask
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import heading, say
from aileron.cli.session import refuse_paused
from aileron.cli.vault.command import ensure_open_vault
from aileron.home.paths import prepare

from .connect import connect_by, connect_service, describe_steps, print_agent_steps, reporting_saved
from .own import describe_own, is_request
from .services import ReadyService, find_services, read_service


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument(
    "words", nargs=-1, type=click.UNPROCESSED, metavar="[SERVICE|URL|CURL...]", shell_complete=_completion.services
)
@click.option("--list", "listing", is_flag=True, help="List services; with words, those that match all of them.")
@click.option("--choose", is_flag=True, help="Choose the actions of SERVICE, instead of the usual ones.")
@click.option("--dry-run", is_flag=True, help="Show each step and file for SERVICE. Change nothing.")
@click.option("--name", default="", help="Name of a service of your own. Default: by its host.")
@pass_cli
def setup(cli: CliContext, words: tuple[str, ...], name: str, listing: bool, choose: bool, dry_run: bool) -> None:
    """Set up the vault, a service with its credential, and first actions, step by step.

    SERVICE is the name of a service that comes with Aileron, such as slack. For a service of your own, put
    `aileron setup` in front of a curl command of its documentation, with a placeholder such as $KEY for the key; or
    name a URL that takes a POST request with a JSON body. Without any of these, setup asks. Run it again to add
    another service: what is there already is kept.
    """
    if listing or choose or dry_run:
        connect_by(cli, words, listing=listing, dry_run=dry_run)
        return
    if not cli.interactive():
        raise CommandError("Cannot ask questions: no terminal. Nothing was set up.", _describe_steps(cli, words))
    refuse_paused(cli, "set up")
    with reporting_saved(cli) as saved:
        service = _find(cli, words, name) if words else None
        prepare(cli.home)
        heading("1. Vault")
        key = ensure_open_vault(cli)
        heading("2. Service")
        service = service or _choose(cli, name)
        connect_service(cli, service, key, saved, usual=True)
    heading("4. Agent")
    if service.connector_file is not None:
        say("To describe {name} better for the model: aileron action edit {name}", name=service.chosen[0])
    print_agent_steps(cli, service)


def _describe_steps(cli: CliContext, words: Sequence[str]) -> str:
    """Return instructions to set up a service by commands that ask no questions.

    :raises CommandError: if the words name no service.
    """
    if not cli.home.secrets.exists():
        return "Set up each part by itself, first the vault: aileron vault init"
    if not words:
        return "There is a vault. To set up a service, see which there are: aileron setup --list"
    if is_request(words):
        return "There is a vault. To make a connector, see how: aileron connector import --help"
    return describe_steps(_find(cli, words, ""))


def _find(cli: CliContext, words: Sequence[str], name: str) -> ReadyService:
    """Return the service that the arguments name.

    :raises CommandError: if the arguments name no service.
    """
    from aileron.features.importing.description import NotImported

    try:
        found = _read(cli, words, name, in_arguments=True)
    except NotImported as error:
        raise CommandError(f"{error.problem} Nothing was set up.", error.advice or None) from None
    if found is None:
        raise CommandError("There is no such service. Nothing was set up.", "List all: aileron setup --list")
    return found


def _read(cli: CliContext, words: Sequence[str], name: str, *, in_arguments: bool) -> ReadyService | None:
    """Return the service for a name, a number of the list, a URL or a curl command, or None if none is known.

    :raises NotImported: if no connector can be made of the URL or the command.
    :raises CommandError: if the words are a request, and the feature that reads requests is off.
    """
    if is_request(words):
        _refuse_without_importing(cli)
        return describe_own(cli, words, name, in_arguments=in_arguments)
    names = list(find_services())
    numbered = {str(number): each for number, each in enumerate(names, 1)} | {each: each for each in names}
    known = numbered.get(words[0].removeprefix("builtin://")) if len(words) == 1 else None
    return read_service(known) if known else None


def _refuse_without_importing(cli: CliContext) -> None:
    """Refuse to make a connector if the feature that does so is off.

    :raises CommandError: if the feature is off.
    """
    if "importing" in cli.features.off:
        raise CommandError(
            "Cannot make a connector: config.yaml has the feature importing off. Nothing was set up.",
            "List the services that come with Aileron: aileron setup --list",
        )


def _choose(cli: CliContext, name: str) -> ReadyService:
    """Ask for a service until the answer is a valid number, name, URL or curl command."""
    from aileron.features.importing.description import NotImported

    for number, (title, about) in enumerate(find_services().values(), 1):
        say("  {number:>2}  {title} ({about})", number=str(number), title=title, about=about)
    if "importing" not in cli.features.off:
        say("For a service of your own, paste its URL or a curl command.")

    def read(text: str) -> ReadyService:
        try:
            found = _read(cli, (text,), name, in_arguments=False) if text else None
        except NotImported as error:
            raise ValueError(f"was not used. {error.problem} {error.advice}".rstrip(". ")) from None
        if found is None:
            raise ValueError("must be a number or a name of the list, a URL, or a curl command")
        return found

    return ask(cli, "Service (number, name, URL or curl command)", read, put=cli.ask_command)
