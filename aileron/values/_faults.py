"""The shape of a failure as it travels; what it leaves as it was, and what its reader does next."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from ._converter import Member, differ
from ._json import JSON


@frozen
class Fault:
    """One failure as its reader meets it.

    :ivar kind: a class of the closed taxonomy (see L{aileron.errors.STATUS}).
    :ivar message: fit for the user's eyes: no secret, no stack.
    :ivar boundary: whose side failed: C{user sandbox connector_manifest action runtime external}.
    :ivar retriable: whether the same call may succeed later.
    """

    kind: str
    message: str
    boundary: str = "runtime"
    retriable: bool = False
    details: Mapping[str, JSON] = field(factory=dict)

    def with_details(self, **details: JSON) -> Fault:
        """Return the same fault that says more."""
        return evolve(self, details={**self.details, **details})


differ(Fault, kind=Member("class"))


@frozen
class Advice:
    """Advice on a failure.

    :ivar kept: what was not done, or is still there; true of every failure of the class.
    :ivar then: what to do; empty where the message and its details say it all.
    :ivar page: what to do on a page, where that is another thing.
    """

    kept: str
    then: str = ""
    page: str = ""

    @property
    def on_page(self) -> str:
        """The advice for the reader of a page."""
        return self.page or self.then


_NOTHING_CHANGED = "Nothing was changed by it."
_NOTHING_SENT = "Nothing was sent."

ADVICE: Mapping[str, Advice] = {
    "invalid_request": Advice(_NOTHING_CHANGED),
    "not_found": Advice(_NOTHING_CHANGED, "See what there is: the same command with `list`.", "Look at what there is."),
    "conflict": Advice(
        _NOTHING_CHANGED,
        "Look how it is now: the same command with `show` or `list`.",
        "This page shows how it is now.",
    ),
    "unauthorized": Advice(
        "Nothing was done.", "Log in anew: give the command once more, or aileron open.", "Run aileron open."
    ),
    "forbidden": Advice("Nothing was done.", "What keeps you from it is looked at by: aileron doctor"),
    "approval_denied": Advice(_NOTHING_SENT, "To let agents ask again: aileron approval forgive ID"),
    "approval_expired": Advice(_NOTHING_SENT, "It can be asked for again."),
    "approval_stale": Advice("Nothing was decided.", "Look again: aileron approval show ID", "Look at it again."),
    "cancelled": Advice(_NOTHING_SENT, "It can be asked for again."),
    "capability_denied": Advice(_NOTHING_SENT, "See what is declared: aileron connector show NAME"),
    "binding_required": Advice(_NOTHING_SENT, "See what is bound: aileron binding list"),
    "binding_failed": Advice("It was not done.", "See what is bound, and for what: aileron binding list"),
    "hash_mismatch": Advice(_NOTHING_SENT, "Read what is there now, and trust it: aileron action trust"),
    "signature_failure": Advice("Nothing was done.", "Look at everything: aileron doctor"),
    "vault_locked": Advice("What waits is kept.", "Unlock it: aileron vault unlock"),
    "limit_exceeded": Advice(_NOTHING_SENT, "See your own limits: aileron cap list"),
    "connector_runtime_error": Advice("What was tried is on record.", "See it: aileron runs list --state failed"),
    "outcome_unknown": Advice(
        "It is not repeated by itself.",
        "Find out whether it happened, then: aileron runs settle <run> --happened (or --did-not-happen)",
    ),
    "network_error": Advice(
        "What was not reached got nothing.", "See whether it can be reached: aileron doctor --network"
    ),
    "external_api_error": Advice("What was tried is on record.", "See it: aileron runs list --state failed"),
    "resource_limit_exceeded": Advice("What was tried is on record.", "See it: aileron runs list --state failed"),
    "paused": Advice("Nothing was sent; what waits is kept.", "Go on: aileron resume"),
    "store_unavailable": Advice("Nothing of it was kept.", "Ask again in a moment; if it stays so: aileron doctor"),
    "internal_error": Advice("What was done is on record.", "See it: aileron audit list; the daemon's log says more."),
}
"""Closed, as the taxonomy is."""

_COMMAND = "aileron "
_VAULT = {
    "missing": "Make a vault first: aileron vault init",
    "lost": "There is history but no vault file: put secrets.json back from a copy, or begin anew: aileron vault reset",
}


def what_then(kind: str, message: str, details: Mapping[str, JSON]) -> str:
    """Return what to do about a failure; empty where its message names a command itself, or where nothing is known.

    :param message: as it is shown.
    :param details: of the failure: the state of a vault, or the seconds after which to ask again.
    """
    known = ADVICE.get(kind)
    seconds = details.get("retry_after")
    if kind == "vault_locked" and str(details.get("state")) in _VAULT:
        return _VAULT[str(details["state"])]
    if known is None or _COMMAND in message:
        return ""
    if kind == "limit_exceeded" and isinstance(seconds, (int, float)) and seconds > 0:
        return f"Ask again in {seconds:g} s. {known.then}"
    return known.then


def what_was_kept(kind: str, message: str) -> str:
    """Return what the failure left as it was; empty where the message says so itself, or where nothing is known."""
    known = ADVICE.get(kind)
    said = "nothing" in message.lower() or "not sent" in message
    return "" if known is None or said else known.kept
