"""The routes of limits: the operator sets, removes and raises them; an agent sees none of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve

from aileron.features.spending.running import RunningSpending
from aileron.features.spending.values import Per, SpendLimit, Unit
from aileron.model.usage import Spent, Usage
from tests.api.case import ApiCase, Heard, running

from .case import limit
from .running import limiting, pass_request, use

_LIMITS, _USAGE = "/v1/gateway/limits", "/v1/gateway/usage"


class SpendRouteCase(ApiCase):
    """A daemon with limits, and an operator."""

    def setUp(self) -> None:
        super().setUp()
        self.directory = Path(self.mktemp())
        self.directory.mkdir()
        self.spending = self.limited()
        self.key = self.operator_token()

    def limited(self, *limits: SpendLimit) -> RunningSpending:
        """Have these limits in config.yaml."""
        self.spending = limiting(self.directory, self.store, self.clock, self.fresh_id, *limits)
        self.build(features=running(self.spending))
        return self.spending

    def ask(self, method: str, path: str = _LIMITS, body: Any = None) -> Heard:
        """Ask as the operator."""
        return self.operator.ask(method, path, self.key, body)

    def items(self) -> list[dict[str, Any]]:
        """The limits as they are listed."""
        found: list[dict[str, Any]] = self.ask("GET").json["items"]
        return found


class LimitTests(SpendRouteCase):
    """Limits."""

    def test_set(self) -> None:
        """A limit is set, replaced and removed, and each of it is on record."""
        body = {"unit": "tokens", "per": "session", "most": 100, "provider": None, "model": "gpt-5*"}
        answer = self.ask("POST", body=body)
        self.assertEqual(answer.status, 200, answer.json)
        (item,) = answer.json["items"]
        self.assertEqual((item["most"], item["source"], item["model"], item["window"]), (100, "command", "gpt-5*", ""))
        self.ask("POST", body={**body, "most": 200})
        (item,) = self.items()
        self.assertEqual(item["most"], 200)
        self.assertEqual(self.ask("DELETE", f"{_LIMITS}/{item['id']}").json["items"], [])
        self.assertEqual(self.ask("DELETE", f"{_LIMITS}/{item['id']}").status, 404)
        self.assertEqual(self.events().count("spending.changed"), 3)

    def test_faults(self) -> None:
        """What is no limit is refused, and changes nothing."""
        body = {"unit": "tokens", "per": "day", "most": 100}
        for changed in (
            {"most": 0},
            {"most": -1},
            {"most": 1.5},
            {"most": 10**18},
            {"unit": "words"},
            {"per": "hour"},
            {"unit": "requests", "per": "request"},
            {"model": 'a"b'},
            {"model": "a b"},
            {"provider": "A"},
            {"other": 1},
        ):
            self.assertEqual(self.ask("POST", body={**body, **changed}).status, 400, changed)
        self.assertEqual(self.items(), [])

    def test_config(self) -> None:
        """A limit of config.yaml is stricter than a command, and is not removed by one; a stricter one holds."""
        self.limited(limit(100))
        self.assertEqual(self.ask("POST", body={"unit": "tokens", "per": "day", "most": 200}).status, 409)
        (item,) = self.items()
        self.assertEqual(self.ask("DELETE", f"{_LIMITS}/{item['id']}").status, 409)
        self.ask("POST", body={"unit": "tokens", "per": "day", "most": 50})
        self.assertEqual([(each["most"], each["source"]) for each in self.items()], [(50, "command")])

    def test_agents(self) -> None:
        """An agent reads no limits, and sets none."""
        token = self.open_session()["token"]
        for method, path in (("GET", _LIMITS), ("POST", _LIMITS), ("GET", _USAGE), ("POST", f"{_LIMITS}/x/raise")):
            self.assertIn(self.agents.ask(method, path, token).status, {403, 404})
            self.assertIn(self.operator.ask(method, path, token).status, {401, 403})
        for method, path in (("POST", _LIMITS), ("DELETE", f"{_LIMITS}/x"), ("POST", f"{_LIMITS}/x/raise")):
            self.assertEqual(self.operator.ask(method, path, None).status, 401)

    def test_off(self) -> None:
        """Without the feature there is no route to use."""
        self.build(features=running())
        self.assertEqual(self.ask("GET").status, 404)


class RaiseTests(SpendRouteCase):
    """Limits that are reached, and raised."""

    def raised(self, item: dict[str, Any], by: Any = 50, **changed: Any) -> Heard:
        """Raise a limit."""
        body = {"window": item["window"], "by": by, "most": item["most"], **changed}
        return self.ask("POST", f"{_LIMITS}/{item['id']}/raise", body)

    def test_raised(self) -> None:
        """What is added holds for its session, also after a restart."""
        self.limited(limit(100, per=Per.SESSION))
        use(self.spending, "s1", Spent(1, 100))
        use(self.spending, "s2", Spent(1, 100))
        first, second = self.items()
        self.assertEqual((first["reached"], second["reached"]), (True, True))
        answer = self.raised(first)
        self.assertEqual((answer.status, answer.json["most"], answer.json["reached"]), (200, 150, False))
        self.assertEqual([each["most"] for each in self.items()], [150, 100])
        trust = self.spending._trust
        former = self.spending
        self.limited(limit(100, per=Per.SESSION))
        self.spending = evolve(former, gate=former.gate)
        self.assertIs(trust, former._trust)
        self.assertIn('window = "s1"', (self.directory / "spending.toml").read_text())

    def test_twice(self) -> None:
        """A second click on what was shown raises nothing."""
        self.limited(limit(100))
        (item,) = self.items()
        self.assertEqual(self.raised(item).status, 200)
        self.assertEqual(self.raised(item).status, 409)
        self.assertEqual(self.items()[0]["most"], 150)

    def test_not_raised(self) -> None:
        """What is no limit, no amount or no session is refused; if the trust is not stored, nothing is raised."""
        self.limited(limit(100), limit(5, per=Per.REQUEST))
        day, request = self.items()
        self.assertEqual(self.raised({**day, "id": "00000000"}).status, 404)
        self.assertEqual(self.raised(request).status, 409)
        for by in (0, -5, 10**18, "7"):
            self.assertEqual(self.raised(day, by=by).status, 400)
        for window in ('a"', "a\nb", "x" * 65):
            self.assertEqual(self.raised(day, window=window).status, 400)
        service: Any = self.spending._trust
        service.fails = True
        self.assertEqual(self.raised(day).status, 500)
        self.flushLoggedErrors()
        self.assertEqual((self.items()[0]["most"], (self.directory / "spending.toml").exists()), (100, False))

    def test_old(self) -> None:
        """What was added to a day that is over is forgotten at the next change."""
        self.limited(limit(100))
        (item,) = self.items()
        self.raised(item)
        self.clock.advance(86_400)
        self.key = self.operator_token()
        (item,) = self.items()
        self.assertEqual(item["most"], 100)
        self.raised(item)
        self.assertEqual((self.directory / "spending.toml").read_text().count("[[raise]]"), 1)


class UsageTests(SpendRouteCase):
    """What was used."""

    def test_usage(self) -> None:
        """It is told by session, agent, provider and model, with the sum, and by day."""
        session = self.open_session(agent="claude")
        use(self.spending, session["id"], Spent(1, 10, 5, 2, 30, 0, 0))
        use(self.spending, session["id"], Spent(1, 1, 1, 0, 0, 1, 1), "other")
        use(self.spending, "", Spent(1, 2))
        told = self.ask("GET", _USAGE).json
        self.assertEqual((told["total"]["requests"], told["total"]["input_tokens"]), (3, 13))
        first = told["items"][0]
        self.assertEqual((first["agent"], first["model"], first["cost_microdollars"]), ("claude", "gpt-5", 30))
        self.assertEqual([each["estimated_requests"] for each in told["items"]], [0, 0, 1])
        self.assertEqual([each["requests"] for each in told["days"]], [3])
        self.assertEqual(self.ask("GET", f"{_USAGE}?day=2001-01-01").json["items"], [])
        self.assertEqual(self.ask("GET", f"{_USAGE}?day=0001-01-01").json["days"], [])
        for day in ("2026-02-30", "today", ""):
            self.assertEqual(self.ask("GET", f"{_USAGE}?day={day}").status, 400)

    def test_recorded(self) -> None:
        """What the operator is told is on record, for the session that it is about."""
        self.limited(SpendLimit(Unit.TOKENS, Per.SESSION, 10))
        pass_request(self.spending, "s1", Usage(9))
        self.assertIn("spending.warned", self.events())
