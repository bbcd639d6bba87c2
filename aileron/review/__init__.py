"""Computes the parts of a request that a person must see before the decision, alike for every surface.

The page, the API and the terminal show the same warnings because they call the same functions.
"""

from ._headline import Headline, find_places
from ._markup import MOST_MARKS, MOST_PLACES, addresses, markup
from ._notes import find_deceptive, has_gaps
from ._risks import REASONS, ReviewWarning, Risks, host_of, new_here, recipients, risks
from ._twins import describe_twins, is_twin

__all__ = [
    "MOST_MARKS",
    "MOST_PLACES",
    "REASONS",
    "Headline",
    "ReviewWarning",
    "Risks",
    "addresses",
    "describe_twins",
    "find_deceptive",
    "find_places",
    "has_gaps",
    "host_of",
    "is_twin",
    "markup",
    "new_here",
    "recipients",
    "risks",
]
