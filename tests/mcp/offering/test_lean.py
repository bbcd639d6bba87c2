"""Many actions: which are listed, and how the others are reached."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from aileron.client import DaemonError
from aileron.mcp._calls import Calls
from aileron.mcp._definitions import ToolDefinition, read_definitions
from aileron.mcp._texts import ToolResult
from aileron.mcp._tools import CallOptions
from aileron.mcp.offering.access import USUAL_TOKENS, Shortlist, describe_action, estimate_tokens
from aileron.mcp.offering.catalog import to_tool
from aileron.mcp.waiting.running import Withdrawals
from tests.mcp.case import DaemonCase, action, fault

ACCESS = ["describe_action", "run_action", "search_actions"]
OURS = ["aileron_diagnostics", "check_action_status"]
DONE = {"run_id": "R", "audit_id": "A", "result": {"output": "done", "steps": {}}}
ABOUT = "# Open an issue\n\nOpens an issue in the tracker, and links it to the branch that is checked out.\n"


def size(definitions: tuple[ToolDefinition, ...]) -> int:
    """Of the list of these tools, in bytes."""
    tools = [
        to_tool(definition).model_dump(by_alias=True, mode="json", exclude_none=True) for definition in definitions
    ]
    return len(json.dumps({"tools": tools}).encode())


class LeanCase(DaemonCase):
    """A daemon that offers several actions, of which few are listed."""

    limit = 3

    def offer(self, number: int) -> Calls:
        """A session whose daemon offers so many actions."""
        self.begin(*[action(f"action-{each:03}", description=ABOUT) for each in range(number)])
        self.link.stop()
        self.site.agent.flush()
        shortlist = Shortlist(self.daemon, self.limit)
        return Calls(self.daemon, self.link, self.clock, 45, Withdrawals(self.daemon), shortlist)

    def listed(self, calls: Calls) -> list[str]:
        """The names of the tools that are listed."""
        return [
            definition.name
            for definition in self.successResultOf(Deferred.fromCoroutine(calls.offered(hears_changes=True)))
        ]

    def call(self, calls: Calls, tool: str, **arguments: Any) -> Deferred[ToolResult]:
        """Call a tool."""
        return Deferred.fromCoroutine(calls.call(tool, arguments, CallOptions("K1", 45)))


class ListTests(LeanCase):
    """What is listed."""

    def test_few(self) -> None:
        """As many actions as may be listed are, and the daemon is not asked which are used."""
        listed = self.listed(self.offer(3))
        self.assertEqual(listed, ["action_000", "action_001", "action_002", *OURS])
        self.assertEqual(len(self.site.asked), 1 + 1)  # the list, and the poll for a change

    def test_many(self) -> None:
        """Of more, those that are used most are listed, in order, with the tools that lead to the rest."""
        calls = self.offer(5)
        self.site.answer(200, {"items": ["action-004", "gone", "action-001"]})
        self.assertEqual(self.listed(calls), ["action_001", "action_004", *sorted(OURS + ACCESS)])
        self.assertEqual(self.site.asked[-1].path, "/v1/most-used?limit=3")

    def test_stays(self) -> None:
        """Which are listed is asked once, so that the list does not change with use."""
        calls = self.offer(5)
        self.site.answer(200, {"items": ["action-004"]})
        first = self.listed(calls)
        asked = len(self.site.asked)
        self.assertEqual(self.listed(calls), first)
        self.assertEqual(len(self.site.asked), asked)

    def test_one_more(self) -> None:
        """An action that is added does not take the others from the list, unless the list has become too long."""
        definitions = read_definitions([action(f"a-{each}") for each in range(7)])
        shortlist = Shortlist(self.daemon, 3)
        for number in (0, 3, 4, 6):
            self.assertEqual(
                len(self.successResultOf(Deferred.fromCoroutine(shortlist.of(definitions[:number])))), number
            )
        listing = Deferred.fromCoroutine(shortlist.of(definitions))
        self.site.answer(200, {"items": ["a-5"]})
        self.assertEqual([definition.action for definition in self.successResultOf(listing)], ["a-5"])

    def test_long(self) -> None:
        """A few actions that take as much as many usual ones are too many; of those used most, as many as fit stay."""
        long = {"type": "object", "properties": {f"argument_{each}": {"type": "string"} for each in range(60)}}
        definitions = read_definitions([action("long", input_schema=long), action("short"), action("other")])
        self.assertGreater(estimate_tokens(definitions[0]), 2 * USUAL_TOKENS)
        for names, listed in ((["long", "short"], ["short"]), (["other", "short"], ["other", "short"])):
            listing = Deferred.fromCoroutine(Shortlist(self.daemon, 2).of(definitions))
            self.site.answer(200, {"items": names})
            self.assertEqual([each.action for each in self.successResultOf(listing)], listed)
        whole = self.successResultOf(Deferred.fromCoroutine(Shortlist(self.daemon, 12).of(definitions)))
        self.assertEqual(whole, definitions)

    def test_not_learned(self) -> None:
        """If the daemon cannot say which are used, none is listed, and it is asked again the next time."""
        calls = self.offer(5)
        self.site.answer(503, fault("store_unavailable"))
        self.assertEqual(self.listed(calls), sorted(OURS + ACCESS))
        self.site.answer(200, {"items": ["action-004"]})
        self.assertIn("action_004", self.listed(calls))


class NoneListedTests(LeanCase):
    """A session that wants no action listed."""

    limit = 0

    def test_none(self) -> None:
        """Nothing but our own tools is listed."""
        self.assertEqual(self.listed(self.offer(1)), sorted(OURS + ACCESS))


class UsualTests(LeanCase):
    """The limit that a session has unless it says otherwise."""

    limit = 40

    def test_size(self) -> None:
        """Five hundred actions fill no more of a context than some tens of them do."""
        calls = self.offer(500)
        self.site.answer(200, {"items": [f"action-{each:03}" for each in range(12)]})
        lean = size(self.successResultOf(Deferred.fromCoroutine(calls.offered(hears_changes=True))))
        whole = size(self.successResultOf(Deferred.fromCoroutine(self.link.offered())))
        self.assertLess(lean, 10_000)
        self.assertGreater(whole, 150_000)


class AccessTests(LeanCase):
    """What is not listed is reached all the same, by the daemon's one door."""

    def test_run(self) -> None:
        """An action that is not listed can be called by its tool's name, or run by either, its arguments inside."""
        for tool, arguments in (
            ("action_004", {"text": "x"}),
            ("run_action", {"name": "action-004", "args": {"text": "x"}}),
            ("run_action", {"name": "action_004", "args": {"text": "x"}}),
        ):
            self.setUp()
            calling = self.call(self.offer(5), tool, **arguments)
            asked = self.site.asked[-1]
            self.assertEqual(asked.path, "/v1/actions/action-004/run")
            self.assertEqual(asked.body, {"args": {"text": "x"}, "idempotency_key": "K1"})
            self.site.answer(200, DONE)
            self.assertEqual(self.successResultOf(calling).text, "done")

    def test_run_action_wrongly(self) -> None:
        """A name that is none, or arguments that are no object or stand in another place, run nothing."""
        calls = self.offer(5)
        asked = len(self.site.asked)
        for arguments in (
            {},
            {"name": "gone"},
            {"name": "action-004", "args": "x"},
            {"name": "action-004", "args": []},
            {"name": "action-004", "arguments": {"text": "x"}},
            {"name": "action-004", "args": {}, "text": "x"},
        ):
            self.assertTrue(self.successResultOf(self.call(calls, "run_action", **arguments)).is_error)
        self.assertEqual(len(self.site.asked), asked)

    def test_search_and_describe(self) -> None:
        """It is found by words and described by its name, without asking the daemon."""
        calls = self.offer(5)
        self.assertIn("action-004", self.successResultOf(self.call(calls, "search_actions", query="004")).text)
        text = self.successResultOf(self.call(calls, "describe_action", name="action-004")).text
        self.assertIn("links it to the branch", text)

    def test_describe_what_is_asked(self) -> None:
        """What is for the person to say is described as such, and not as what the agent must give."""
        schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b"]}
        [definition] = read_definitions([action(input_schema=schema, asks=["b"])])
        text = describe_action([definition], "ship-update").text
        self.assertIn("never for you to make up: b.", text)
        self.assertEqual(json.loads(text.split("```json")[1].split("```")[0])["required"], ["a"])

    def test_diagnosis(self) -> None:
        """The diagnosis says how many there are, which are listed, and how the others are found."""
        calls = self.offer(5)
        calling = self.call(calls, "aileron_diagnostics")
        self.site.answer(200, {"version": "1", "vault_state": "unlocked"})
        self.site.answer(200, {"items": ["action-004"]})
        text = self.successResultOf(calling).text
        self.assertIn("Actions offered: 5. Listed, since they are used most: action_004. search_actions finds", text)


class RunsTests(LeanCase):
    """The session's own runs."""

    def telling(self, status: int, body: object) -> Deferred[Any]:
        """What is told of them."""
        telling = Deferred.fromCoroutine(self.offer(1).recent_runs())
        self.assertEqual(self.site.asked[-1].path, "/v1/runs?limit=20")
        self.site.answer(status, body)
        return telling

    def test_told(self) -> None:
        """Each is told by what it is and how it stands, without its arguments and result."""
        run = {"id": "R", "action": "a", "status": "failed", "gated": True, "reason": None, "arguments": {"x": "long"}}
        run |= {"received_at": "1", "changed_at": "2", "result": None, "failure": {"class": "x", "message": "No."}}
        (told,) = self.successResultOf(self.telling(200, {"items": [run], "cursor": None}))
        self.assertEqual((told["approval_id"], told["action"], told["status"]), ("R", "a", "failed"))
        self.assertEqual(told["failure"], "No.")
        self.assertNotIn("arguments", told)

    def test_not_told(self) -> None:
        """Where the daemon does not tell them, its words are the error."""
        error = self.failureResultOf(self.telling(503, fault("store_unavailable", "Disk full.")), DaemonError)
        self.assertIn("Disk full.", str(error.value))
