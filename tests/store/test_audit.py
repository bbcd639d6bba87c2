"""The record over SQLite does what every record must."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.interfaces import IAudit
from aileron.testing import AuditContract, memory_store


class SQLiteAuditTests(AuditContract, SynchronousTestCase):
    """The contract."""

    def make_audit(self) -> IAudit:
        """Of a store in a temporary file."""
        return memory_store(self).audit
