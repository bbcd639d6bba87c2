"""The installed ``aileron`` in a thread of the test's own process, which spares the start of one for each command."""

import io
import os
import secrets
import subprocess
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from types import SimpleNamespace
from typing import Any, TypeVar

import attrs
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.threads import blockingCallFromThread
from twisted.python.failure import Failure

from aileron.cli._entry import SERVE
from aileron.cli._main import run
from aileron.cli.context import CliContext, Links
from aileron.cli.daemon import process as daemon_process
from aileron.cli.vault.passphrase import Unattended, from_descriptor, new_passphrase, read_passphrase
from aileron.client import Connections, OperatorLogin, TerminalKey
from aileron.home.discovery import live_discovery
from aileron.home.paths import Home
from aileron.model.errors import InvalidRequest
from aileron.vault import keys
from aileron.vault.keys import LoginExchange, client_proof, daemon_proof, new_nonce, operator_key, same
from tests.functional.forkserver import ForkServer
from tests.functional.process import Finished
from tests.functional.reactor import IKitReactor, until
from tests.vault import remember_keys

T = TypeVar("T")

remember_keys()

_thread = threading.local()
_EXECUTE = subprocess.Popen


def fork_daemons(first: str = "") -> None:
    """Have commands in this thread fork the daemons that they start; see `tests.functional.forkserver`.

    To be called while the thread has its rights.

    :param first: a program that is run in each daemon first, such as to give up rights.
    """
    _thread.forks = ForkServer.lend(first)


def _popen(arguments: Sequence[str], **options: Any) -> Any:
    server = getattr(_thread, "forks", None)
    if SERVE not in arguments or server is None:
        return _EXECUTE(arguments, **options)
    given = {name: options[name] for name in ("cwd", "env", "pass_fds")}
    return server.start(arguments[arguments.index(SERVE) :], output=options["stdout"].fileno(), **given)


vars(daemon_process)["subprocess"] = SimpleNamespace(**{**vars(subprocess), "Popen": _popen})

_SECONDS = 60.0
ALONE = frozenset(("completion", "demo", "launch", "open"))
"""Commands that want a process of their own: a terminal, a descriptor to write to, or signals."""


@attrs.define
class CommandLine:
    """Runs commands one after another, as a person would, without a terminal.

    What a process of its own would cost is its start, and Argon2id each time.  What a command does with a terminal,
    signals and its own memory is not to be seen here.
    """

    _reactor: IKitReactor
    _lock: DeferredLock = attrs.Factory(DeferredLock)

    async def run(
        self,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        fed: Mapping[str, str],
        confine: Callable[[], None] = lambda: None,
    ) -> Finished:
        """What came of one command.

        :param fed: options, and what each is given by the descriptor that it names.
        :param confine: called in the thread first, such as to give up rights that what it starts must not have, or to
            `fork_daemons`.
        """
        await self._lock.acquire()
        try:
            began, ended = self._reactor.seconds(), Deferred[tuple[int, str, str]]()
            given = (arguments, environment, fed, confine, ended)
            threading.Thread(target=self._work, args=given, name=f"aileron {arguments[0]}", daemon=True).start()
            await until(self._reactor, lambda: ended.called, _SECONDS, f"the end of {arguments}")
            code, out, err = await ended
            return Finished(code, None, out, err, self._reactor.seconds() - began)
        finally:
            self._lock.release()

    async def log_in(self, home: Home, passphrase: str) -> str:
        """A token of the operator's."""
        return (await self.log_in_signing(home, passphrase)).token

    async def log_in_signing(self, home: Home, passphrase: str) -> OperatorLogin:
        """A login of the operator's, with its key; what answers must prove that it is the daemon."""
        found = live_discovery(home)
        assert found is not None, "the daemon is not running"
        key = operator_key(keys.open_vault(home.secrets, passphrase))
        connections = Connections(self._reactor)
        try:
            site, nonce = connections.operator(found.operator_url, None), new_nonce(secrets.token_bytes)
            challenge = await site.post("operator", "challenge", body={"nonce": nonce})
            exchange = LoginExchange(nonce, str(challenge["nonce"]), found.instance, found.operator_url)
            assert same(daemon_proof(key, exchange), str(challenge["proof"]))
            own = TerminalKey.make(found.instance)
            proof = client_proof(key, attrs.evolve(exchange, public_key=own.public_key))
            body = {"nonce": exchange.daemon_nonce, "proof": proof, "public_key": own.public_key}
            return OperatorLogin(str((await site.post("operator", "login", body=body))["token"]), own)
        finally:
            await connections.close()

    def _work(
        self,
        arguments: tuple[str, ...],
        environment: Mapping[str, str],
        fed: Mapping[str, str],
        confine: Callable[[], None],
        ended: "Deferred[tuple[int, str, str]]",
    ) -> None:
        out, err = io.StringIO(), io.StringIO()
        try:
            confine()
            options = [word for option, text in fed.items() for word in (option, str(_feed(text)))]
            with redirect_stdout(out), redirect_stderr(err):
                code = run((*arguments, *options), self._context(environment))
        except BaseException:  # noqa: BLE001 - the rim of a thread
            self._reactor.callFromThread(ended.errback, Failure())
        else:
            self._reactor.callFromThread(ended.callback, (code, out.getvalue(), err.getvalue()))

    def _context(self, environment: Mapping[str, str]) -> CliContext:
        return CliContext(
            environment,
            drive=self._drive,
            ask=_nobody,
            terminal=_nobody,
            passphrase=_passphrase,
            new_passphrase=lambda given: _nobody() if given is None else new_passphrase(given),
            secret=lambda _, given: _nobody() if given is None else from_descriptor(given),
            conceal=lambda: None,
            interactive=lambda: False,
        )

    def _drive(self, work: Callable[[Links], Awaitable[T]]) -> T:
        async def whole() -> T:
            connections = Connections(self._reactor)
            try:
                return await work(connections)
            finally:
                await connections.close()

        begin: Any = lambda: Deferred.fromCoroutine(whole())  # noqa: E731 - its type is more than the stub can say
        ended: T = blockingCallFromThread(self._reactor, begin)
        return ended


@cache
def command_line(reactor: IKitReactor) -> CommandLine:
    """The one of this process."""
    return CommandLine(reactor)


def _feed(text: str) -> int:
    """A descriptor that gives it, closed by whoever reads it."""
    reading, writing = os.pipe()
    with open(writing, "wb") as pipe:
        pipe.write(text.encode())
    return reading


def _passphrase(prompt: str, descriptor: int | None, unattended: Unattended | None) -> str:
    if descriptor is None and (unattended is None or not {"AILERON_VAULT_PASSPHRASE"} & set(unattended.environ)):
        _nobody()
    return read_passphrase(prompt, descriptor, unattended)


def _nobody(*_: object) -> Any:
    raise InvalidRequest("Cannot ask for the passphrase: no terminal. Pass it with --passphrase-fd.")
