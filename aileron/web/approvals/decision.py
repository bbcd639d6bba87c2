"""The forms that decide: approve, later or with more like it, deny, or end a session that asks too much."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast

from twisted.web.template import Flattenable, Tag, tags

from aileron.values import JSON, MOST_USES, Approval, Offer, Predicate, PredicateKind, Run, compact, plain, visible
from aileron.web._parts import Fragment, template
from aileron.web._texts import segment

_GRANT, _DECIDE = map(template, ("approval_grant.xml", "approval_decide.xml"))
FLOOD = 5
"""More requests than this of one session are a flood, which stands by itself in the list."""

_REASON = "The operator ended the session."


def deny_all(session_id: str, waiting: int) -> Tag:
    """Draw a button that denies all that waits of a session, and ends it.

    :param waiting: how many requests that are.
    """
    return tags.button(
        "Deny and end session" if waiting < 2 else f"Deny all {waiting} and end session",
        type="button",
        disabled="disabled",
        **{
            "class": "no quiet-button deny-all",
            "data-act": f"POST /v1/sessions/{segment(session_id)}/deny",
            "data-body": compact({"reason": _REASON}),
            "data-sure": "Confirm: deny and end session",
        },
    )


_WORDS = {
    PredicateKind.EQUALS: "exactly the value above",
    PredicateKind.ONE_OF: "one of these",
    PredicateKind.RANGE: "a number in a range",
    PredicateKind.PATTERN: "text that matches a pattern",
    PredicateKind.DOMAIN: "email addresses in these domains only",
    PredicateKind.ANY: "ANY VALUE, or none",
}
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


def grant_form(run: Run, suggested: Sequence[Predicate]) -> Fragment:
    """Draw the form for more calls like it; the strictest is chosen until somebody chooses otherwise.

    :param suggested: what could be granted without much thought.
    """
    domains = {each.argument: each for each in suggested if each.kind is PredicateKind.DOMAIN}
    mine = [tags.option("This session only", value="session")] if run.session_id is not None else []
    return Fragment(
        _GRANT,
        allowed=[
            _allowed(number, name, value, domains.get(name))
            for number, (name, value) in enumerate(run.arguments.items())
        ],
        most=lambda tag: tag(max=str(MOST_USES)),
        whose=lambda tag: tag(*mine, tags.option("ALL sessions of all agents", value="all")),
    )


def _allowed(number: int, name: str, value: JSON, domain: Predicate | None) -> dict[str, Flattenable]:
    """Draw an argument with a choice, and the fields that a choice needs."""
    kinds = _kinds(value)
    options = [tags.option(_WORDS[kind], value=_value(kind)) for kind in kinds]
    select = tags.select(options, id=f"grant-{number}", autocomplete="off", **{"data-argument": visible(name)})
    fields = [_field(kind, number, value, domain) for kind in kinds[1:-1]]
    return {"argument": visible(name), "choices": select, "fields": fields}


def _field(kind: PredicateKind, number: int, value: JSON, domain: Predicate | None) -> Tag:
    controls = [
        tags.label(label, " ", control(id=f"grant-{number}-{part}", autocomplete="off", **{"data-part": part}))
        for part, label, control in _fill(kind, value, domain)
    ]
    return tags.div(*controls, **{"class": "of", "data-of": kind.value, "hidden": "hidden"})


def _fill(kind: PredicateKind, value: JSON, domain: Predicate | None) -> list[tuple[str, str, Tag]]:
    if kind is PredicateKind.RANGE:
        number = json.dumps(value)
        ends = (("minimum", "From"), ("maximum", "To"))
        return [(part, word, tags.input(type="number", step="any", value=number)) for part, word in ends]
    if kind is PredicateKind.PATTERN:
        label = "RE2 pattern for the whole text:"
        return [("pattern", label, tags.input(type="text", spellcheck="false", value=_pattern(value)))]
    if kind is PredicateKind.DOMAIN:
        names = [] if domain is None else [str(each) for each in cast("Sequence[JSON]", domain.given)]
        label = "Domains, separated by spaces:"
        return [("domain", label, tags.input(type="text", spellcheck="false", value=visible(" ".join(names))))]
    text, form = _one_a_line(value)
    label = "One per line:" if form == "text" else "One per line, as JSON:"
    return [("one_of", label, tags.textarea("\n" + text, rows="3", spellcheck="false", **{"data-as": form}))]


def _kinds(value: JSON) -> tuple[PredicateKind, ...]:
    """List what can be asked of such a value, the strictest first."""
    kinds = [PredicateKind.EQUALS, PredicateKind.ONE_OF]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        kinds.append(PredicateKind.RANGE)
    if isinstance(value, str):
        kinds.append(PredicateKind.PATTERN)
    if isinstance(value, (str, list, tuple)):
        kinds.append(PredicateKind.DOMAIN)
    return (*kinds, PredicateKind.ANY)


def _value(kind: PredicateKind) -> str:
    """Write what the script reads; nothing: the argument stays as it is."""
    return "" if kind is PredicateKind.EQUALS else kind.value


def _pattern(value: JSON) -> str:
    """Write a pattern for exactly this text, to be widened; nothing where it would show what acts or hides."""
    text = value if isinstance(value, str) else ""
    return _SPECIAL.sub(r"\\\1", text) if visible(text) == text else ""


def _one_a_line(value: JSON) -> tuple[str, str]:
    """Write the value as the first line of a list, and how its lines are read."""
    if isinstance(value, str) and visible(value) == value and value.strip() == value != "":
        return value, "text"
    return json.dumps(plain(value)), "json"


_REASONS = (
    "Not now, ask again later",
    "Wrong recipient",
    "Change the wording",
    "I did it myself",
    "Do not do this at all",
)


def decision_form(approval: Approval, offer: Offer | None, suggested: Sequence[Predicate], waiting: int) -> Fragment:
    """Draw what stands beneath a request that waits, at last the bar that is always in view.

    :param offer: the run's action as it is offered now; L{None}: it is not.
    :param suggested: what could be granted with it.
    :param waiting: how many requests of the run's session wait.
    """
    run = approval.run
    seconds = 0.0 if offer is None else offer.action.approval.undo_seconds
    undo = f"Starts {seconds:g} s after you approve. You can undo it until then."
    return Fragment(
        _DECIDE,
        reasons=lambda tag: [tag.clone()(**{"data-reason": each}).fillSlots(reason=each) for each in _REASONS],
        undo=undo if seconds else "Starts as soon as you approve.",
        flood="" if run.session_id is None else deny_all(run.session_id, waiting),
        grant=grant_form(run, suggested),
        digest=visible(approval.digest),
    )
