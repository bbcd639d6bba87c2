"""Calls of agents' tools as text: for people, for patterns, and for the audit log."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from aileron.base.json import JSON, plain
from aileron.redaction import REDACTED, holds_secret

from .values import CallKind, CallText

MOST_RECORDED = 1000
"""The number of characters of a call that the audit log keeps at most."""

_READ_FOR_RECORD = 8000
_PATHS = ("file_path", "filePath", "path", "notebook_path")
_REPLACEMENTS = (
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("oldText", "newText"),
    ("old_str", "new_str"),
)
_CONTENTS = ("content", "file_text", "new_source")
_HARMLESS = frozenset(("description", "timeout", "timeout_ms", "workdir", "run_in_background", "replace_all", "prompt"))


def describe_call(given: Mapping[str, JSON]) -> CallText:
    """Return the input of a tool as text. Every member of the input is in the text or in its rest."""
    command = given.get("command")
    if isinstance(command, str):
        return _describe(given, CallKind.COMMAND, command, command, "command")
    if isinstance(command, Sequence) and command and all(isinstance(each, str) for each in command):
        line = shlex.join(map(str, command))
        return _describe(given, CallKind.COMMAND, line, line, "command")
    path = next((name for name in _PATHS if isinstance(given.get(name), str)), None)
    if path is not None:
        subject, used = str(given[path]), [path]
        lines = [subject, *_list_changes(given, used)]
        return _describe(given, CallKind.FILE, subject, "\n".join(lines), *used)
    address = given.get("url")
    if isinstance(address, str):
        return _describe(given, CallKind.ADDRESS, address, address, "url")
    text = json.dumps(plain(given), ensure_ascii=False, indent=2, sort_keys=True)
    return CallText(CallKind.OTHER, "", text)


def identify_call(tool: str, given: Mapping[str, JSON]) -> str:
    """Return a text that is equal for equal calls only."""
    return json.dumps([tool, plain(given)], sort_keys=True)


def record_text(text: str) -> tuple[str, bool]:
    """Return a text for the audit log, without secrets and cut, and whether it is still the whole text."""
    read = text[:_READ_FOR_RECORD]
    # guard of prompts: a secret in an agent's command reaches no record
    #    -> test_calls.RecordTests.test_secrets, instead shown = read
    shown = _hide_secrets(read)
    cut = shown if len(shown) <= MOST_RECORDED else f"{shown[: MOST_RECORDED - 1]}…"
    return cut, cut == text


def _describe(given: Mapping[str, JSON], kind: CallKind, subject: str, text: str, *used: str) -> CallText:
    others = {name: value for name, value in given.items() if name not in used}
    rest = json.dumps(plain(others), ensure_ascii=False, sort_keys=True) if others else ""
    return CallText(kind, subject, text, rest, is_plain=_HARMLESS.issuperset(others))


def _list_changes(given: Mapping[str, JSON], used: list[str]) -> Iterator[str]:
    """Yield the lines of a change to a file, each with its sign, and add the names of the members to C{used}."""
    for old, new in _REPLACEMENTS:
        if isinstance(given.get(old), str) and isinstance(given.get(new), str):
            used += (old, new)
            yield from _mark("-", str(given[old]))
            yield from _mark("+", str(given[new]))
    edits, lines = given.get("edits"), list[str]()
    if isinstance(edits, Sequence):
        are_shown = [isinstance(each, Mapping) and _add_changes(each, lines) == each.keys() for each in edits]
        if lines and all(are_shown):
            used.append("edits")
            yield from lines
    for name in _CONTENTS:
        if isinstance(given.get(name), str):
            used.append(name)
            yield from _mark("+", str(given[name]))


def _add_changes(given: Mapping[str, JSON], lines: list[str]) -> set[str]:
    """Add the lines of a change to C{lines}, and return the names of the members that they show."""
    used = list[str]()
    lines += _list_changes(given, used)
    return set(used)


def _mark(sign: str, text: str) -> Iterator[str]:
    return (f"{sign} {line}" for line in text.split("\n"))


def _hide_secrets(text: str) -> str:
    if not holds_secret(text):
        return text
    words = [REDACTED if holds_secret(word) else word for word in text.split(" ")]
    shown = " ".join(words)
    return REDACTED if holds_secret(shown) else shown
