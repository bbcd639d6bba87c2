"""Of declared hosts that stand for several."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import covers_host


class CoveredHostTests(SynchronousTestCase):
    """L{covers_host}."""

    def test_plain(self) -> None:
        """A host stands for itself alone."""
        self.assertTrue(covers_host("api.example:443", "api.example:443"))
        for other in ("api.example", "api.example:8443", "x.api.example:443", "xapi.example:443", ""):
            self.assertFalse(covers_host("api.example:443", other), other)

    def test_wildcard(self) -> None:
        """A wildcard stands for exactly one label."""
        self.assertTrue(covers_host("*.files.example", "acme.files.example"))
        self.assertTrue(covers_host("*.files.example:8443", "acme.files.example:8443"))
        for other in (
            "files.example",
            ".files.example",
            "a.b.files.example",
            "xfiles.example",
            "acme.files.example:443",
            "acme.files.example.evil.example",
            "acme",
            "",
        ):
            self.assertFalse(covers_host("*.files.example", other), other)
