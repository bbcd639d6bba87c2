"""Finds the reasons to look twice at a request before the decision, in one list for every surface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from attrs import frozen

from aileron.base.addresses import host_shown, may_be_private
from aileron.base.json import HEAVY, JSON, json_pointer, weigh
from aileron.base.text import visible
from aileron.model.actions import Offer
from aileron.model.precedents import Precedents
from aileron.model.reviews import IRREVERSIBLE, Card, ReviewedStep
from aileron.model.runs import Approval

from ._arguments import list_arguments
from ._notes import find_notes
from ._twins import describe_standing, describe_twins

_WHO = ("recipient", "receiver", "mail", "channel", "chat", "user", "person", "phone", "address", "url", "link", "host")
_WHO_ELSE = ("domain", "webhook", "account", "iban")
_PHONE = re.compile(r"\+[\d ()-]{6,20}").fullmatch
_AGAIN = "Repetition of run"
_DESTROYS = "Destructive. It may change or delete what is already there."


class WarningSeverity(StrEnum):
    """The weight of a warning, shown as red, amber or grey.

    High: the text deceives the reader, or the effect is irreversible. Medium: the request is unlike earlier calls.
    """

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@frozen
class WarningKind:
    """The words of one kind of warning.

    :ivar label: one or two words, for a list.
    :ivar why: the reason why it matters.
    :ivar located: True if a warning of this kind is about one text, and is shown beneath that text.
    :ivar standing: True if the warning applies to every call of the action. It is shown in the review, not in lists.
    """

    label: str
    severity: WarningSeverity
    why: str
    located: bool = False
    standing: bool = False


STALE = "stale"
"""The kind of warning shown at the top of a request rather than among the others."""

_HIGH: Mapping[str, WarningKind] = {
    "irreversible": WarningKind(
        "Irreversible",
        WarningSeverity.HIGH,
        "What it changes or removes cannot be brought back, and no action undoes it.",
    ),
    "hidden": WarningKind(
        "Hidden characters",
        WarningSeverity.HIGH,
        "A program reads characters that you do not see. They can change what the text does.",
        located=True,
    ),
    "letters": WarningKind(
        "Misleading letters",
        WarningSeverity.HIGH,
        "A name that looks like one you know may be the name of somebody else.",
        located=True,
    ),
    "address": WarningKind(
        "Misleading address",
        WarningSeverity.HIGH,
        "Compare it, letter by letter, with the address that you expect.",
        located=True,
    ),
    "link": WarningKind(
        "Misleading link",
        WarningSeverity.HIGH,
        "Its reader sees other words than the address that it leads to.",
        located=True,
    ),
}
_MEDIUM: Mapping[str, WarningKind] = {
    STALE: WarningKind(
        "Changed since it was requested",
        WarningSeverity.MEDIUM,
        "What you saw before is not what would be sent now. Read the request once more.",
    ),
    "again": WarningKind(
        "Repetition",
        WarningSeverity.MEDIUM,
        "Check the service before you approve: the effect of the earlier run may be there already.",
    ),
    "recipients": WarningKind(
        "New recipient",
        WarningSeverity.MEDIUM,
        "It may be a mistake, or a text that the agent read told it to reach this person or place.",
    ),
    "twin": WarningKind(
        "Identical request",
        WarningSeverity.MEDIUM,
        "Agents sometimes send a call twice in one turn, or again because they missed the response.",
    ),
    "repeated": WarningKind(
        "Asked before",
        WarningSeverity.MEDIUM,
        "An agent that was resumed may not know what became of its first call. Approve only what you want done again.",
    ),
    "action": WarningKind(
        "Action changed",
        WarningSeverity.MEDIUM,
        "It may send something else than what you approved before. You trusted the change.",
    ),
    "connectors": WarningKind(
        "Connector changed",
        WarningSeverity.MEDIUM,
        "The connector decides how requests are built and where they go. Read the requests once more.",
    ),
    "private": WarningKind(
        "Private network", WarningSeverity.MEDIUM, "Services there often trust everybody who can reach them."
    ),
    "later": WarningKind(
        "Not complete",
        WarningSeverity.MEDIUM,
        "You approve the step before its request exists. An earlier response decides what it says.",
    ),
    "unchecked": WarningKind("Long text", WarningSeverity.MEDIUM, "Read it to its end before you approve."),
    "order": WarningKind(
        "Right-to-left text",
        WarningSeverity.MEDIUM,
        "Read names and addresses letter by letter: their order on the screen may not be their order in the text.",
        located=True,
    ),
    "markup": WarningKind(
        "Mention or image",
        WarningSeverity.MEDIUM,
        "The service may notify people, load something, or send a form elsewhere.",
        located=True,
    ),
    "whitespace": WarningKind(
        "Long whitespace", WarningSeverity.MEDIUM, "Scroll to the end: there may be more text.", located=True
    ),
}
_LOW: Mapping[str, WarningKind] = {
    "first": WarningKind("First time", WarningSeverity.LOW, "There is no earlier call to compare this one with."),
    "encoding": WarningKind(
        "Unusual encoding",
        WarningSeverity.LOW,
        "For the service, two names that look the same may be different names.",
        located=True,
    ),
    "special": WarningKind(
        "Special characters",
        WarningSeverity.LOW,
        "They are usual in texts, and shown by a notation so that none is overlooked.",
        located=True,
    ),
}
_STANDING: Mapping[str, WarningKind] = {
    "destructive": WarningKind(
        "Destructive",
        WarningSeverity.LOW,
        "The connector's file does not say that this operation only adds. Check what is there before you approve.",
        standing=True,
    ),
    "local": WarningKind(
        "Local service",
        WarningSeverity.LOW,
        "The connector's file names this address itself. You trusted the file.",
        standing=True,
    ),
    "repeat": WarningKind(
        "Not idempotent",
        WarningSeverity.LOW,
        "The service cannot tell a repeated request from a new one, so Aileron does not send it again by itself.",
        standing=True,
    ),
}

WARNINGS: Mapping[str, WarningKind] = {**_HIGH, **_MEDIUM, **_LOW, **_STANDING}
"""The kinds of warnings by their id, in the order in which they are shown: the most severe first, facts last."""


@frozen
class ReviewWarning:
    """A reason to look twice at a request before the decision.

    :ivar id: a key of L{WARNINGS}.
    :ivar text: a sentence that is safe for display.
    :ivar where: an RFC 6901 pointer to the text that the warning is about, into the approval's JSON. It is empty if the
        warning is about the whole request.
    :ivar standing: True if the warning applies to every call of the action.
    """

    id: str
    severity: WarningSeverity
    label: str
    text: str
    why: str
    where: str = ""
    standing: bool = False

    @classmethod
    def of(cls, warning_id: str, text: str, where: str = "") -> ReviewWarning:
        """Return a warning of the kind C{warning_id} of L{WARNINGS}."""
        kind = WARNINGS[warning_id]
        return cls(warning_id, kind.severity, kind.label, text, kind.why, where, kind.standing)


def find_warnings(
    approval: Approval, before: Precedents, offer: Offer | None, cards: Sequence[Card] = ()
) -> tuple[ReviewWarning, ...]:
    """Return the warnings about a request, in the order of L{WARNINGS}.

    :param offer: the request's action as it is offered now, or None if it is not offered.
    :param cards: the cards of the request's steps, whose texts are checked as well.
    """
    about_whole = {
        STALE: visible(approval.stale or ""),
        **_compare_with_earlier(approval, before),
        **_judge_requests(approval, offer),
    }
    given = tuple(_list_values(approval, cards))
    values = _choose_light(given)
    if len(values) < len(given):
        values = [*values, ("/title", approval.review.title)]  # made of values that were perhaps not checked
        about_whole["unchecked"] = "Long: the text was not checked here for hidden characters and misleading words."
    found = [ReviewWarning.of(each, text) for each, text in about_whole.items() if text]
    located: dict[tuple[str, str], str] = {}
    for where, value in values:
        for note in find_notes(value):
            located.setdefault(note, where)
    found += [ReviewWarning.of(each, text, where) for (each, text), where in located.items()]
    order = {each: place for place, each in enumerate(WARNINGS)}
    return tuple(sorted(found, key=lambda each: order[each.id]))


def strip_label(text: str, label: str) -> str:
    """Return a warning's text without its label at the beginning. A longer word that begins like the label is kept."""
    rest = text.removeprefix(label)
    return text if rest[:1].isalpha() else rest.lstrip(". ")


