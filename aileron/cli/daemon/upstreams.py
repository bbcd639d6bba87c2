"""What the daemon tells of its gateway: the providers that are not as they come, and the proxies before them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from aileron.values import BASE_URL_VARIABLES, JSON

_EXCEPTIONS = "no_proxy"


@frozen
class Upstream:
    """Where a provider is.

    :ivar said_by: what moved it there, for people; L{None}: it is where it always is.
    :ivar credential: whether the vault's key goes there in the place of the agent's.
    """

    name: str
    base_url: str
    prefix: str
    said_by: str | None
    credential: bool

    @property
    def in_words(self) -> str:
        """Place, served where, by whose word, with whose key."""
        said = "" if self.said_by is None else f", by {self.said_by}"
        key = ", with the vault's key" if self.credential else ""
        return f"{self.base_url} (at {self.prefix}{said}{key})"


def notable(status: Mapping[str, Any]) -> tuple[Upstream, ...]:
    """The providers that somebody moved, added or gave a key of the vault.

    :param status: the answer of C{GET /v1/status}; an older daemon tells nothing of a gateway.
    """
    found = (_upstream(each) for each in status.get("gateway", {}).get("providers", ()))
    return tuple(each for each in found if each.said_by is not None or each.credential)


def proxies(status: Mapping[str, Any]) -> Mapping[str, JSON]:
    """By variable, the proxies before the providers, without user and password; none, no exceptions either."""
    told = {each["variable"]: each["value"] for each in status.get("gateway", {}).get("proxies", ())}
    return told if set(told) - {_EXCEPTIONS} else {}


def _upstream(told: Mapping[str, Any]) -> Upstream:
    name, source = told["name"], told["source"]
    said_by = {"config": "config.yaml", "environment": BASE_URL_VARIABLES.get(name, "the environment")}.get(source)
    return Upstream(name, told["base_url"], told["prefix"], said_by, told["credential"])
