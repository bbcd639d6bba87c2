"""Providers: what binds a credential to one, and where it goes then."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway.values import ANTHROPIC, OPENAI, GatewaySettings, Provider
from aileron.model.vault import Scope


class ScopeTests(SynchronousTestCase):
    """Where a credential goes."""

    def test_place(self) -> None:
        """A key stands where the provider's dialect has it."""
        for provider, expected in (
            (OPENAI, Scope(("api.openai.com:443",), OPENAI.base_url, "authorization", "Bearer {key}")),
            (ANTHROPIC, Scope(("api.anthropic.com:443",), ANTHROPIC.base_url, "x-api-key", "{key}")),
        ):
            self.assertEqual(expected, provider.scope())

    def test_hosts(self) -> None:
        """The host is the base URL's, with its port, whatever path follows."""
        for url, host in (
            ("https://groq.invalid/openai", "groq.invalid:443"),
            ("https://groq.invalid:8443", "groq.invalid:8443"),
            ("http://127.0.0.1", "127.0.0.1:80"),
            ("http://[::1]:4000/v1", "[::1]:4000"),
        ):
            scope = evolve(OPENAI, base_url=url).scope()
            self.assertEqual(((host,), url), (scope.hosts, scope.base_url))

    def test_where_it_is_said_does_not_matter(self) -> None:
        """Two providers of one address, one path and one dialect have one scope; another path makes another."""
        there = Provider("groq", "https://groq.invalid/openai", "/groq")
        self.assertEqual(there.scope(), evolve(there, prefix="/other", credential="x").scope())
        self.assertNotEqual(there.scope(), evolve(there, base_url="https://groq.invalid/other").scope())


class BoundTests(SynchronousTestCase):
    """What a binding names."""

    def test_found(self) -> None:
        """A provider is found by the name that a binding has for it, and by no other."""
        settings = GatewaySettings()
        self.assertEqual(ANTHROPIC, settings.bound_by("gateway://anthropic"))
        for name in ("anthropic", "gateway://Anthropic", "gateway://", "builtin://anthropic", "gateway://groq"):
            self.assertIsNone(settings.bound_by(name))
