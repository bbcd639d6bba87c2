"""The way from an agent to the gateway, past the user's HTTP proxy.

The gateway is plain HTTP on this machine.  An agent's runtime hands even that to C{HTTP_PROXY}, Claude Code's also to
C{HTTPS_PROXY}, and with it, readable, the user's key and whatever the agent says.
"""

from __future__ import annotations

from collections.abc import Mapping

from aileron.addresses import read_origin

_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_EXCEPTIONS = ("no_proxy", "NO_PROXY")


def unproxied(environment: Mapping[str, str], url: str, *, ports: bool = True) -> Mapping[str, str]:
    """The variables that add C{url}'s host and port to what goes past the proxy; none where there is no proxy.

    :param ports: whether the agent knows exceptions with a port; otherwise the host alone is one.
    """
    if not any(environment.get(name) for name in _PROXIES):
        return {}
    # Of the two spellings either may be the one that counts.
    spelt = [name for name in _EXCEPTIONS if name in environment] or _EXCEPTIONS[1:]
    origin = read_origin(url)
    address = origin.authority if ports else origin.host
    return {name: ",".join(part for part in (environment.get(name, ""), address) if part) for name in spelt}
