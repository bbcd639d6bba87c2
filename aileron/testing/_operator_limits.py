"""The operator's pauses and caps in memory, and the tests that every L{IOperatorLimits} must pass."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.model.actions import Cap
from aileron.model.authority import OwnCap, Pause
from aileron.model.errors import StoreUnavailable, VaultLocked
from aileron.model.interfaces.authority import IOperatorLimits

from ._case import VaultCase
from ._examples import NOON
from ._vault import KeptInMemory, MemoryVault


@implementer(IOperatorLimits)
class MemoryOperatorLimits(KeptInMemory):
    """Pauses and caps in memory."""

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
    """Return a pause of everything and a pause of one session."""
    return Pause(NOON, "operator-1", "look at this"), Pause(NOON, "session-1", None, "session-1")


def example_caps() -> tuple[OwnCap, ...]:
    """Return a cap for all actions and a cap per recipient for one action."""
    recipients = Cap(3, 86_400.0, argument="to", per_session=True)
    return (
        OwnCap(Cap(100, 3600.0), NOON, "operator-1"),
        OwnCap(recipients, NOON, "operator-1", "ship-update"),
    )


class OperatorLimitsContract(VaultCase):
    """Tests of L{IOperatorLimits}.

    Mix into a test case whose L{make_operator_limits} returns those of an unlocked vault.
    """

    def make_operator_limits(self) -> IOperatorLimits:
        """Return limits without pauses and caps."""
        raise NotImplementedError

    def test_provides(self) -> None:
        """The implementation provides L{IOperatorLimits}."""
        self.assertTrue(verifyObject(IOperatorLimits, self.make_operator_limits()))

    def test_kept(self) -> None:
        """New pauses and caps replace all earlier ones."""
        limits = self.make_operator_limits()
        self.assertEqual((limits.pauses(), limits.caps()), ((), ()))
        limits.keep_pauses(example_pauses())
        limits.keep_caps(example_caps()[::-1])
        self.assertEqual((limits.pauses(), limits.caps()), (example_pauses(), example_caps()))
        limits.keep_pauses(example_pauses()[:1])
        limits.keep_caps(())
        self.assertEqual((limits.pauses(), limits.caps()), (example_pauses()[:1], ()))

    def test_locked_limits(self) -> None:
        """While locked, verified pauses can be read, and changes are refused."""
        limits = self.make_operator_limits()
        limits.keep_pauses(example_pauses())
        self.lock()
        self.assertRaises(VaultLocked, limits.keep_pauses, ())
        self.assertRaises(VaultLocked, limits.keep_caps, ())
        self.assertEqual(limits.pauses(), example_pauses())

    def test_full_disk(self) -> None:
        """If a write fails, the limits are unchanged."""
        limits = self.make_operator_limits()
        limits.keep_pauses(example_pauses())
        self.break_disk()
        self.assertRaises(StoreUnavailable, limits.keep_pauses, ())
        self.assertRaises(StoreUnavailable, limits.keep_caps, example_caps())
        self.assertEqual((limits.pauses(), limits.caps()), (example_pauses(), ()))
