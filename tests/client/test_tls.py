"""Whom we take for the daemon, and why not."""

from __future__ import annotations

from twisted.internet.error import ConnectionDone
from twisted.trial.unittest import SynchronousTestCase

from aileron.client._tls import why_untrusted
from aileron.client._transport import NotConnected


class Error(Exception):
    """What breaks TLS, as Twisted hands it on."""

    __module__ = "OpenSSL.SSL"


class VerificationError(Exception):
    """The same, where a certificate is another's."""

    __module__ = "service_identity.exceptions"


UNVERIFIED = Error([("SSL routines", "", "certificate verify failed")])
BROKEN = Error([("SSL routines", "", "wrong version number")])


class WhyTests(SynchronousTestCase):
    """Why somebody was not let in."""

    def test_certificate(self) -> None:
        """What is wrong with a certificate is told apart, whenever it is found."""
        for error in (UNVERIFIED, NotConnected(UNVERIFIED)):
            self.assertIn("an authority that is not trusted here", str(why_untrusted(error)))
        for named in (VerificationError(), NotConnected(VerificationError())):
            self.assertIn("another name", str(why_untrusted(named)))

    def test_broken(self) -> None:
        """What breaks TLS says that it was never spoken before the handshake is over; later it says nothing of whom."""
        self.assertIn("does not speak TLS", str(why_untrusted(NotConnected(BROKEN))))
        self.assertIsNone(why_untrusted(BROKEN))

    def test_gone(self) -> None:
        """Whoever hangs up has proved nothing, and is not said to be somebody else."""
        self.assertIsNone(why_untrusted(NotConnected(ConnectionDone())))
        self.assertIsNone(why_untrusted(ConnectionDone()))
