"""C{aileron binding}: which credential is bound to which connector."""

from __future__ import annotations

import re

import click

from aileron.values import JSON

from . import _options
from ._errors import Trouble
from ._output import listed, say, say_json
from ._session import as_operator
from ._surroundings import Surroundings, pass_surroundings


@click.group()
def binding() -> None:
    """Bind credentials to connectors.

    Aileron fills them in when a request leaves; agents never see them.
    """


@binding.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def list_bindings(around: Surroundings, passphrase_fd: int | None, as_json: bool) -> None:
    """List what is bound to what; no secret is shown."""
    answer = as_operator(around, passphrase_fd, lambda operator: operator.bindings())
    rows = (
        (item["name"], item["connector"], item.get("base_url"), item.get("account"), item["created_at"])
        for item in answer["items"]
    )
    titles = ("NAME", "CONNECTOR", "BASE URL", "ACCOUNT", "SINCE")
    listed(as_json, answer, titles, rows, "Nothing is bound yet: aileron binding setup CONNECTOR")


@binding.command("setup")
@click.argument("connector")
@click.option("--identity", default="default", show_default=True, help="Whose credential it is, in a word.")
@click.option("--service", help="The service, in a word; else the last part of the connector's name.")
@click.option("--kind", default="api_key", show_default=True, help="What kind of credential it is.")
@click.option("--base-url", help="Where the service is, if the connector lets a binding choose.")
@click.option("--account", help="The account it belongs to, to be shown to you.")
@click.option(
    "--secret-fd", type=click.IntRange(min=0), metavar="N", help="Read the secret from this inherited descriptor."
)
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def setup(
    around: Surroundings,
    /,
    connector: str,
    service: str | None,
    secret_fd: int | None,
    passphrase_fd: int | None,
    as_json: bool,
    **more: str | None,
) -> None:
    """Bind a credential to CONNECTOR, such as builtin://slack.

    The secret is asked for in the terminal and not shown, or comes by --secret-fd.
    """
    secret = around.secret(f"Secret for {connector}", secret_fd)
    body: dict[str, JSON] = {
        "connector": connector,
        "service": service or service_of(connector),
        "secret": secret,
        **{name: text for name, text in more.items() if text is not None},
    }
    made = as_operator(around, passphrase_fd, lambda operator: operator.set_up_binding(body))
    if as_json:
        say_json(made)
    else:
        say("{name} is bound to {connector}.", name=made["name"], connector=made["connector"])


@binding.command("revoke")
@click.argument("name")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def revoke(around: Surroundings, name: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Remove a binding and its secret; what still waits with it becomes stale."""
    gone = as_operator(around, passphrase_fd, lambda operator: operator.revoke_binding(name))
    if as_json:
        say_json(gone)
    else:
        say("{name} is revoked. Revoke the key at the service too if it may have leaked.", name=gone["name"])


def service_of(connector: str) -> str:
    """The last part of a connector's name: C{slack} of C{builtin://slack}.

    :raises Trouble: it has none that could name a service.
    """
    last = connector.rstrip("/").rpartition("/")[2]
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", last):
        raise Trouble(f"{connector} names no service: add --service.")
    return last
