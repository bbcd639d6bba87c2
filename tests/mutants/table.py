"""Every guard, by the promise that it keeps."""

from __future__ import annotations

from .guard import Guard
from .promise_2 import GUARDS as SECOND
from .promise_3 import GUARDS as THIRD
from .promise_4 import GUARDS as FOURTH
from .promise_5 import GUARDS as FIFTH
from .promise_6 import GUARDS as SIXTH

GUARDS: tuple[Guard, ...] = (*SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH)
"""All of them."""
