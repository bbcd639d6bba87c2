"""Unlocking the vault without a person: which sources are asked, when they are asked again, and who is told."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from attrs import evolve
from zope.interface import implementer

from aileron.cli import features
from aileron.cli.context import CliContext
from aileron.cli.daemon import supervise
from aileron.cli.daemon.supervise import wait_for_key
from aileron.cli.vault.unattended import MOST_SECONDS, UnattendedUnlock
from aileron.features import FeatureSet
from aileron.home.discovery import Discovery
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.unlocking import UnlockProblem, read_unlock_problem, write_unlock_problem
from aileron.model.errors import Forbidden, NetworkError, VaultDamaged
from aileron.model.interfaces.vault import IKeySource
from aileron.vault import DataKey, keys
from tests.cli.daemon import CommandCase
from tests.features.example import ExampleFeature
from tests.vault.case import NOON, PASSPHRASE

SECRET = b"of another package: 32 bytes long"[:32]
SEALED = NetworkError("The server is sealed.")


@implementer(IKeySource)
class ScriptedSource:
    """A source of another package, which fails as a test says and then gives the private key."""

    def __init__(self, cli: CliContext) -> None:
        self._cli = cli
        self.failures: list[Exception] = []
        self.asked = 0
        self.absent = False

    def read(self) -> bytes | None:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        if self.absent:
            return None
        (derived,) = keys.find_derived_sources(self._cli.home.secrets)
        return derived.private_key(SECRET)


class ForeignFeature(ExampleFeature):
    """A feature of another package with key sources that need no person."""

    sources: Sequence[IKeySource] = ()

    def unattended_key_sources(self, cli: Any) -> Sequence[IKeySource]:
        return self.sources


class UnattendedCase(CommandCase):
    """A vault with a source of another package, and a clock."""

    def setUp(self) -> None:
        super().setUp()
        self.now = 0.0
        self.key = keys.create(self.home.secrets, PASSPHRASE)
        self.add_foreign()
        self.source = ScriptedSource(self.cli_context())
        foreign = ForeignFeature()
        foreign.sources = (self.source,)
        self.patch(features, "find_features", lambda _: FeatureSet((foreign,)))
        self.lock = False

    def add_foreign(self) -> None:
        """Add the source of another package to the vault."""
        from twisted.internet.task import Clock

        from aileron.vault import Vault

        vault = Vault(self.home.secrets, Clock(), lambda: True, DataKey(bytes(self.key._secret)))
        vault.key_sources.add(
            *keys.make_derived_source(self.home.secrets, self.key, "mine", NOON, SECRET, {"server": "hsm"})
        )

    def cli_context(self) -> CliContext:
        return evolve(super().cli_context(), seconds=lambda: self.now, randomness=lambda _: b"\xff", sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def unattended(self) -> UnattendedUnlock:
        """Return the attempts of one command."""
        return UnattendedUnlock(self.cli_context())

    def opens(self, key: DataKey | None) -> None:
        """Check that it is the vault's key."""
        assert key is not None
        self.assertEqual(key._secret, self.key._secret)

    def problem(self) -> UnlockProblem:
        """Return what is stored for the person."""
        found = read_unlock_problem(self.home)
        assert found is not None
        return found

    def serve_locked(self) -> None:
        """Have a daemon run."""
        acquire_lock(self.home)
        self.addCleanup(release_lock, self.home)


class AskTests(UnattendedCase):
    """One attempt."""

    def test_foreign(self) -> None:
        """A source of another package unlocks the vault, and nothing is stored."""
        unattended = self.unattended()
        self.opens(unattended.ask())
        self.assertFalse(unattended.is_waiting)
        self.assertIsNone(read_unlock_problem(self.home))
        (listed,) = keys.find_derived_sources(self.home.secrets)
        self.assertEqual((listed.source.kind.value, listed.source.settings), ("external", {"server": "hsm"}))

    def test_absent(self) -> None:
        """Without a vault, or with a source that is not available, there is nothing to tell."""
        self.source.absent = True
        unattended = self.unattended()
        self.assertIsNone(unattended.ask())
        self.home.secrets.unlink()
        self.assertIsNone(unattended.ask())
        self.assertEqual((self.source.asked, unattended.is_waiting), (1, False))
        self.assertIsNone(read_unlock_problem(self.home))

    def test_refused(self) -> None:
        """A source that refuses is not asked again; the reason is stored."""
        self.source.failures = [Forbidden("The server refused the token.")]
        unattended = self.unattended()
        self.assertIsNone(unattended.ask())
        self.assertFalse(unattended.is_waiting)
        self.now += 1000
        self.assertIsNone(unattended.ask_again())
        self.assertEqual(self.source.asked, 1)
        self.assertEqual((self.problem().reason, self.problem().tries_again), ("The server refused the token.", False))

    def test_other_sources(self) -> None:
        """A source that fails does not keep the next one from being asked."""
        other = ScriptedSource(self.cli_context())
        other.failures = [SEALED]
        foreign = ForeignFeature()
        foreign.sources = (other, self.source)
        self.patch(features, "find_features", lambda _: FeatureSet((foreign,)))
        self.opens(self.unattended().ask())

    def test_damaged(self) -> None:
        """A damaged vault's file is left to what opens the vault next."""
        self.source.failures = [VaultDamaged("Damaged.")]
        unattended = self.unattended()
        self.assertIsNone(unattended.ask())
        self.assertIsNone(read_unlock_problem(self.home))

    def test_given_up(self) -> None:
        """A command that ends says that there is no other attempt."""
        self.source.failures = [SEALED]
        unattended = self.unattended()
        unattended.ask()
        self.assertTrue(self.problem().tries_again)
        unattended.give_up()
        self.assertFalse(unattended.is_waiting)
        self.assertIn("does not try again", self.problem().sentence)


