"""How many descriptors this process may have: each request that is relayed takes two."""

from __future__ import annotations

import resource

WANTED = 10_240
_FOR_THE_REST = 896
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


def most_relays(limit: int) -> int:
    """How many requests may be relayed at once, so that the daemon keeps descriptors for everything else."""
    usable = WANTED if limit == _INFINITE else min(limit, WANTED)
    return max(1, (usable - _FOR_THE_REST) // 2)
