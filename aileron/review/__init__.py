"""Computes the parts of a request that a person must see before the decision, alike for every surface.

The page, the API and the terminal show the same warnings because they call the same functions.
"""

from ._changes import MOST_CHANGES, differences, edits, place
from ._comparison import compare_lines, comparing_steps, find_trust_difference
from ._headline import Headline, find_places
from ._markup import MOST_MARKS, MOST_PLACES, addresses, markup
from ._notes import find_deceptive, has_gaps
from ._precedents import MOST_COMPARED, MOST_LOOKED_AT, MOST_PIECES, find_precedents
from ._risks import REASONS, ReviewWarning, Risks, host_of, new_here, recipients, risks
from ._twins import describe_twins, is_twin

__all__ = [
    "MOST_CHANGES",
    "MOST_COMPARED",
    "MOST_LOOKED_AT",
    "MOST_MARKS",
    "MOST_PIECES",
    "MOST_PLACES",
    "REASONS",
    "Headline",
    "ReviewWarning",
    "Risks",
    "addresses",
    "compare_lines",
    "comparing_steps",
    "describe_twins",
    "differences",
    "edits",
    "find_deceptive",
    "find_places",
    "find_precedents",
    "find_trust_difference",
    "has_gaps",
    "host_of",
    "is_twin",
    "markup",
    "new_here",
    "place",
    "recipients",
    "risks",
]
