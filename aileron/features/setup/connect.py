"""The command C{aileron setup --choose}: credential, actions, trust, and a test read of a service."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from aileron.base.addresses import read_base_url
from aileron.base.json import JSON
from aileron.cli import completion as _completion
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.copying import add_ready
from aileron.cli.actions.files import ACTIONS
from aileron.cli.actions.trusting import TrustRequest, ask, choose, tell, trust
from aileron.cli.context import CliContext, Links, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import block, heading, note, say, table, values
from aileron.cli.session import operator, refuse_paused, session
from aileron.cli.vault.binding import ask_place, service_of, show_parts
from aileron.cli.vault.command import ensure_open_vault
from aileron.cli.vault.secret import read_secret
from aileron.cli.vault.signing_in import SignInChoice, sign_in, signs_in
from aileron.home.paths import Home, prepare

from .services import READ, ReadyAction, ReadyService, find_services, read_service

if TYPE_CHECKING:
    from aileron.client import Daemon, Operator


@click.command()
@click.argument("words", nargs=-1, metavar="[SERVICE]", shell_complete=_completion.services)
@click.option("--list", "listing", is_flag=True, help="List services; with words, those that match all of them.")
@click.option("--dry-run", is_flag=True, help="Show each step and file. Change nothing.")
@pass_cli
def connect(cli: CliContext, words: tuple[str, ...], listing: bool, dry_run: bool) -> None:
    """Connect SERVICE, such as slack: bind its credential, add ready actions, and check that it works.

    Shows where to get the credential. Nothing is active until you trust the actions that you choose. Run it again to
    add more of them: what is there already is kept.
    """
    connect_by(cli, words, listing=listing, dry_run=dry_run)


def connect_by(cli: CliContext, words: Sequence[str], *, listing: bool, dry_run: bool) -> None:
    """Connect a service and ask which of its actions to add. Without words, or if C{listing}, only list services.

    :param words: the name of the service, or words that listed services must contain.
    :param dry_run: only show the steps and files.
    :raises CommandError: if there is no terminal, there is no such service, or everything is paused.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    """
    if listing or not words:
        _list(words)
        return
    service = _find(words)
    if dry_run:
        show_service(service)
        _show_files(service)
        return
    if not cli.interactive():
        raise CommandError("Cannot ask questions: no terminal. Nothing was connected.", describe_steps(service))
    refuse_paused(cli, "connected")
    prepare(cli.home)
    with reporting_saved(cli) as saved:
        connect_service(cli, service, ensure_open_vault(cli), saved)
    print_agent_steps(cli, service)


@contextmanager
def reporting_saved(cli: CliContext) -> Iterator[list[str]]:
    """Yield a list, to which the block adds a description of each thing that it saves in the vault.

    If the block is interrupted by Ctrl-C, print what was saved, files included, and how to resume. The interrupt
    continues.
    """
    in_vault, before = list[str](), _list_saved(cli.home)
    try:
        yield in_vault
    except KeyboardInterrupt:
        saved = [*(each for each in _list_saved(cli.home) if each not in before), *in_vault]
        if saved:
            note("\nInterrupted. Saved: {saved}.", saved=", ".join(saved))
            note("To go on, run the same command again. What is saved is kept.")
        else:
            note("\nInterrupted. Nothing was saved.")
        raise


def _list_saved(home: Home) -> Sequence[str]:
    files = (path.name for sort in (CONNECTORS, ACTIONS) for path in sorted(sort.directory(home).glob("*")))
    return [*(["the vault"] if home.secrets.exists() else []), *files]


def _list(words: Sequence[str]) -> None:
    found = find_services(words)
    if not found:
        raise CommandError(f"No service matches {' '.join(words)}.", "List all: aileron setup --list")
    table(("NAME", "SERVICE", "FOR"), ((name, *about) for name, about in found.items()))
    note("Connect one: aileron setup NAME")


def _find(words: Sequence[str]) -> ReadyService:
    name = words[0].removeprefix("builtin://")
    if len(words) > 1 or name not in find_services():
        raise CommandError(f"There is no service {' '.join(words)}.", "Search: aileron setup --list WORDS")
    return read_service(name)


def describe_steps(service: ReadyService) -> str:
    """Return instructions to connect a service by commands that ask no questions."""
    return (
        f"Do each step by itself: aileron credential setup {service.connector} --secret-fd N, then "
        f"aileron action new NAME --connector {service.connector} --op OPERATION, then aileron action trust"
    )


def show_service(service: ReadyService) -> None:
    """Print where the user gets the credential."""
    say("Credential: {secret}", secret=service.secret)
    for number, step in enumerate(service.steps, 1):
        say("  {number}. {step}", number=number, step=step.replace("`", ""))  # Markdown, for the pages


def _show_files(service: ReadyService) -> None:
    heading("Actions")
    _show_actions(service)
    for action in service.actions:
        if action.name in service.chosen:
            heading("{name}.md", name=action.name)
            block(action.text, "  ")
    say("Nothing was changed.")


def _show_actions(service: ReadyService) -> None:
    rows = [(number, each.name, each.kind, each.about) for number, each in enumerate(service.actions, 1)]
    table(("NO", "ACTION", "APPROVAL", "WHAT"), rows)


def connect_service(
    cli: CliContext, service: ReadyService, key: bytes | None, saved: list[str], *, usual: bool = False
) -> None:
    """Run all steps after the vault: files, trust, credential and check.

    :param key: the operator's key, or None to ask for the passphrase.
    :param saved: a list, to which a description of each thing saved in the vault is added.
    :param usual: add the usual actions without asking.
    :raises CommandError: if the mail provider accepts no password, the person does not trust the files, or the check
        fails.
    """
    from .mail import describe_mail  # asks as this module does

    if service.providers:
        service = describe_mail(cli, service)
    show_service(service)
    chosen = _take_usual(service) if usual else _choose(cli, service)
    if service.connector_file is not None:
        add_ready(cli.home, CONNECTORS, *service.connector_file)
    paths = tuple(add_ready(cli.home, ACTIONS, f"{each.name}.md", each.text) for each in chosen)

    async def work(links: Links) -> None:
        heading("3. Trust and credential" if usual else "Trust and credential")
        async with operator(cli, links, None, key) as client:
            tell(trusted := await trust(cli, client, TrustRequest("action", paths=paths)))
            if trusted:
                saved.append("trust in 1 file" if len(trusted) == 1 else f"trust in {len(trusted)} files")
            bound = await _bind(cli, client, service, saved)
            if service.check in {each.name for each in chosen}:
                async with session(cli, links) as daemon:
                    await _check(daemon, service, bound)
            if usual:
                for offer in cli.features.setup_offers():
                    await offer(cli, client)

    cli.drive(work)


def _choose(cli: CliContext, service: ReadyService) -> Sequence[ReadyAction]:
    if len(service.actions) == 1:
        return service.actions
    _show_actions(service)
    usual = (str(number) for number, each in enumerate(service.actions, 1) if each.name in service.chosen)
    return choose(cli, "Actions to add", service.actions, ",".join(usual))


def _take_usual(service: ReadyService) -> Sequence[ReadyAction]:
    chosen = [each for each in service.actions if each.name in service.chosen]
    if len(chosen) < len(service.actions):
        say("Actions: {names}", names=", ".join(each.name for each in chosen))
        note(
            "To choose from all {count}: aileron setup --choose {name}",
            count=len(service.actions),
            name=service_of(service.connector),
        )
    return chosen


async def _bind(cli: CliContext, client: Operator, service: ReadyService, saved: list[str]) -> str:
    """Bind the service's credential, unless one is bound already, and return its name.

    :param saved: a list, to which a description of a new credential is added.
    :raises CommandError: if an entered value of the address is not valid.
    :raises InvalidRequest: if no secret can be read.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    for each in (await client.get("bindings"))["items"]:
        if each["connector"] == service.connector:
            say("{name} is already bound to {connector}.", name=each["name"], connector=service.connector)
            if not each["fits"]:
                note("It cannot be used: the connector asks for another scope now.")
                note("  See the difference: aileron credential rebind {name}", name=each["name"])
            return str(each["name"])
    place: dict[str, JSON] = {}
    if service.template is not None:
        place.update(ask_place(cli, service.template, {}))
    elif service.address is not None:
        usual = service.address or None
        address = ask(cli, "Address of the service", lambda text: read_base_url(text, exact=True).url, usual)
        place |= {} if address == usual else {"base_url": address}
    target = await client.post("bindings", "target", body={"connector": service.connector, **place})
    say("The secret can be used only for {fqn}:", fqn=service.connector)
    show_parts(target["scope"])
    body = {"connector": service.connector, "service": service_of(service.connector), **place}
    made = await client.post("bindings", "setup", body={**body, **await _obtain(cli, service, target)})
    say("{name} is bound to {connector}.", name=made["name"], connector=service.connector)
    saved.append(f"the credential {made['name']}")
    return str(made["name"])


