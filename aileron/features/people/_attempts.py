"""Limits the attempts to sign in with a passphrase, for each name and for all names together."""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime

from aileron.model.errors import LimitExceeded

FREE = 5
"""The attempts for one name before the next one has to wait."""

MOST_SECONDS = 60.0
"""The longest wait between two attempts for one name."""

MOST_AT_ONCE = 8
"""The most passphrases that are checked at once or wait for it, each with 64 MiB and a quarter of a second."""

_FORGOTTEN_SECONDS = 900.0
_MOST_NAMES = 1024


class SignInAttempts:
    """The attempts to sign in. Each counts as failed from its start, so attempts at the same time count as well."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._by_name: dict[str, tuple[int, float]] = {}
        self._under_way = 0

    def begin(self, name: str) -> None:
        """Count an attempt for a name. The caller must call L{end} after it.

        :raises LimitExceeded: if there were too many for this name, or too many are under way.
        """
        now = self._clock.seconds()
        count, last = self._by_name.get(name, (0, now))
        if now - last > _FORGOTTEN_SECONDS:
            count = 0
        wait = 0.0 if count < FREE else last + min(MOST_SECONDS, 2.0 ** (count - FREE)) - now
        # guard of roles: passphrases cannot be tried out -> features.people.test_entrance.LimitTests.test_one_name
        if wait > 0:
            raise LimitExceeded("Too many attempts for this name. Try again later.", {"retry_after": int(wait) + 1})
        # guard of roles: attempts at once take bounded memory -> features.people.test_entrance.AtOnceTests.test_at_once
        if self._under_way >= MOST_AT_ONCE:
            raise LimitExceeded("Too many people sign in at once. Try again in a moment.", {"retry_after": 2})
        while name not in self._by_name and len(self._by_name) >= _MOST_NAMES:
            del self._by_name[next(iter(self._by_name))]
        self._by_name[name] = (min(count + 1, 64), now)
        self._under_way += 1

    def end(self, name: str, *, is_right: bool) -> None:
        """End an attempt. If it was right, earlier ones for this name no longer count."""
        self._under_way -= 1
        if is_right:
            self._by_name.pop(name, None)
