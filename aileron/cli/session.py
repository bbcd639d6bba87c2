"""The two ways in which commands use the daemon: as the operator, or in a short session named C{cli}."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve, frozen

from aileron.base.json import JSON
from aileron.home.discovery import Discovery, live_discovery

from . import options as _options
from .context import CliContext, Links, pass_cli
from .errors import CommandError
from .opening import open_with_passphrase
from .output import Columns, listed, say, show

if TYPE_CHECKING:
    from aileron.client import Daemon, Operator, OperatorLogin

T = TypeVar("T")

SESSION_NAME = "cli"
_PATIENCE_SECONDS = 10.0


def as_operator(
    cli: CliContext,
    descriptor: int | None,
    work: Callable[[Operator], Awaitable[T]],
    *,
    key: bytes | None = None,
    look: Callable[[Operator], Awaitable[object]] | None = None,
) -> T:
    """Log in, run C{work} with the operator site, log out, and return the result.

    :param descriptor: where the passphrase is read, or None for the terminal.
    :param key: the operator's key if it is known, so that no passphrase is requested.
    :param look: see L{look_first}.
    :raises CommandError: if no daemon runs, it cannot prove its identity, or C{look} raised it.
    :raises VaultLocked: if the daemon's vault is not unlocked.
    :raises WrongPassphrase: if the passphrase is wrong.
    """

    async def carry_out(links: Links) -> T:
        await look_first(cli, links, look)
        async with operator(cli, links, descriptor, key) as client:
            return await work(client)

    return cli.drive(carry_out)


def as_reader(cli: CliContext, work: Callable[[Operator], Awaitable[T]], descriptor: int | None = None) -> T:
    """Run C{work} with the operator site's routes that need no login: they read, pause or lock. Return its result.

    A daemon of an earlier version has no key for that. In that case log in with a passphrase.

    :raises CommandError: if no daemon runs.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    :raises VaultLocked, WrongPassphrase: if it had to log in, and the vault is not unlocked or the passphrase is wrong.
    """
    found = cli.running()
    key = found.local_key
    if key is None:
        return as_operator(cli, descriptor, work)

    async def carry_out(links: Links) -> T:
        return await work(links.operator(found.operator_url, key))

    return cli.drive(carry_out)


async def look_first(cli: CliContext, links: Links, look: Callable[[Operator], Awaitable[object]] | None) -> None:
    """Call C{look} without a login, before a passphrase is requested, so that a mistyped name is reported at once.

    If C{look} is None, or the daemon is of an earlier version, which shows nothing without a login, do nothing.

    The response is not trusted, because the daemon proves its identity only at the login. A malformed response is
    ignored.

    :param look: reads the object that the command is about, and raises an error if the command cannot succeed.
    :raises CommandError: if no daemon runs.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    found = cli.running()
    if look is None or found.local_key is None:
        return
    with suppress(
        LookupError, TypeError, AttributeError, ValueError
    ):  # no daemon sends this response: the login will refuse it
        await look(links.operator(found.operator_url, found.local_key))


def refuse_paused(cli: CliContext, done: str) -> None:
    """Refuse a command that calls services or decides while everything is paused.

    :param done: what was not done, as a participle.
    :raises CommandError: if everything is paused.
    """
    found = live_discovery(cli.home)
    if found is not None and cli.probe(found.url, "/v1/status", found.launch_key).get("pause"):
        raise CommandError(f"Everything is paused. Nothing was {done}.", "Resume first: aileron resume")


def as_session(cli: CliContext, work: Callable[[Daemon], Awaitable[T]]) -> T:
    """Run C{work} with the agent site in a new session that is ended afterwards, and return its result.

    :raises CommandError: if no daemon runs.
    """

    async def carry_out(links: Links) -> T:
        async with session(cli, links) as client:
            return await work(client)

    return cli.drive(carry_out)


