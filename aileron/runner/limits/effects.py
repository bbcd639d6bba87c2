"""Whether effects may begin now."""

from __future__ import annotations

from attrs import define, field

from aileron.interfaces import IVault
from aileron.values import VaultState


@define(eq=False)
class EffectGate:
    """One answer for all who ask.

    :ivar could_act: whether the last look found that they may; C{False} has the next look take up what waits.
    """

    _vault: IVault
    could_act: bool = field(default=False, init=False)
    _held: bool = field(default=False, init=False)

    def may_act(self) -> bool:
        """Whether effects may begin now."""
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def hold(self) -> None:
        """Let none begin any more in this life."""
        self._held = True

    def missed(self) -> None:
        """The vault could not be used: have the next look take up what waits for it."""
        self.could_act = False