def list_labels(warnings: Sequence[ReviewWarning]) -> tuple[str, ...]:
    """Return the distinct labels of C{warnings}, without the labels of standing warnings."""
    return tuple(dict.fromkeys(each.label for each in warnings if not each.standing))


def _list_values(approval: Approval, cards: Sequence[Card]) -> Iterator[tuple[str, JSON]]:
    """Yield each foreign value that is shown, with its JSON pointer: arguments, values of cards, and preview lines."""
    for argument in list_arguments(approval):
        yield json_pointer("/run/arguments", argument.name), argument.value
    for number, card in enumerate(cards):
        for part, (_, values) in enumerate(card.parts):
            yield f"/cards/{number}/parts/{part}", values[0] if len(values) == 1 else list(values)
    for number, line in enumerate(approval.review.shown_preview.fields):
        yield f"/review/preview/fields/{number}", line.value


def _choose_light(given: Sequence[tuple[str, JSON]]) -> Sequence[tuple[str, JSON]]:
    """Return the values to check, in the given order: the smallest ones whose total size is within a limit."""
    left, chosen = HEAVY, set[int]()
    for weight, place in sorted((1 + weigh(value), place) for place, (_, value) in enumerate(given)):
        left -= weight
        if left < 0:
            break
        chosen.add(place)
    return [each for place, each in enumerate(given) if place in chosen]


