"""The group of commands C{aileron oidc}: the provider with which people sign in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from aileron.cli import options as _options
from aileron.cli.output import say
from aileron.cli.session import OperatorCommand, operator_command, reading_command
from aileron.credentials import DEFAULT_KIND

from .values import IDENTITY, SERVICE, TARGET

if TYPE_CHECKING:
    from aileron.client import Operator


@click.group()
def oidc() -> None:
    """Sign-in with an OpenID Connect provider, such as Keycloak, Google or Entra.

    The provider is configured in config.yaml under `oidc`; its client secret is stored in the vault.
    """


@oidc.command("show")
@reading_command
def show(command: OperatorCommand, /) -> None:
    """Show the provider, the redirect URI to register there, and who was removed."""
    command.show(command.get("oidc"), _print)


@oidc.command("secret")
@_options.secret_fd
@operator_command
def store_secret(command: OperatorCommand, /, secret_fd: int | None) -> None:
    """Store the client secret in the vault. It is read from the terminal without being shown, or from --secret-fd."""

    async def work(operator: Operator) -> Mapping[str, Any]:
        # Checked first, so that no secret is requested that nothing needs.
        scope = (await operator.post("bindings", "target", body={"connector": TARGET, "base_url": None}))["scope"]
        secret = command.cli.secret(f"Client secret for {scope['base_url']}", secret_fd)
        found = await operator.get("oidc")
        if found["has_secret"]:
            await operator.delete("bindings", DEFAULT_KIND, SERVICE, IDENTITY)
        body = {"connector": TARGET, "service": SERVICE, "identity": IDENTITY, "secret": secret}
        return await operator.post("bindings", "setup", body=body)

    command.say(command.ask(work), "The client secret is stored. Try it: sign in at your public name.")


@oidc.command("allow")
@click.argument("name")
@operator_command
def allow(command: OperatorCommand, /, name: str) -> None:
    """Allow a person to sign in again after you removed their account. The next sign-in makes a new account."""
    command.say(command.delete("oidc", "removed", name), "{name} may sign in again.", name=name)


def _print(told: Mapping[str, Any]) -> None:
    say("Provider:       {issuer}", issuer=told["issuer"])
    say("Redirect URI:   {uri}", uri=told["redirect_uri"])
    say("Client secret:  {state}", state="in the vault" if told["has_secret"] else "none: aileron oidc secret")
    if told["problem"]:
        say("Problem:        {problem}", problem=told["problem"])
    if told["removed"]:
        say("Removed:        {names}", names=", ".join(told["removed"]))
