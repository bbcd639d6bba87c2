"""Trust in actions, connectors and the configuration: reads all files once, asks once, and sends one request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from attrs import field, frozen

from aileron.base.json import JSON
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.context import CliContext, Links
from aileron.cli.errors import CommandError, place_of
from aileron.cli.output import format_line, listed, note, say
from aileron.cli.session import OperatorCommand, as_operator, operator, operator_command, vault_state
from aileron.cli.vault.terminal import note_multiplexer
from aileron.cli.vault.unlocking import refuse_lost, state_of_file
from aileron.features import FeatureSet
from aileron.model.errors import InvalidRequest

from .trust_display import Item, show_items, what
from .trusting_at_start import needs_start, read_config_item, start_trusting

if TYPE_CHECKING:
    from aileron.client import Operator

T = TypeVar("T")

_UNTRUSTED = frozenset(("new", "changed"))
_KINDS = {".md": "action", ".toml": "connector"}
_SETTINGS = ("config.yaml", *FeatureSet().file_names())
_ALL_SETTINGS = f"{', '.join(_SETTINGS[:-1])} and {_SETTINGS[-1]}"
_SEE = {
    "action": "List actions and files with errors: aileron action list",
    "connector": "List connectors and files with errors: aileron connector list",
    "config": f"The files are {_ALL_SETTINGS}. Check them: aileron doctor",
}


@frozen
class TrustRequest:
    """A request to trust some files.

    :ivar kind: the kind of the named files.
    :ivar names: the names of actions or connectors. The connectors that actions need are trusted with them.
    :ivar paths: the paths of further files to trust.
    :ivar all: whether to trust all files of that kind that are not trusted yet.
    :ivar digests: the only digests that the files at C{paths} may have, or empty to accept any. If there are some, the
        connectors that an action needs are not trusted with it.
    :ivar unshown: files to trust in the same step without showing them.
    :ivar sure: whether to skip the question.
    """

    kind: str
    names: tuple[str, ...] = ()
    paths: tuple[Path, ...] = ()
    digests: frozenset[str] = frozenset()
    unshown: tuple[Item, ...] = ()
    all: bool = field(default=False, kw_only=True)
    sure: bool = field(default=False, kw_only=True)
    as_json: bool = field(default=False, kw_only=True)


async def trust(cli: CliContext, operator: Operator, request: TrustRequest) -> list[Item]:
    """Show every untrusted file that C{request} means, ask once, and trust exactly what was shown.

    :return: the newly trusted items.
    :raises CommandError: if a file does not exist or changed, or the person declined. Nothing was trusted.
    """
    unread = await _find_unread(operator, request)
    if not unread and not request.unshown:
        await _tell_unsound(operator, request.kind)
        return []
    if unread and not request.as_json:
        show_items(cli, unread)
    if unread and not request.sure:
        for item in unread:
            if item.get("unasked"):
                _confirm_name(cli, item["name"])
        these = "this" if len(unread) == 1 else f"all {len(unread)}"
        confirm(cli, f"Trust {these}, exactly as shown? [y/N] ", "trusted")
    await _send(operator, [*unread, *request.unshown])
    return unread


async def _find_unread(operator: Operator, request: TrustRequest, *, quiet: bool = False) -> list[Item]:
    """Return every untrusted item that C{request} means.

    :param quiet: whether to omit messages about excluded files.
    :raises CommandError: if a file does not exist or changed.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    named = _choose((await operator.get("trust"))["items"], request)
    _refuse_replaced(named, request)
    return _leave_out_lacking([item for item in named if item["state"] in _UNTRUSTED], request, quiet=quiet)


def _trust_as_operator(command: OperatorCommand, request: TrustRequest) -> list[Item]:
    """Trust the files that C{request} means. If there are none or all are trusted, no passphrase is requested.

    :return: the newly trusted items.
    :raises CommandError: if no daemon runs, a file does not exist or changed, or the person declined.
    """
    cli = command.cli

    async def carry_out(links: Links) -> list[Item]:
        found = cli.running()
        if found.local_key is not None:
            reader = links.operator(found.operator_url, found.local_key)
            if not await _find_unread(reader, request, quiet=True):
                return await trust(cli, reader, request)
        async with operator(cli, links, command.passphrase_fd) as client:
            return await trust(cli, client, request)

    return cli.drive(carry_out)


