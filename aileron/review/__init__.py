"""Computes what a person must see of a request before the decision.

The page, the API and the terminal show the same warnings because they call the same functions.
"""

from ._arguments import list_arguments
from ._attention import InboxGroup, attention
from ._cards import find_in_cards, join_values
from ._changes import MOST_CHANGES, differences, edits, place
from ._comparison import ComparedLines, compare_lines, compare_versions, comparing_steps, find_trust_difference
from ._headline import Headline, find_places, find_title
from ._markup import MOST_MARKS, MOST_PLACES, addresses, markup
from ._notes import find_deceptive, find_notes, has_gaps, render_value
from ._precedents import MOST_COMPARED, MOST_LOOKED_AT, MOST_PIECES, find_precedents
from ._request import RequestReview, review_requests
from ._twins import describe_twins, group_identical
from ._warnings import (
    STALE,
    WARNINGS,
    ReviewWarning,
    WarningKind,
    WarningSeverity,
    find_warnings,
    host_of,
    list_labels,
    new_here,
    recipients,
    strip_label,
)

__all__ = [
    "MOST_CHANGES",
    "MOST_COMPARED",
    "MOST_LOOKED_AT",
    "MOST_MARKS",
    "MOST_PIECES",
    "MOST_PLACES",
    "STALE",
    "WARNINGS",
    "ComparedLines",
    "Headline",
    "InboxGroup",
    "RequestReview",
    "ReviewWarning",
    "WarningKind",
    "WarningSeverity",
    "addresses",
    "attention",
    "compare_lines",
    "compare_versions",
    "comparing_steps",
    "describe_twins",
    "differences",
    "edits",
    "find_deceptive",
    "find_in_cards",
    "find_notes",
    "find_places",
    "find_precedents",
    "find_title",
    "find_trust_difference",
    "find_warnings",
    "group_identical",
    "has_gaps",
    "host_of",
    "join_values",
    "list_arguments",
    "list_labels",
    "markup",
    "new_here",
    "place",
    "recipients",
    "render_value",
    "review_requests",
    "strip_label",
]