async def _obtain(cli: CliContext, service: ReadyService, target: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the service's secret, and the account if it is known, from a sign-in at the service or from the user.

    The sign-in opens no browser, since this process held the passphrase. The credential needs no label, since it is
    the first one of the service.

    :raises InvalidRequest: if no secret can be read.
    """
    account, secret = service.user or None, ""
    if signs_in(cli, service.connector):
        signed = await sign_in(cli, target, SignInChoice(opens_browser=False))
        account, secret = signed.account, signed.secret
    secret = secret or read_secret(cli, f"{service.secret} for {service.user or service.connector}", None)
    if service.user:  # the stored secret is a name with its password
        secret = f"{service.user}:{secret}"
    return {**({"account": account} if account else {}), "secret": secret}


async def _check(daemon: Daemon, service: ReadyService, bound: str) -> None:
    """Run the read that tests the connection, as an agent would run it. Print the result, or why there is none yet.

    :param bound: the name of the credential.
    :raises CommandError: if the read failed.
    """
    from aileron.client import DaemonFault

    try:
        body = (await daemon.run(service.check, {})).body
    except DaemonFault as fault:
        raise CommandError(
            f"The check of {service.title} failed: {fault.fault.message} The actions and the credential are kept.",
            f"To enter another credential: aileron credential replace {bound}, then aileron action run {service.check}",
        ) from None
    result: Any = body.get("result")
    if result is None:
        note("{message}", message=body.get("message"))
        note("To check it later: aileron action run {check}", check=service.check)
        return
    say("Connected to {title}:", title=service.title)
    if isinstance(output := result.get("output"), Mapping):
        values({name: text for name, text in output.items() if isinstance(text, str | int)}, "  ")


def print_agent_steps(cli: CliContext, service: ReadyService) -> None:
    """Print how to decide an agent's requests, and, if the feature that launches agents is on, how to start one."""
    if "launch" not in cli.features.off:
        _print_launch_commands(cli)
    chosen = [each for each in service.actions if each.name in service.chosen]
    action = next((each for each in chosen if each.kind != READ), None)
    if action is None:
        say("Ask the agent to use {action}. It only reads, so it needs no approval.", action=chosen[0].name)
        say("To decide what agents ask for, in another terminal or in the browser:")
    else:
        say("Ask the agent to use {action}. To decide, in another terminal or in the browser:", action=action.name)
    say("  aileron approve")
    say("  aileron open")


def _print_launch_commands(cli: CliContext) -> None:
    """Print the commands that start the agents on PATH."""
    from aileron.features.launch.agents import find_agents

    agents = find_agents()
    names = [name for name in agents if shutil.which(name, path=cli.environ.get("PATH"))]
    say("Start an agent:")
    for name in names:
        say("  aileron launch {name}", name=name)
    if not names:
        say("  aileron launch AGENT")
        say("  No agent was found on PATH. Aileron works with {agents}.", agents=", ".join(agents))