def _trust_with_start(command: OperatorCommand, request: TrustRequest) -> list[Item]:
    """Show C{config.yaml}, ask, and start a daemon that trusts it. Return the trusted item.

    :raises CommandError: if another file is named, the file has an error, the person declined, or no daemon starts.
    """
    if set(request.names) - {_READ_AT_START}:
        raise CommandError("The daemon is not running. Start it first: aileron vault unlock")
    item = read_config_item(command.cli)
    if not request.as_json:
        show_items(command.cli, [item])
    if not request.sure:
        confirm(command.cli, "Trust this, exactly as shown, and start the daemon? [y/N] ", "trusted")
    start_trusting(command.cli, item, command.passphrase_fd)
    return [item]


def tell(trusted: Sequence[Item], *, in_force: bool = False) -> None:
    """Print the names of the files that the operator has just trusted.

    :param in_force: whether the daemon has started with them.
    """
    if trusted:
        say("Trusted: {names}", names=", ".join(item["name"] for item in trusted))
        if in_force:
            note("The daemon is running, and its vault is unlocked.")
        elif any((item["kind"], item["name"]) == ("config", _READ_AT_START) for item in trusted):
            note("It takes effect when the daemon starts again: aileron daemon stop, then aileron vault unlock")
    else:
        say("Nothing new to trust.")


def as_values(trusted: Sequence[Item]) -> list[Mapping[str, JSON]]:
    """Return the newly trusted items as JSON values."""
    return [{name: item[name] for name in ("kind", "name", "digest")} for item in trusted]


def _choose(items: Sequence[Item], request: TrustRequest) -> list[Item]:
    """Return the items that the request means, and the connectors that they need. Connectors come first.

    :raises CommandError: if the request names an item that does not exist.
    """
    found = [item for item in items if _is_meant(item, request)]
    _refuse_unknown(found, request)
    needed = {name for item in found for name in item["needs"] if not request.digests}
    chosen = [item for item in items if item in found or (item["kind"] == "connector" and item["name"] in needed)]
    return sorted(chosen, key=lambda item: item["kind"] != "connector")


