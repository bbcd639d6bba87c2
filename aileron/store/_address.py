"""The address of a PostgreSQL server, read from a URL of which only known parts are accepted."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote

from attrs import field, frozen

from aileron.base.addresses import is_loopback, read_host
from aileron.model.errors import InvalidRequest

_URL = re.compile(r"postgres(?:ql)?://(?P<authority>[^/?#]*)/(?P<database>[^/?#]+)(?:[?](?P<query>[^#]*))?", re.ASCII)
_PLACE = re.compile(r"(?P<host>\[[^][]*\]|[^][:]*)(?::(?P<port>[1-9][0-9]{0,4}))?", re.ASCII)
_MOST_PORT = 65_535
_PARAMETERS = frozenset({"host", "sslmode", "sslrootcert", "sslcert", "sslkey"})
_VERIFYING = ("verify-full", "verify-ca")
_LOCAL_MODES = ("disable", "prefer", "require", *_VERIFYING)
_FORM = "postgresql://USER@HOST:PORT/DATABASE"
_MOST_CHARACTERS = 2000


@frozen
class ServerAddress:
    """A database on a PostgreSQL server.

    :ivar url: the URL, which has no password.
    :ivar parameters: the parameters of a connection for libpq, without a password.
    :ivar password: returns the password, and is called for each new connection. None if the server needs none or libpq
        finds it by itself.
    """

    url: str
    parameters: Mapping[str, str] = field(repr=False)
    password: Callable[[], str] | None = field(default=None, repr=False)

    def with_password(self) -> Mapping[str, str]:
        """Return the parameters, with the password if there is one.

        :raises StoreUnavailable: if the password cannot be read.
        """
        return self.parameters if self.password is None else {**self.parameters, "password": self.password()}


def read_address(url: str, password: Callable[[], str] | None = None) -> ServerAddress:
    """Parse the URL of a database.

    :raises InvalidRequest: if the URL has a password, an unknown parameter or another form.
    """
    parts = _URL.fullmatch(url) if len(url) <= _MOST_CHARACTERS else None
    user, _, place = parts["authority"].rpartition("@") if parts else ("", "", "")
    if ":" in user:
        raise InvalidRequest("The URL must not have a password. Put the password in a file: store.password_file.")
    found = _PLACE.fullmatch(place)
    if parts is None or found is None or int(found["port"] or 0) > _MOST_PORT:
        raise InvalidRequest(f"The URL must have the form {_FORM}.")
    options = _read_options(parts["query"] or "")
    host = _read_place(found["host"], options.pop("host", ""))
    named = {"dbname": unquote(parts["database"]), "user": unquote(user), "port": found["port"] or ""}
    if not all(each.isprintable() for each in (url, *named.values())):
        raise InvalidRequest("The URL has characters that are not visible.")
    mode = "prefer" if _is_local(host) else "verify-full"
    parameters = {"host": host, **{name: each for name, each in named.items() if each}, "sslmode": mode, **options}
    _check_tls(host, parameters)
    return ServerAddress(url, parameters, password)


def _read_place(host: str, directory: str) -> str:
    """Return the host that a URL names, or the directory of a server's socket.

    :raises InvalidRequest: if the URL names none, or both.
    """
    if bool(host) == bool(directory):
        raise InvalidRequest(
            f"The URL must name a host, or the directory of a socket as in ?host=/run/postgresql: {_FORM}."
        )
    if directory:
        if not directory.startswith("/") or "," in directory or not directory.isprintable():
            raise InvalidRequest("The parameter host must be the directory of a socket.")
        return directory
    try:
        return read_host(host)
    except ValueError as error:
        raise InvalidRequest(f"The URL {error}.") from None


def _read_options(query: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=len(_PARAMETERS))
    except ValueError:
        raise InvalidRequest("The URL's parameters cannot be parsed.") from None
    options = dict(pairs)
    unknown = sorted(options.keys() - _PARAMETERS)
    if unknown or len(options) != len(pairs) or not all(options.values()):
        allowed = ", ".join(sorted(_PARAMETERS))
        raise InvalidRequest(f"The URL may have each of these parameters once, and no other: {allowed}.")
    return options


def _is_local(host: str) -> bool:
    """Return True if a host is this machine: a directory of sockets, or an address of loopback."""
    return host.startswith("/") or is_loopback(host)


def _check_tls(host: str, found: dict[str, str]) -> None:
    """Check C{sslmode}, and set the certificates that are trusted if the URL does not name them.

    :raises InvalidRequest: if the mode is unknown, or would accept any server at another machine.
    """
    mode = found["sslmode"]
    # guard of the store: a server elsewhere is verified -> store.test_address.AddressTests.test_tls
    if mode not in (_LOCAL_MODES if _is_local(host) else _VERIFYING):
        allowed = " or ".join(_VERIFYING)
        raise InvalidRequest(f"The URL has sslmode={mode}, but a server on another machine needs {allowed}.")
    if mode in _VERIFYING:
        found.setdefault("sslrootcert", ssl.get_default_verify_paths().cafile or "system")
