"""The forms of an approval: approve or deny, grant similar calls, end the session, or edit the arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from attrs import evolve
from twisted.web.template import Flattenable, Tag, tags

from aileron.base.json import JSON, compact, plain
from aileron.base.text import visible
from aileron.model.actions import Action, Input, Offer
from aileron.model.authority import MOST_USES, Predicate, PredicateKind
from aileron.model.deciders import find_objection
from aileron.model.people import OPERATOR, ApproverRule, Role
from aileron.model.runs import Approval, Run
from aileron.review import render_value
from aileron.web.blocks import act
from aileron.web.parts import Fragment, Visit, template
from aileron.web.texts import segment

_GRANT, _OPTIONS, _DECIDE = map(template, ("approval_grant.xml", "approval_options.xml", "approval_decide.xml"))
FLOOD = 5
"""If a session has more pending requests than this, the list shows them as one flood."""

_REASON = "The session was ended."


def deny_all(session_id: str, waiting: int) -> Tag:
    """Draw a button that denies all pending requests of a session and ends the session.

    :param waiting: the number of pending requests.
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
            "data-decides": "yes",
        },
    )


def cancel_button(run: Run) -> Tag:
    """Draw a button that cancels a run that has not started."""
    return act("Cancel run", f"POST /v1/action-approvals/{segment(run.id)}/withdraw", name="withdraw")


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
    """Draw the form that grants similar calls. The strictest choice is the default.

    :param suggested: the suggested grant.
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
    """Draw an argument with the choice of its predicate and the fields that each choice needs."""
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
    """Return the kinds of predicates that apply to the value, the strictest first."""
    kinds = [PredicateKind.EQUALS, PredicateKind.ONE_OF]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        kinds.append(PredicateKind.RANGE)
    if isinstance(value, str):
        kinds.append(PredicateKind.PATTERN)
    if isinstance(value, (str, list, tuple)):
        kinds.append(PredicateKind.DOMAIN)
    return (*kinds, PredicateKind.ANY)


def _value(kind: PredicateKind) -> str:
    """Return the value of an option in a form, for the script: the kind of predicate.

    It is empty for the option that requires the same argument.
    """
    return "" if kind is PredicateKind.EQUALS else kind.value


def _pattern(value: JSON) -> str:
    """Return a pattern that matches exactly this text, or an empty string if it has active or invisible characters."""
    text = value if isinstance(value, str) else ""
    return _SPECIAL.sub(r"\\\1", text) if visible(text) == text else ""


def _one_a_line(value: JSON) -> tuple[str, str]:
    """Return an argument as the first line of a list of allowed values, and the format of the lines: text or JSON."""
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


def options_form(approval: Approval, offer: Offer | None, suggested: Sequence[Predicate], waiting: int) -> Fragment:
    """Draw the folded forms below a pending request: edit, start later, allow similar calls, end the session.

    :param offer: the run's action as it is offered now, or None if it is not offered.
    :param suggested: the suggested grant.
    :param waiting: how many requests of the run's session are pending.
    """
    run = approval.run
    return Fragment(
        _OPTIONS,
        edit=edit_form(run, offer.action) if offer is not None and offer.action.inputs else "",
        flood="" if run.session_id is None else deny_all(run.session_id, waiting),
        cancel=cancel_button(run),
        grant=grant_form(evolve(run, arguments=approval.review.order_arguments(run.arguments)), suggested),
    )


def find_refusal(approval: Approval, offer: Offer | None, visit: Visit) -> str | None:
    """Return why the person of this login may not approve, as a sentence, or None. The daemon checks it again."""
    login = visit.operator.account
    person = OPERATOR if login is None else login.account
    if any(vote.person == person for vote in approval.votes):
        return f"You approved this. {approval.progress}. Somebody else must approve it too."
    rule = approval.approvers or (ApproverRule() if offer is None else offer.action.approval.approvers)
    return find_objection(login, approval.run.owner, rule)


def find_lack(approval: Approval, refusal: str | None, visit: Visit, *, needs_passkey: bool) -> str | None:
    """Return which approvals are missing, as a sentence, if this login may approve without them. Else return None.

    The operator may at the desk, and an administrator unless the action needs a passkey: that of an account approves
    nothing. The daemon checks the role again.

    :param refusal: why this login may not approve as usual, or None if it may.
    :param needs_passkey: whether approving the action needs a passkey.
    """
    if visit.operator.is_public and (visit.role is not Role.ADMINISTRATOR or needs_passkey):
        return None
    return f"{approval.progress}." if approval.progress else refusal


def decision_form(
    offer: Offer | None, identical: Tag | str, refusal: str | None = None, lack: str | None = None
) -> Fragment:
    """Draw the bar with the buttons that decide.

    :param offer: the run's action as it is offered now, or None if it is not offered.
    :param identical: the box that has the decision apply to identical requests too, or an empty text.
    :param refusal: why this login may not approve, or None if it may.
    :param lack: which approvals are missing if this login may approve without them, or None.
    """
    seconds = 0.0 if offer is None else offer.action.approval.undo_seconds
    undo = f"Starts {seconds:g} s after you approve. You can undo it until then."
    return Fragment(
        _DECIDE,
        reasons=lambda tag: [tag.clone()(**{"data-reason": each}).fillSlots(reason=each) for each in _REASONS],
        identical=lambda tag: tag(identical),
        refused=lambda tag: "" if refusal is None else tag.fillSlots(why=visible(refusal)),
        alone=lambda tag: "" if lack is None else tag,
        force=lambda tag: "" if lack is None else tag.fillSlots(lacks=visible(lack)),
        undo=undo if seconds else "Starts as soon as you approve.",
    )


_EDIT = template("approval_edit.xml")
_MOST_ROWS = 14
_CHARACTERS_A_LINE = 90


def edit_form(run: Run, action: Action) -> Fragment:
    """Draw a form with one field for each input of an action, filled with the requested arguments."""
    return Fragment(_EDIT, fields=edit_fields(action, run.arguments))


def edit_fields(action: Action, arguments: Mapping[str, JSON]) -> list[Mapping[str, Flattenable]]:
    """Draw the fields of the edit form, filled with these arguments."""
    return [_edit_field(arguments, declared, number) for number, declared in enumerate(action.inputs)]


def _edit_field(arguments: Mapping[str, JSON], declared: Input, number: int) -> dict[str, Flattenable]:
    """Draw a field with its name, its description and, if the argument is optional, a box to omit it."""
    given = declared.name in arguments
    control = _control(declared, arguments.get(declared.name), f"edit-{number}")
    was = json.dumps(plain(arguments[declared.name])) if given else ""
    return {
        "field": f"edit-{number}",
        "label": visible(declared.label or declared.name),
        "described": f"described-{number}",
        "description": visible(declared.description),
        "control": control(**{"data-edits": visible(declared.name), "data-given": was}),
        "without": "" if declared.required else _draw_without(number, given),
    }


def _draw_without(number: int, given: bool) -> Tag:
    """Draw a checkbox that omits an argument."""
    checked = {} if given else {"checked": "checked"}
    box = tags.input(type="checkbox", id=f"without-{number}", autocomplete="off", **checked)
    return tags.label(box, " Omit", **{"class": "quiet"})


def _control(declared: Input, value: JSON, field: str) -> Tag:
    """Draw the input element for an argument."""
    usual = {"id": field, "autocomplete": "off", "aria-describedby": field.replace("edit", "described")}
    if declared.enum is not None:
        return tags.select(list(_options(declared.enum, value)), **usual, **{"data-as": "choice"})
    if declared.type == "boolean":
        checked = {"checked": "checked"} if value is True else {}
        return tags.input(type="checkbox", **usual, **checked, **{"data-as": "flag"})
    if declared.type in ("integer", "number"):
        step = "1" if declared.type == "integer" else "any"
        number = "" if value is None else json.dumps(value)
        bounds = (("min", declared.minimum), ("max", declared.maximum))
        limits = {name: json.dumps(bound) for name, bound in bounds if bound is not None}
        return tags.input(type="number", step=step, value=number, **limits, **usual, **{"data-as": "number"})
    text, kind = _text(value, declared.type == "string")
    rows = min(_MOST_ROWS, sum(1 + len(line) // _CHARACTERS_A_LINE for line in text.split("\n")))
    # HTML drops the first line feed in a text area.
    return tags.textarea("\n" + text, rows=str(rows), spellcheck="false", **usual, **{"data-as": kind})


def _options(choices: tuple[JSON, ...], value: JSON) -> Iterator[Tag]:
    for choice in choices:
        chosen = {"selected": "selected"} if choice == value else {}
        yield tags.option(render_value(choice), value=json.dumps(plain(choice)), **chosen)


def _text(value: JSON, is_string: bool) -> tuple[str, str]:
    """Return the content of a text area and its format: text, or JSON if it has active or invisible characters."""
    if not is_string:
        return ("" if value is None else json.dumps(plain(value), indent=2)), "json"
    text = value if isinstance(value, str) else ""
    if visible(text, multiline=True) == text:
        return text, "text"
    return json.dumps(text), "json"
