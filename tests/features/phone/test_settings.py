"""The key C{phone} of the configuration."""

from __future__ import annotations

from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.phone.values import PhoneSettings, PhoneTls
from tests.daemon.test_config import ConfigCase


class SettingsTests(ConfigCase):
    """The key C{phone}."""

    def found(self, text: str) -> PhoneSettings:
        """The settings in a text."""
        settings: PhoneSettings = read_config(text, FeatureSet()).of_features["phone"]
        return settings

    def test_absent(self) -> None:
        """Without the key there is no public name."""
        self.assertNotIn("phone", read_config("", FeatureSet()).of_features)

    def test_url(self) -> None:
        """The address is an origin: the port is left out where it is 443, and the name is in lower case."""
        plain = self.found("phone:\n  public_url: https://Phone.Example.org/\n")
        self.assertEqual(plain, PhoneSettings("https://phone.example.org"))
        self.assertEqual((plain.host, plain.authority), ("phone.example.org", "phone.example.org"))
        other = self.found("phone:\n  public_url: https://box.tail1.ts.net:8443\n  tls: proxy\n  listen: tcp:9443\n")
        self.assertEqual(other, PhoneSettings("https://box.tail1.ts.net:8443", "tcp:9443", PhoneTls.PROXY))
        self.assertEqual((other.host, other.authority), ("box.tail1.ts.net", "box.tail1.ts.net:8443"))

    def test_wrong(self) -> None:
        """An address that no passkey or no phone can use is refused, with its line."""
        for url in (
            "http://phone.example.org",
            "https://192.168.1.5",
            "https://[::1]",
            "https://localhost",
            "https://x.aileron.localhost",
            "https://phone",
            "https://phone.example.org/inbox",
            "https://phone.example.org/?a=b",
            "https://me@phone.example.org",
            "phone.example.org",
        ):
            self.refused(f"phone:\n  public_url: '{url}'\n", 2, "phone.public_url")
        self.refused("phone:\n  public_url: https://a.example\n  tls: maybe\n", 3, "phone.tls")
        self.refused("phone:\n  public_url: https://a.example\n  listen: unix:/tmp/x\n", 3, "phone.listen")
        self.refused("phone:\n  tls: own\n", 2, "must have a public_url")
