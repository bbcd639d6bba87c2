"""The runner that other tests script is what it says."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.interfaces import IDecisions, IGrantService, ILimitService, IReconciliation, ISubmission, ITrustService
from aileron.testing import ScriptedRunner


class ScriptedRunnerTests(SynchronousTestCase):
    """L{ScriptedRunner}."""

    def test_interface(self) -> None:
        """It provides each of the runner's interfaces, whole."""
        for interface in (ISubmission, IDecisions, ITrustService, IGrantService, ILimitService, IReconciliation):
            self.assertTrue(verifyObject(interface, ScriptedRunner()))
