"""Parses C{[approval]} and C{[limits]}: the approval rule with its preview, and the caps on the number of runs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from attrs import evolve

from aileron.base.tables import FileTable, TextRule, quote
from aileron.model.actions import ApprovalRule, Cap, PreviewRule, Step
from aileron.model.people import MOST_NEEDED, is_approver

from ._references import is_path
from ._steps import Place, StepScope, capability_faults, read_inputs_of

MAX_EXPIRY_SECONDS = 365 * 86_400
MAX_UNDO_SECONDS = 3600
MAX_COOL_DOWN_SECONDS = 86_400
USUAL_COOL_DOWN_SECONDS = ApprovalRule().cool_down_seconds
MAX_RENDERED = 32
MAX_LABEL = 80
_DURATION = re.compile(r"([0-9]{1,8})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_GATED_KEYS = (
    "expires_after",
    "undo_seconds",
    "cool_down",
    "on_cancel",
    "on_repeat",
    "by",
    "not_requester",
    "count",
    "preview",
)
MAX_APPROVERS = 32


def read_approval(table: FileTable) -> ApprovalRule:
    """Parse the approval rule without its preview. Faults are recorded in C{table}."""
    undo = table.number("undo_seconds", 0, MAX_UNDO_SECONDS) or 0
    cool_down = _read_duration(table, "cool_down", 0, MAX_COOL_DOWN_SECONDS, "24h")
    rule = ApprovalRule(
        table.flag("required", default=False),
        _read_duration(table, "expires_after", 1, MAX_EXPIRY_SECONDS, "365d"),
        undo_seconds=float(undo),
        cool_down_seconds=USUAL_COOL_DOWN_SECONDS if cool_down is None else cool_down,
        withdrawn_on_cancel=table.choice("on_cancel", ("withdraw", "keep"), "keep") == "withdraw",
        replaced_on_repeat=table.choice("on_repeat", ("replace", "keep"), "keep") == "replace",
        by=_read_approvers(table),
        not_requester=table.flag("not_requester", default=False),
        count=table.integer("count", 1, MOST_NEEDED) or 1,
    )
    for key in _GATED_KEYS:
        if key in table.values and not rule.gated:
            table.fault(key, "needs `required = true`")
    table.skip("preview")
    table.close()
    return rule


def _read_approvers(table: FileTable) -> tuple[str, ...]:
    """Parse the names of those who may approve. Faults are recorded in C{table}."""
    names = table.texts("by", required="by" in table.values)
    if len(names) > MAX_APPROVERS:
        table.fault("by", f"has more than {MAX_APPROVERS} names")
    for name in names:
        if not is_approver(name):
            table.fault("by", f"has {quote(name)}, which is no account, no group and no role that decides")
    return names


def with_preview(rule: ApprovalRule, table: FileTable, scope: StepScope, steps: Sequence[Step]) -> ApprovalRule:
    """Return C{rule} with the preview that C{[approval]} declares, or C{rule} unchanged if there is no preview.

    :param table: the table C{[approval]}. Faults are recorded in it.
    :param steps: the action's steps. The connector of the first one is the preview's default connector.
    """
    if "preview" not in table.values:
        return rule
    preview = table.table("preview")
    usual = steps[0].connector if steps else ""
    connector = preview.text("connector", required=False) or usual
    operation = preview.text("op")
    capability_faults(preview, connector, operation, scope)
    render = _read_render(preview)
    args = read_inputs_of(preview, "args", scope, Place("preview"))
    multiline = preview.texts("multiline", required=False)
    for label in multiline:
        if label not in dict(render):
            preview.fault("multiline", f"names {quote(label)}, which is no label of `render`")
    preview.close()
    return evolve(rule, preview=PreviewRule(connector, operation, args, render, multiline))


def _read_render(preview: FileTable) -> tuple[tuple[str, str], ...]:
    table = preview.table("render")
    if not 1 <= len(table.values) <= MAX_RENDERED:
        preview.fault("render", f"has {len(table.values)} labels; there must be 1 to {MAX_RENDERED}")
    for label in table.values:
        if not label.strip() or len(label) > MAX_LABEL:
            table.fault(label, f"must have 1 to {MAX_LABEL} characters")
    return tuple((label, table.text(label, _PATH)) for label in table.values)


_PATH = TextRule(is_path, "must be a dotted path into the output, such as message.to.0")


def _read_duration(table: FileTable, key: str, low: int, high: int, most: str) -> float | None:
    """Parse a key whose value is a number of seconds or a duration such as C{24h}.

    :param most: C{high} in words, for the fault.
    :return: the seconds, or None if the key is missing. If the value is invalid, a fault is recorded and the
        result is of no use.
    """
    written = table.values.get(key)
    if isinstance(written, str):
        table.skip(key)
        found = _DURATION.fullmatch(written)
        seconds = int(found[1]) * _UNIT_SECONDS[found[2]] if found else -1
        if not low <= seconds <= high:
            table.fault(key, f'must be a duration such as "30m", "24h" or "7d", at most {most}')
        return float(seconds)
    number = table.number(key, low, high)
    return None if number is None else float(number)


MOST = 1_000_000
HOUR_SECONDS, DAY_SECONDS = 3600.0, 86_400.0
_WINDOWS = {"per_hour": HOUR_SECONDS, "per_day": DAY_SECONDS}
_SESSION = "per_session_"


def read_limits(table: FileTable, inputs: Collection[str]) -> tuple[Cap, ...]:
    """Parse the caps: those of the action, of each session and of each value of an argument. Record faults in C{table}.

    :param inputs: the names of the action's inputs.
    """
    caps = (*_caps(table), *_caps(table, prefix=_SESSION))
    arguments = table.table("per_argument")
    for name in arguments.values:
        if name not in inputs:
            arguments.fault(name, "is not a declared input")
        inner = arguments.table(name)
        caps = (*caps, *_caps(inner, argument=name))
        inner.close()
    table.close()
    return caps


def _caps(table: FileTable, *, prefix: str = "", argument: str | None = None) -> Iterator[Cap]:
    for key, seconds in _WINDOWS.items():
        most = table.integer(prefix + key, 1, MOST)
        if most is not None:
            yield Cap(most, seconds, argument, per_session=bool(prefix))
