"""Finds the store that the home and the configuration name, and opens it. If they do not agree, no store is opened."""

from __future__ import annotations

import os
import secrets
import shlex
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define

from aileron import __version__
from aileron.audit import GENESIS, CommitObserver, payload_digest, seal
from aileron.base.life import Life
from aileron.home.paths import Home
from aileron.home.private_files import read_private
from aileron.model.daemons import ProcessFacts
from aileron.model.errors import AileronError, InvalidRequest, StoreUnavailable
from aileron.model.queries import AuditQuery
from aileron.model.vault import Binding
from aileron.store import Seals, ServerAddress, Store, Tuning, make_store, read_address

from ._config import StoreSettings
from ._record import report_needs

_SALT_BYTES = 16
_NAME_BYTES, _LEAST_LEASE_SECONDS = 8, 2
_NOT_MOVED = (
    "config.yaml names a database as store.url, but the home has {file}. Move it: {command}. Or remove store.url."
)
_MOVED = (
    "The store of this home was moved to a PostgreSQL server, and no trusted config.yaml names it. A start with the"
    " vault unlocked reads config.yaml: aileron vault unlock. If you changed config.yaml, trust it: aileron"
    " config trust. To move back: aileron store migrate --to sqlite --from URL."
)


@define
class StoreNews:
    """The news of the store for the vault, which is made before the store is opened.

    :ivar has_history: whether the store has records. True until that is known, so that a vault that is missing counts
        as lost.
    """

    _reactor: Any
    has_history: bool = True
    _report: Callable[[Binding, str], None] | None = None

    def report(self, binding: Binding, reason: str) -> None:
        """Record that a credential needs a person. Before the store is open, do nothing."""
        if self._report is not None:
            self._report(binding, reason)

    async def learn(self, store: Store) -> None:
        """Read whether the store has records, and report to it from now on."""
        self.has_history = bool((await store.audit.list(AuditQuery(limit=1))).items)
        self._report = report_needs(self._reactor, store)


def find_place(home: Home, settings: StoreSettings) -> Path | ServerAddress:
    """Return the place of the store: the file of the home, or the server that a trusted configuration names.

    :raises InvalidRequest: if the home has a file as well as a server, or its file was moved to a server and none is
        named.
    """
    if settings.url is None:
        # guard of the store: a home whose store was moved gets no empty one -> daemon.test_store.PlaceTests.test_moved
        if home.moved_database.exists() and not home.database.exists():
            raise InvalidRequest(_MOVED)
        return home.database
    if home.database.exists():
        raise InvalidRequest(_NOT_MOVED.format(file=home.database, command=_migration(settings)))
    return find_server(settings.url, settings.password_file)


def _migration(settings: StoreSettings) -> str:
    """Return the command that moves the store to the server of the settings, as a shell reads it."""
    place = [] if settings.password_file is None else ["--password-file", str(settings.password_file)]
    return shlex.join(["aileron", "store", "migrate", "--to", str(settings.url), *place])


def find_server(url: str, password_file: Path | None) -> ServerAddress:
    """Return the address of a database, whose password is read from a file for each connection.

    :raises InvalidRequest: if the URL is none of a database.
    """
    return read_address(url, None if password_file is None else lambda: read_password(password_file))


def read_password(path: Path) -> str:
    """Return the password in a file, without the line's end.

    :raises StoreUnavailable: if the file cannot be read, is not this user's, or has no password.
    """
    try:
        data = read_private(path)
        password = (data or b"").decode("utf-8").rstrip("\r\n")
    except (AileronError, UnicodeDecodeError) as error:
        why = error.message if isinstance(error, AileronError) else "it is not UTF-8."
        raise StoreUnavailable(f"The password of the database cannot be read: {why}") from None
    if not password or not password.isprintable():
        raise StoreUnavailable(f"{path} is missing, or has no password for the database.")
    return password


async def open_store(
    reactor: Any, place: Path | ServerAddress, tuning: Tuning, observer: CommitObserver, news: StoreNews, life: Life
) -> Store:
    """Open the store, and tell the vault of it.

    :raises StoreUnavailable: if it cannot be used.
    """
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(_SALT_BYTES), observer)
    store = make_store(place, reactor, reactor, seals, tuning)
    observer.shared = store.shared is not None
    life.at_end(store.close)
    await store.open()
    await news.learn(store)
    return store


def tuning_of(settings: StoreSettings) -> Tuning:
    """Return the settings of the store: this process, and whether it shares the database with other daemons.

    :raises InvalidRequest: if several daemons are to share a file.
    """
    process = ProcessFacts(secrets.token_hex(_NAME_BYTES), socket.gethostname(), os.getpid(), __version__)
    if settings.daemons == "one":
        return Tuning(process=process)
    # guard of several daemons: a file is for one daemon -> daemon.test_store.SeveralTests.test_file
    if settings.url is None:
        raise InvalidRequest(
            "The key store.daemons is `several`, but store.url names no database that they could share."
        )
    lease = max(_LEAST_LEASE_SECONDS, settings.lease_seconds)
    return Tuning(process=process, several=True, lease_seconds=float(lease))
