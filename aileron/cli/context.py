"""The environment of a command: everything that a test replaces."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click
from attrs import frozen

from aileron.hardening import conceal, harden
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.paths import Home, find_home
from aileron.model.errors import InvalidRequest

from .errors import CommandError
from .output import progress

if TYPE_CHECKING:
    from aileron.base.blocking import Post, Posted, ServiceReply
    from aileron.client import Daemon, Operator
    from aileron.connectors import HttpTransport, KindTable
    from aileron.credentials import TokenExchange
    from aileron.features import FeatureSet
    from aileron.vault.keys import DataKey

    from .vault.passphrase import Unattended

T = TypeVar("T")

_PROBE_SECONDS = 30.0  # a flooded daemon responds late
_PROBE_TRIES = 5


class Links(Protocol):
    """Connections to the daemon, as L{aileron.client.Connections} makes them."""

    def daemon(self, url: str, token: str | None) -> Daemon:
        """Return a client of the agent site.

        :raises ValueError: if the URL or token is malformed.
        """

    def operator(self, operator_url: str, token: str | None) -> Operator:
        """Return a client of the operator site.

        :raises ValueError: if the URL or token is malformed.
        """


class Drive(Protocol):
    """A function that runs a coroutine to its end."""

    def __call__(self, work: Callable[[Links], Awaitable[T]]) -> T:
        """Run C{work} and return its result. Call this only once in a process.

        :raises Exception: any exception of C{work}.
        """


class Conversation(Protocol):
    """The person's terminal, used while other work continues."""

    def say(self, text: str) -> None:
        """Print to the person at the terminal, not to standard output."""

    def put(self, prompt: str) -> None:
        """Show a prompt without waiting. Earlier input is discarded."""

    def answered(self) -> str | None:
        """Return the line typed since the prompt, or None if there is none yet.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
        """

    def ask_secret(self, prompt: str) -> str:
        """Ask for one line without echo. Input typed before the prompt is discarded.

        :raises InvalidRequest: if the line is not UTF-8 or too long, or the terminal is closed.
        """


def _drive(work: Callable[[Links], Awaitable[T]]) -> T:
    from .drive import drive

    return drive(work)


def probe(url: str, path: str, token: str | None = None) -> Mapping[str, Any]:
    """Send a GET to a site and return the decoded JSON. If the connection is lost, as in a flood, retry.

    :param url: the URL of the site, on loopback.
    :param token: sent as bearer token.
    :raises CommandError: if the daemon does not respond, or it refuses.
    """
    from aileron.client.blocking import ask

    for left in reversed(range(_PROBE_TRIES)):
        try:
            status, body = ask(url, "GET", path, token, seconds=_PROBE_SECONDS)
            break
        except (OSError, ValueError) as error:
            if not left or not isinstance(error, ConnectionError) or isinstance(error, ConnectionRefusedError):
                raise CommandError(f"No daemon responds at {url}.", "Check the daemon: aileron status") from None
    if status != 200 or not isinstance(body, dict):
        raise CommandError(
            f"The program at {url} is not this home's daemon (HTTP {status}).",
            "Check the daemon: aileron status",
        )
    return body


def _ask(prompt: str) -> str:
    from .drive import interruptible
    from .vault.terminal import Terminal

    with interruptible(), Terminal.open() as terminal:
        return terminal.ask(prompt)


def _ask_command(prompt: str) -> str:
    from .drive import interruptible
    from .vault.terminal import Terminal

    with interruptible(), Terminal.open() as terminal:
        return terminal.ask_command(prompt)


def _terminal() -> AbstractContextManager[Conversation]:
    from .vault.terminal import Terminal

    return Terminal.open()


def _passphrase(prompt: str, descriptor: int | None, unattended: Unattended | None) -> str:
    harden()
    from .drive import interruptible
    from .vault.passphrase import read_passphrase

    with interruptible():
        return read_passphrase(prompt, descriptor, unattended)


def _new_passphrase(descriptor: int | None) -> str:
    # guard against attack: a command that asks for a passphrase is closed to readers
    #    -> test_process.ReadersTests.test_passphrase_in_memory
    harden()
    from .vault.passphrase import new_passphrase

    return new_passphrase(descriptor)


def _secret(prompt: str, descriptor: int | None) -> str:
    harden()
    from .drive import interruptible
    from .vault.passphrase import from_descriptor
    from .vault.terminal import Terminal

    if descriptor is not None:
        try:
            return from_descriptor(descriptor)
        except InvalidRequest:
            told = "Cannot read the secret: its descriptor is closed, empty, too long or not UTF-8. Nothing was bound."
            raise CommandError(told, "Pass it like this: --secret-fd 4 4<file") from None
    try:
        with interruptible(), Terminal.open() as terminal:
            return terminal.ask_secret(f"{prompt} (not shown): ")
    except InvalidRequest:
        raise CommandError(
            "Cannot ask for the secret: no terminal. Nothing was bound.", "Pass it with --secret-fd."
        ) from None


def _security_keys() -> Iterable[Any]:
    # guard of signing: a command that asks for a PIN or a touch is closed to readers
    #    -> features.key_sources.test_security_key.AddTests.test_no_library
    harden()
    try:
        from fido2.hid import CtapHidDevice
    except ImportError:
        raise CommandError(
            "Security keys need the library fido2, which is not installed.", "Install it: pip install fido2"
        ) from None
    return CtapHidDevice.list_devices()


