"""C{[approval]} and C{[limits]}: whether a person is asked and what it is shown, and how often an action may begin."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from attrs import evolve

from aileron.values import ApprovalRule, Cap, PreviewRule, Step

from ._faults import shown
from ._references import is_path
from ._steps import Place, StepScope, capability_faults, read_inputs_of
from ._table import TextRule, TomlTable

MAX_EXPIRY_SECONDS = 365 * 86_400
MAX_UNDO_SECONDS = 3600
MAX_COOL_DOWN_SECONDS = 86_400
USUAL_COOL_DOWN_SECONDS = ApprovalRule().cool_down_seconds
MAX_RENDERED = 32
_DURATION = re.compile(r"([0-9]{1,8})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_APPROVAL_KEYS = ("required", "expires_after", "undo_seconds", "cool_down", "on_cancel", "preview")
_LATER_KEYS = ("late_fields",)
_PREVIEW_KEYS = ("op", "connector", "args", "render", "multiline")
_ON_CANCEL = TextRule(lambda text: text in ("withdraw", "keep"), 'must be "withdraw" or "keep"')
_LABEL = TextRule(lambda text: text.strip() and len(text) <= 80, "must have 1 to 80 characters")


def read_approval(table: TomlTable) -> ApprovalRule:
    """Read the rule, but for the preview; what is wrong is kept with its table."""
    undo = table.number("undo_seconds", 0, MAX_UNDO_SECONDS) or 0
    cool_down = _read_duration(table, "cool_down", 0, MAX_COOL_DOWN_SECONDS, "24h")
    rule = ApprovalRule(
        table.flag("required", default=False),
        _read_duration(table, "expires_after", 1, MAX_EXPIRY_SECONDS, "365d"),
        undo_seconds=float(undo),
        cool_down_seconds=USUAL_COOL_DOWN_SECONDS if cool_down is None else cool_down,
        withdrawn_on_cancel=table.text("on_cancel", _ON_CANCEL, required=False) == "withdraw",
    )
    for key in _APPROVAL_KEYS[1:]:
        if key in table.values and not rule.required:
            table.fault(key, f"`{key}` needs `required = true`")
    table.close(_APPROVAL_KEYS, _LATER_KEYS)
    return rule


def with_preview(rule: ApprovalRule, table: TomlTable, scope: StepScope, steps: Sequence[Step]) -> ApprovalRule:
    """C{rule} with the preview that C{[approval]} declares, if it does."""
    if "preview" not in table.values:
        return rule
    preview = table.table("preview")
    usual = steps[0].connector if steps else ""
    connector = preview.text("connector", required=False) or usual
    operation = preview.text("op")
    capability_faults(preview, connector, operation, scope)
    render = _read_render(preview.table("render"))
    if not render:
        preview.fault("render" if "render" in preview.values else None, "`render` must name at least one label")
    args = read_inputs_of(preview, "args", scope, Place("preview"))
    multiline = preview.texts("multiline") if "multiline" in preview.values else ()
    for label in multiline:
        if label not in dict(render):
            preview.fault("multiline", f"{shown(label)} is not a label of `render`")
    preview.close(_PREVIEW_KEYS)
    return evolve(rule, preview=PreviewRule(connector, operation, args, render, multiline))


def _read_render(table: TomlTable) -> tuple[tuple[str, str], ...]:
    if len(table.values) > MAX_RENDERED:
        table.fault(None, f"`render` has {len(table.values)} labels; {MAX_RENDERED} are allowed")
    for label in table.values:
        if not _LABEL.holds(label):
            table.fault(label, f"the label {shown(label)} {_LABEL.phrase}")
    return tuple((label, table.text(label, _PATH)) for label in table.values)


_PATH = TextRule(is_path, "must be a dotted path into the output, such as message.to.0")


def _read_duration(table: TomlTable, key: str, low: int, high: int, most: str) -> float | None:
    """Seconds, written as a number or as a duration; L{None} where there are none.

    :param most: C{high}, as a person writes it.
    """
    written = table.values.get(key)
    if isinstance(written, str):
        found = _DURATION.fullmatch(written)
        seconds = int(found[1]) * _UNIT_SECONDS[found[2]] if found else -1
        if not low <= seconds <= high:
            table.fault(key, f'`{key}` must be a duration such as "30m", "24h" or "7d", at most {most}')
        return float(seconds)
    number = table.number(key, low, high)
    return None if number is None else float(number)


MOST = 1_000_000
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
_WINDOWS = {"per_hour": HOUR_SECONDS, "per_day": DAY_SECONDS}
_SESSION = "per_session_"
_LIMIT_KEYS = (*_WINDOWS, *(_SESSION + key for key in _WINDOWS), "per_argument")


def read_limits(table: TomlTable, inputs: Collection[str]) -> tuple[Cap, ...]:
    """Read the caps, in the order of the keys' list; what is wrong with them is kept with their tables.

    :param inputs: names of the action's inputs.
    """
    caps = (*_caps(table), *_caps(table, prefix=_SESSION))
    arguments = table.table("per_argument")
    for name in arguments.values:
        if name not in inputs:
            arguments.fault(name, f"{shown(name)} is not a declared input")
        inner = arguments.table(name)
        caps = (*caps, *_caps(inner, argument=name))
        inner.close(tuple(_WINDOWS))
    table.close(_LIMIT_KEYS)
    return caps


def _caps(table: TomlTable, *, prefix: str = "", argument: str | None = None) -> Iterator[Cap]:
    for key, seconds in _WINDOWS.items():
        most = table.integer(prefix + key, 1, MOST)
        if most is not None:
            yield Cap(most, seconds, argument, per_session=bool(prefix))
