"""Programs of connectors where sandboxes are on, off, or made by another feature."""

from __future__ import annotations

import os
from typing import Any

from attrs import frozen
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from aileron.connectors import system_transport
from aileron.daemon._connectors import ConnectorMaker
from aileron.features import Feature, FeatureSet
from aileron.features.sandbox.enclosing import ProgramSandboxes
from aileron.features.sandbox.sandbox import Sandbox
from aileron.model.errors import NotFound
from aileron.model.interfaces.connectors import ISandboxes


@implementer(ISandboxes)
@frozen
class OtherSandboxes:
    """Sandboxes of another feature, which name what they are asked for."""

    def enclose(self, directory: str, network: bool, repository: bool, *, state: str, in_thread: Any) -> Any:
        return directory, network, repository, state


class OtherFeature(Feature):
    """A feature of another package that makes sandboxes."""

    name = "other"
    summary = "Makes sandboxes."

    def find_sandboxes(self, reactor: Any, environment: Any) -> ISandboxes:
        return OtherSandboxes()


class EnclosingTests(SynchronousTestCase):
    """From the features to the sandbox of a program."""

    def maker(self, features: FeatureSet) -> ConnectorMaker:
        """What makes connectors in a daemon with these features."""
        clock: Any = Clock()
        return ConnectorMaker(clock, system_transport(clock, lambda: ()), "/home/me/.aileron", features=features)

    def test_contract(self) -> None:
        """What the built-in feature returns is what the contract says."""
        verifyObject(ISandboxes, ProgramSandboxes(Sandbox(None, "/usr/bin/bwrap", "/usr/bin/python3", b""), os.environ))
        verifyObject(ISandboxes, OtherSandboxes())

    def test_off(self) -> None:
        """With the feature off there are no sandboxes, as on a machine that makes none, and the log says so once."""
        features = FeatureSet().without("sandbox")
        with self.assertRaises(NotFound):
            features.find_sandboxes(None, os.environ)
        maker = self.maker(features)
        self.assertIsNone(maker.sandbox)
        with self.assertRaises(AssertionError):
            maker.enclose("/work", False, False)

    def test_other(self) -> None:
        """A feature of another package can make them instead; what a program is given comes of the daemon."""
        found = self.maker(FeatureSet((OtherFeature(),))).enclose("/work", True, False)
        self.assertEqual(found, ("/work", True, False, "/home/me/.aileron"))
