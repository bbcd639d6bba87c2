"""The options by which C{aileron vault key-source add} adds a transit engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from attrs import frozen

from .settings import KUBERNETES_TOKEN, TransitLogin, TransitSettings

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option("--url", metavar="URL", help="Add a transit key of the HashiCorp Vault or OpenBao at this URL."),
    click.option("--key", metavar="NAME", help="Name of the transit key."),
    click.option("--mount", default="transit", show_default=True, help="Path of the transit engine."),
    click.option("--namespace", default="", help="Namespace on the server."),
    click.option("--ca-file", type=_FILE, help="Certificate authorities to trust instead of the system's."),
    click.option("--token-file", type=_FILE, help="File from which each daemon reads its token."),
    click.option("--approle", metavar="ROLE_ID", help="Log in by AppRole, with --secret-id-file."),
    click.option("--secret-id-file", type=_FILE, help="File from which each daemon reads its secret ID."),
    click.option("--kubernetes", metavar="ROLE", help="Log in with the service account of the pod."),
    click.option("--jwt-file", type=_FILE, help=f"File with its token.  [default: {KUBERNETES_TOKEN}]"),
    click.option("--login-mount", default="", help="Path of the login method.  [default: approle or kubernetes]"),
    click.option("--encrypt-token-file", type=_FILE, help="File with a token that may encrypt, used only now."),
)
_NAMES = (
    *("url", "key", "mount", "namespace", "ca_file", "token_file", "approle", "secret_id_file"),
    *("kubernetes", "jwt_file", "login_mount", "encrypt_token_file"),
)


@frozen
class TransitOptions:
    """The options of a transit engine that the person gave.

    :ivar encrypt_token_file: a file with a token that may encrypt, or None if the daemons' own may.
    """

    settings: TransitSettings
    encrypt_token_file: Path | None


def transit_options(command: F) -> F:
    """Add the options to a click command, which gets C{transit}: L{TransitOptions}, or None without C{--url}."""

    @wraps(command)
    def wrapped(*arguments: Any, **given: Any) -> Any:
        own = {name: given.pop(name) for name in _NAMES}
        return command(*arguments, transit=_read(own), **given)

    decorated: Any = wrapped
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]  # click keeps the function


def _read(given: dict[str, Any]) -> TransitOptions | None:
    """Return the options of a transit engine, or None if none of them was given.

    :raises UsageError: if they do not go together.
    """
    if given["url"] is None:
        if any(given[name] for name in _NAMES if name != "mount"):
            raise click.UsageError("The options of a transit engine need --url.")
        return None
    ways = {
        TransitLogin.TOKEN: (given["token_file"], ""),
        TransitLogin.APPROLE: (given["secret_id_file"], given["approle"]),
        TransitLogin.KUBERNETES: (given["jwt_file"] or (given["kubernetes"] and KUBERNETES_TOKEN), given["kubernetes"]),
    }
    chosen = [login for login, (file, role) in ways.items() if file or role]
    if len(chosen) != 1 or not all(each or each == "" for each in ways[chosen[0]]):
        raise click.UsageError(
            "Give one of: --token-file FILE, --approle ROLE_ID with --secret-id-file FILE, or --kubernetes ROLE."
        )
    file, role = ways[chosen[0]]
    try:
        settings = TransitSettings(
            given["url"],
            given["key"] or "",
            _absolute(file),
            chosen[0],
            given["mount"],
            given["namespace"],
            _absolute(given["ca_file"]),
            role,
            given["login_mount"],
        )
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    return TransitOptions(settings, given["encrypt_token_file"])


def _absolute(path: Path | str | None) -> str:
    return "" if path is None else str(Path(path).absolute())
