"""The settings of the listener for the phone's pages."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from aileron.base.addresses import read_origin
from aileron.model.vault import Scope

TARGET = "phone://tls"
"""The target that the certificate's key is bound to in the vault."""

SERVICE, IDENTITY = "phone", "tls"


class PhoneTls(StrEnum):
    """The place where TLS ends. C{OWN}: at the daemon. C{PROXY}: at a proxy, which connects to the daemon by TLS again.

    C{NONE}: at a proxy that reaches the daemon by plain HTTP.
    """

    OWN = "own"
    PROXY = "proxy"
    NONE = "none"


@frozen
class PhoneSettings:
    """The settings of the phone's pages.

    :ivar public_url: the origin of the pages, C{https://NAME} or C{https://NAME:PORT}.
    :ivar listen: the Twisted endpoint string of the listener.
    """

    public_url: str
    listen: str = "tcp:8443:interface=127.0.0.1"
    tls: PhoneTls = PhoneTls.OWN

    @property
    def host(self) -> str:
        """The public host name, which is also the WebAuthn rpId of its passkeys."""
        return read_origin(self.public_url).host

    @property
    def authority(self) -> str:
        """The value of the C{Host} header: the name, with the port unless it is 443."""
        return read_origin(self.public_url).authority

    def scope(self) -> Scope:
        """Return the scope that the key of the TLS certificate is encrypted for in the vault."""
        return Scope((f"{self.host}:443",), self.public_url, "key", "{key}")