@frozen
class OperatorCommand:
    """A command of the operator: its context, and the two options that all such commands have.

    :ivar passphrase_fd: where the passphrase is read, or None for the terminal.
    :ivar as_json: whether to print JSON.
    """

    cli: CliContext
    passphrase_fd: int | None
    as_json: bool = False

    def ask(
        self,
        work: Callable[[Operator], Awaitable[T]],
        look: Callable[[Operator], Awaitable[object]] | None = None,
    ) -> T:
        """Log in, run C{work} with the operator site, and return the result.

        :param look: see L{look_first}.
        :raises CommandError: if no daemon runs, it cannot prove its identity, or C{look} raised it.
        :raises VaultLocked: if the daemon's vault is not unlocked.
        :raises WrongPassphrase: if the passphrase is wrong.
        """
        return as_operator(self.cli, self.passphrase_fd, work, look=look)

    def read(self, work: Callable[[Operator], Awaitable[T]]) -> T:
        """Run C{work} with the operator site without a login, and return the result.

        :raises CommandError: if no daemon runs.
        """
        return as_reader(self.cli, work, self.passphrase_fd)

    def get(self, *path: str, query: Mapping[str, str | int | None] | None = None) -> Mapping[str, Any]:
        """Send GET to the operator site and return the decoded response. Needs no login.

        :raises CommandError: if no daemon runs.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return self.read(lambda operator: operator.get(*path, query=query))

    def post(self, *path: str, body: Mapping[str, JSON] | None = None, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Send POST to the operator site and return the decoded response.

        :raises CommandError: if no daemon runs, or it cannot prove its identity.
        :raises VaultLocked: if the daemon's vault is not unlocked.
        :raises WrongPassphrase: if the passphrase is wrong.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return self.ask(lambda operator: operator.post(*path, body=body, wait_seconds=wait_seconds))

    def delete(self, *path: str, body: Mapping[str, JSON] | None = None) -> Mapping[str, Any]:
        """Send DELETE to the operator site and return the decoded response.

        :raises CommandError: if no daemon runs, or it cannot prove its identity.
        :raises VaultLocked: if the daemon's vault is not unlocked.
        :raises WrongPassphrase: if the passphrase is wrong.
        :raises DaemonError: if the daemon does not answer, or refuses.
        """
        return self.ask(lambda operator: operator.delete(*path, body=body))

    def remove(self, *path: str) -> Mapping[str, Any]:
        """Check that an object exists, send DELETE for it, and return the decoded response.

        :raises CommandError: if no daemon runs, or it cannot prove its identity.
        :raises VaultLocked: if the daemon's vault is not unlocked.
        :raises WrongPassphrase: if the passphrase is wrong.
        :raises DaemonError: if the daemon does not answer, or refuses, as for an unknown object.
        """
        return self.ask(lambda operator: operator.delete(*path), lambda operator: operator.get(*path))

    def list(self, answer: Mapping[str, Any], columns: Columns, nothing: str) -> None:
        """Print a list, a row for each item, or C{nothing} if it is empty."""
        listed(self.as_json, answer, columns, nothing)

    def show(self, answer: Mapping[str, Any], print_answer: Callable[[Mapping[str, Any]], None]) -> None:
        """Print an answer as JSON if C{--json} was given, else call C{print_answer} with it."""
        show(self.as_json, answer, lambda: print_answer(answer))

    def say(self, answer: Mapping[str, Any], template: str, **values: object) -> None:
        """Print an answer as JSON if C{--json} was given, else the line C{template} with the values in its braces."""
        self.show(answer, lambda _: say(template, **values))


def operator_command(command: Callable[..., None]) -> Callable[..., None]:
    """Add C{--passphrase-fd} and C{--json} to C{command}, which receives an L{OperatorCommand} first."""

    @wraps(command)
    def run(given: OperatorCommand, /, as_json: bool, **options: Any) -> None:
        command(evolve(given, as_json=as_json), **options)

    return plain_command(_options.as_json(run))


def reading_command(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of L{operator_command} to a command without login, which only calls C{read} and C{get}."""

    @wraps(command)
    def run(given: OperatorCommand, /, as_json: bool, **options: Any) -> None:
        command(evolve(given, as_json=as_json), **options)

    return _add_operator(_options.as_json(run), _options.unneeded_passphrase_fd)


def plain_command(command: Callable[..., None]) -> Callable[..., None]:
    """Add C{--passphrase-fd} alone to C{command}, which receives an L{OperatorCommand} first."""
    return _add_operator(command, _options.passphrase_fd)


def _add_operator(command: Callable[..., None], option: Callable[[Any], Any]) -> Callable[..., None]:
    """Add C{option}, which is C{--passphrase-fd}, and call C{command} with an L{OperatorCommand} made of it."""

    @pass_cli
    @wraps(command)
    def run(cli: CliContext, /, passphrase_fd: int | None, **given: Any) -> None:
        command(OperatorCommand(cli, passphrase_fd), **given)

    decorated: Callable[..., None] = option(run)
    return decorated


