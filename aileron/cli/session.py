"""The two ways in which commands speak to the daemon: as the operator, or in a short session named C{cli}."""

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
    from aileron.client import Daemon, Operator

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
    """Log in, run C{work} with the operator site, log out, and return what it returned.

    :param descriptor: where the passphrase is read, or L{None}: in the terminal.
    :param key: the operator's, where it is in hand; then no passphrase is asked for.
    :param look: see L{look_first}.
    """

    async def carry_out(links: Links) -> T:
        await look_first(cli, links, look)
        async with operator(cli, links, descriptor, key) as client:
            return await work(client)

    return cli.drive(carry_out)


def as_reader(cli: CliContext, work: Callable[[Operator], Awaitable[T]], descriptor: int | None = None) -> T:
    """Run C{work} with those routes of the operator site that need no login: they read, pause or lock.

    A daemon of an earlier version has no key for that: then log in, as L{as_operator} does.
    """
    found = cli.running()
    key = found.local_key
    if key is None:
        return as_operator(cli, descriptor, work)

    async def carry_out(links: Links) -> T:
        return await work(links.operator(found.operator_url, key))

    return cli.drive(carry_out)


async def look_first(cli: CliContext, links: Links, look: Callable[[Operator], Awaitable[object]] | None) -> None:
    """Check what needs no login before a passphrase is asked for, so that a mistyped name costs none.

    A daemon of an earlier version shows nothing without a login: then nothing is checked here.

    Nothing of the answer is believed: the login that follows has the daemon prove itself.

    :param look: reads what the command is about, and raises the error that the person has to know of.
    """
    found = cli.running()
    if look is None or found.local_key is None:
        return
    with suppress(LookupError, TypeError, AttributeError, ValueError):  # no daemon answers so: the login refuses it
        await look(links.operator(found.operator_url, found.local_key))


def refuse_paused(cli: CliContext, done: str) -> None:
    """Refuse a command that calls services or decides, as long as everything is paused.

    :param done: what was not done, as a participle.
    :raises CommandError: everything is paused.
    """
    found = live_discovery(cli.home)
    if found is not None and cli.probe(found.url, "/v1/status", found.launch_key).get("pause"):
        raise CommandError(f"Everything is paused. Nothing was {done}.", "Resume first: aileron resume")


def as_session(cli: CliContext, work: Callable[[Daemon], Awaitable[T]]) -> T:
    """Run C{work}, given the agent site in a session of its own that is ended afterwards."""

    async def carry_out(links: Links) -> T:
        async with session(cli, links) as client:
            return await work(client)

    return cli.drive(carry_out)


@frozen
class OperatorCommand:
    """A command of the operator's: what it finds around itself, and the two options that all of its kind have.

    :ivar passphrase_fd: where the passphrase is read, or L{None}: in the terminal.
    :ivar as_json: whether a program reads what is printed.
    """

    cli: CliContext
    passphrase_fd: int | None
    as_json: bool = False

    def ask(
        self,
        work: Callable[[Operator], Awaitable[T]],
        look: Callable[[Operator], Awaitable[object]] | None = None,
    ) -> T:
        """Run C{work} with the operator site and return what it returned.

        :param look: see L{look_first}.
        """
        return as_operator(self.cli, self.passphrase_fd, work, look=look)

    def read(self, work: Callable[[Operator], Awaitable[T]]) -> T:
        """Run C{work} with what the operator site answers without a login, and return what it returned."""
        return as_reader(self.cli, work, self.passphrase_fd)

    def get(self, *path: str, query: Mapping[str, str | int | None] | None = None) -> Mapping[str, Any]:
        """Return what a route of the operator site shows; no login is needed."""
        return self.read(lambda operator: operator.get(*path, query=query))

    def post(self, *path: str, body: Mapping[str, JSON] | None = None, wait_seconds: float = 0) -> Mapping[str, Any]:
        """Have a route of the operator site do something, and return what it answers."""
        return self.ask(lambda operator: operator.post(*path, body=body, wait_seconds=wait_seconds))

    def delete(self, *path: str, body: Mapping[str, JSON] | None = None) -> Mapping[str, Any]:
        """Remove what a route of the operator site shows, and return what it answers."""
        return self.ask(lambda operator: operator.delete(*path, body=body))

    def remove(self, *path: str) -> Mapping[str, Any]:
        """Remove one thing that a route shows, after a look whether it is there; return the answer."""
        return self.ask(lambda operator: operator.delete(*path), lambda operator: operator.get(*path))

    def list(self, answer: Mapping[str, Any], columns: Columns, nothing: str) -> None:
        """Print a list, a row for each item; C{nothing}: where it is empty."""
        listed(self.as_json, answer, columns, nothing)

    def show(self, answer: Mapping[str, Any], print_answer: Callable[[Mapping[str, Any]], None]) -> None:
        """Print an answer as JSON, or as C{print_answer} does."""
        show(self.as_json, answer, lambda: print_answer(answer))

    def say(self, answer: Mapping[str, Any], template: str, **values: object) -> None:
        """Print an answer as JSON, or a line of ours in its place."""
        self.show(answer, lambda _: say(template, **values))


