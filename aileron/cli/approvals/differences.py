"""What the service shows, what is otherwise than it was shown, and what was edited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aileron.cli._output import block, heading, in_words, say, value
from aileron.values import place

_IN = "  "


def show_preview(review: Mapping[str, Any]) -> None:
    """Print the preview, or why there is none; nothing where the action has none."""
    preview = review.get("preview")
    if not preview:
        return
    heading("What {connector} shows now", connector=preview.get("connector"))
    fault = preview.get("fault")
    if fault:
        say("  NOT AVAILABLE: {message} ({kind})", message=fault.get("message"), kind=fault.get("class"))
    elif preview.get("status") != "shown":
        say("  It is not there yet; look again in a moment.")
    width = max((len(str(field["label"])) for field in preview.get("fields") or ()), default=0)
    for field in preview.get("fields") or ():
        _show_field(field, width)
    if preview.get("lacking"):
        say("  {why}", why=preview["lacking"])


def _show_field(field: Mapping[str, Any], width: int) -> None:
    label = str(field["label"])
    if field.get("missing"):
        say("  {label}  (there is none)", label=label.ljust(width))
        return
    value(label, field.get("value"), _IN, multiline=bool(field.get("multiline")), width=width)
    cut = field.get("cut")
    if cut:
        say("    This is only its beginning; the whole has {bytes} bytes.", bytes=cut.get("bytes"))


def show_changes(approval: Mapping[str, Any]) -> None:
    """Print what is otherwise than it was shown before."""
    if approval.get("changes"):
        heading("What changed since it was shown before")
        _show(approval["changes"], approval.get("review") or {})


def show_edits(run: Mapping[str, Any]) -> None:
    """Print what was edited of what the agent asked for."""
    if run.get("edited"):
        heading("What was edited of what was asked for")
        _show(run["edited"], {})


def _show(changes: Iterable[Mapping[str, Any]], review: Mapping[str, Any]) -> None:
    for change in changes:
        where, kind = str(change.get("path")), change.get("kind")
        if kind == "more":
            say("  {more}", more=change.get("after"))
            continue
        say("  {where}", where=place(where, review).removeprefix("/") or "all of it")
        for sign, side, absent in (("-", "before", "added"), ("+", "after", "removed")):
            if kind != absent:
                lines = in_words(change.get(side)).split("\n")
                block("\n".join(f"{sign} {line}" for line in lines), _IN * 2)
