"""Brakes in memory, and what every keeper of them must do."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.errors import StoreUnavailable, VaultLocked
from aileron.interfaces import IBrakes
from aileron.values import Cap, OwnCap, Pause

from ._case import VaultCase
from ._examples import NOON
from ._vault import KeptInMemory, MemoryVault


@implementer(IBrakes)
class MemoryBrakes(KeptInMemory):
    """Brakes, kept nowhere."""

    def __init__(self, vault: MemoryVault | None = None) -> None:
        super().__init__(vault)
        self._pauses: tuple[Pause, ...] = ()
        self._caps: tuple[OwnCap, ...] = ()

    def pauses(self) -> tuple[Pause, ...]:
        return self._pauses if self._vault.ever_unlocked() else ()

    def keep_pauses(self, pauses: Sequence[Pause]) -> None:
        self.check_writable()
        self._pauses = tuple(pauses)

    def caps(self) -> tuple[OwnCap, ...]:
        return self._caps if self._vault.ever_unlocked() else ()

    def keep_caps(self, caps: Sequence[OwnCap]) -> None:
        self.check_writable()
        self._caps = tuple(sorted(caps, key=lambda each: each.name))


def example_pauses() -> tuple[Pause, ...]:
    """Everything, and one session."""
    return Pause(NOON, "operator-1", "look at this"), Pause(NOON, "session-1", None, "session-1")


def example_caps() -> tuple[OwnCap, ...]:
    """One for all actions, and one for each recipient of one."""
    recipients = Cap(3, 86_400.0, argument="to", per_session=True)
    return (
        OwnCap(Cap(100, 3600.0), NOON, "operator-1"),
        OwnCap(recipients, NOON, "operator-1", "ship-update"),
    )


class BrakesContract(VaultCase):
    """Mix into a test case whose L{make_brakes} makes an unlocked vault's brakes, with nothing on them."""

    def make_brakes(self) -> IBrakes:
        """Brakes."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """It provides IBrakes."""
        self.assertTrue(verifyObject(IBrakes, self.make_brakes()))

    def test_kept(self) -> None:
        """What was kept is told, in the place of all that was kept before."""
        brakes = self.make_brakes()
        self.assertEqual((brakes.pauses(), brakes.caps()), ((), ()))
        brakes.keep_pauses(example_pauses())
        brakes.keep_caps(example_caps()[::-1])
        self.assertEqual((brakes.pauses(), brakes.caps()), (example_pauses(), example_caps()))
        brakes.keep_pauses(example_pauses()[:1])
        brakes.keep_caps(())
        self.assertEqual((brakes.pauses(), brakes.caps()), (example_pauses()[:1], ()))

    def test_locked_brakes(self) -> None:
        """While locked what was verified is still known, and nothing changes."""
        brakes = self.make_brakes()
        brakes.keep_pauses(example_pauses())
        self.lock()
        self.assertRaises(VaultLocked, brakes.keep_pauses, ())
        self.assertRaises(VaultLocked, brakes.keep_caps, ())
        self.assertEqual(brakes.pauses(), example_pauses())

    def test_full_disk(self) -> None:
        """What could not be written is not believed, and nothing is lifted."""
        brakes = self.make_brakes()
        brakes.keep_pauses(example_pauses())
        self.break_disk()
        self.assertRaises(StoreUnavailable, brakes.keep_pauses, ())
        self.assertRaises(StoreUnavailable, brakes.keep_caps, example_caps())
        self.assertEqual((brakes.pauses(), brakes.caps()), (example_pauses(), ()))
