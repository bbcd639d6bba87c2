"""A failure as a value that is stored and sent, and the advice that its reader gets."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.converter import Member, differ
from aileron.base.json import JSON


@frozen
class Fault:
    """One failure, as stored and sent.

    :ivar kind: a class of the closed taxonomy (see L{aileron.model.errors.STATUS}).
    :ivar message: the message for the user. It contains no secret and no stack.
    :ivar boundary: the side that failed: C{user sandbox connector_manifest action runtime external}.
    :ivar retriable: True if the same call may succeed later.
    """

    kind: str
    message: str
    boundary: str = "runtime"
    retriable: bool = False
    details: Mapping[str, JSON] = field(factory=dict)

    def with_details(self, **details: JSON) -> Fault:
        """Return a copy with further details."""
        return evolve(self, details={**self.details, **details})


differ(Fault, kind=Member("class"))


@frozen
class Advice:
    """Advice on a failure.

    :ivar kept: a sentence that says what a failure of this class left unchanged.
    :ivar then: the advice on what to do, or empty if the message and its details say it.
    :ivar page: the advice for readers of a page, or empty if it is the same.
    """

    kept: str
    then: str = ""
    page: str = ""

    @property
    def on_page(self) -> str:
        """The advice as the web pages show it."""
        return self.page or self.then


_NOTHING_CHANGED = "Nothing was changed."
_NOTHING_SENT = "Nothing was sent."
_NOTHING_DONE = "Nothing was done."
_RECORDED = Advice("The attempt is recorded.", "See failed runs: aileron run list --state failed")

ADVICE: Mapping[str, Advice] = {
    "invalid_request": Advice(_NOTHING_CHANGED),
    "not_found": Advice(
        _NOTHING_CHANGED, "See what exists: run the same command with `list`.", "Look for it in the list."
    ),
    "conflict": Advice(
        _NOTHING_CHANGED,
        "Check the current state: run the same command with `show` or `list`.",
        "This page shows the current state.",
    ),
    "unauthorized": Advice(_NOTHING_DONE, "Log in again: run the command again, or aileron open.", "Run aileron open."),
    "login_lapsed": Advice(_NOTHING_CHANGED, "To decide again, run: aileron open"),
    "forbidden": Advice(_NOTHING_DONE, "Check the installation: aileron doctor"),
    "approval_denied": Advice(_NOTHING_SENT, "To let agents request it again: aileron approval allow-retry ID"),
    "approval_expired": Advice(_NOTHING_SENT, "It can be requested again."),
    "approval_stale": Advice("Nothing was decided.", "Review it again: aileron approval show ID", "Review it again."),
    "cancelled": Advice(_NOTHING_SENT, "It can be requested again."),
    "capability_denied": Advice(_NOTHING_SENT, "See what the connector declares: aileron connector show NAME"),
    "binding_required": Advice(_NOTHING_SENT, "List bindings: aileron credential list"),
    "binding_failed": Advice("The action was not completed.", "Check the bindings: aileron credential list"),
    "hash_mismatch": Advice(_NOTHING_SENT, "Review what changed, then trust or pin it as it is now."),
    "signature_failure": Advice(_NOTHING_DONE, "Check the installation: aileron doctor"),
    "vault_locked": Advice("Pending requests are kept.", "Unlock it: aileron vault unlock"),
    "limit_exceeded": Advice(_NOTHING_SENT, "See your own limits: aileron cap list"),
    "connector_runtime_error": _RECORDED,
    "outcome_unknown": Advice(
        "It is not retried automatically.",
        "Check whether it happened, then record it: aileron run settle <run> --happened (or --did-not-happen)",
    ),
    "network_error": Advice(_NOTHING_SENT, "Check the connections: aileron doctor --network"),
    "external_api_error": _RECORDED,
    "resource_limit_exceeded": _RECORDED,
    "paused": Advice("Nothing was sent. Pending requests are kept.", "Resume: aileron resume"),
    "store_unavailable": Advice(
        "Nothing was saved.", "Try again in a moment. If it persists, check the installation: aileron doctor"
    ),
    "internal_error": Advice("Completed steps are recorded.", "See the daemon's log: aileron log"),
}
"""The advice by class of failure. The set is closed, like the taxonomy."""

_COMMAND = "aileron "
_ALONE = "If it cannot wait for them, approve alone: aileron approve ID --force --reason TEXT"
_VAULT = {
    "missing": "Create a vault first: aileron vault init",
    "lost": "Restore secrets.json from a copy, or start over with an empty vault: aileron vault reset",
}


def what_then(kind: str, message: str, details: Mapping[str, JSON]) -> str:
    """Return what to do about a failure, or an empty text if the message names a command or there is no advice.

    :param message: the message as shown.
    :param details: the details of the failure, such as the vault's state or the seconds to wait.
    """
    known = ADVICE.get(kind)
    seconds = details.get("retry_after")
    if kind == "vault_locked" and str(details.get("state")) in _VAULT:
        return _VAULT[str(details["state"])]
    if kind == "forbidden" and details.get("rule") is True:
        return _ALONE
    if known is None or _COMMAND in message:
        return ""
    if kind == "limit_exceeded" and isinstance(seconds, (int, float)) and seconds > 0:
        return f"Try again in {seconds:g} s. {known.then}"
    return known.then


def what_was_kept(kind: str, message: str) -> str:
    """Return what the failure left unchanged, or an empty text if the message says so or there is no advice."""
    known = ADVICE.get(kind)
    said = "nothing" in message.lower() or "not sent" in message
    return "" if known is None or said else known.kept
