"""What kind of network a host or an address is in, in disguise or not."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import (
    Network,
    is_loopback,
    may_be_loopback,
    may_be_private,
    network_of,
    read_address,
    read_address_block,
    read_host,
)
from tests.extent import examples

from .test_urls import CORPUS

_DISGUISES = ((0xFFFF << 32, 0), (0x64FF9B << 96, 0), (0x2002 << 112, 80))
"""What makes an IPv6 address of an IPv4 address: mapped, NAT64, 6to4."""


class NetworkTests(SynchronousTestCase):
    """Public, private, loopback, or for nobody."""

    def test_corpus(self) -> None:
        """Each address of the corpus is in its network; what is none is nowhere."""
        for address, network in CORPUS["networks"]:
            self.assertIs(network_of(address), Network[network], address)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.ip_addresses(v=4))
    def test_disguises(self, address: IPv4Address) -> None:
        """An IPv4 address is in the same network in each of its IPv6 disguises, and never certain to be loopback."""
        for prefix, shift in _DISGUISES:
            disguised = str(IPv6Address(prefix | int(address) << shift))
            self.assertIs(network_of(disguised), network_of(str(address)), disguised)
            self.assertEqual(may_be_loopback(disguised), may_be_loopback(str(address)), disguised)
            self.assertFalse(is_loopback(disguised), disguised)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.ip_addresses())
    def test_address(self, address: IPv4Address | IPv6Address) -> None:
        """An address is read as what it is; with a zone, or spelled shortly, it is none."""
        self.assertEqual(read_address(str(address)), address)
        self.assertIsNone(read_address(f"{address}%eth0"))
        self.assertIsNone(read_address(str(int(address))))

    @settings(deadline=None, max_examples=examples(100))
    @given(st.ip_addresses())
    def test_block(self, address: IPv4Address | IPv6Address) -> None:
        """A block is read with whatever address of it is written; with a zone, or as anything else, it is none."""
        half = address.max_prefixlen // 2
        block, alone = read_address_block(f"{address}/{half}"), read_address_block(str(address))
        assert block is not None
        assert alone is not None
        self.assertEqual((block.prefixlen, alone.num_addresses), (half, 1))
        self.assertTrue(address in block and address in alone)
        for text in (f"{address}%eth0/{half}", f"{address}/{half}/8", f"[{address}]", str(int(address)), "example.com"):
            self.assertIsNone(read_address_block(text), text)


class LoopbackTests(SynchronousTestCase):
    """Whether a host is this machine, or may be."""

    def test_corpus(self) -> None:
        """Only what is certain counts where something is allowed, whatever is possible where something is refused."""
        for host, word, why in CORPUS["loopback"]:
            expected = {"is": (True, True), "may be": (False, True), "is not": (False, False)}[word]
            self.assertEqual((is_loopback(host), may_be_loopback(host)), expected, f"{host}: {why}")

    @settings(deadline=None, max_examples=examples(200))
    @given(st.one_of(st.ip_addresses().map(str), st.text("lohcast127.:0[]", max_size=12)))
    def test_certain_is_possible(self, host: str) -> None:
        """What is this machine for certain may be it, and may be private."""
        if is_loopback(host):
            self.assertTrue(may_be_loopback(host))
        if may_be_loopback(host):
            self.assertTrue(may_be_private(host))


class PrivateTests(SynchronousTestCase):
    """What a person is told to look at twice."""

    def test_private(self) -> None:
        """Names of local networks, what is not public, and what nobody can read may be private; all else is not."""
        for host in (
            *("localhost", "a.localhost", "nas.local", "wiki.internal", "nas.lan", "nas.home.arpa", "wiki.intranet"),
            *("NAS.local.", "10.0.0.1", "127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "fd00::1", "fe80::1%eth0"),
            *("::ffff:10.0.0.1", "64:ff9b::a00:1", "127.1", "0x7f.1", "2130706433", "a b", ""),
        ):
            self.assertTrue(may_be_private(host), host)
        for host in ("api.example", "notlocal", "local.example", "internal.example.com", "1.1.1.1", "2606:4700::1111"):
            self.assertFalse(may_be_private(host), host)
        self.assertIs(network_of(read_host("[::FFFF:10.0.0.1]")), Network.PRIVATE)
