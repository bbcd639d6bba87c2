"""The forms that decide: approve, later or with more like it, deny, or end a session that asks too much."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import cast

from twisted.web.iweb import IRequest
from twisted.web.template import Element, Tag, renderer, tags

from aileron.values import JSON, MOST_USES, Offer, Predicate, PredicateKind, Run, compact, plain, visible
from aileron.web._parts import template
from aileron.web._texts import segment

FLOOD = 5
"""More requests than this of one session are a flood, which stands by itself in the list."""

_REASON = "The operator ended the session."


def deny_all(session_id: str, waiting: int) -> Tag:
    """A button that denies all that waits of a session, and ends it.

    :param waiting: how many requests that are.
    """
    what = "Deny it, and end" if waiting < 2 else f"Deny all {waiting} of this session, and end"
    return tags.button(
        f"{what} the session" if waiting < 2 else f"{what} it",
        type="button",
        disabled="disabled",
        **{
            "class": "no quiet-button deny-all",
            "data-act": f"POST /v1/sessions/{segment(session_id)}/deny",
            "data-body": compact({"reason": _REASON}),
            "data-sure": "The agent is shut out. Really?",
        },
    )


_WORDS = {
    PredicateKind.EQUALS: "exactly as it is above",
    PredicateKind.ONE_OF: "one of these",
    PredicateKind.RANGE: "a number from … to …",
    PredicateKind.PATTERN: "a text that matches a pattern",
    PredicateKind.DOMAIN: "mail addresses of these domains alone",
    PredicateKind.ANY: "ANY VALUE AT ALL, and none",
}
_SPECIAL = re.compile(r"([\\.+*?()|\[\]{}^$])")


class GrantForm(Element):
    """The strictest is chosen until somebody chooses otherwise.

    :param suggested: what could be granted without much thought.
    """

    loader = template("approval_grant.xml")

    def __init__(self, run: Run, suggested: Sequence[Predicate]) -> None:
        super().__init__()
        self._run = run
        self._suggested = {each.argument: each for each in suggested if each.kind is PredicateKind.DOMAIN}

    @renderer
    def allowed(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Each argument with a choice, and the fields that a choice needs."""
        for number, (name, value) in enumerate(self._run.arguments.items()):
            kinds = _kinds(value)
            options = [tags.option(_WORDS[kind], value=_value(kind)) for kind in kinds]
            select = tags.select(options, id=f"grant-{number}", autocomplete="off", **{"data-argument": visible(name)})
            fields = [self._field(kind, number, name, value) for kind in kinds[1:-1]]
            yield tag.clone().fillSlots(argument=visible(name), choices=select, fields=fields)

    def _field(self, kind: PredicateKind, number: int, name: str, value: JSON) -> Tag:
        filled = self._filled(kind, name, value)
        controls = [
            tags.label(label, " ", control(id=f"grant-{number}-{part}", autocomplete="off", **{"data-part": part}))
            for part, label, control in filled
        ]
        return tags.div(*controls, **{"class": "of", "data-of": kind.value, "hidden": "hidden"})

    def _filled(self, kind: PredicateKind, name: str, value: JSON) -> list[tuple[str, str, Tag]]:
        if kind is PredicateKind.RANGE:
            number = json.dumps(value)
            ends = (("minimum", "from"), ("maximum", "to"))
            return [(part, word, tags.input(type="number", step="any", value=number)) for part, word in ends]
        if kind is PredicateKind.PATTERN:
            label = "RE2, of the whole text:"
            return [("pattern", label, tags.input(type="text", spellcheck="false", value=_pattern(value)))]
        if kind is PredicateKind.DOMAIN:
            hint = self._suggested.get(name)
            names = [] if hint is None else [str(each) for each in cast("Sequence[JSON]", hint.given)]
            label = "names, with blanks between them:"
            return [("domain", label, tags.input(type="text", spellcheck="false", value=visible(" ".join(names))))]
        text, form = _one_a_line(value)
        label = "one a line:" if form == "text" else "one a line, as JSON:"
        return [("one_of", label, tags.textarea("\n" + text, rows="3", spellcheck="false", **{"data-as": form}))]

    @renderer
    def most(self, request: IRequest | None, tag: Tag) -> Tag:
        """How often at most."""
        return tag(max=str(MOST_USES))

    @renderer
    def whose(self, request: IRequest | None, tag: Tag) -> Tag:
        """This session's calls, where there is a session, or everybody's."""
        mine = [tags.option("this agent's session", value="session")] if self._run.session_id is not None else []
        return tag(*mine, tags.option("ALL sessions of all agents", value="all"))


def _kinds(value: JSON) -> tuple[PredicateKind, ...]:
    """What can be asked of such a value, the strictest first."""
    kinds = [PredicateKind.EQUALS, PredicateKind.ONE_OF]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        kinds.append(PredicateKind.RANGE)
    if isinstance(value, str):
        kinds.append(PredicateKind.PATTERN)
    if isinstance(value, (str, list, tuple)):
        kinds.append(PredicateKind.DOMAIN)
    return (*kinds, PredicateKind.ANY)


def _value(kind: PredicateKind) -> str:
    """What the script reads; nothing: the argument stays as it is."""
    return "" if kind is PredicateKind.EQUALS else kind.value


def _pattern(value: JSON) -> str:
    """A pattern for exactly this text, to be widened; nothing where it would show what acts or hides."""
    text = value if isinstance(value, str) else ""
    return _SPECIAL.sub(r"\\\1", text) if visible(text) == text else ""


def _one_a_line(value: JSON) -> tuple[str, str]:
    """The value as the first line of a list, and how its lines are read."""
    if isinstance(value, str) and visible(value) == value and value.strip() == value != "":
        return value, "text"
    return json.dumps(plain(value)), "json"


_REASONS = (
    "Not now: ask me again later",
    "The wrong recipient",
    "Not in these words",
    "I have done it myself",
    "Never",
)


class DecisionForm(Element):
    """What stands beneath a request that waits.

    :param offer: the run's action as it is offered now; L{None}: it is not.
    :param suggested: what could be granted with it.
    :param waiting: how many requests of the run's session wait.
    """

    loader = template("approval_decide.xml")

    def __init__(self, run: Run, offer: Offer | None, suggested: Sequence[Predicate], waiting: int) -> None:
        super().__init__()
        self._run = run
        self._offer = offer
        self._suggested = suggested
        self._waiting = waiting

    @renderer
    def reasons(self, request: IRequest | None, tag: Tag) -> Iterator[Tag]:
        """Some that one click fills in."""
        for reason in _REASONS:
            yield tag.clone()(**{"data-reason": reason}).fillSlots(reason=reason)

    @renderer
    def undo(self, request: IRequest | None, tag: Tag) -> str:
        """How long it can be taken back."""
        seconds = 0.0 if self._offer is None else self._offer.action.approval.undo_seconds
        if not seconds:
            return "Approved, it begins at once."
        return f"Approved, it begins after {seconds:g} s; until then it can be taken back."

    @renderer
    def flood(self, request: IRequest | None, tag: Tag) -> Tag | str:
        """A button that ends the session, where there is one."""
        return "" if self._run.session_id is None else deny_all(self._run.session_id, self._waiting)

    @renderer
    def grant(self, request: IRequest | None, tag: Tag) -> Element:
        """The form for more calls like it."""
        return GrantForm(self._run, self._suggested)
