"""Of addresses: public, private, and those in disguise."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._address import permitted

PUBLIC = ("1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:1.1.1.1", "2002:101:101::1")
PRIVATE = (
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.0.9",
    "172.16.0.1",
    "192.168.0.1",
    "::1",
    "::7f00:1",
    "::ffff:192.168.0.1",
    "64:ff9b::7f00:1",
    "2002:a00:1::",
    "fd00::1",
)
NEVER = (
    "0.0.0.0",
    "169.254.169.254",
    "224.0.0.1",
    "::",
    "::ffff:0.0.0.0",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "localhost",
    "127.1",
    "0x7f.0.0.1",
    "",
)


class PermittedTests(SynchronousTestCase):
    """Which addresses may be connected to."""

    def test_public(self) -> None:
        """A public address is for everybody, and never without TLS."""
        for address in PUBLIC:
            self.assertTrue(permitted(address, private=False, plain=False), address)
            self.assertFalse(permitted(address, private=True, plain=True), address)

    def test_private(self) -> None:
        """A private address, also one inside an IPv6 address, only where that is declared."""
        for address in PRIVATE:
            self.assertFalse(permitted(address, private=False, plain=False), address)
            self.assertTrue(permitted(address, private=True, plain=False), address)

    def test_never(self) -> None:
        """Some are for nobody: link-local, multicast, unspecified, and whatever is no address."""
        for address in NEVER:
            self.assertFalse(permitted(address, private=True, plain=False), address)

    def test_plain(self) -> None:
        """Without TLS only loopback will do, and only where private networks are declared."""
        self.assertTrue(permitted("127.0.0.1", private=True, plain=True))
        self.assertFalse(permitted("127.0.0.1", private=False, plain=True))
        self.assertFalse(permitted("10.0.0.1", private=True, plain=True))

    @settings(deadline=None, max_examples=60)
    @given(st.ip_addresses(v=4))
    def test_disguises(self, address: IPv4Address) -> None:
        """An IPv4 address is judged alike in each of its IPv6 disguises."""
        for prefix, shift in ((0xFFFF << 32, 0), (0x64FF9B << 96, 0), (0x2002 << 112, 80)):
            disguised = str(IPv6Address(prefix | int(address) << shift))
            for private in (False, True):
                expected = permitted(str(address), private=private, plain=False)
                self.assertEqual(expected, permitted(disguised, private=private, plain=False), disguised)
