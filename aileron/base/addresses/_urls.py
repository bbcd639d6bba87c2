"""URLs of HTTP and SSH, read so strictly that no other reader can take one for another."""

from __future__ import annotations

import re

from attrs import field, frozen

from ._hosts import bracketed, is_loopback, read_host

MOST_BASE_URL_CHARACTERS = 600

SSH = "ssh"
_PORTS = {"http": 80, "https": 443, SSH: 22}
_MOST_PORT = 65535
_VISIBLE = re.compile(r"[\x21-\x5b\x5d-\x7e]*")  # a backslash is a slash to browsers
_URL = re.compile(
    r"(?P<scheme>https?|ssh)://(?P<authority>[^/?#]+)(?P<path>[^?#]*)(?:\?(?P<query>[^#]*))?(?:#(?P<fragment>.*))?",
    re.IGNORECASE,
)
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_AFTER_AUTHORITY = re.compile(r"[/?#\\]")
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
_BASE_PATH = re.compile(r"(?:/[A-Za-z0-9_.~-]+)*/?")


@frozen
class Origin:
    """The place that a URL leads to.

    :ivar scheme: C{http}, C{https} or C{ssh}.
    :ivar host: in lower case; an IPv6 address without brackets.
    :ivar port: the scheme's own where the URL says none.
    :ivar user: who logs in, over SSH; nobody otherwise.
    """

    scheme: str
    host: str
    port: int
    user: str = ""

    @property
    def host_and_port(self) -> str:
        """The port said in any case, as a connector file lists it."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def authority(self) -> str:
        """The port left out where it is the scheme's own, as the header C{Host} has it."""
        return bracketed(self.host) if self.port == _PORTS[self.scheme] else self.host_and_port

    @property
    def url(self) -> str:
        """The beginning of every URL there."""
        return f"{self.scheme}://{self.user and f'{self.user}@'}{self.authority}"


@frozen
class Url:
    """A URL, taken apart; what it does not have is L{None}.

    :ivar path: as it is written, with the slash that it begins with; may be empty.
    :ivar user_info: what stands before the C{@}, still encoded; it may hold a password.
    """

    origin: Origin
    path: str
    query: str | None = None
    fragment: str | None = None
    user_info: str | None = field(default=None, repr=False)


@frozen
class BaseUrl:
    """An origin, and the path that all paths begin with, without a slash at its end."""

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """The plainest form: lower case, no port that the scheme has anyway, no slash at the end."""
        return self.origin.url + self.path


def read_url(text: str, *, ssh: bool = False) -> Url:
    """Take a URL of HTTP apart.

    :param ssh: whether it may be one of SSH as well; such a URL names the user.
    :raises ValueError: what it must be.
    """
    if not _VISIBLE.fullmatch(text):
        raise ValueError("must be visible ASCII without backslashes")
    found = _URL.fullmatch(text)
    if found is None or (found["scheme"].lower() == SSH and not ssh):
        raise ValueError("must begin with https:// or http://, and a host")
    user_info, at, place = found["authority"].rpartition("@")
    scheme = found["scheme"].lower()
    host, port = _host_and_port(place)
    if scheme == "https" and "_" in host:
        raise ValueError("must have a proper host: no certificate is for a name with an underscore")
    if scheme == SSH:
        if not _USER.fullmatch(user_info):
            raise ValueError("must name the user, and no password, such as ssh://git@github.com")
        return Url(Origin(SSH, host, port or _PORTS[SSH], user_info), found["path"], found["query"], found["fragment"])
    origin = Origin(scheme, host, port or _PORTS[scheme])
    return Url(origin, found["path"], found["query"], found["fragment"], user_info if at else None)


def read_origin(text: str, *, ssh: bool = False) -> Origin:
    """Read where a URL leads to, whatever its path and query are.

    :param ssh: as L{read_url} has it.
    :raises ValueError: what it must be; one that carries a user name or a password is refused.
    """
    return _without_user(read_url(text, ssh=ssh)).origin


def read_base_url(text: str, *, exact: bool = False, ssh: bool = False) -> BaseUrl:
    """Read a base URL: https, or http to this machine, with a plain path and nothing behind it.

    :param exact: whether the text itself is kept, shown or put under a digest, so that an IPv6 address must be written
        in its plain form.
    :param ssh: as L{read_url} has it.
    :raises ValueError: what it must be, as the end of a sentence that begins with its name.
    """
    if len(text) > MOST_BASE_URL_CHARACTERS:
        raise ValueError(f"must have {MOST_BASE_URL_CHARACTERS} characters at most")
    url = _without_user(read_url(text, ssh=ssh))
    if url.query is not None or url.fragment is not None:
        raise ValueError("must have no query and no fragment")
    if not _BASE_PATH.fullmatch(url.path) or {".", ".."} & set(url.path.split("/")):
        raise ValueError("must have a plain path: no empty, dot or encoded segments")
    if url.origin.scheme == "http" and not is_loopback(url.origin.host):
        raise ValueError("must begin with https://, unless it leads to this machine")
    if exact and bracketed(url.origin.host) not in text.lower():
        raise ValueError(f"must write its address as {bracketed(url.origin.host)}")
    return BaseUrl(url.origin, url.path.rstrip("/"))


def base_url_problem(text: str) -> str | None:
    """Tell what is wrong with a base URL that is kept as it is written, and so must be in its plainest form.

    A slash at its end may stay.

    :return: what it must be, as the end of a sentence that begins with its name; L{None}: nothing is wrong.
    """
    try:
        plain = read_base_url(text, exact=True).url
    except ValueError as error:
        return str(error)
    return None if text in {plain, f"{plain}/"} else f"must be written as {plain}"


def read_host_and_port(text: str) -> str:
    """Read C{host:port}, an IPv6 address in brackets; the same in lower case.

    :raises ValueError: what it must be.
    """
    host, port = _host_and_port(text)
    if port is None:
        raise ValueError("must be host:port")
    plain = f"{bracketed(host)}:{port}"
    if plain != text.lower():
        raise ValueError(f"must be written as {plain}")
    return plain


def host_shown(url: str) -> str:
    """Return the host of a URL for a person to see, or what stands in its place in a URL that is refused.

    :return: empty where nobody can tell, or where a password may be part of it.
    """
    try:
        return read_url(url, ssh=True).origin.host
    except ValueError:
        rest = url.partition("://")[2]
        return "" if "@" in rest else _AFTER_AUTHORITY.split(rest, maxsplit=1)[0]


def _without_user(url: Url) -> Url:
    if url.user_info is not None:
        raise ValueError("must have no user name and no password")
    return url


def _host_and_port(place: str) -> tuple[str, int | None]:
    """Return a host, and the port if one is said."""
    host, colon, port = place, "", ""
    if not place.endswith("]"):
        before, colon, port = place.rpartition(":")
        host = before if colon else place
    if colon and (not _PORT.fullmatch(port) or int(port) > _MOST_PORT):
        raise ValueError("must have a port from 1 to 65535, or none and no colon")
    return read_host(host), int(port) if colon else None