def operator_command(command: Callable[..., None]) -> Callable[..., None]:
    """Make C{command}, which takes an L{OperatorCommand} first, one with C{--passphrase-fd} and C{--json}."""

    @wraps(command)
    def run(given: OperatorCommand, /, as_json: bool, **options: Any) -> None:
        command(evolve(given, as_json=as_json), **options)

    return plain_command(_options.as_json(run))


def reading_command(command: Callable[..., None]) -> Callable[..., None]:
    """Make C{command} as L{operator_command} does, for one that needs no login: it only calls C{read} and C{get}."""

    @wraps(command)
    def run(given: OperatorCommand, /, as_json: bool, **options: Any) -> None:
        command(evolve(given, as_json=as_json), **options)

    return _add_operator(_options.as_json(run), _options.unneeded_passphrase_fd)


def plain_command(command: Callable[..., None]) -> Callable[..., None]:
    """Make C{command}, which takes an L{OperatorCommand} first, one with C{--passphrase-fd} alone."""
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
    """Log in, and give the operator site until the end; C{key} as of L{as_operator}."""
    found = cli.running()
    logging_in = log_in(cli, links, found, descriptor) if key is None else _prove(cli, links, found, key)
    client = links.operator(found.operator_url, await logging_in)
    try:
        yield client
    finally:
        await quietly(client.logout)


@asynccontextmanager
async def session(cli: CliContext, links: Links) -> AsyncIterator[Daemon]:
    """Open a short session, and give the agent site in it."""
    found = cli.running()
    opened = await links.daemon(found.url, found.launch_key).open_session(SESSION_NAME, os.getcwd())
    client = links.daemon(found.url, opened.token)
    try:
        yield client
    finally:
        await quietly(lambda: client.end_session(opened.id, None))


async def log_in(cli: CliContext, links: Links, found: Discovery, descriptor: int | None) -> str:
    """Log in, and return a fresh operator token for the daemon that C{found} names.

    :raises CommandError: it cannot prove that it holds the key.
    :raises VaultLocked: the daemon's vault is not unlocked; no passphrase was asked for.
    :raises WrongPassphrase: the passphrase does not open the vault's file.
    """
    from aileron.model.errors import VaultLocked
    from aileron.vault.keys import operator_key

    state = vault_state(cli, found)
    if state != "unlocked":  # before a passphrase is asked for
        raise VaultLocked(f"The daemon's vault is {state}.", {"state": state})
    key, _ = open_with_passphrase(cli, descriptor)
    secret = operator_key(key)
    key.wipe()
    return await _prove(cli, links, found, secret)


async def _prove(cli: CliContext, links: Links, found: Discovery, secret: bytes) -> str:
    """Log in; where the connection is cut off, as in a site that is flooded, it is tried again from the start."""
    from aileron.client import DaemonUnreachable

    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return await _prove_once(cli, links, found, secret)
        except DaemonUnreachable as lost:
            if not lost.sent or time.monotonic() > until:
                raise


async def _prove_once(cli: CliContext, links: Links, found: Discovery, secret: bytes) -> str:
    """Log in once: the daemon proves first that it holds the key, only then is anything made of it sent."""
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
    return _text(
        await site.post(
            "operator", "login", body={"nonce": exchange.daemon_nonce, "proof": client_proof(secret, exchange)}
        ),
        "token",
    )


def vault_state(cli: CliContext, found: Discovery) -> str:
    """C{missing locked unlocked lost}, as the daemon says on the operator's site, where no agent is in the way."""
    return str(cli.probe(found.operator_url, "/v1/vault/status", None).get("state"))


def _text(answer: Mapping[str, Any], name: str) -> str:
    given = answer.get(name)
    if not isinstance(given, str):
        raise CommandError("The program that responds is not an Aileron daemon. Nothing more was sent to it.")
    return given


async def quietly(end: Callable[[], Awaitable[object]]) -> None:
    """End a session; where that fails the work is done all the same, and the session ends by itself."""
    from aileron.client import DaemonError

    with suppress(DaemonError):
        await end()
