"""HTTP and SSH URLs, parsed so strictly that no two parsers can disagree about them."""

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
    """The scheme, host, port and SSH user of a URL.

    :ivar scheme: C{http}, C{https} or C{ssh}.
    :ivar host: the host in lower case, an IPv6 address without brackets.
    :ivar port: the port, by default that of the scheme.
    :ivar user: the user of an SSH URL, else empty.
    """

    scheme: str
    host: str
    port: int
    user: str = ""

    @property
    def host_and_port(self) -> str:
        """The host with its port, even if it is the default one, as connector files list it."""
        return f"{bracketed(self.host)}:{self.port}"

    @property
    def authority(self) -> str:
        """The host, with its port unless it is the scheme's default, as in the C{Host} header."""
        return bracketed(self.host) if self.port == _PORTS[self.scheme] else self.host_and_port

    @property
    def url(self) -> str:
        """The beginning of every URL of this origin."""
        return f"{self.scheme}://{self.user and f'{self.user}@'}{self.authority}"


@frozen
class Url:
    """The components of a URL, each None if it is absent.

    :ivar path: the path as written, including its leading slash. It may be empty.
    :ivar user_info: the part before the C{@}, still encoded. It may hold a password.
    """

    origin: Origin
    path: str
    query: str | None = None
    fragment: str | None = None
    user_info: str | None = field(default=None, repr=False)


@frozen
class BaseUrl:
    """An origin and a base path without a final slash."""

    origin: Origin
    path: str

    @property
    def url(self) -> str:
        """The normalized URL: in lower case, without a default port and without a final slash."""
        return self.origin.url + self.path


def read_url(text: str, *, ssh: bool = False) -> Url:
    """Parse an HTTP URL.

    :param ssh: whether SSH URLs are accepted too. They must name a user.
    :raises ValueError: if the URL is invalid. The message states the rule.
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
    """Return the origin of a URL.  Its path and query are ignored.

    :param ssh: see L{read_url}.
    :raises ValueError: if the URL is invalid, or has a user name or password. The message states the rule.
    """
    return _without_user(read_url(text, ssh=ssh)).origin


def is_lasting(origin: Origin) -> bool:
    """Return True if an origin stays that of the daemon's pages after the next start.

    Only such pages may have a service worker. That is so for a name with a certificate, and for C{localhost}, which the
    operator has to choose (ADR 66).

    :param origin: the origin of the operator's pages.
    """
    return origin.scheme == "https" or origin.host == "localhost"


def read_base_url(text: str, *, exact: bool = False, ssh: bool = False) -> BaseUrl:
    """Parse a base URL: https, or http to this machine, with a plain path and without query and fragment.

    :param exact: whether the text itself is stored, shown or digested. An IPv6 address must then be in its plain form.
    :param ssh: see L{read_url}.
    :raises ValueError: if the URL is invalid. The message states the rule as the end of a sentence that begins with the
        URL's name.
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
    """Return the fault of a base URL that is stored as written, and so must be in its normalized form.

    A final slash is allowed.

    :return: the rule, as the end of a sentence that begins with the URL's name, or None if the URL is valid.
    """
    try:
        plain = read_base_url(text, exact=True).url
    except ValueError as error:
        return str(error)
    return None if text in {plain, f"{plain}/"} else f"must be written as {plain}"


def read_host_and_port(text: str) -> str:
    """Parse C{host:port}, with an IPv6 address in brackets, and return it in lower case.

    :raises ValueError: if the text is invalid or not in its normalized form. The message states the rule.
    """
    host, port = _host_and_port(text)
    if port is None:
        raise ValueError("must be host:port")
    plain = f"{bracketed(host)}:{port}"
    if plain != text.lower():
        raise ValueError(f"must be written as {plain}")
    return plain


def host_shown(url: str) -> str:
    """Return the host of a URL for display. If the URL is invalid, return the text where its host would be.

    :return: empty if an invalid URL has no C{://}, or may hold a password.
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
    """Return the host and the port. The port is None if C{place} has none.

    :raises ValueError: if the host or the port is invalid. The message states the rule.
    """
    host, colon, port = place, "", ""
    if not place.endswith("]"):
        before, colon, port = place.rpartition(":")
        host = before if colon else place
    if colon and (not _PORT.fullmatch(port) or int(port) > _MOST_PORT):
        raise ValueError("must have a port from 1 to 65535, or none and no colon")
    return read_host(host), int(port) if colon else None
