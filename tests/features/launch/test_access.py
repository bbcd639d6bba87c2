"""The hosts and services that an agent in a sandbox may reach, as the user names them."""

from __future__ import annotations

import click
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.access import SandboxAccess, read_access, read_hosts


class AccessTests(SynchronousTestCase):
    """L{read_access}."""

    def test_read(self) -> None:
        """Words are separated by commas; a service that is named twice is opened once."""
        found = read_access("npm, a.example", "github,jira, github", sandbox=True)
        self.assertEqual(found, SandboxAccess(("npm", "a.example"), ("github", "jira")))
        self.assertEqual(found.features(), {"egress": True, "own_tools": True})
        self.assertEqual(read_access(None, None, sandbox=False), SandboxAccess())
        self.assertEqual(read_access(None, None, sandbox=True), SandboxAccess(configured=True))
        self.assertEqual(read_access(None, "none", sandbox=True), SandboxAccess())
        self.assertEqual((read_hosts(None), read_hosts("npm")), ((), ("npm",)))

    def test_sandbox(self) -> None:
        """Both need a sandbox, and say why."""
        for egress, services, says in (("npm", None, "whole network"), (None, "github", "keys of yours")):
            error = self.assertRaises(click.UsageError, read_access, egress, services, sandbox=False)
            self.assertIn("requires --sandbox", error.message)
            self.assertIn(says, error.message)

    def test_nothing(self) -> None:
        """An option that names nothing is a mistake."""
        for egress, services in ((" ,", None), (None, ","), ("no such preset", None)):
            self.assertRaises(click.UsageError, read_access, egress, services, sandbox=True)
