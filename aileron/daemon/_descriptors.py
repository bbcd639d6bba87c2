"""How many descriptors this process may have, and how many connections the agent site gets of them."""

from __future__ import annotations

import resource

WANTED = 10_240
_FOR_THE_REST = 384
_LEAST = 64
_INFINITE = resource.RLIM_INFINITY


def allow_descriptors() -> int:
    """Raise this process's limit as far as it may be raised, and is of use; the limit as it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = raised(soft, hard)
    if limit != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return limit


def raised(soft: int, hard: int) -> int:
    """The limit to set, where these are in force: never a lower one."""
    if soft == _INFINITE:
        return soft
    return max(soft, WANTED if hard == _INFINITE else min(WANTED, hard))


def most_connections(limit: int) -> int:
    """How many connections the agent site may hold at once, where the process may have so many descriptors.

    Each may take a second one, for what is asked of a provider.  The daemon keeps enough for everything else.
    """
    usable = WANTED if limit == _INFINITE else min(limit, WANTED)
    return max(_LEAST, (usable - _FOR_THE_REST) // 2)
