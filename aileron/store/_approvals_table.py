"""C{approvals}: the requested approval and the decision, one row for each gated run."""

from __future__ import annotations

import json
from datetime import datetime

from attrs import evolve

from aileron.base.converter import from_json, to_json
from aileron.base.json import compact
from aileron.model.errors import InvalidRequest
from aileron.model.queries import RunQuery
from aileron.model.reviews import Review
from aileron.model.runs import Approval, Change, Run, RunState
from aileron.model.signing import SignedDecisions

from ._dialect import Cursor, ResultRow
from ._runs_table import RUNS, SIZE, fitting, matching
from ._table import FLAG, MOMENT, PLAIN, Codec, Table, moment, value
from ._votes import HAS_VOTES, select_votes

_CHANGES = Codec(
    lambda changes: compact([to_json(change) for change in changes]) if changes else None,
    lambda text: () if text is None else tuple(from_json(Change, change) for change in json.loads(text)),
)
_TEXTS = Codec(
    lambda texts: compact(list(texts)) if texts else None,
    lambda text: () if text is None else tuple(map(str, json.loads(text))),
)


def _read_signed(text: str) -> SignedDecisions | None:
    """Parse a stored signature. Return None if the text is invalid.

    A decision without its signature then fails verification, because the vault's mark on the decision covers it.
    """
    try:
        return from_json(SignedDecisions, json.loads(text))
    except (ValueError, TypeError, LookupError, RecursionError, InvalidRequest):
        return None


_COLUMNS = {
    "digest": PLAIN,
    "review": value(Review),
    "requested_at": MOMENT,
    "expires_at": MOMENT.or_null(),
    "stale": PLAIN,
    "approved": FLAG.or_null(),
    "decided_at": MOMENT.or_null(),
    "decided_by": PLAIN,
    "reason": PLAIN,
    "not_before": MOMENT.or_null(),
    "not_after": MOMENT.or_null(),
    "decision_mark": PLAIN,
    "changes": _CHANGES,
    "grant_id": PLAIN,
    "signed": Codec(lambda signed: compact(to_json(signed)), _read_signed).or_null(),
    "approvers_digest": PLAIN,
    "counted": _TEXTS,
    "forced": FLAG,
}
_NAMES = {"decision_mark": "mark"}
APPROVALS = Table("approvals", Approval, _COLUMNS, _NAMES)
_WRITTEN = Table("approvals", Approval, {"run_id": PLAIN, **_COLUMNS}, _NAMES)
_PUT = _WRITTEN.overwriting("run_id")
_OWN = f"{APPROVALS.selection}, {HAS_VOTES}"
_SELECTION = f"{RUNS.selection}, {_OWN}"
_BOTH = "FROM approvals JOIN runs ON runs.id = approvals.run_id"
# The ordinals are selected first: a join that is sorted would read every review that matches.
_PAGE = f"""
    {_BOTH} WHERE runs.ordinal IN (
        SELECT runs.ordinal FROM runs {{where}} EXISTS (SELECT 1 FROM approvals WHERE approvals.run_id = runs.id)
        ORDER BY runs.ordinal LIMIT ?
    ) ORDER BY runs.ordinal
"""
_SIZE = f"{SIZE} + length(approvals.review) + coalesce(length(approvals.changes), 0)"
_DENIED = "WHERE approvals.approved = 0 AND approvals.decided_at > ? ORDER BY approvals.decided_at DESC LIMIT ?"
_UNSHOWN = """
    SELECT looked.ordinal, looked.id, {preview} IS NOT NULL AND coalesce({status}, '') <> 'shown' AS is_unshown
    FROM (SELECT ordinal, id FROM runs WHERE state = ? AND ordinal > ? ORDER BY ordinal LIMIT ?) AS looked
    LEFT JOIN approvals ON approvals.run_id = looked.id
    ORDER BY looked.ordinal
"""


def put(cursor: Cursor, approval: Approval) -> None:
    """Insert the approval of a run, replacing an earlier one."""
    cursor.insert(_PUT, [(approval.run.id, *APPROVALS.row_of(approval))])


def of_run(cursor: Cursor, run: Run) -> Approval | None:
    """Return the approval of C{run}, or None if there is none."""
    cursor.settle("approvals", "run_id", run.id)
    cursor.settle("votes", "run_id", run.id)
    row = cursor.execute(f"SELECT {_OWN} FROM approvals WHERE run_id = ?", (run.id,)).fetchone()
    return None if row is None else _with_votes(cursor, APPROVALS.value_of(row, run=run), row)


def select(cursor: Cursor, query: RunQuery, key: int | None) -> tuple[list[tuple[int, Approval]], int]:
    """Return approvals of runs above the ordinal C{key}, oldest first, with one more row if there is a next page.

    :return: pairs of ordinal and approval, and the number of approvals on the page.
    """
    where, values = matching(cursor.dialect, query, ("runs.ordinal > ?", key))
    tail = _PAGE.format(where=f"{where} AND" if where else "WHERE")
    limit = fitting(cursor, _SIZE, tail, values, query)
    rows = cursor.execute(f"SELECT runs.ordinal, {_SELECTION} {tail}", (*values, limit + 1))
    return [(row["ordinal"], _join(cursor, row)) for row in rows.fetchall()], limit


def denials(cursor: Cursor, since: datetime, most: int) -> tuple[Approval, ...]:
    """Return the newest C{most} approvals that were denied after C{since}, oldest first."""
    rows = cursor.execute(f"SELECT {_SELECTION} {_BOTH} {_DENIED}", (moment(since), most)).fetchall()
    return tuple(_join(cursor, row) for row in reversed(rows))


def unshown(cursor: Cursor, after: int, most: int) -> tuple[tuple[str, ...], int | None]:
    """Return the pending runs whose review lacks its preview, among the next C{most} pending ones.

    Reviews that are not valid JSON are skipped.

    :param after: the ordinal above which to look.
    :return: the ids, and the ordinal of the last run that was looked at, or None if there was none.
    """
    text_at = cursor.dialect.text_at
    statement = _UNSHOWN.format(
        preview=text_at("approvals.review", "preview"), status=text_at("approvals.review", "preview.status")
    )
    rows = cursor.execute(statement, (RunState.PENDING.value, after, most)).fetchall()
    return tuple(row["id"] for row in rows if row["is_unshown"]), rows[-1]["ordinal"] if rows else None


def _join(cursor: Cursor, row: ResultRow) -> Approval:
    return _with_votes(cursor, APPROVALS.value_of(row, run=RUNS.value_of(row)), row)


def _with_votes(cursor: Cursor, approval: Approval, row: ResultRow) -> Approval:
    return evolve(approval, votes=select_votes(cursor, approval.run.id)) if row["has_votes"] else approval