@asynccontextmanager
async def operator(
    cli: CliContext, links: Links, descriptor: int | None, key: bytes | None = None
) -> AsyncIterator[Operator]:
    """Log in, yield the operator site, and log out at the end. For C{key} see L{as_operator}.

    :raises CommandError: if no daemon runs.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    found = cli.running()
    logging_in = log_in(cli, links, found, descriptor) if key is None else _prove(cli, links, found, key)
    login = await logging_in
    client = links.operator(found.operator_url, login.token).signing(login.key)
    try:
        yield client
    finally:
        await quietly(client.logout)


@asynccontextmanager
async def session(cli: CliContext, links: Links) -> AsyncIterator[Daemon]:
    """Open a short session, yield its agent site, and end it. A failure to end it is ignored.

    :raises CommandError: if no daemon runs.
    :raises DaemonError: if the daemon refuses the session, or does not respond.
    """
    found = cli.running()
    opened = await links.daemon(found.url, found.launch_key).open_session(SESSION_NAME, os.getcwd())
    client = links.daemon(found.url, opened.token)
    try:
        yield client
    finally:
        await quietly(lambda: client.end_session(opened.id, None))


async def log_in(
    cli: CliContext, links: Links, found: Discovery, descriptor: int | None, secret: bytes | None = None
) -> OperatorLogin:
    """Log in, and return the login at the daemon that C{found} names, with a new key that signs its decisions.

    :param secret: the operator's key if it is known, so that no passphrase is requested.
    :raises CommandError: if the daemon cannot prove that it holds the key.
    :raises VaultLocked: if the daemon's vault is not unlocked. No passphrase was requested.
    :raises WrongPassphrase: if the passphrase does not open the vault's file.
    :raises InvalidRequest: if no passphrase can be read.
    :raises DaemonUnreachable: if the daemon does not answer.
    """
    from aileron.model.errors import VaultLocked
    from aileron.vault.keys import operator_key

    state = vault_state(cli, found)
    if state != "unlocked":  # before a passphrase is requested
        raise VaultLocked(f"The daemon's vault is {state}.", {"state": state})
    if secret is None:
        key, _ = open_with_passphrase(cli, descriptor)
        secret = operator_key(key)
        key.wipe()
    return await _prove(cli, links, found, secret)


async def _prove(cli: CliContext, links: Links, found: Discovery, secret: bytes) -> OperatorLogin:
    """Log in, and return the login.

    If the connection is lost, as on a flooded site, retry from the start for some seconds.

    :raises DaemonUnreachable: if the daemon does not respond, or the connection is still lost.
    :raises CommandError: if the daemon cannot prove that it holds the key.
    """
    from aileron.client import DaemonUnreachable

    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await _prove_once(cli, links, found, secret)
        except DaemonUnreachable as lost:
            if not lost.sent or time.monotonic() > until:
                raise


async def _prove_once(cli: CliContext, links: Links, found: Discovery, secret: bytes) -> OperatorLogin:
    """Log in once, and return the login.

    Nothing derived from the key is sent before the daemon has proved that it holds the key.

    :raises CommandError: if the daemon cannot prove that.
    :raises DaemonError: if the daemon refuses, or does not respond.
    """
    from aileron.client import OperatorLogin, TerminalKey
    from aileron.vault.keys import LoginExchange, client_proof, daemon_proof, new_nonce, same

    site = links.operator(found.operator_url, None)
    nonce = new_nonce(cli.randomness)
    challenge = await site.post("operator", "challenge", body={"nonce": nonce})
    exchange = LoginExchange(nonce, _text(challenge, "nonce"), found.instance, found.operator_url)
    if not same(daemon_proof(secret, exchange), _text(challenge, "proof")):
        raise CommandError(
            f"The program at {found.operator_url} could not prove that it is your daemon.",
            "Nothing was sent to it. Stop that program, then start the daemon: aileron daemon start",
        )
    key = TerminalKey.make(found.instance, cli.randomness) if challenge.get("takes_key") else None
    named = {} if key is None else {"public_key": key.public_key}
    proof = client_proof(secret, evolve(exchange, **named))
    answer = await site.post("operator", "login", body={"nonce": exchange.daemon_nonce, "proof": proof, **named})
    return OperatorLogin(_text(answer, "token"), key)


def vault_state(cli: CliContext, found: Discovery) -> str:
    """Return C{missing}, C{locked}, C{unlocked} or C{lost}, from the operator site, which agents cannot block.

    :raises CommandError: if the daemon does not respond.
    """
    return str(cli.probe(found.operator_url, "/v1/vault/status", None).get("state"))


def _text(answer: Mapping[str, Any], name: str) -> str:
    given = answer.get(name)
    if not isinstance(given, str):
        raise CommandError("The program that responds is not an Aileron daemon. Nothing more was sent to it.")
    return given


async def quietly(end: Callable[[], Awaitable[object]]) -> None:
    """Call C{end}, which ends a session. A failure is ignored, since the session expires by itself."""
    from aileron.client import DaemonError

    with suppress(DaemonError):
        await end()
