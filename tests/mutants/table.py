"""Every guard, by the promise that it keeps, and those by which attacks fail."""

from __future__ import annotations

from .attacks_daemon import GUARDS as DAEMON
from .attacks_sandbox import GUARDS as SANDBOX
from .guard import Guard
from .promise_2 import GUARDS as SECOND
from .promise_3 import GUARDS as THIRD
from .promise_4 import GUARDS as FOURTH
from .promise_5 import GUARDS as FIFTH
from .promise_6 import GUARDS as SIXTH
from .relay import GUARDS as RELAYED

GUARDS: tuple[Guard, ...] = (*SECOND, *THIRD, *FOURTH, *FIFTH, *SIXTH, *RELAYED)
"""All that keep a promise, and those of the relay."""

ATTACKED: tuple[Guard, ...] = (*SANDBOX, *DAEMON)
"""Those that the attacks on the installed programs must miss."""