def _open_vault(path: Path, passphrase: str) -> DataKey:
    from aileron.vault.keys import open_vault

    with progress("Deriving the key from your passphrase"):
        return open_vault(path, passphrase)


def _interactive() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


async def _pause(seconds: float) -> None:
    from twisted.internet.task import deferLater

    await deferLater(_reactor(), seconds)


def _reactor() -> Any:
    from twisted.internet import reactor

    return reactor


def _post(request: Posted, seconds: float) -> ServiceReply:
    from aileron.base.blocking import post

    return post(request, seconds)


def _transport(own_ports: Collection[int]) -> HttpTransport:
    from aileron.connectors import system_transport

    return system_transport(_reactor(), lambda: own_ports)


def _exchange(own_ports: Collection[int]) -> TokenExchange:
    from aileron.connectors import HttpExchange

    return HttpExchange(_transport(own_ports), _reactor())


async def _fetch(url: str, most_bytes: int) -> bytes:
    from aileron.connectors import HttpFetch

    return await HttpFetch(_transport(()), _reactor(), most_bytes)(url)


@frozen
class CliContext:
    """The environment, clock, terminal, daemon and vault file, as commands use them.

    :ivar drive: see L{Drive}.
    :ivar probe: sends a GET to the agent site before any reactor runs: address, path, launch key.
    :ivar ask: asks for one line at the terminal, after a prompt.
    :ivar ask_command: asks for a shell command, which may have several lines.
    :ivar terminal: opens the terminal for use without waiting, or raises L{InvalidRequest} if there is none.
    :ivar passphrase: returns the vault's passphrase, as L{aileron.cli.vault.passphrase.read_passphrase} finds it.
    :ivar new_passphrase: returns the passphrase for a new vault, from the terminal or a descriptor.
    :ivar secret: returns a service's secret, from the terminal or a descriptor. It is never shown.

        The functions C{passphrase}, C{new_passphrase}, C{secret} and C{security_keys} close this process to other
        processes before they read. Later children are closed as well, so no agent, editor or browser may be started
        afterwards.
    :ivar security_keys: opens the FIDO2 security keys that are plugged in, as C{fido2.ctap.CtapDevice}s.
    :ivar conceal: closes this process, but not its children, to other processes, before it receives a login's token.
    :ivar interactive: whether a person can be asked.
    :ivar sleep: sleeps for some seconds, before any reactor runs.
    :ivar pause: waits for some seconds while the reactor runs.
    :ivar reactor: listens for a browser that returns from a sign-in.
    :ivar exchange: makes a client of token endpoints. The client never connects to the given ports of this machine.
    :ivar fetch: fetches a document of limited size from an address that the person names.
    :ivar post: sends one request to a service that the person named, and waits for its answer without a reactor.
    :ivar transport: makes a client that fetches packages. It never connects to the given ports of this machine.
    """

    environ: Mapping[str, str]
    drive: Drive = _drive
    probe: Callable[[str, str, str | None], Mapping[str, Any]] = probe
    ask: Callable[[str], str] = _ask
    ask_command: Callable[[str], str] = _ask_command
    terminal: Callable[[], AbstractContextManager[Conversation]] = _terminal
    passphrase: Callable[[str, int | None, Unattended | None], str] = _passphrase
    new_passphrase: Callable[[int | None], str] = _new_passphrase
    secret: Callable[[str, int | None], str] = _secret
    security_keys: Callable[[], Iterable[Any]] = _security_keys
    open_vault: Callable[[Path, str], DataKey] = _open_vault
    conceal: Callable[[], None] = conceal
    interactive: Callable[[], bool] = _interactive
    randomness: Callable[[int], bytes] = secrets.token_bytes
    seconds: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wall: Callable[[], float] = time.time
    pause: Callable[[float], Awaitable[None]] = _pause
    reactor: Callable[[], Any] = _reactor
    exchange: Callable[[Collection[int]], TokenExchange] = _exchange
    fetch: Callable[[str, int], Awaitable[bytes]] = _fetch
    post: Post = _post
    transport: Callable[[Collection[int]], HttpTransport] = _transport

    @property
    def home(self) -> Home:
        """Return the home that the environment names.

        :raises InvalidRequest: if it names none, or the path is not absolute.
        """
        return find_home(self.environ)

    @property
    def features(self) -> FeatureSet:
        """Return the features that are on: from the running daemon, else from config.yaml."""
        from .features import find_features

        return find_features(self.home)

    @property
    def kinds(self) -> KindTable:
        """Return the kinds of connector: the built-in ones and those that the running daemon has loaded."""
        from .features import find_kinds

        return find_kinds(self.home)

    def running(self) -> Discovery:
        """Return the address of the running daemon.

        :raises CommandError: if no daemon runs.
        :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
        """
        found = live_discovery(self.home)
        if found is None:
            raise CommandError(f"The daemon is not running for {self.home.root}.", "Start it: aileron daemon start")
        return found


def real_context() -> CliContext:
    """Make the context of a real process."""
    return CliContext(dict(os.environ))


pass_cli = click.make_pass_decorator(CliContext)
