"""The key C{oidc} of the configuration."""

from __future__ import annotations

from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.oidc.values import OidcSettings
from aileron.model.people import Role
from tests.daemon.test_config import ConfigCase

LEAST = "oidc:\n  issuer: https://login.example.org\n  client_id: aileron\n  roles: {ops: approver}\n"


class SettingsTests(ConfigCase):
    """The key C{oidc}."""

    def found(self, text: str) -> OidcSettings:
        """The settings in a text."""
        settings: OidcSettings = read_config(text, FeatureSet()).of_features["oidc"]
        return settings

    def test_absent(self) -> None:
        """Without the key there is no provider."""
        self.assertNotIn("oidc", read_config("", FeatureSet()).of_features)

    def test_least(self) -> None:
        """An issuer, a client and a role are enough."""
        expected = OidcSettings("https://login.example.org", "aileron", roles={"ops": Role.APPROVER})
        self.assertEqual(self.found(LEAST), expected)
        self.assertEqual(expected.name, "login.example.org")

    def test_whole(self) -> None:
        """Each key is read. The issuer is kept as it is written; the scopes have C{openid}."""
        text = (
            "oidc:\n  issuer: https://login.example.org/realms/team/\n  client_id: a\n  title: Example\n"
            "  scopes: [email, offline_access]\n  groups_claim: realm_access.roles\n"
            "  roles: {/ops team: viewer}\n  emails: {alice@example.org: administrator}\n"
            "  domains: [example.org]\n  recheck_minutes: 5\n  private_network: true\n"
        )
        expected = OidcSettings(
            "https://login.example.org/realms/team/",
            "a",
            "Example",
            ("openid", "email", "offline_access"),
            "realm_access.roles",
            {"/ops team": Role.VIEWER},
            {"alice@example.org": Role.ADMINISTRATOR},
            ("example.org",),
            5,
            private_network=True,
        )
        self.assertEqual(self.found(text), expected)

    def test_wrong(self) -> None:
        """What cannot be used is refused, with its line."""
        for issuer in (
            "http://login.example.org",
            "login.example.org",
            "https://a.example/?x=y",
            "https://me@a.example",
        ):
            self.refused(LEAST.replace("https://login.example.org", issuer), 2, "oidc.issuer")
        for key, value in (
            ("roles", "{ops: owner}"),
            ("roles", "[ops]"),
            ("emails", "{Alice@example.org: viewer}"),
            ("emails", "{alice: viewer}"),
            ("domains", "[localhost]"),
            ("domains", "example.org"),
            ("recheck_minutes", "0"),
            ("recheck_minutes", "721"),
            ("scopes", "['a b']"),
            ("title", "<b>"),
            ("client_secret", "x"),
        ):
            self.refused(LEAST.replace("  roles: {ops: approver}\n", f"  {key}: {value}\n"), 4, "oidc")
        self.refused(LEAST.replace("  roles: {ops: approver}\n", ""), 2, "roles or emails")
        self.refused(LEAST.replace("  client_id: aileron\n", ""), 2, "client_id")
        self.refused(LEAST.replace("login.example.org", "127.0.0.1:8080"), 2, "private_network")
