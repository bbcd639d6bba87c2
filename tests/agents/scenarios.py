"""What every agent comes through, each scenario a test: the model calls, the operator decides, the model is told."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents import case
from tests.agents.kind import approval_id
from tests.functional.gallery import CAPTION, NOTES
from tests.functional.operated import GATED, SHIP, UNGATED
from tests.functional.script import Call, Received
from tests.functional.slack import Message

NOTE = {"channel": "#general", "summary": "Lunch."}
LUNCH = {"channel": "#general", "summary": "Soup is up."}
UNICODE = 'Grüße, 世界 – «Ωμέγα» 🚀👩‍🔬, \\n "quoted"\tand\na line'
READING, ADDED, DECLARED = "read-channel", "late-note", "declared-note"
LOOKING, READ = "see-picture", "see-all"

_READ = """\
+++
name = "read-channel"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/slack"
version = "1.0.0"
capabilities = ["find_messages"]

[[inputs]]
name = "channel"
type = "string"
description = "The channel's id"

[[execute]]
id = "read"
connector = "local://me/slack"
op = "find_messages"
inputs = { channel = "${args.channel}", oldest = 0, limit = 200 }

[approval]
required = false
+++
# read-channel

Reads what stands in a channel.
"""

_OUTPUT = """

[output]
type = "object"
required = ["ts"]
properties.ts.type = "string"
properties.channel.type = "string"
"""


def output_of(result: str) -> Mapping[str, Any]:
    """What an action gave back, be it shown to the model as text, or as the data of a completed call."""
    said = json.loads(result)
    return dict(said["output"] if said.get("status") == "completed" else said)


class ScenariosTestCase(case.AgentTestCase):
    """For a class that names its kind of agent."""

    async def test_01_ungated(self) -> None:
        """An ungated call runs at once, its result reaches the model, and its traffic went where its user wants it."""
        launched = await self.launch_agent([self.call(UNGATED, NOTE)])
        (result,) = await self.finished(launched)
        self.assertEqual(output_of(result)["channel"], "C0001")
        self.assert_posted(NOTE)
        (session,) = (await self.told("sessions", "list"))["items"]
        shown = await self.told("sessions", "show", session["id"])
        self.assertEqual(shown["gateway"]["requests"] > 0, self.kind.through_gateway)

    async def test_02_approved_in_time(self) -> None:
        """A gated call that is approved while the agent waits returns the action's own result."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        approval = await self.asked(launched)
        self.assertEqual((approval["run"]["arguments"], self.workspace.requests), (SHIP, []))
        await self.approve(approval["id"])
        self.assert_shipped(await self.finished(launched))

    async def test_03_approved_late(self) -> None:
        """A gated call that nobody decides for long is told as pending; what comes of it is told when asked for."""
        turns = [self.call(GATED, SHIP), self.check_status()]
        launched = await self.launch_agent(turns, AILERON_WAIT_SECONDS="20")
        approval = await self.asked(launched)
        await self.requests(launched, 2)
        self.assertEqual(approval_id(self.results(launched)[0]), approval["id"])
        await self.approve(approval["id"])
        pending, outcome = await self.finished(launched)
        self.assertIn("C0002", outcome)
        self.assertNotIn("C0002", pending)
        self.assert_posted(SHIP)

    async def test_04_denied(self) -> None:
        """A denied call never leaves, and the model learns that it was denied, and why."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        approval = await self.asked(launched)
        await self.operator("approval", "deny", approval["id"], "--reason", "Not before the release notes are out.")
        (result,) = await self.finished(launched)
        self.assertIn("Not before the release notes are out.", result)
        self.assertIn("approval_denied", result)
        self.assertEqual(self.workspace.requests, [])

    async def test_05_edited(self) -> None:
        """What the operator edits before approving is what is sent, and the model is told of the change."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        approval = await self.asked(launched)
        await self.operator("approval", "edit", approval["id"], "--arg", "summary=The parser is nearly out.")
        await self.approve(approval["id"])
        (result,) = await self.finished(launched)
        self.assertIn("changed the arguments", result)
        self.assertIn("The parser is nearly out.", result)
        self.assert_posted({"channel": SHIP["channel"], "summary": "The parser is nearly out."})

    async def test_06_daemon_restarted(self) -> None:
        """A daemon that was killed while the agent waits, and started anew, takes the decision; it is done once."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        approval = await self.asked(launched)
        await self.kill_daemon()
        await self.unlock()
        await self.approve(approval["id"])
        self.assert_shipped(await self.finished(launched))

    async def test_07_action_added(self) -> None:
        """An action that is added while the agent runs can be called by the model in the same turn."""
        launched = await self.launch_agent([self.call(GATED, SHIP), *self.kind.late(ADDED, LUNCH)])
        approval = await self.asked(launched)
        await self.add(self.action_file(ADDED, gated=False))
        await self.pause(5)
        await self.approve(approval["id"])
        await self.finished(launched)
        self.assert_posted(SHIP, LUNCH)

    async def test_08_large_result(self) -> None:
        """A result of 300 KB reaches the model whole, or as the agent shortens it, and the agent works on."""
        texts = [f"number {number}: {'x' * 1500}" for number in range(200)]
        self.workspace.messages += [Message("C0002", text, None, f"{number}.0") for number, text in enumerate(texts)]
        launched = await self.launch_agent([self.call(READING, {"channel": "C0002"})], self.reading())
        (result,) = await self.finished(launched)
        there = [number for number in range(200) if f"number {number}:" in result]
        if self.kind.shortens:
            self.assertLess(len(there), 200)
            self.assertRegex(result, self.kind.shown_of_long)
            return
        self.assertEqual(len(there), 200)
        self.assertGreater(len(result), 300_000)

    async def test_09_unicode(self) -> None:
        """Text in any script arrives as it was written, at the service and back at the model."""
        written = {"channel": "#engineering", "summary": UNICODE}
        turns = [self.call(UNGATED, written), self.call(READING, {"channel": "C0002"})]
        launched = await self.launch_agent(turns, self.reading())
        _, read = await self.finished(launched)
        self.assert_posted(written)
        self.assertEqual([each["text"] for each in output_of(read)["messages"]], [UNICODE])

    async def test_10_two_at_once(self) -> None:
        """Two gated calls of one turn are each decided, done once and answered; side by side if the agent can."""
        launched = await self.launch_agent([self.calls(self.call(GATED, SHIP), self.call(GATED, LUNCH))])
        for round_ in ((2,), (1, 1))[bool(self.kind.serial)]:
            for approval in await self.waiting(round_, case.SECONDS):
                await self.approve(approval["id"])
        results = await self.finished(launched)
        self.assertEqual(sorted(output_of(each)["channel"] for each in results), ["C0001", "C0002"])
        self.assertEqual(len(self.workspace.messages), 2)

    async def test_11_not_listed(self) -> None:
        """Actions that are not listed are found by words and run by their names."""
        turns = [
            Call(self.kind.own_tool("search_actions"), {"query": "channel"}),
            Call(self.kind.own_tool("run_action"), {"name": UNGATED, "args": NOTE}),
        ]
        launched = await self.launch_agent(turns, AILERON_LISTED_ACTIONS="0")
        found, result = await self.finished(launched)
        self.assertIn(f"- {GATED}:", found)
        self.assertEqual(output_of(result)["channel"], "C0001")
        self.assert_posted(NOTE)
        offered = launched.llm.script.of(self.kind.model)[-1].tools
        self.assertFalse([name for name in offered if name.endswith(self.kind.tool(UNGATED))])

    async def test_12_data_and_text(self) -> None:
        """Of an answer that is data and text the model is told everything, whichever of them the agent shows it."""
        path = self.action_file(DECLARED, gated=True)
        path.write_text(path.read_text().replace("\n+++\n# ", f"{_OUTPUT}+++\n# "))
        launched = await self.launch_agent([self.call(DECLARED, SHIP)], path)
        approval = await self.asked(launched)
        await self.operator("approval", "edit", approval["id"], "--arg", "summary=The parser is nearly out.")
        await self.approve(approval["id"], "--reason", "Mind the typo.")
        (result,) = await self.finished(launched)
        for part in ("C0002", "changed the arguments", "The parser is nearly out.", "Mind the typo."):
            self.assertIn(part, result)

    async def test_13_picture(self) -> None:
        """A picture that an action answers with is shown to the model, and the agent works on."""
        path = self.looking(LOOKING, "picture")
        launched = await self.launch_agent([self.call(LOOKING, {})], path, gallery=True)
        (result,) = await self.finished(launched)
        self.assertIn("[attachment 1: image/png", result)
        self.assertEqual(launched.llm.script.of(self.kind.model)[-1].pictures, 1)

    async def test_14_document(self) -> None:
        """A document that an action answers with is read by the model, and the agent works on."""
        path = self.looking(READ, "all")
        launched = await self.launch_agent([self.call(READ, {})], path, gallery=True)
        (result,) = await self.finished(launched)
        for part in (CAPTION, NOTES.strip(), "[attachment 2: text/plain"):
            self.assertIn(part, result)
        self.assertEqual(launched.llm.script.of(self.kind.model)[-1].pictures, 1)

    async def test_15_approved_after_more_than_a_minute(self) -> None:
        """A headless agent waits for a decision that takes longer than its own limit for a call would be."""
        launched = await self.launch_agent([self.call(GATED, SHIP)])
        approval = await self.asked(launched)
        await self.pause(70)
        await self.approve(approval["id"])
        self.assert_shipped(await self.finished(launched))

    async def asked(self, launched: case.Launched) -> Mapping[str, Any]:
        """The approval that the agent's call waits for; meanwhile it shows no secrets."""
        (approval,) = await self.waiting(seconds=case.SECONDS)
        self.assert_no_secrets(launched)
        return approval

    def check_status(self) -> Call:
        """A question for the outcome of what was told as pending, which waits for it."""

        def arguments(received: Received) -> Mapping[str, Any]:
            return {"approval_id": approval_id(received.tool_results[-1]), "wait_seconds": 20}

        return Call(self.kind.own_tool("check_action_status"), arguments)

    def reading(self) -> Path:
        """The file of an action that reads a channel, ungated."""
        path = self.home.project / f"{READING}.md"
        path.write_text(_READ)
        return path

    def assert_shipped(self, results: list[str]) -> None:
        """The only result is the action's, and the message stands in the channel once."""
        (result,) = results
        self.assertEqual(output_of(result)["channel"], "C0002")
        self.assert_posted(SHIP)

    def assert_posted(self, *asked: Mapping[str, str]) -> None:
        """These messages, in this order, each sent once."""
        posted = [each for each in self.workspace.requests if each.path.endswith("postMessage")]
        self.assertEqual(
            [(each.body["channel"], each.body["text"]) for each in posted],
            [(each["channel"], each["summary"]) for each in asked],
        )
        self.assertEqual(len(self.workspace.messages), len(asked))
