"""What is claimed is checked against the runs of the session, and shown on its page."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred, succeed

from aileron.features.claims.running import MOST_CHECKS, MOST_CLAIMS, MOST_SESSIONS, RunningClaimCheck
from aileron.model.queries import Page, RunQuery
from tests.api.case import running
from tests.web.case import WebCase


def answer(text: str) -> bytes:
    """A whole answer with this text."""
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()


class Pin:
    """A thing with these attributes."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class RunsOfSession:
    """Runs by session, each by its action.

    :ivar waiting: what a query waits for, or None.
    """

    def __init__(self) -> None:
        self.done: dict[str | None, list[str]] = {}
        self.waiting: Deferred[None] | None = None

    async def list(self, query: RunQuery) -> Page[Any]:
        """See L{IRuns}."""
        await (self.waiting or succeed(None))
        return Page(tuple(Pin(action=each) for each in self.done.get(query.session_id, [])))


class Offered:
    """Actions that are always offered."""

    def offering(self) -> Any:
        """Two actions: one posts to Slack, one reads GitHub."""
        return Pin(
            offers={"ship-update": offer("ship-update", "hub://aileron/slack"), "list": offer("list", "x/github")}
        )


def offer(name: str, connector: str) -> Any:
    """An offer."""
    steps = (Pin(connector=connector),)
    return Pin(action=Pin(name=name, tool_name=name.replace("-", "_"), steps=steps), read_only=name == "list")


class RunningTests(WebCase):
    """The running feature."""

    def setUp(self) -> None:
        super().setUp()
        self.known = RunsOfSession()
        runs: Any = self.known
        self.checker = RunningClaimCheck(Offered().offering, runs)
        self.build(features=running(self.checker))

    def told(self, session: str = "s1") -> list[str]:
        """What is told of a session."""
        listing = Deferred.fromCoroutine(self.checker.session_members([session]))
        found: Any = self.successResultOf(listing)
        return list(found.get(session, {}).get("claims", []))

    def say(self, text: str, session: str = "s1") -> None:
        """Have an agent say it last."""
        self.checker.read_answer(session, answer(text), False)

    def test_unfounded(self) -> None:
        """What no run did is told once; what is only read there, or not claimed, is not."""
        for _ in range(3):
            self.say("I have posted it to Slack.")
        self.say("I opened nothing. It was created in GitHub.")
        self.assertEqual(self.told(), ["Says it posted to Slack; no run did."])
        self.assertEqual(self.told("s2"), [])

    def test_done(self) -> None:
        """What a run of the session did is not told, also if that came later; an unknown action settles all."""
        self.known.done["s1"] = ["ship-update"]
        self.say("I have posted it to Slack.")
        self.known.done.clear()
        self.assertEqual(self.told(), [])
        self.say("I have posted it to Slack.")
        self.assertEqual(len(self.told()), 1)
        self.known.done["s1"] = ["list"]
        self.assertEqual(len(self.told()), 1)
        self.known.done["s1"] = ["gone"]
        self.assertEqual(self.told(), [])
        self.known.done["s1"] = ["ship-update"]
        self.assertEqual(self.told(), [])

    def test_page(self) -> None:
        """The session's page has a line of it."""
        session = self.open_session()["id"]
        self.say("Posted to Slack.", session)
        self.assertIn("Says it posted to Slack; no run did.", self.fragment(f"/sessions/{session}").text)
        listed = self.operator.ask("GET", f"/v1/sessions/{session}", self.operator_token()).json
        self.assertEqual(listed["claims"], ["Says it posted to Slack; no run did."])

    def test_bounds(self) -> None:
        """Only so much is kept, and only so many checks wait."""
        for number in range(MOST_SESSIONS + 5):
            self.say("I posted to Slack. I sent it by Slack.", f"s{number}")
        self.assertEqual(len(self.checker._claims), MOST_SESSIONS)
        for verb in ("sent", "posted", "published", "replied", "merged", "filed", "created", "opened", "closed"):
            self.say(f"I {verb} it in Slack.", "full")
        self.assertEqual(len(self.told("full")), MOST_CLAIMS)
        self.known.waiting = Deferred()
        for _ in range(MOST_CHECKS + 5):
            self.say("I posted to Slack.", "waits")
        self.assertEqual(self.checker._checks, MOST_CHECKS)
        self.known.waiting.callback(None)
        self.assertEqual(self.checker._checks, 0)
