"""Finds what makes a request one to look at twice: what is new, what was asked before, and what cannot be undone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import astuple, fields, frozen

from aileron.base.addresses import host_shown, may_be_private
from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.model.actions import Offer
from aileron.model.precedents import Precedents
from aileron.model.reviews import ReviewedStep
from aileron.model.runs import Approval

from ._twins import describe_standing, describe_twins


def host_of(step: ReviewedStep) -> str:
    """To which host a step goes; nothing where nobody can tell."""
    return host_shown(step.base_url if step.request is None else step.request.url)


_WHO = ("recipient", "receiver", "mail", "channel", "chat", "user", "person", "phone", "address", "url", "link", "host")
_WHO_ELSE = ("domain", "webhook", "account", "iban")
_PHONE = re.compile(r"\+[\d ()-]{6,20}").fullmatch


REASONS: Mapping[str, tuple[str, str]] = {
    "first": ("First time", "There is no earlier call to compare this one with."),
    "again": (
        "Repetition",
        "Check the service before you approve: the effect of the earlier run may be there already.",
    ),
    "twin": (
        "Identical request",
        "Agents sometimes send a call twice in one turn, or again because they missed the response.",
    ),
    "repeated": (
        "Asked before",
        "An agent that was resumed may not know what became of its first call. Approve only what you want done again.",
    ),
    "recipients": (
        "New recipient",
        "It may be a mistake, or a text that the agent read told it to reach this person or place.",
    ),
    "action": ("Action changed", "It may send something else than what you approved before. You trusted the change."),
    "connectors": (
        "Connector changed",
        "The connector decides how requests are built and where they go. Read the requests once more.",
    ),
    "private": ("Private network", "Services there often trust everybody who can reach them."),
    "destructive": (
        "Destructive",
        "The connector's file does not say that this operation only adds. Check what is there before you approve.",
    ),
    "later": (
        "Not complete",
        "You approve the step before its request exists. An earlier response decides what it says.",
    ),
    "repeat": (
        "Not idempotent",
        "The service cannot tell a repeated request from a new one, so Aileron does not send it again by itself.",
    ),
}
"""A label for each, and why it matters; named as in L{Risks}, and in that order."""


@frozen
class ReviewWarning:
    """A reason to look twice at a request before the decision.

    :ivar name: of L{REASONS}.
    :ivar label: one or two words for it.
    :ivar message: a sentence.
    :ivar why: why it matters.
    """

    name: str
    label: str
    message: str
    why: str


@frozen
class Risks:
    """One sentence for each that there is, and nothing for the others."""

    first: str = ""
    again: str = ""
    twin: str = ""
    repeated: str = ""
    recipients: str = ""
    action: str = ""
    connectors: str = ""
    private: str = ""
    destructive: str = ""
    later: str = ""
    repeat: str = ""

    def sentences(self) -> tuple[str, ...]:
        """Return each in its place, an empty one where there is nothing to say."""
        return astuple(self)

    def warnings(self) -> tuple[ReviewWarning, ...]:
        """Return those that there are, in order, as every surface shows them."""
        return tuple(
            ReviewWarning(each.name, REASONS[each.name][0], sentence, REASONS[each.name][1])
            for each, sentence in zip(fields(Risks), self.sentences(), strict=True)
            if sentence
        )

    def chips(self) -> tuple[str, ...]:
        """Write the same in a word or two for a list, without what is so at each call of the action."""
        words = (
            (self.first, "First time"),
            (self.again, "Repetition"),
            (self.twin, "Identical request"),
            (self.repeated, "Asked before"),
            (self.recipients, "New recipient"),
            (self.action or self.connectors, "Changed since last run"),
            (self.private, "Private network"),
            (self.destructive, "Destructive"),
        )
        return tuple(word if risk else "" for risk, word in words)


_AGAIN = "Repetition of run"


def risks(approval: Approval, before: Precedents, offer: Offer | None) -> Risks:
    """Tell what there is to say of C{approval}.

    :param offer: its action as it is offered now, if it is.
    """
    names = ", ".join(visible(name) for name in recipients(before))
    others = ", ".join(map(visible, before.connectors_changed))
    steps = approval.review.steps
    where = ", ".join(visible(host) for host in dict.fromkeys(map(host_of, steps)) if host and may_be_private(host))
    parent = approval.run.parent_id
    unknown = any(step.request is None for step in steps)
    once = offer is not None and not (offer.idempotent or offer.read_only)
    destroys = offer is not None and offer.destructive and not offer.read_only
    return Risks(
        first="" if before.looked_at else "First time this action runs.",
        again="" if parent is None else f"{_AGAIN} {visible(parent)}, whose outcome is unknown. It may happen twice.",
        twin=describe_twins(approval.run, before.twins),
        repeated=_tell_repeats(before),
        recipients=f"New values, not used in {_span(before)}: {names}." if names and before.looked_at else "",
        action="The action's file has changed since it last ran." if before.action_changed else "",
        connectors=f"Changed since it last ran: {others}." if others else "",
        private=f"Goes to this machine or a private network: {where}." if where else "",
        destructive="Destructive. It may change or delete what is already there." if destroys else "",
        later="A request is not known yet: it is built from the response to an earlier step." if unknown else "",
        repeat="Not idempotent. If the response is lost, the outcome will be unknown." if once else "",
    )


def _tell_repeats(before: Precedents) -> str:
    """Name the identical calls of other sessions; nothing where there are none."""
    return " ".join(
        f"An identical call of another session {describe_standing(run)} "
        f"(run {visible(run.id)}, since {run.changed_at:%Y-%m-%d %H:%M} UTC)."
        for run in before.repeats
    )


def recipients(before: Precedents) -> Iterator[str]:
    """Find the arguments that say to whom or where, and were never so before."""
    for name, pieces in before.novel.items():
        if _says_who(name.lower()) or any(map(_is_address, pieces)):
            yield name


def new_here(name: str, before: Precedents | None) -> str:
    """Say that an argument has a value it never had; nothing where it had, or where every call is new."""
    if before is None or not before.looked_at or name not in recipients(before):
        return ""
    pieces = before.novel[name]
    listed = ", ".join(visible(str(piece)) for piece in pieces[:5])
    more = f" and {len(pieces) - 5} more" if len(pieces) > 5 else ""
    return f"Not used in {_span(before)}: {listed}{more}."


def _span(before: Precedents) -> str:
    if before.looked_at == 1:
        return "the only earlier call" if before.whole else "the last call"
    return f"any of the {before.looked_at} earlier calls" if before.whole else f"the last {before.looked_at} calls"


def _says_who(name: str) -> bool:
    return name in ("to", "cc", "bcc") or any(word in name for word in (*_WHO, *_WHO_ELSE))


def _is_address(piece: JSON) -> bool:
    """Tell whether it is one from end to end: C{#…}, C{@…}, C{…@….…}, a URL, or the number of a phone."""
    if not isinstance(piece, str) or len(piece) < 2:
        return False
    if piece.split() != [piece]:
        return _PHONE(piece) is not None
    at = piece.find("@", 1)
    mail = at > 0 and piece.rfind(".", at + 2, len(piece) - 1) > 0
    url = any(piece.startswith(scheme) and piece != scheme for scheme in ("http://", "https://"))
    return piece[0] in "@#" or mail or url or _PHONE(piece) is not None
