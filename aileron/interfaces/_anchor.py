"""Where checkpoints are kept that nobody on this machine can take back."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import Checkpoint


class IAnchor(Interface):
    """A place of the operator's choice that is told of every checkpoint."""

    def tell(checkpoint: Checkpoint) -> None:
        """Have C{checkpoint} kept there.  It returns at once and never raises: what fails is logged and tried again."""