def host_of(step: ReviewedStep) -> str:
    """Return the host of a step, or an empty text if the URL names none."""
    return host_shown(step.base_url if step.request is None else step.request.url)


def _compare_with_earlier(approval: Approval, before: Precedents) -> dict[str, str]:
    """Return the warnings that result from a comparison with earlier calls, by id. An empty text means no warning."""
    names = ", ".join(visible(name) for name in recipients(before))
    others = ", ".join(map(visible, before.connectors_changed))
    parent = approval.run.parent_id
    again = "" if parent is None else f"{_AGAIN} {visible(parent)}, whose outcome is unknown. It may happen twice."
    return {
        "first": "" if before.looked_at else "First time this action runs.",
        "again": again,
        "twin": describe_twins(approval.run, before.twins),
        "repeated": _describe_repeats(before),
        "recipients": f"New values, not used in {_span(before)}: {names}." if names and before.looked_at else "",
        "action": "The action's file has changed since it last ran." if before.action_changed else "",
        "connectors": f"Changed since it last ran: {others}." if others else "",
    }


def _judge_requests(approval: Approval, offer: Offer | None) -> dict[str, str]:
    """Return the warnings about what would be sent, by id. An empty text means no warning."""
    steps = approval.review.steps
    inside = [host for host in dict.fromkeys(map(host_of, steps)) if host and may_be_private(host)]
    declared = frozenset[str]() if offer is None else offer.own_hosts
    foreign, own = ([each for each in inside if (each in declared) is known] for known in (False, True))
    unknown = any(step.request is None for step in steps)
    once = offer is not None and not (offer.idempotent or offer.read_only)
    destroys = offer is not None and offer.destructive and not offer.read_only
    for_good = offer is not None and destroys and offer.irreversible
    # guard of own tools: a push that loses commits is marked
    #    -> review.test_warnings.WarningsTests.test_marked, instead marked = ""
    marked = next((each.value for each in approval.review.shown_preview.fields if each.label == IRREVERSIBLE), None)
    what = visible(marked or "") or ("What it changes or removes cannot be brought back." if for_good else "")
    return {
        "irreversible": f"{IRREVERSIBLE}. {what}" if what else "",
        "private": f"Goes to this machine or a private network: {_join_hosts(foreign)}." if foreign else "",
        "local": f"Goes to an address of this machine or a private network: {_join_hosts(own)}." if own else "",
        "destructive": _DESTROYS if destroys and not for_good else "",
        "later": "A request is not known yet: it is built from the response to an earlier step." if unknown else "",
        "repeat": "Not idempotent. If the response is lost, the outcome will be unknown." if once else "",
    }


def _join_hosts(hosts: Sequence[str]) -> str:
    return ", ".join(map(visible, hosts))


def _describe_repeats(before: Precedents) -> str:
    """Return sentences about identical calls of other sessions, or an empty text if there are none."""
    return " ".join(
        f"An identical call of another session {describe_standing(run)} "
        f"(run {visible(run.id)}, since {run.changed_at:%Y-%m-%d %H:%M} UTC)."
        for run in before.repeats
    )


def recipients(before: Precedents) -> Iterator[str]:
    """Yield the names of arguments that name a recipient or destination and have a value that no earlier call had."""
    for name, pieces in before.novel.items():
        if _says_who(name.lower()) or any(map(_is_address, pieces)):
            yield name


def new_here(name: str, before: Precedents | None) -> str:
    """Return a note that says which values of the argument C{name} no earlier call had, or an empty text.

    There is no note if there are no earlier calls, or the argument names no recipient or has no new value.
    """
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
    """Return whether the whole value is an address: C{#…}, C{@…}, C{…@….…}, a URL, or a phone number."""
    if not isinstance(piece, str) or len(piece) < 2:
        return False
    if piece.split() != [piece]:
        return _PHONE(piece) is not None
    at = piece.find("@", 1)
    mail = at > 0 and piece.rfind(".", at + 2, len(piece) - 1) > 0
    url = any(piece.startswith(scheme) and piece != scheme for scheme in ("http://", "https://"))
    return piece[0] in "@#" or mail or url or _PHONE(piece) is not None
