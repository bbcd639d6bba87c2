"""Limits, prices and bounds in the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aileron.base.yaml_keys import NotConfig
from aileron.features.spending.values import Per, Price, Runaway, SpendSettings, Unit
from tests.features.gateway.test_settings import GatewayCase

from .case import limit


class SpendSettingsTests(GatewayCase):
    """The keys of this feature."""

    def said(self, text: str) -> SpendSettings:
        """What a configuration says."""
        found = self.read(f"gateway:\n{text}")
        keys: Mapping[str, Any] = {"limits": (), "prices": {}, "runaway": Runaway()}
        return SpendSettings(*(found.find_setting(*each) for each in keys.items()))

    def test_limits(self) -> None:
        """A limit has a unit, a span, and what it is for."""
        found = self.said(
            "  limits:\n  - {tokens: 5000000}\n  - {per: session, requests: 300}\n"
            "  - {per: request, money: 0.50, provider: openai, model: 'gpt-5*'}\n"
        )
        self.assertEqual(
            found.limits,
            (
                limit(5_000_000),
                limit(300, Unit.REQUESTS, Per.SESSION),
                limit(500_000, Unit.MONEY, Per.REQUEST, "openai", "gpt-5*"),
            ),
        )
        self.assertEqual(found.limits[2].describe(), "money in one request for openai, model gpt-5*")

    def test_prices(self) -> None:
        """Of several patterns the longest counts; a model that none covers has no price."""
        found = self.said(
            "  prices:\n    '*': {input: 1, output: 1}\n    gpt-5*: {input: 1.25, output: 10, cached: 0.125}\n"
            "    gpt-5-mini: {input: 0.25, output: 2}\n"
        )
        self.assertEqual(found.find_price("gpt-5-2026"), Price(1.25, 10.0, 0.125))
        self.assertEqual(found.find_price("gpt-5-mini"), Price(0.25, 2.0, 0.25))
        self.assertEqual(found.find_price("other"), Price(1.0, 1.0, 1.0))
        self.assertIsNone(SpendSettings().find_price("other"))

    def test_runaway(self) -> None:
        """Both bounds are off unless they are set."""
        self.assertEqual(self.said("  accounting: true").runaway, Runaway())
        self.assertEqual(self.said("  runaway: {same_requests: 20, per_minute: 120}").runaway, Runaway(20, 120))

    def test_faults(self) -> None:
        """Anything else is refused, with its line."""
        for text in (
            "limits: 7",
            "limits: [7]",
            "limits: [{}]",
            "limits: [{tokens: 1, requests: 1}]",
            "limits: [{tokens: 0}]",
            "limits: [{tokens: 1e3}]",
            "limits: [{tokens: -1}]",
            "limits: [{tokens: '1'}]",
            "limits: [{money: 0}]",
            "limits: [{money: .inf}]",
            "limits: [{money: .nan}]",
            "limits: [{money: -1}]",
            "limits: [{per: hour, tokens: 1}]",
            "limits: [{per: request, requests: 1}]",
            "limits: [{tokens: 1, model: 'a b'}]",
            "limits: [{tokens: 1, model: 'a*b'}]",
            "limits: [{tokens: 1, provider: 'A'}]",
            "limits: [{tokens: 1}, {tokens: 2}]",
            "limits: [{tokens: 1, unknown: 2}]",
            "prices: {m: {input: 1}}",
            "prices: {m: {input: -1, output: 1}}",
            "prices: {m: {input: .nan, output: 1}}",
            "prices: {'a b': {input: 1, output: 1}}",
            "prices: []",
            "runaway: {same_requests: 0}",
            "runaway: {other: 1}",
            "runaway: on",
        ):
            fault = self.assertRaises(NotConfig, self.said, f"  {text}\n")
            self.assertEqual(fault.line, 2, text)
