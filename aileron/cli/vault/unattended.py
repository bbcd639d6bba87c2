"""Asks the key sources that need no person, once when a daemon starts, and again while one of them cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from aileron.base.json import timestamp, utc
from aileron.cli.context import CliContext
from aileron.cli.output import note
from aileron.home.lock import running_pid
from aileron.home.unlocking import UnlockProblem, write_unlock_problem
from aileron.model.errors import Forbidden, InvalidRequest, NetworkError, VaultDamaged
from aileron.model.interfaces.vault import IKeySource
from aileron.vault import keys
from aileron.vault.keys import DataKey, SystemdCredential

FIRST_SECONDS, MOST_SECONDS = 1.0, 60.0
"""The delay before the second attempt, and the longest delay. Each attempt that fails doubles it."""


class UnattendedUnlock:
    """The attempts of one command to unlock the vault without a person.

    A source that refuses is not asked again. If a source cannot be asked now, such as a server that is sealed, another
    attempt follows.

    :ivar is_waiting: whether another attempt is due later.
    """

    def __init__(self, cli: CliContext) -> None:
        self._cli = cli
        self._home = cli.home
        self._vault = cli.home.secrets
        self.is_waiting = False
        self._delay = FIRST_SECONDS
        self._due = 0.0
        self._daemon: int | None = None
        self._told: str | None = None

    def ask(self) -> DataKey | None:
        """Ask all sources, and return the vault's key, or None if none has it. Print and store why.

        Each source bounds the time of an attempt.
        """
        self.is_waiting = False
        if not self._vault.exists():
            return None
        reasons: list[str] = []
        for source in self._sources():
            try:
                key = keys.open_by_source(self._vault, [source])
            except VaultDamaged:  # reported by what opens the vault next
                continue
            except (Forbidden, InvalidRequest, NetworkError) as error:
                # guard of signing: a source that refused is not asked again
                #    -> cli.test_unattended.AskTests.test_refused, instead self.is_waiting = True
                self.is_waiting = self.is_waiting or isinstance(error, NetworkError)
                reasons.append(error.message)
                continue
            if key is not None:
                self.stop()
                return key
        self._report(" ".join(reasons))
        return None

    def ask_again(self) -> DataKey | None:
        """Ask all sources if another attempt is due and nobody has replaced the locked daemon, else return None."""
        # guard of signing: a vault that a person locked or unlocked meanwhile is left as it is
        #    -> cli.test_unattended.AgainTests.test_replaced
        if self.is_waiting and running_pid(self._home) != self._daemon:
            self.stop()
        if not self.is_waiting or self._cli.seconds() < self._due:
            return None
        return self.ask()

    def watch(self) -> None:
        """From now on, try again only while the present daemon runs. Call after it has started with a locked vault."""
        self._daemon = running_pid(self._home)

    def stop(self) -> None:
        """Make no more attempts, and remove the stored reason."""
        self.is_waiting = False
        with suppress(OSError):  # for information only
            write_unlock_problem(self._home, None)

    def give_up(self) -> None:
        """Make no more attempts, and say so, because this command ends."""
        if self.is_waiting:
            self.is_waiting = False
            self._report(self._told or "")
            note("It is not tried again. Unlock the vault later: aileron vault unlock")

    def _sources(self) -> Iterator[IKeySource]:
        yield SystemdCredential(self._cli.environ)
        features = self._cli.features
        yield from features.unattended_key_sources(self._cli)

    def _report(self, reason: str) -> None:
        if not reason:
            self.stop()
            return
        now = self._cli.seconds()
        # Between half of the delay and all of it, so that the daemons of a team do not ask all at once.
        self._due = now + self._delay * (0.5 + self._cli.randomness(1)[0] / 510)
        self._delay = min(2 * self._delay, MOST_SECONDS)
        if reason != self._told:
            note("The vault was not unlocked by its key source. {why}", why=reason)
            self._told = reason
        problem = UnlockProblem(reason, self.is_waiting, timestamp(utc(self._cli.wall())))
        with suppress(OSError):  # for information only
            write_unlock_problem(self._home, problem)
