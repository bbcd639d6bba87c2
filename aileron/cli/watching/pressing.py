"""What a key does: the state after it, and what is to be done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from .keys import BACKSPACE, DOWN, ENTER, ESCAPE, HOME, PAGE_DOWN, PAGE_UP, UP
from .model import Asking, Opened, Purpose, State

MAX_TEXT = 2000
_STEPS = {UP: -1, "k": -1, DOWN: 1, "j": 1}
_UNREAD = "Read it to its end first: Space shows more."
_NOBODY = "No agent's session asks for this, so there is none to end."


@frozen
class Quit:
    """Leave the view."""


@frozen
class Open:
    """Show one approval whole, as it is now."""

    id: str


@frozen
class Approve:
    """Let exactly this run.

    :ivar when: begin no sooner, as typed; empty: at once.
    """

    what: Opened
    when: str


@frozen
class Deny:
    """Deny exactly this.

    :ivar flood: deny all else that its session asks too, and end the session.
    """

    what: Opened
    reason: str = ""
    flood: bool = False


@frozen
class Edit:
    """Ask for other arguments."""

    what: Opened


@frozen
class TakeBack:
    """Take back what was approved and has not begun."""

    id: str


Effect: TypeAlias = Quit | Open | Approve | Deny | Edit | TakeBack
Outcome: TypeAlias = tuple[State, Effect | None]


def press_all(state: State, keys: Sequence[str]) -> Outcome:
    """The state after several keys that came at once.

    Those behind one that is to be acted on are thrown away; and what came together, as from a paste, confirms nothing.
    """
    for key in keys:
        if state.asking and state.asking.confirms and len(keys) > 1:
            return evolve(state, asking=None, news="That came all at once, so nothing was decided."), None
        state, effect = press(state, key)
        if effect is not None:
            return state, effect
    return state, None


def press(state: State, key: str) -> Outcome:
    """The state after one key."""
    if state.asking and state.opened:
        return _answer(evolve(state, news=""), state.opened, state.asking, key)
    if key == "u" and state.undoable:
        return evolve(state, news=""), TakeBack(state.undoable.id)
    if state.opened:
        return _in_opened(evolve(state, news=""), state.opened, key)
    return _in_list(evolve(state, news=""), key)


def _in_list(state: State, key: str) -> Outcome:
    if key == "q":
        return state, Quit()
    if key == ENTER and state.chosen:
        return state, Open(state.chosen)
    step = {PAGE_UP: -state.size.body, PAGE_DOWN: state.size.body, HOME: -len(state.waiting), **_STEPS}.get(key)
    if step is None or not state.waiting:
        return state, None
    position = max(0, min(state.position + step, len(state.waiting) - 1))
    return evolve(state, chosen=state.waiting[position].id), None


def _in_opened(state: State, opened: Opened, key: str) -> Outcome:
    page = max(1, state.size.body - 1)
    steps = {PAGE_UP: -page, "b": -page, PAGE_DOWN: page, " ": page, HOME: -opened.top, **_STEPS}
    if key in steps:
        return evolve(state, opened=opened.at(opened.top + steps[key], state.size)), None
    if key in ("q", ESCAPE):
        return evolve(state, opened=None), None
    if key == "r":
        return state, Open(opened.id)
    if key in _DECIDING and opened.changed:
        return evolve(state, news=f"{opened.changed} Look anew: r"), None
    return _DECIDING[key](state, opened) if key in _DECIDING else (state, None)


def _approve(state: State, opened: Opened) -> Outcome:
    return _once_read(state, opened, Asking(Purpose.APPROVE))


def _approve_later(state: State, opened: Opened) -> Outcome:
    return _once_read(state, opened, Asking(Purpose.WHEN))


def _once_read(state: State, opened: Opened, asking: Asking) -> Outcome:
    if not opened.all_read:
        return evolve(state, news=_UNREAD), None
    return evolve(state, asking=asking), None


def _deny(state: State, opened: Opened) -> Outcome:
    return evolve(state, asking=Asking(Purpose.DENY)), None


def _end(state: State, opened: Opened) -> Outcome:
    if opened.session is None:
        return evolve(state, news=_NOBODY), None
    return evolve(state, asking=Asking(Purpose.FLOOD)), None


def _edit(state: State, opened: Opened) -> Outcome:
    return state, Edit(opened)


_DECIDING: Mapping[str, Callable[[State, Opened], Outcome]] = {
    "y": _approve,
    "l": _approve_later,
    "d": _deny,
    "x": _end,
    "e": _edit,
}


def _answer(state: State, opened: Opened, asking: Asking, key: str) -> Outcome:
    closed = evolve(state, asking=None)
    if key == ESCAPE:
        return evolve(closed, news="Nothing was decided; it still waits."), None
    if asking.confirms:
        return _confirmed(closed, opened, asking, key)
    if key == ENTER:
        return _entered(closed, opened, asking)
    text = asking.text[:-1] if key == BACKSPACE else asking.text + (key if len(key) == 1 else "")
    return evolve(state, asking=evolve(asking, text=text[:MAX_TEXT])), None


def _confirmed(closed: State, opened: Opened, asking: Asking, key: str) -> Outcome:
    if key not in ("y", "Y"):
        return evolve(closed, news="Nothing was decided; it still waits."), None
    if asking.purpose is Purpose.FLOOD:
        return closed, Deny(opened, flood=True)
    return closed, Approve(opened, asking.when)


def _entered(closed: State, opened: Opened, asking: Asking) -> Outcome:
    if asking.purpose is Purpose.DENY:
        return closed, Deny(opened, asking.text.strip())
    if not asking.text.strip():
        return evolve(closed, news="Nothing was decided; it still waits."), None
    return evolve(closed, asking=Asking(Purpose.APPROVE, when=asking.text.strip())), None