async def _tell_unsound(operator: Operator, kind: str) -> None:
    """Print which files cannot be trusted because they have errors.

    :raises CommandError: if the only file of this kind has errors.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    errors = (await operator.get("actions"))["load_errors"]
    ours = [error for error in errors if _kind_of(Path(error["file"])) == kind]
    faults = [error for error in ours if error["kind"] != "untrusted"]
    for error in ours if kind == "config" else faults:
        what = "Error: " if error in faults else ""
        note("{what}{place}: {message}", what=what, place=place_of(error), message=error["message"])
    if kind == "config" and faults:
        raise CommandError("The configuration has an error, so it was not trusted and has no effect.")


def _kind_of(file: Path) -> str | None:
    """Return the kind of a file of the home by its name, or None if it is not a file to trust."""
    return "config" if file.name in _SETTINGS else _KINDS.get(file.suffix)


def _is_meant(item: Item, request: TrustRequest) -> bool:
    is_named = item["kind"] == request.kind and (request.all or item["name"] in request.names)
    return is_named or _lies_at(item, request.paths)


def _lies_at(item: Item, paths: Sequence[Path]) -> bool:
    """Return True if an item is the file at one of the paths.

    Only the names of the file and of its directory are compared, since the home may be mounted under another path.
    """
    return item["path"] is not None and Path(item["path"]).parts[-2:] in {path.parts[-2:] for path in paths}


def _refuse_replaced(items: Iterable[Item], request: TrustRequest) -> None:
    replaced = [item for item in items if _lies_at(item, request.paths) and item["digest"] not in request.digests]
    if request.digests and replaced:
        raise CommandError(f"{what(replaced[0])} was changed by another program meanwhile. Nothing was trusted.")


def _refuse_unknown(found: Sequence[Item], request: TrustRequest) -> None:
    names = {item["name"] for item in found if item["state"] != "gone"}
    missing = [(request.kind, name) for name in request.names if name not in names]
    absent = [path for path in request.paths if not any(_lies_at(item, (path,)) for item in found)]
    missing += [(_kind_of(path) or request.kind, path.name) for path in absent]
    for kind, name in missing:
        raise CommandError(f"There is no valid {kind} {name}; nothing was trusted.", _SEE[kind])


def _leave_out_lacking(items: Sequence[Item], request: TrustRequest, *, quiet: bool) -> list[Item]:
    """Return the items that could run, and print why others could not.

    :raises CommandError: if the person named an item that could not run.
    """
    for item in items:
        if item.get("lacks"):
            why = format_line("{what} cannot run: it {why}.", what=what(item), why=item["lacks"][0])
            if not request.all:
                raise CommandError(f"{why[:1].upper()}{why[1:]} Nothing was trusted.", _SEE["connector"])
            if not quiet:
                note("{why} It was left out.", why=f"{why[:1].upper()}{why[1:]}")
    return [item for item in items if not item.get("lacks")]


def _confirm_name(cli: CliContext, name: str) -> None:
    """Require the person to type the name of an action that will run without asking.

    :raises CommandError: if the answer differs, or there is no terminal.
    """
    try:
        answer = cli.ask(f"{name} will run without asking you. To trust it, type its name: ")
    except InvalidRequest:
        hint = "To skip the question, add --yes."
        raise CommandError("Cannot ask for confirmation: no terminal. Nothing was trusted.", hint) from None
    if answer.strip() != name:
        raise CommandError("Nothing was trusted.")


def ask(
    cli: CliContext,
    what: str,
    read: Callable[[str], T],
    default: str | None = None,
    put: Callable[[str], str] | None = None,
) -> T:
    """Ask until C{read} accepts the answer, and return the result of C{read}.

    :param what: the question, without its colon.
    :param read: parses the answer. If it raises C{ValueError}, the message completes the sentence "The answer …".
    :param default: the answer that an empty line means, or None if an empty line is passed to C{read}.
    :param put: prints a question and returns the answer. None reads one line.
    """
    question = f"{what}: " if default is None else f"{what} [{default}]: "
    while True:
        try:
            return read((put or cli.ask)(question).strip() or default or "")
        except ValueError as error:
            note("The answer {problem}.", problem=str(error))


def pick(cli: CliContext, things: Sequence[T], default: str | None = None) -> T:
    """Ask the person for the number of one item of a list until the answer is valid, and return the item.

    :param default: the number that an empty line means, or None.
    """
    numbered = {str(number): each for number, each in enumerate(things, 1)}

    def read(text: str) -> T:
        if text not in numbered:
            raise ValueError(f"must be between 1 and {len(numbered)}")
        return numbered[text]

    return ask(cli, "Number", read, default)


def choose(cli: CliContext, what: str, things: Sequence[T], default: str) -> Sequence[T]:
    """Ask the person to choose items from a numbered list until the answer is valid, and return the chosen items.

    :param default: the answer that an empty line means: numbers separated by commas, or C{all}.
    """

    def read(text: str) -> Sequence[T]:
        numbered = {str(number): each for number, each in enumerate(things, 1)}
        numbers = [*numbered] if text == "all" else text.replace(" ", "").split(",")
        if not {*numbers} <= {*numbered}:
            raise ValueError("must be numbers of the list, separated by commas, or all")
        return [each for number, each in numbered.items() if number in numbers]

    return ask(cli, what, read, default)


def confirm(cli: CliContext, question: str, done: str, hint: str = "To skip the question, add --yes.") -> None:
    """Return only if the person answers yes.

    :param done: the participle for the message if nothing is done, such as C{trusted}.
    :param hint: what to do if there is no terminal.
    :raises CommandError: if the answer is not yes, or there is no terminal.
    """
    note_multiplexer(cli.environ)
    try:
        answer = cli.ask(question)
    except InvalidRequest:
        raise CommandError(f"Cannot ask for confirmation: no terminal. Nothing was {done}.", hint) from None
    if answer.strip().lower() not in {"y", "yes"}:
        raise CommandError(f"Nothing was {done}.")


async def _send(operator: Operator, items: Sequence[Item]) -> None:
    from aileron.client import DaemonFault

    try:
        await operator.post("trust", body={"items": as_values(items)})
    except DaemonFault as fault:
        if fault.fault.kind != "conflict":
            raise
        moved = fault.fault.details.get("items")
        for item in moved if isinstance(moved, (list, tuple)) else ():
            note("{what} changed while you were reading.", what=what(item))
        raise CommandError(fault.message, "Nothing was trusted. Run the same command to review it again.") from None


_COMPLETING = {"action": _completion.actions, "connector": _completion.connectors}

yes = click.option("--yes", is_flag=True, help="Trust what is shown, without asking.")


def trust_command(kind: str, metavar: str = "NAME") -> click.Command:
    """Return the command C{aileron action trust} or C{aileron connector trust}."""

    @click.command(
        "trust", help=f"Show new and changed files, ask once, and trust exactly what was shown. {_NOTE[kind]}"
    )
    @click.argument("names", nargs=-1, metavar=f"[{metavar}]...", shell_complete=_COMPLETING.get(kind))
    @click.option("--all", "everything", is_flag=True, help="All untrusted files; the default if no name is given.")
    @yes
    @operator_command
    def trust_named(command: OperatorCommand, /, names: tuple[str, ...], everything: bool, yes: bool) -> None:
        if yes and not names and not everything and kind != "config":
            raise click.UsageError("--yes requires names or --all.")
        refuse_unasked(command.as_json, yes)
        request = TrustRequest(kind, names, all=everything or not names, sure=yes, as_json=command.as_json)
        at_start = kind == "config" and needs_start(command.cli)
        found = _trust_with_start(command, request) if at_start else _trust_as_operator(command, request)
        command.show({"trusted": as_values(found)}, lambda _: tell(found, in_force=at_start))

    return trust_named


def distrust_command(kind: str) -> click.Command:
    """Return the command C{aileron action distrust} or C{aileron connector distrust}."""

    @click.command(
        "distrust", help="Revoke trust: the file has no effect any more, and its pending requests become stale."
    )
    @click.argument("name", shell_complete=_COMPLETING.get(kind))
    @operator_command
    def distrust_named(command: OperatorCommand, name: str) -> None:
        async def look(operator: Operator) -> None:
            items = (await operator.get("trust"))["items"]
            if not any(item["kind"] == kind and item["name"] == name and item["trusted"] for item in items):
                raise CommandError(f"{name} is not trusted. Nothing was changed.", _SEE[kind])

        body = {"kind": kind, "name": name}
        gone = command.ask(lambda operator: operator.delete("trust", body=body), look)
        command.say(gone, "{name} is no longer trusted.", name=gone["name"])

    return distrust_named


def refuse_unasked(as_json: bool, sure: bool) -> None:
    """Refuse to trust files without showing them to a person and asking.

    :raises click.UsageError: if the output is JSON and the question is not skipped.
    """
    if as_json and not sure:
        raise click.UsageError("--json shows nothing for review: add --yes.")


def trust_added(cli: CliContext, descriptor: int | None, request: TrustRequest) -> list[Item] | None:
    """Ask whether to trust what a command has just added to the home, or print how to do so later.

    If there is no vault, guide the person through creating one, and use its key for the following steps.

    :return: the newly trusted items, or None if the person could not be asked.
    :raises CommandError: if the vault is lost.
    """
    key = None
    if not cli.home.secrets.exists() and descriptor is None and not request.as_json and cli.interactive():
        from aileron.cli.vault.command import make_vault

        refuse_lost(cli)
        note("There is no vault yet. It stores your credentials, and what you trust. Creating one now.")
        key = make_vault(cli, None)
    obstacle = _obstacle(cli, descriptor)
    if obstacle is not None:
        note("Not active until you trust it; {obstacle}", obstacle=obstacle)
        note("Then trust it: aileron {kind} trust", kind=request.kind)
        return None
    return as_operator(cli, descriptor, lambda operator: trust(cli, operator, request), key=key)


def _obstacle(cli: CliContext, descriptor: int | None) -> str | None:
    """Return why the person cannot be asked now and how to proceed, or None if they can."""
    if not cli.home.secrets.exists():
        return _NO_VAULT if state_of_file(cli) == "missing" or _has_none(cli) else _GONE
    try:
        state = vault_state(cli, cli.running())
    except CommandError:
        return "the daemon is not running. Start it: aileron daemon start"
    if state != "unlocked":
        return f"the vault is {state}. Unlock it: aileron vault unlock"
    if descriptor is None and not cli.interactive():
        return "there is no terminal. Run this in a terminal."
    return None


def _has_none(cli: CliContext) -> bool:
    """Tell whether the running daemon says that there was never a vault. False if none is running."""
    try:
        return vault_state(cli, cli.running()) == "missing"
    except CommandError:
        return False


_READ_AT_START = "config.yaml"
_NO_VAULT = "there is no vault. Create one: aileron vault init"
_GONE = "the vault file is missing. Check it: aileron vault status"
_NOTE = {
    "action": "Connectors that an action needs are included.",
    "connector": "A connector defines where your credentials may be sent.",
    "config": "They define which services the daemon connects to, and which hosts sandboxed agents may reach.",
}


@click.group(help=f"Trust {_ALL_SETTINGS} in your home, and list the keys of config.yaml.")
def config() -> None:
    """Group the commands about config.yaml and the other files of settings."""


config.add_command(trust_command("config", "FILE"))
config.add_command(distrust_command("config"))


@config.command("keys")
@_options.as_json
def keys(as_json: bool) -> None:
    """List the keys that config.yaml may have, with their meaning and default. Needs no daemon."""
    from aileron.daemon import config_keys, describe_keys

    columns = {"KEY": "key", "MEANING": "meaning", "DEFAULT": "default"}
    listed(as_json, {"items": list(describe_keys(config_keys(FeatureSet())))}, columns, "")
