"""Claims: a command-line tool that sends a request again gets the answer of the run that its first request started."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import frozen

KEPT = timedelta(hours=24)
"""How long the answer of a settled run can be claimed."""

MOST_CLAIMS = 1000
"""The most claims of one session. The oldest beyond it are deleted: a repetition of their request is asked for anew."""

MOST_TOLD = 100
"""The most callers of one run of which it is kept that they were told that it waits."""


@frozen
class ToolClaim:
    """The right to the answer of one run of an agent's own tool, for the tool's later requests.

    :ivar form: the digest of the request in its normal form. Equal commands have equal forms.
    :ivar size: the bytes of the request's target, headers and body.
    :ivar told: the callers that were told that the run waits.
    :ivar given: the callers that got the run's answer.
    """

    run_id: str
    session_id: str
    form: str
    size: int
    asked_at: datetime
    told: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
