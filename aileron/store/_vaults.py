"""The vault's document in a database that several daemons share. A daemon writes it only over the revision it read.

The calls block for up to two seconds until the database answers, as writing the vault's file blocks for the disk. For
five seconds after a failure they fail at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from attrs import define, field

from aileron.model.errors import StoreUnavailable

from ._address import ServerAddress
from ._bulletin import CHANNEL
from ._server import SCHEMA, connection_options

_SECONDS, _COOL_SECONDS = 2, 5.0
_SETTINGS = {
    "search_path": SCHEMA,
    "statement_timeout": _SECONDS * 1000,
    "lock_timeout": _SECONDS * 1000,
    "tcp_keepalives_idle": 10,
}
_GET = "SELECT document FROM vaults WHERE id = %s"
_FIRST = """
    INSERT INTO vaults (id, revision, authority, document) VALUES (%(id)s, %(revision)s, %(authority)s, %(document)s)
    ON CONFLICT (id) DO NOTHING RETURNING 1
"""
_OVER = """
    UPDATE vaults SET revision = %(revision)s, authority = %(authority)s, document = %(document)s
    WHERE id = %(id)s AND revision = %(before)s RETURNING 1
"""
_TOLD = "WITH put AS ({}) SELECT pg_notify(%(channel)s, %(notice)s) FROM put"


@define(eq=False)
class SharedVaults:
    """Reads and writes the documents of vaults, on a connection of its own.

    :param daemon: the name of this daemon in the notices to the others.
    :param monotonic: returns the seconds of a monotonic clock.
    """

    _address: ServerAddress
    _daemon: str
    _monotonic: Callable[[], float]
    _connection: psycopg.Connection[Any] | None = field(default=None, init=False)
    _not_before: float = field(default=0.0, init=False)

    def get(self, vault: str) -> bytes | None:
        """Return the document of a vault, or None if there is none.

        :raises StoreUnavailable: if the database cannot be read now.
        """
        found = self._execute(_GET, [vault])
        return bytes(found[0][0]) if found else None

    def put(self, vault: str, before: int | None, revision: int, authority: str, document: bytes) -> bool:
        """Store the document of a vault and notify the other daemons, if the stored one has the revision C{before}.

        :param before: the revision that is replaced, or None if there must be no document.
        :param authority: the digest of what the operator decided.
        :return: whether it was stored.
        :raises StoreUnavailable: if the database cannot be written now. The document may have been stored.
        """
        values = {
            "id": vault,
            "before": before,
            "revision": revision,
            "authority": authority,
            "document": document,
            "channel": CHANNEL,
            "notice": json.dumps({"daemon": self._daemon, "vault": True}),
        }
        # guard of several daemons: a vault is written only over the revision that was read
        #    -> functional.test_store_several.VaultTests.test_revision
        return bool(self._execute(_TOLD.format(_FIRST if before is None else _OVER), values))

    def close(self) -> None:
        """Close the connection. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _execute(self, statement: str, values: Any) -> Sequence[Any]:
        if self._monotonic() < self._not_before:
            raise StoreUnavailable("The vault in the database cannot be reached.")
        try:
            return self._connect().execute(statement.encode(), values).fetchall()
        except psycopg.Error as error:
            self.close()
            self._not_before = self._monotonic() + _COOL_SECONDS
            raise StoreUnavailable(f"The vault in the database cannot be reached ({type(error).__name__}).") from None

    def _connect(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(
                **connection_options(self._address, _SETTINGS, _SECONDS), autocommit=True, prepare_threshold=None
            )
        return self._connection
