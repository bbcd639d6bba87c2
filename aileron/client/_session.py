"""The environment variables by which a launcher passes an agent's session to C{aileron-mcp}."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.addresses import bracketed, is_loopback, read_host, read_url

URL, TOKEN, WAIT_SECONDS = "AILERON_URL", "AILERON_TOKEN", "AILERON_WAIT_SECONDS"
CA, PLAIN_HOST = "AILERON_CA", "AILERON_PLAIN_HOST"
CLIENT, ATTENDED = "AILERON_CLIENT", "AILERON_ATTENDED"
LISTED_ACTIONS = "AILERON_LISTED_ACTIONS"

LONGEST_WAIT_SECONDS = 3600
DEFAULT_LISTED_ACTIONS = 40
LEAN: Mapping[str, str] = {LISTED_ACTIONS: "12"}
"""The environment variables that limit the listed actions."""


def wait_variables(seconds: int) -> Mapping[str, str]:
    """Return the environment variables that make a call wait C{seconds} for a decision."""
    return {WAIT_SECONDS: str(seconds)}


@frozen
class SessionEnvironment:
    """The environment of a session: the daemon's address, the session's token, and facts about the agent.

    :ivar url: the URL of the agent site; empty if not set.
    :ivar token: the session's token; empty if not set.
    :ivar wait_seconds: how long a call waits for a decision, or None if not set.
    :ivar client: the agent's name in C{aileron launch}; empty if not set.
    :ivar attended: whether a person watches the agent's own screen; False if not set.
    :ivar ca: a file of authorities, the only ones trusted for the daemon; empty if not set.
    :ivar plain_host: the only host besides loopback that may be asked by plain HTTP, since the route to it stays on
        this machine; empty if there is none.
    :ivar listed_actions: the most actions listed as tools. If there are more, only the most used are listed.
    """

    url: str
    token: str = field(repr=False)
    wait_seconds: int | None = None
    client: str = ""
    attended: bool = False
    listed_actions: int = DEFAULT_LISTED_ACTIONS
    ca: str = ""
    plain_host: str = ""

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> SessionEnvironment:
        """Read the session from C{environment}. A malformed number counts as not set."""
        seconds = _number(environment.get(WAIT_SECONDS, ""))
        listed = _number(environment.get(LISTED_ACTIONS, ""))
        return cls(
            url=environment.get(URL, "").strip(),
            token=environment.get(TOKEN, "").strip(),
            wait_seconds=None if seconds is None else min(seconds, LONGEST_WAIT_SECONDS),
            client=environment.get(CLIENT, "").strip(),
            attended=environment.get(ATTENDED, "").strip() == "yes",
            listed_actions=DEFAULT_LISTED_ACTIONS if listed is None else listed,
            ca=environment.get(CA, "").strip(),
            plain_host=environment.get(PLAIN_HOST, "").strip(),
        )

    @property
    def exposed_to(self) -> str:
        """Return the host that would receive the token unencrypted, or an empty text if there is none.

        L{plain_host} is allowed and does not count.
        """
        host = plain_http_host(self.url)
        return "" if host == _normalize(self.plain_host) else host

    def on_this_machine(self) -> SessionEnvironment:
        """Return a copy for a daemon on this machine, which allows plain HTTP to its host.

        The route to the daemon stays on this machine, whichever of its addresses it listens at.
        """
        return evolve(self, plain_host=plain_http_host(self.url))

    def variables(self) -> dict[str, str]:
        """Return the environment variables from which L{of} can restore this object."""
        listed = "" if self.listed_actions == DEFAULT_LISTED_ACTIONS else str(self.listed_actions)
        more = {
            WAIT_SECONDS: "" if self.wait_seconds is None else str(self.wait_seconds),
            CLIENT: self.client,
            ATTENDED: "" if not self.client else "yes" if self.attended else "no",
            LISTED_ACTIONS: listed,
            CA: self.ca,
            PLAIN_HOST: self.plain_host,
        }
        return {URL: self.url, TOKEN: self.token, **{name: text for name, text in more.items() if text}}


def plain_http_host(url: str) -> str:
    """Return the host, in lower case, that C{url} asks by plain HTTP over a network.

    If the URL is malformed, uses HTTPS or is on loopback, return an empty string.
    """
    try:
        origin = read_url(url).origin
    except ValueError:
        return ""
    return origin.host if origin.scheme == "http" and not is_loopback(origin.host) else ""


def _normalize(host: str) -> str:
    """Return a host in the form of L{plain_http_host}, or an empty text if it is malformed."""
    try:
        return read_host(bracketed(host))
    except ValueError:
        return ""


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
