"""The commands C{aileron gateway limit} and C{aileron gateway usage}."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.daemon import CommandCase

_PATH = "/v1/gateway/limits"
_TOTAL = {
    "requests": 3,
    "input_tokens": 1200,
    "output_tokens": 34,
    "cached_tokens": 0,
    "estimated_requests": 1,
    "cost_microdollars": 1_500_000,
    "unpriced_requests": 1,
}


def item(**changed: Any) -> dict[str, Any]:
    """A limit as the daemon shows it."""
    return {
        "id": "0123abcd",
        "unit": "tokens",
        "per": "day",
        "provider": None,
        "model": None,
        "source": "command",
        "window": "2026-03-01",
        "limit": 100,
        "most": 100,
        "used": 100,
        "held": 0,
        "reached": True,
        **changed,
    }


class LimitTests(CommandCase):
    """Limits."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.given(item())

    def given(self, *items: dict[str, Any], readable: bool = True) -> None:
        """What there is."""
        answer = {"items": list(items), "readable": readable}
        self.site.answer("GET", _PATH, answer)
        self.site.answer("POST", _PATH, answer)
        for each in items:
            self.site.answer("DELETE", f"{_PATH}/{each['id']}", answer)
            self.site.answer("POST", f"{_PATH}/{each['id']}/raise", {**each, "most": 200, "reached": False})

    def run_limit(self, *words: str, code: int = 0) -> str:
        """What a command prints."""
        found, out, err = self.as_operator("gateway", "limit", *words)
        self.assertEqual(found, code, err)
        return out + err

    def test_list(self) -> None:
        """Limits are listed with what was used; if they cannot be read it says so."""
        self.given(item(), item(id="x", unit="money", most=2_500_000, used=1, provider="open\u202eai", per="session"))
        text = self.run_limit("list")
        for part in ("100 tokens", "reached", "$2.50", "2026-03-01"):
            self.assertIn(part, text)
        self.assertNotIn("\u202e", text)
        self.given(readable=False)
        self.assertIn("aileron config trust", self.run_limit("list"))
        self.assertEqual(json.loads(self.as_operator("gateway", "limit", "list", "--json")[1])["items"], [])

    def test_set(self) -> None:
        """One unit is set, for what it is to count."""
        self.run_limit("set", "--per", "session", "--money", "2.50", "--model", "gpt-5*")
        self.run_limit("set", "--tokens", "7", "--provider", "openai")
        nothing = {"provider": None, "model": None}
        self.assertEqual(
            self.site.bodies("POST", _PATH),
            [
                {**nothing, "unit": "money", "per": "session", "most": 2_500_000, "model": "gpt-5*"},
                {**nothing, "unit": "tokens", "per": "day", "most": 7, "provider": "openai"},
            ],
        )
        for words in (
            (),
            ("--tokens", "1", "--requests", "2"),
            ("--tokens", "0"),
            ("--money", "-1"),
            ("--money", "nan"),
            ("--requests", "1", "--per", "request"),
            ("--tokens", "1", "--model", "a b"),
            ("--tokens", "1", "--provider", "A"),
        ):
            self.run_limit("set", *words, code=2)

    def test_remove(self) -> None:
        """A limit is removed by its ID."""
        self.assertIn("0123abcd", self.run_limit("remove", "0123abcd"))
        self.assertIn("no limit nope", self.run_limit("raise", "nope", code=1))

    def test_raise(self) -> None:
        """A limit is raised as it was shown, by an amount of its unit or as much again."""
        path = f"{_PATH}/0123abcd/raise"
        self.assertIn("100 tokens of 200 tokens used", self.run_limit("raise", "0123abcd"))
        self.run_limit("raise", "0123abcd", "--by", "5")
        day = {"window": "2026-03-01", "most": 100}
        self.assertEqual(self.site.bodies("POST", path), [{**day, "by": 100}, {**day, "by": 5}])
        for by in ("0", "-1", "x", "1.5", "9" * 30):
            self.run_limit("raise", "0123abcd", "--by", by, code=1)
        self.run_limit("raise", "0123abcd", "--session", "s1", code=1)

    def test_raise_session(self) -> None:
        """Of several sessions one must be specified, also one that used nothing yet."""
        self.given(*(item(per="session", window=each, unit="money", limit=2_000_000, most=3) for each in ("s1", "s2")))
        self.assertIn("--session", self.run_limit("raise", "0123abcd", code=1))
        self.run_limit("raise", "0123abcd", "--session", "s2", "--by", "0.5")
        self.run_limit("raise", "0123abcd", "--session", "s3")
        self.assertEqual(
            self.site.bodies("POST", f"{_PATH}/0123abcd/raise"),
            [
                {"window": "s2", "by": 500_000, "most": 3},
                {"window": "s3", "by": 2_000_000, "most": 2_000_000},
            ],
        )


class UsageTests(CommandCase):
    """What was used."""

    def test_usage(self) -> None:
        """It is a table with a sum, and for programs as the daemon says it."""
        self.serve()
        used = {"session_id": "S1", "agent": "cl\u202eaude", "provider": "openai", "model": "gpt-5", **_TOTAL}
        self.site.answer(
            "GET", "/v1/gateway/usage", {"day": "2026-03-01", "total": _TOTAL, "items": [used], "days": []}
        )
        code, out, err = self.as_operator("gateway", "usage")
        self.assertEqual(code, 0, err)
        for part in ("gpt-5", "$1.50 (1 without a price)"):
            self.assertIn(part, out)
        self.assertIn("Total: 3 requests, 1 of them estimated, 1,234 tokens", err)
        self.assertNotIn("\u202e", out + err)
        self.site.answer(
            "GET",
            "/v1/gateway/usage?day=2026-03-01",
            {"day": "2026-03-01", "total": _TOTAL, "items": [used], "days": []},
        )
        told = json.loads(self.as_operator("gateway", "usage", "--json", "--day", "2026-03-01")[1])
        self.assertEqual(told["total"], _TOTAL)
        self.site.answer("GET", "/v1/gateway/usage", {"day": "2026-03-01", "total": _TOTAL, "items": [], "days": []})
        self.assertIn("No LLM requests on 2026-03-01", self.as_operator("gateway", "usage")[1])