class AgainTests(UnattendedCase):
    """Further attempts."""

    def test_recovers(self) -> None:
        """A server that was sealed is asked again, after delays that grow to a minute, until it answers."""
        self.serve_locked()
        self.source.failures = [SEALED] * 10
        unattended = self.unattended()
        self.assertIsNone(unattended.ask())
        unattended.watch()
        key, at = None, [0.0]
        while key is None:
            self.now += 0.5
            before = self.source.asked
            key = unattended.ask_again()
            if self.source.asked > before:
                at.append(self.now)
        self.opens(key)
        delays = [later - earlier for earlier, later in pairwise(at)]
        self.assertEqual(delays, [1, 2, 4, 8, 16, 32, *[MOST_SECONDS] * 4])
        self.assertFalse(unattended.is_waiting)
        self.assertIsNone(read_unlock_problem(self.home))

    def test_then_refused(self) -> None:
        """After a refusal there is no other attempt."""
        self.serve_locked()
        self.source.failures = [SEALED, Forbidden("Refused.")]
        unattended = self.unattended()
        unattended.ask()
        unattended.watch()
        self.now += 100
        self.assertIsNone(unattended.ask_again())
        self.assertFalse(unattended.is_waiting)
        self.assertEqual(self.problem(), evolve(self.problem(), reason="Refused.", tries_again=False))

    def test_replaced(self) -> None:
        """If another command has replaced or stopped the locked daemon, the vault is left as it is."""
        self.serve_locked()
        self.source.failures = [SEALED]
        unattended = self.unattended()
        unattended.ask()
        unattended.watch()
        release_lock(self.home)
        self.now += 100
        self.assertIsNone(unattended.ask_again())
        self.assertEqual((self.source.asked, unattended.is_waiting), (1, False))
        self.assertIsNone(read_unlock_problem(self.home))


class WaitTests(UnattendedCase):
    """A daemon that cannot start with a locked vault, because its store is on a server."""

    def wait(self) -> DataKey | None:
        """Ask once, and wait for the key."""
        unattended = self.unattended()
        self.assertIsNone(unattended.ask())
        key = wait_for_key(self.cli_context(), unattended)
        self.assertFalse(unattended.is_waiting)
        return key

    def test_recovers(self) -> None:
        """The key is returned when the server answers again."""
        self.source.failures = [SEALED] * 4
        self.opens(self.wait())

    def test_refused(self) -> None:
        """A refusal ends the wait."""
        self.source.failures = [SEALED, Forbidden("Refused.")]
        self.assertIsNone(self.wait())

    def test_started(self) -> None:
        """A daemon that a person starts meanwhile ends the wait."""
        self.source.failures = [SEALED] * 100

        def sleep(seconds: float) -> None:
            self.now += seconds
            if self.now > 10:
                self.patch(supervise, "live_discovery", lambda _: True)

        self.patch(self, "sleep", sleep)
        self.assertIsNone(self.wait())
        self.assertLess(self.now, 15)


class CommandTests(UnattendedCase):
    """What the commands do with it."""

    def start(self, *words: str) -> tuple[list[DataKey | None], str]:
        """Run a command that starts a daemon; return the keys that daemons got, and what was said."""
        given: list[DataKey | None] = []

        def start_with(_cli: CliContext, key: DataKey | None) -> Discovery:
            given.append(key)
            self.serve()
            return Discovery("http://127.0.0.1:9", "", 1, "life", "0.1.0", "", "k", None)

        from aileron.cli.daemon import command

        self.site.state = "locked"
        for module in (command, supervise):
            self.patch(module, "start_with", start_with)
            self.patch(module, "restart_with", start_with) if module is supervise else None
        _, _, err = self.command(*words)
        return given, err

    def test_start(self) -> None:
        """C{daemon start} asks once, then starts with a locked vault and says so; locked, it asks nothing."""
        self.source.failures = [SEALED]
        given, err = self.start("daemon", "start")
        self.assertEqual(given, [None])
        self.assertIn("The server is sealed.", err)
        self.assertIn("It is not tried again.", err)
        self.assertFalse(self.problem().tries_again)
        release_lock(self.home)
        self.home.discovery.unlink()
        self.assertEqual(self.start("daemon", "start", "--locked")[0], [None])
        self.assertEqual(self.source.asked, 1)
        self.assertIsNone(read_unlock_problem(self.home))

    def test_started_unlocked(self) -> None:
        """A source that answers gives the key to the daemon; a passphrase that is given comes first."""
        given, _ = self.start("daemon", "start")
        self.opens(given[0])

    def test_status(self) -> None:
        """C{status} and C{doctor} say why the vault is still locked, also while no daemon runs."""
        write_unlock_problem(self.home, UnlockProblem("The server is sealed.", True, "2026-01-01T00:00:00.000000Z"))
        self.assertIn("The server is sealed. Aileron tries again by itself.", self.command("status")[2])
        code, out, _ = self.command("doctor", "--offline")
        self.assertIn("No key source has unlocked the vault. The server is sealed.", out)
        self.assertEqual(code, 1)

    def test_unreadable(self) -> None:
        """What is stored is for information only: a damaged file says nothing."""
        for data in (b"", b"[]", b"{}", b"\xff"):
            self.home.unlocking.write_bytes(data)
            self.assertIsNone(read_unlock_problem(self.home))
