"""C{aileron credential}: the credentials bound to connectors."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from aileron.base.addresses import base_url_problem
from aileron.base.json import JSON
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.actions.trusting import ask, confirm, refuse_unasked
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import Columns, heading, note, say, time_at, values, when
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.model.places import UrlTemplate

from .operator import as_signed_in
from .secret import read_secret
from .signing_in import SignInChoice, device_option, find_description, port_option, renewal, sign_in, signs_in

if TYPE_CHECKING:
    from aileron.client import Operator

_service = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*").fullmatch
_PARTS = {"hosts": "hosts", "base_url": "address", "header": "header", "format": "its value", "settings": "settings"}


@click.group("credential")
def binding() -> None:
    """Bind credentials to connectors, and to providers of the gateway.

    Aileron adds them when a request is sent. Agents never see them.
    """


@binding.command("list")
@_options.exact_times
@reading_command
def list_bindings(command: OperatorCommand) -> None:
    """List credentials. Secrets are not shown."""
    answer = command.get("bindings")
    columns: Columns = {
        "NAME": "name",
        "CONNECTOR": "connector",
        "STATE": _state,
        "BASE URL": "base_url",
        "ACCOUNT": "account",
        "FOR": lambda item: "everybody" if item.get("owner") is None else item["owner"]["name"],
        "SINCE": time_at("created_at"),
    }
    command.list(answer, columns, "No credentials yet. Add one: aileron credential setup CONNECTOR")
    if not command.as_json:
        _tell_what_to_do(answer["items"])


@binding.command("show")
@click.argument("name")
@_options.exact_times
@reading_command
def show_binding(command: OperatorCommand, name: str) -> None:
    """Show one credential: its scope, and whether that matches its connector. The secret is never shown."""
    command.show(command.get("bindings", name), _show_binding)


def _show_binding(found: Mapping[str, Any]) -> None:
    heading("{name}", name=found["name"])
    told = ("connector", "kind", "revision", "base_url", "account")
    known = {part.replace("_", " "): found[part] for part in told if found.get(part) is not None}
    if found.get("owner") is not None:
        known["for"] = f"agents of {found['owner']['name']} alone"
    values({"state": _state(found), **known, "created": when(found["created_at"])}, "  ")
    if found["scope"] is not None:
        say("  It can be used only for:")
        show_parts(found["scope"])
    _tell_what_to_do([found])


@binding.command("setup")
@click.argument("connector", shell_complete=_completion.bindable)
@click.option("--identity", help="Name of the credential's owner.  [default: --owner, or default]")
@click.option("--owner", metavar="NAME", help="The account whose agents alone may use it.  [default: all agents]")
@click.option("--service", help="Name of the service.  [default: the last part of CONNECTOR]")
@click.option("--kind", help="Kind of credential.  [default: what CONNECTOR asks for]")
@click.option("--base-url", help="URL of the service, if the connector lets you set it.")
@click.option(
    "--set",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _context, _option, given: _read_variables(given),
    help="Set a variable of the connector, such as site=acme.  [default: ask]",
)
@click.option("--account", help="Account name to display.")
@_options.secret_fd
@port_option
@device_option
@operator_command
def setup(
    command: OperatorCommand,
    /,
    connector: str,
    service: str | None,
    secret_fd: int | None,
    callback_port: int,
    device: bool,
    variables: Mapping[str, str],
    **more: str | None,
) -> None:
    """Bind a credential to CONNECTOR, such as builtin://slack, or to a provider of the gateway: gateway://openai.

    Shows what the secret can be used for, then reads it from the terminal without showing it, or from --secret-fd.
    If CONNECTOR uses OAuth 2, you sign in at its service instead.
    """
    if more["base_url"] is not None and variables:
        raise CommandError("Give --base-url or --set, not both; nothing was bound.")
    chosen: Mapping[str, JSON] = {}
    if more["base_url"] is None:
        chosen = _ask_place(command.cli, connector, variables)
    body: dict[str, JSON] = {
        "connector": connector,
        "service": service or service_of(connector),
        **{name: text for name, text in more.items() if text is not None},
        **chosen,
    }

    by_signing_in = secret_fd is None and signs_in(command.cli, connector)

    async def work(operator: Operator) -> Mapping[str, Any]:
        place: dict[str, JSON] = {name: body[name] for name in ("base_url", "variables") if name in body}
        target = await operator.post("bindings", "target", body={"connector": connector, **place})
        if not command.as_json and target["scope"] is not None:
            say("The secret can be used only for {fqn}:", fqn=connector)
            show_parts(target["scope"])
        if by_signing_in:
            signed = await sign_in(command.cli, target, SignInChoice(callback_port, device))
            found = {"account": signed.account, "secret": signed.secret}
            return await operator.post("bindings", "setup", body={**found, **body})
        given = read_secret(command.cli, f"Secret for {connector}", secret_fd)
        return await operator.post("bindings", "setup", body={**body, "secret": given})

    look = _find_connector(connector, tuple(command.cli.features.targets()))
    made = as_signed_in(command.cli, command.passphrase_fd, work, look) if by_signing_in else command.ask(work, look)
    command.say(made, "{name} is bound to {connector}.", name=made["name"], connector=connector)
    if not command.as_json:
        for line in command.cli.features.explain_binding(connector, made["name"]):
            note("{line}", line=line)


@binding.command("rebind")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Rebind to what is shown, without asking.")
@operator_command
def rebind(command: OperatorCommand, name: str, yes: bool) -> None:
    """Change the scope of a credential to what its connector asks for now.

    A credential can only be sent to the hosts, the address and the header that it was bound for. If a trusted
    connector asks for others, the difference is shown.
    """
    refuse_unasked(command.as_json, yes)
    made = command.ask(lambda operator: _rebind(command.cli, operator, name, yes, command.as_json), _find(name))
    command.say(made, "{name} is rebound (revision {revision}).", name=made["name"], revision=made["revision"])


@binding.command("replace")
@click.argument("name")
@_options.secret_fd
@operator_command
def replace(command: OperatorCommand, name: str, secret_fd: int | None) -> None:
    """Enter another secret. Approved requests that use the credential stay approved; those that wait for it start."""

    async def work(operator: Operator) -> Mapping[str, Any]:
        return await operator.post(
            "bindings", name, "replace", body={"secret": read_secret(command.cli, f"New secret for {name}", secret_fd)}
        )

    made = command.ask(work, _find(name))
    command.say(made, "{name} has another secret.", name=made["name"])


@binding.command("renew")
@click.argument("name")
@port_option
@device_option
@operator_command
def renew(command: OperatorCommand, name: str, callback_port: int, device: bool) -> None:
    """Sign in again for OAuth 2. Approved requests stay approved; those that wait for the credential start."""

    async def work(operator: Operator) -> Mapping[str, Any]:
        shown = await operator.get("bindings", name)
        if not shown["fits"]:
            raise CommandError(
                f"{name} does not match its connector; nothing was done.",
                f"See the difference: aileron credential rebind {name}",
            )
        choice = SignInChoice(callback_port, device, account=shown.get("account"), before=shown["state"])
        return await operator.post(
            "bindings", name, "replace", body={"secret": (await sign_in(command.cli, shown, choice)).secret}
        )

    made = as_signed_in(command.cli, command.passphrase_fd, work, _find(name))
    command.say(made, "You are signed in again: {name} can be used.", name=made["name"])


@binding.command("revoke")
@click.argument("name")
@operator_command
def revoke(command: OperatorCommand, name: str) -> None:
    """Delete a credential and its secret. Pending requests that use it become stale."""
    gone = command.remove("bindings", name)
    command.say(gone, "{name} is revoked. If the key may have leaked, revoke it at the service too.", name=gone["name"])


def _find(name: str) -> Callable[[Operator], Awaitable[object]]:
    """Return a check that a credential of this name exists. The check raises L{DaemonFault} if there is none."""
    return lambda operator: operator.get("bindings", name)


def _find_connector(connector: str, targets: tuple[str, ...]) -> Callable[[Operator], Awaitable[object]]:
    """Return a check that raises L{CommandError} if no connector has this name.

    A credential can also be bound to a feature's target, such as C{gateway://openai}. The check accepts every name of
    such a target, because the daemon validates it when the credential is bound.

    :param targets: the prefixes of these names, such as C{gateway://}.
    """

    async def look(operator: Operator) -> None:
        names = {each["name"] for each in (await operator.get("connectors"))["items"]}
        if connector not in names and not connector.startswith(targets):
            meant = [each for each in sorted(names) if each.rpartition("/")[2] == connector]
            advice = f"aileron credential setup {meant[0]}" if len(meant) == 1 else "aileron connector list"
            told = "Use its full name" if len(meant) == 1 else "List connectors"
            raise CommandError(f"Connector {connector} not found; nothing was bound.", f"{told}: {advice}")

    return look


def _read_variables(given: Sequence[str]) -> Mapping[str, str]:
    pairs = [each.partition("=") for each in given]
    if not all(equals for _, equals, _ in pairs):
        raise click.BadParameter("must be NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _ask_place(cli: CliContext, connector: str, given: Mapping[str, str]) -> Mapping[str, JSON]:
    found = find_description(cli, connector)
    if found is None or found.template is None:
        if given:
            raise CommandError(f"The connector {connector} has no variables; nothing was bound.")
        return {}
    return ask_place(cli, found.template, given)


def ask_place(cli: CliContext, template: UrlTemplate, given: Mapping[str, str]) -> Mapping[str, JSON]:
    """Return the members C{base_url} and C{variables} of a request to bind, each only if it differs from the default.

    If values of variables are missing and there is a terminal, ask for them.

    :param template: the connector's base URL with its variables.
    :param given: the values of variables that the person set by options.
    :raises CommandError: if the values do not form a base URL.
    """
    values = dict(given)
    for each in template.variables if cli.interactive() else ():
        if each.name not in values:
            what = f"{each.title} (such as {each.example})"
            values[each.name] = ask(cli, what, each.check, each.default)
    try:
        base_url = template.filled(values)
    except ValueError as error:
        raise CommandError(f"{error} Nothing was bound.", "Set it: --set NAME=VALUE") from None
    more = {
        each.name: values[each.name] for each in template.unplaced if values.get(each.name) not in (None, each.default)
    }
    return {**({} if base_url == template.default else {"base_url": base_url}), **({"variables": more} if more else {})}


async def _rebind(cli: CliContext, operator: Operator, name: str, sure: bool, quiet: bool) -> Mapping[str, Any]:
    """Show how a binding's scope changes, and rebind its credential if the person agrees. Return the binding.

    :raises CommandError: if the binding's address is invalid, it needs no change, its connector does not exist, or the
        person declined.
    :raises DaemonError: if the daemon does not answer, or refuses.
    """
    shown = await operator.get("bindings", name)
    if (problem := _address_problem(shown)) is not None:
        raise CommandError(
            f"The address of {name} {problem}. Nothing was rebound.",
            f"Set it up again: aileron credential revoke {name}, then "
            f"aileron credential setup {shown['connector']} --base-url URL",
        )
    now = shown["in_force"]
    if shown["fits"]:
        raise CommandError(f"{name} already matches its connector; nothing was rebound.")
    if now is None:
        raise CommandError(
            f"There is no connector {shown['connector']}; nothing was rebound.",
            "List connectors: aileron connector list",
        )
    if not quiet:
        _show_change(shown["scope"], now)
    if not sure:
        confirm(cli, "Allow the credential to be sent there? [y/N] ", "rebound")
    return await operator.post("bindings", name, "rebind", body={"revision": shown["revision"]})


def _show_change(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    for part in {**(before or {}), **now}:
        was, wanted = (before or {}).get(part), now.get(part)
        as_before = " (unchanged)" if was == wanted else ""
        say("  {part}: {wanted}{as_before}", part=_PARTS[part], wanted=_render(wanted), as_before=as_before)
        if was != wanted:
            say("    before: {was}", was=_render(was))


def show_parts(scope: Mapping[str, Any]) -> None:
    """Print where a credential can be sent."""
    values({_PARTS[part]: _render(given) for part, given in scope.items()}, "    ")


def _render(given: str | Sequence[str] | Mapping[str, str] | None) -> str:
    """Return one part of a scope as a line."""
    if isinstance(given, Mapping):
        given = [f"{name}={text}" for name, text in sorted(given.items())]
    return given if isinstance(given, str) else ", ".join(given or ()) or "none"


def _state(item: Mapping[str, Any]) -> str:
    if item["flag"]:
        return "check"
    if item["fits"]:
        state = item["state"]
        if state["status"] == "needs_you":
            return "needs you"
        if state["reason"] is not None:
            return "limited"
        return f"expires {when(state['expires_at'])}" if state["status"] == "expires" else "bound"
    return "needs rebind" if _address_problem(item) is None else "needs setup"


def _address_problem(item: Mapping[str, Any]) -> str | None:
    return None if item["base_url"] is None else base_url_problem(item["base_url"])


def _tell_what_to_do(items: Sequence[Mapping[str, Any]]) -> None:
    for item in items:
        if item["flag"]:
            note("{name}: {reason}", name=item["name"], reason=item["flag"]["reason"])
        if item["state"]["reason"] is not None:
            how = "cannot be used" if item["state"]["status"] == "needs_you" else "is limited"
            note("{name} {how}: {reason}", name=item["name"], how=how, reason=item["state"]["reason"])
            note("  Renew it: {command}", command=renewal(item))
        if item["state"].get("wanted"):
            note("  It will ask for these scopes: {scopes}", scopes=", ".join(item["state"]["wanted"]))
        if item["state"].get("surplus") is not None:
            note("{name}: {surplus}", name=item["name"], surplus=item["state"]["surplus"])
            note("  Sign in again for less: {command}", command=renewal(item))
        if (problem := _address_problem(item)) is not None:
            note("{name} cannot be used: its address {problem}.", name=item["name"], problem=problem)
            note("  Revoke it: aileron credential revoke {name}", name=item["name"])
            note("  Set it up again: aileron credential setup {connector} --base-url URL", connector=item["connector"])
        elif not item["fits"]:
            note("{name} cannot be used: its connector asks for another scope now.", name=item["name"])
            note("  See the difference: aileron credential rebind {name}", name=item["name"])


def service_of(connector: str) -> str:
    """Return the last part of a connector's name: C{slack} of C{builtin://slack}.

    :raises CommandError: if the name has no part that could name a service.
    """
    last = connector.rstrip("/").rpartition("/")[2]
    if not _service(last):
        raise CommandError(f"Cannot derive a service name from {connector}; nothing was bound: add --service.")
    return last
