"""Runs the daemon under C{twistd} or in the foreground, there with its own log."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.logger import globalLogBeginner
from twisted.python.logfile import LogFile

from aileron.hardening import harden
from aileron.home.paths import prepare
from aileron.model.errors import AileronError

from ._compose import Around, start
from ._life import AileronService
from ._log import DaemonLog
from ._settings import DaemonSettings, Options

_LOG_BYTES, _LOG_FILES = 5_000_000, 5


def _service(
    reactor: Any, settings: DaemonSettings, around: Around | None = None, log: DaemonLog | None = None
) -> AileronService:
    return AileronService(reactor, lambda life: Deferred.fromCoroutine(start(reactor, settings, life, around, log=log)))


def makeService(options: Options) -> AileronService:
    """Return the service that C{twistd} runs. If it cannot start, the process exits with a failure."""
    # guard against attack: twistd is closed to readers -> test_process.ReadersTests.test_twistd
    harden()
    from twisted.internet import reactor

    service = _service(reactor, _settings(options))
    reactor.addSystemEventTrigger("after", "shutdown", _exit_if_failed, service)
    return service


def _settings(options: Options) -> DaemonSettings:
    try:
        return DaemonSettings.read(options)
    except AileronError as error:
        raise SystemExit(f"aileron: {error.message}") from None  # twistd would print a traceback


def _exit_if_failed(service: AileronService) -> None:
    """Exit with status 1 if the service failed to start. C{twistd} offers no other way to set the status."""
    if service.failed is not None:
        sys.stderr.flush()
        os._exit(1)


def serve(arguments: Sequence[str]) -> int:
    """Run in the foreground, logging to the home's log directory, until a signal ends it.

    The caller has already closed the process to inspection by other processes.

    :return: the exit status: 0, or 1 if the daemon could not start.
    :raises AileronError: if no home can be found, or a variable has a value that its feature refuses.
    :raises ValueError: if the pipe contained no key.
    """
    options = Options()  # type: ignore[no-untyped-call]
    options.parseOptions(list(arguments))  # type: ignore[no-untyped-call]
    return live(DaemonSettings.read(options))


def choose_reactor() -> None:
    """Install the reactor for a daemon in the foreground: L{LeanReactor} on Linux, otherwise Twisted's default.

    :raises ReactorAlreadyInstalledError: if a reactor is already installed.
    """
    if sys.platform == "linux":
        from ._reactor import install

        install()


def live(settings: DaemonSettings, around: Around | None = None) -> int:
    """Run in the foreground with these settings until a signal ends the process, and return the exit status.

    :param around: see L{aileron.daemon._compose.start}.
    :raises ReactorAlreadyInstalledError: if a reactor is already installed.
    """
    choose_reactor()
    from twisted.internet import reactor

    prepare(settings.home)
    log_file = LogFile("aileron.log", str(settings.home.log), _LOG_BYTES, maxRotatedFiles=_LOG_FILES, defaultMode=0o600)
    log = DaemonLog(log_file)  # type: ignore[arg-type]
    globalLogBeginner.beginLoggingTo([log], redirectStandardIO=False)
    service = _service(reactor, settings, around, log)
    reactor.callWhenRunning(service.startService)
    reactor.addSystemEventTrigger("before", "shutdown", service.stopService)
    reactor.run()
    log.begin()  # if the daemon could not even read its configuration
    return 0 if service.failed is None else 1
