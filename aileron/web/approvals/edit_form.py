"""The arguments in fields that one can change, each by the type that the action's file declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from twisted.web.template import Flattenable, Tag, tags

from aileron.values import JSON, Action, Input, Run, plain, visible
from aileron.web._parts import Fragment, template
from aileron.web._texts import render_value

_EDIT = template("approval_edit.xml")
_MOST_ROWS = 14
_CHARACTERS_A_LINE = 90


def edit_form(run: Run, action: Action) -> Fragment:
    """One field for each input of an action, filled with what was asked for."""
    return Fragment(_EDIT, fields=edit_fields(action, run.arguments))


def edit_fields(action: Action, arguments: Mapping[str, JSON]) -> list[Mapping[str, Flattenable]]:
    """Draw the fields alone, filled with these arguments."""
    return [_field(arguments, declared, number) for number, declared in enumerate(action.inputs)]


def _field(arguments: Mapping[str, JSON], declared: Input, number: int) -> dict[str, Flattenable]:
    """Draw a field with its name, what it is for, and a way to leave it out where that is allowed."""
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
    """Draw a box that leaves an argument out."""
    checked = {} if given else {"checked": "checked"}
    box = tags.input(type="checkbox", id=f"without-{number}", autocomplete="off", **checked)
    return tags.label(box, " Omit", **{"class": "quiet"})


def _control(declared: Input, value: JSON, field: str) -> Tag:
    """Draw what one types or chooses in."""
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
    # The first line feed of a text area's content is not its own.
    return tags.textarea("\n" + text, rows=str(rows), spellcheck="false", **usual, **{"data-as": kind})


def _options(choices: tuple[JSON, ...], value: JSON) -> Iterator[Tag]:
    for choice in choices:
        chosen = {"selected": "selected"} if choice == value else {}
        yield tags.option(render_value(choice), value=json.dumps(plain(choice)), **chosen)


def _text(value: JSON, is_string: bool) -> tuple[str, str]:
    """Write what stands in a text area, and say if that is the text or JSON: no character in it may act or hide."""
    if not is_string:
        return ("" if value is None else json.dumps(plain(value), indent=2)), "json"
    text = value if isinstance(value, str) else ""
    if visible(text, multiline=True) == text:
        return text, "text"
    return json.dumps(text), "json"
