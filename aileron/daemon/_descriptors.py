"""How many descriptors this process may have, and what the agent site gets of them."""

from __future__ import annotations

import resource

from attrs import frozen

WANTED = 10_240
_FOR_THE_REST = 384
_LEAST_WAITING = 256
_WAITING_OF_ALL = 8
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


@frozen
class Share:
    """How many connections the agent site may hold at once, so that the daemon keeps descriptors for everything else.

    Each may take a second descriptor, for what is asked of somebody else.

    :ivar waiting: that have said nothing yet, rest, or wait for an answer of the site's own: an eighth of all, so that
        agents that come at the same moment are heard before others need their places.
    :ivar relayed: whose requests are with a provider.
    """

    waiting: int
    relayed: int


def share_of(limit: int) -> Share:
    """The agent site's, where the process may have so many."""
    usable = WANTED if limit == _INFINITE else min(limit, WANTED)
    waiting = max(_LEAST_WAITING, usable // _WAITING_OF_ALL)
    return Share(waiting, max(1, (usable - _FOR_THE_REST - 2 * waiting) // 2))
