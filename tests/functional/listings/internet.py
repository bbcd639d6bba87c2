"""A network for a page's commands in which the hosts of services lead to the test's own server, by TLS."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator, IProtocolFactory
from twisted.internet.ssl import PrivateCertificate
from twisted.protocols.tls import TLSMemoryBIOFactory

from aileron.base.addresses import SYSTEM_BUNDLES
from tests.features.gateway.certificates import Authority
from tests.functional.case import FunctionalTestCase
from tests.functional.install import SANDBOX
from tests.functional.process import Command

ADDRESS = "93.184.215.14"
"""A public one, since connectors take no other: here it is that of the loopback device of another network."""
HTTPS = 443
_INSIDE = Path(__file__).with_name("inside.py")
_HOSTS = Path("/etc/hosts")
_OPENED_SECONDS = 60


@attrs.frozen
class Internet:
    """The network, as long as the test runs.

    Its commands see a file of hosts and the certificate authorities of the test, in place of the system's; nothing
    else of the machine is another.

    :ivar prefix: stands before a command that is to run in it.
    :ivar authority: a file with the certificate of the authority that vouches for the hosts.
    """

    prefix: Sequence[str]
    authority: Path

    @classmethod
    async def open(
        cls, test: FunctionalTestCase, hosts: Sequence[str], services: Mapping[int, IProtocolFactory]
    ) -> Internet:
        """Have these hosts, and no others, be served.

        :param services: by port; what is at that of HTTPS is behind TLS.
        """
        directory = test.home.root / "internet"
        directory.mkdir()
        known, authority = directory / "hosts", directory / "authority.pem"
        known.write_text(f"127.0.0.1 localhost\n{ADDRESS} {' '.join(hosts)}\n")
        authority.write_text(Authority.made().pem)
        for port, factory in services.items():
            _listen(test, str(directory / str(port)), _behind_tls(factory, hosts) if port == HTTPS else factory)
        (bundle, *_) = (each for each in SYSTEM_BUNDLES if os.path.exists(each))
        replaced = ((known, _HOSTS), (authority, Path(os.path.realpath(bundle))))
        command = Command(
            arguments=(
                *(str(SANDBOX), "--unshare-user", "--unshare-net", "--die-with-parent", "--dev-bind", "/", "/"),
                *("--cap-add", "CAP_NET_ADMIN", "--cap-add", "CAP_NET_BIND_SERVICE"),
                *(word for ours, theirs in replaced for word in ("--ro-bind", str(ours), str(theirs))),
                *("--", sys.executable, "-I", str(_INSIDE), ADDRESS, str(directory), *map(str, services)),
            ),
            environment=test.home.environment(),
            directory=test.home.project,
        )
        number = (await test.start(command).expect(r"process (\d+)\n", _OPENED_SECONDS))[1]
        prefix = ("/usr/bin/nsenter", "--preserve-credentials", "-U", "-m", "-n", "-w", "-t", number, "--")
        return cls(prefix, authority)


def _behind_tls(factory: IProtocolFactory, hosts: Sequence[str]) -> IProtocolFactory:
    certificate: Any = PrivateCertificate.loadPEM(Authority.made().issue(*hosts))
    made: Any = TLSMemoryBIOFactory(cast(IOpenSSLServerConnectionCreator, certificate.options()), False, factory)
    return cast(IProtocolFactory, made)


def _listen(test: FunctionalTestCase, path: str, factory: IProtocolFactory) -> None:
    reactor: Any = test.reactor
    port = reactor.listenUNIX(path, factory)
    test.addCleanup(lambda: maybeDeferred(port.stopListening))
