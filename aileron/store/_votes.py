"""C{votes}: the approvals of single people, of runs that need several."""

from __future__ import annotations

import json

from attrs import evolve

from aileron.base.converter import from_json, to_json
from aileron.base.json import compact
from aileron.model.errors import InvalidRequest
from aileron.model.people import AccountLogin
from aileron.model.runs import Vote
from aileron.model.signing import SignedDecisions

from ._dialect import Cursor
from ._people import find_account
from ._table import MOMENT, PLAIN, Codec, Table


def _read_signed(text: str) -> SignedDecisions | None:
    """Parse a stored signature. Return None if the text is invalid, so that the vote fails verification."""
    try:
        return from_json(SignedDecisions, json.loads(text))
    except (ValueError, TypeError, LookupError, RecursionError, InvalidRequest):
        return None


def _read_account(text: str) -> AccountLogin | None:
    """Parse a stored account. Return None if the text is invalid, so that the vote fails verification."""
    try:
        return from_json(AccountLogin, json.loads(text))
    except (ValueError, TypeError, LookupError, RecursionError, InvalidRequest):
        return None


_VOTES = Table(
    "votes",
    Vote,
    {
        "run_id": PLAIN,
        "person": PLAIN,
        "digest": PLAIN,
        "decided_by": PLAIN,
        "decided_at": MOMENT,
        "not_after": MOMENT,
        "reason": PLAIN,
        "not_before": MOMENT.or_null(),
        "mark": PLAIN,
        "signed": Codec(lambda signed: compact(to_json(signed)), _read_signed).or_null(),
        "account": Codec(lambda account: compact(to_json(account)), _read_account).or_null(),
    },
)
_PUT = _VOTES.overwriting("run_id", "person")
HAS_VOTES = "EXISTS (SELECT 1 FROM votes WHERE votes.run_id = approvals.run_id) AS has_votes"
"""A column that says whether a run has votes. Without any, nothing else of them is read."""


def put_vote(cursor: Cursor, vote: Vote) -> None:
    """Store a vote, in place of an earlier one of the same person."""
    _VOTES.insert(cursor, [vote], _PUT)


def select_votes(cursor: Cursor, run_id: str) -> tuple[Vote, ...]:
    """Return the votes on a run, the oldest first, each marked if its account was removed or changed since."""
    cursor.settle("votes", "run_id", run_id)
    found = _VOTES.select(cursor, "WHERE run_id = ? ORDER BY decided_at, person", run_id)
    return tuple(evolve(vote, has_lapsed=_has_lapsed(cursor, vote)) for vote in found)


def _has_lapsed(cursor: Cursor, vote: Vote) -> bool:
    if vote.account is None:
        return False
    account = find_account(cursor, vote.account.account)
    # guard of roles: the vote of a removed or changed account does not count while the run is pending
    #    -> runner.test_votes.LapsedTests.test_row_gone, instead return False
    return account is None or account.login != vote.account
