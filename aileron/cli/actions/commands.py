"""C{trust} and C{distrust}, the same for actions, connectors and C{aileron config}."""

from __future__ import annotations

import click

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import note, say, say_json
from aileron.cli._session import as_operator, vault_state
from aileron.cli.vault.unlocking import refuse_lost, state_of_file

from .trusting import Item, TrustRequest, as_values, tell, trust

_COMPLETING = {"action": _completion.actions, "connector": _completion.connectors}

yes = click.option("--yes", is_flag=True, help="Do not ask: trust what is shown.")


def trust_command(kind: str, metavar: str = "NAME") -> click.Command:
    """C{aileron <kind> trust}."""

    @click.command("trust", help=f"Show what is new or changed, ask once, and trust exactly that. {_NOTE[kind]}")
    @click.argument("names", nargs=-1, metavar=f"[{metavar}]...", shell_complete=_COMPLETING.get(kind))
    @click.option(
        "--all", "everything", is_flag=True, help="All that is not trusted, which without a name is meant too."
    )
    @yes
    @_options.passphrase_fd
    @_options.as_json
    @pass_cli
    def command(
        cli: CliContext,
        /,
        names: tuple[str, ...],
        everything: bool,
        yes: bool,
        passphrase_fd: int | None,
        as_json: bool,
    ) -> None:
        if yes and not names and not everything and kind != "config":
            raise click.UsageError("To trust without being asked, name what you mean or add --all.")
        refuse_unasked(as_json, yes)
        request = TrustRequest(kind, names, all=everything or not names, sure=yes, as_json=as_json)
        found = as_operator(cli, passphrase_fd, lambda operator: trust(cli, operator, request))
        if as_json:
            say_json({"trusted": as_values(found)})
        else:
            tell(found)

    return command


def distrust_command(kind: str) -> click.Command:
    """C{aileron <kind> distrust}."""

    @click.command("distrust", help="Take trust back: it does nothing any more, and what waits of it becomes stale.")
    @click.argument("name", shell_complete=_COMPLETING.get(kind))
    @_options.passphrase_fd
    @_options.as_json
    @pass_cli
    def command(cli: CliContext, name: str, passphrase_fd: int | None, as_json: bool) -> None:
        gone = as_operator(cli, passphrase_fd, lambda operator: operator.distrust(kind, name))
        if as_json:
            say_json(gone)
        else:
            say("{name} is not trusted any more.", name=gone["name"])

    return command


def refuse_unasked(as_json: bool, sure: bool) -> None:
    """:raises click.UsageError: a program wants to trust what no person is shown or asked about."""
    if as_json and not sure:
        raise click.UsageError("--json shows nothing to a person: add --yes.")


def trust_added(cli: CliContext, descriptor: int | None, request: TrustRequest) -> list[Item] | None:
    """Ask about what a command has just put into the home, if that can be: else say how to go on.

    Where there is no vault yet a person is led through making one, and its key serves for what follows.

    :return: what was trusted just now; L{None}: nobody could be asked.
    :raises CommandError: the vault is lost.
    """
    key = None
    if not cli.home.secrets.exists() and descriptor is None and not request.as_json and cli.interactive():
        from aileron.cli.vault.command import make_vault

        refuse_lost(cli)
        note("There is no vault yet. It keeps your keys, and what you trust; let us make one.")
        key = make_vault(cli, None)
    obstacle = _obstacle(cli, descriptor)
    if obstacle is not None:
        note("Not trusted yet, so it does nothing: {obstacle}", obstacle=obstacle)
        note("After that: aileron {kind} trust", kind=request.kind)
        return None
    return as_operator(cli, descriptor, lambda operator: trust(cli, operator, request), key=key)


def _obstacle(cli: CliContext, descriptor: int | None) -> str | None:
    """Why nobody can be asked now, and what to do about it; L{None}: somebody can."""
    if not cli.home.secrets.exists():
        return _NO_VAULT if state_of_file(cli) == "missing" else _GONE
    try:
        state = vault_state(cli, cli.running())
    except CommandError:
        return "no daemon runs. Start it: aileron daemon start"
    if state != "unlocked":
        return f"the vault is {state}. Unlock it: aileron vault unlock"
    if descriptor is None and not cli.interactive():
        return "there is no terminal to ask you in. Go to one"
    return None


_NO_VAULT = "there is no vault. Make one: aileron vault init"
_GONE = "the vault's file is gone. What can be done: aileron vault status"
_NOTE = {
    "action": "Connectors that an action needs are asked about with it.",
    "connector": "A connector says where your credentials may go.",
    "config": "The configuration says which services the daemon talks to.",
}


@click.group()
def config() -> None:
    """Trust the configuration, config.yaml in your home."""


config.add_command(trust_command("config", "FILE"))
config.add_command(distrust_command("config"))
