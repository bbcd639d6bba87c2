"""The variables by which a launcher tells an agent's session, and C{aileron-mcp} reads, what it needs."""

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
"""The variables of an environment in which few actions are to be listed."""


def wait_variables(seconds: int) -> Mapping[str, str]:
    """Return the variables of an environment in which a call waits so long for a decision."""
    return {WAIT_SECONDS: str(seconds)}


@frozen
class SessionEnvironment:
    """The environment of a session: where the daemon is, who we are there, and what the launcher knows of the agent.

    :ivar url: the agent site's; empty: not said.
    :ivar token: the session's; empty: not said.
    :ivar wait_seconds: how long a call waits for a decision; L{None}: not said.
    :ivar client: the agent's name, as C{aileron launch} has it; empty: not said.
    :ivar attended: whether a person sits before the agent's own screen; what is not said counts as no.
    :ivar ca: a file of authorities, who alone may vouch for the daemon; empty: not said.
    :ivar plain_host: the one host besides loopback that may be asked by plain HTTP, since the way to it stays on this
        machine; empty: none.
    :ivar listed_actions: how many actions are listed as tools at most; of more, only those that are used most.
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
        """Read what C{environment} says; nonsense where a number is meant counts as nothing said."""
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
        """The host on the way to whom others could read the token; empty: there is none, or it is allowed."""
        host = plain_http_host(self.url)
        return "" if host == _normalize(self.plain_host) else host

    def on_this_machine(self) -> SessionEnvironment:
        """Return the same for a daemon of this machine.

        The way to it does, whichever of its addresses it listens at.
        """
        return evolve(self, plain_host=plain_http_host(self.url))

    def variables(self) -> dict[str, str]:
        """Return the variables that L{of} reads."""
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

    Empty: it asks none so, or is no URL.
    """
    try:
        origin = read_url(url).origin
    except ValueError:
        return ""
    return origin.host if origin.scheme == "http" and not is_loopback(origin.host) else ""


def _normalize(host: str) -> str:
    """Write a host as L{plain_http_host} returns it."""
    try:
        return read_host(bracketed(host))
    except ValueError:
        return ""


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
