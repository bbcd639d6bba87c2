"""C{doc/team.md}, played: people are added, set their passphrases, decide at the public name, and are removed."""

from __future__ import annotations

import json
import re
import ssl
from typing import Any

from aileron.testing import SigningBrowser
from tests.extent import seldom
from tests.functional.listings.page import LOG_IN, PageTestCase, Play
from tests.functional.operated import GATED, AgentSession
from tests.functional.people import PublicName
from tests.functional.phoned import NAME, config
from tests.functional.ports import free_port


class TeamTests(PageTestCase):
    """A daemon with a public name, an agent, and people with browsers elsewhere."""

    page = "team.md"

    @seldom
    async def test_played(self) -> None:
        """Who was added decides as the role allows, the record names the person, and who was removed is nobody."""
        await self.furnish(config())
        place = self.home.root / "ca.pem"
        await self.operator("phone", "certificate", "--output", str(place))
        trusted = ssl.create_default_context(cadata=place.read_text())
        self.name = PublicName(f"{NAME}:{free_port()}", free_port(), trusted)
        shown = await self.play(
            Play(
                "aileron people add alice --role approver",
                answers=[LOG_IN],
                varies={"https://aileron.example.org/join#…": rf"{re.escape(self.name.origin)}/join#[\w-]+"},
            )
        )
        await self.begin_together()
        alice = self.name.join(shown)
        bob = self.name.join((await self.operator("people", "add", "bob", "--role", "viewer")).stdout)
        await self.decide_both(alice, bob)
        again = self.name.join(await self.play(Play("aileron people invite alice", answers=[LOG_IN])))
        self.assertEqual(self.name.send(alice, "GET", "/fragments/approvals")[0], 401)
        await self.play(
            Play("aileron people list", shows=["alice", "approver", "bob", "viewer"]),
            Play("aileron people role alice viewer", answers=[LOG_IN], shows=["alice is now viewer."]),
        )
        self.assertEqual(self.name.send(again, "GET", "/fragments/approvals")[0], 401)
        await self.play(Play("aileron people remove alice", answers=[LOG_IN], shows=["alice is removed."]))
        self.assertEqual(self.name.send(bob, "GET", "/fragments/approvals")[0], 200)
        alice, carol = [
            self.name.join((await self.operator("people", "add", name, "--role", "approver")).stdout)
            for name in ("alice", "carol")
        ]
        agent = await self.connect_two(alice, carol)
        await self.decide_in_pairs(carol)
        await self.operator("people", "remove", "alice")
        self.assertEqual((await self.run_action(agent, GATED)).status, 401)

    async def begin_together(self) -> None:
        """Ten people join by one command of the operator's. Each connects an agent, and confirms what it requests."""
        line = "aileron people add ada ben cleo dina emil finn gina hugo ines jan"
        names = line.split()[3:]
        shown = await self.play(Play(line, answers=[LOG_IN], shows=names))
        codes = re.findall(rf"{re.escape(self.name.origin)}/join#([\w-]+)", shown)
        self.assertEqual(len(set(codes)), len(names))
        pages = [self.name.enter(code) for code in codes]
        for name, page in zip(names, pages, strict=True):
            status, text = self.name.send(
                page, "POST", f"/v1/people/{name}/sessions", {"agent": "codex", "minutes": 60}
            )
            self.assertEqual(status, 201, text)
            opened = json.loads(text)
            agent = AgentSession(opened["id"], opened["token"], opened["gateway_key"])
            self.assertEqual((await self.run_action(agent, GATED)).status, 202)
        waiting = (await self.json("approval", "list", "--json"))["items"]
        owners = {each["run"]["owner"]["name"]: each for each in waiting}
        self.assertEqual(sorted(owners), names)
        for name, page in zip(names, pages, strict=True):
            status, text = self.name.decide(page, owners[name])
            self.assertEqual(status, 200, text)
        await self.posted(len(names))
        found = await self.json("audit", "list", "--type", "approval.approved", "--json")
        self.assertEqual(sorted(each["actor"]["id"].partition(".")[0] for each in found["items"]), names)
        for name in names:
            await self.operator("people", "remove", name)

    async def decide_both(self, alice: SigningBrowser, bob: SigningBrowser) -> None:
        """The viewer is refused, the approver approves, and the record proves who did."""
        agent = await self.session("opencode")
        reply = await self.run_action(agent, GATED)
        [waiting] = (await self.json("approval", "list", "--json"))["items"]
        self.assertEqual(reply.status, 202)
        status, text = self.name.decide(bob, waiting)
        self.assertEqual(status, 403, text)
        status, text = self.name.decide(alice, waiting)
        self.assertEqual(status, 200, text)
        found = await self.json("audit", "list", "--type", "approval.approved", "--json")
        self.assertTrue(found["items"][0]["actor"]["id"].startswith("alice."))
        self.assertEqual((await self.aileron("audit", "verify")).exit_code, 0)

    async def connect_two(self, alice: SigningBrowser, carol: SigningBrowser) -> AgentSession:
        """Each confirms what her own agent requests, and not what the other's does. Return one agent's session."""
        shown = await self.play(
            Play(
                "aileron people connect alice claude-code",
                answers=[LOG_IN],
                varies={"http://127.0.0.1:18230": r"http://\S+", "ail_a_…": r"ail_a_[\w-]+"},
            )
        )
        [token] = re.findall(r"AILERON_TOKEN=(\S+)", shown)
        other = json.loads((await self.operator("people", "connect", "carol", "pi", "--json")).stdout)
        mine = AgentSession("", token, "")
        for agent in (mine, AgentSession(other["id"], other["token"], other["gateway_key"])):
            self.assertEqual((await self.run_action(agent, GATED)).status, 202)
        by_owner = {
            each["run"]["owner"]["name"]: each for each in (await self.json("approval", "list", "--json"))["items"]
        }
        for name, page, stranger in (("alice", alice, carol), ("carol", carol, alice)):
            status, text = self.name.decide(stranger, by_owner[name])
            self.assertEqual(status, 403, text)
            status, text = self.name.decide(page, by_owner[name])
            self.assertEqual(status, 200, text)
        self.assertEqual((await self.aileron("audit", "verify")).exit_code, 0)
        return mine

    async def decide_in_pairs(self, carol: SigningBrowser) -> None:
        """By a rule that is trusted while the daemon runs, two people approve at the name; the second one begins it."""
        rule = f"approvals:\n  rules:\n    - {{action: {GATED}, by: ['group:finance', carol], count: 2}}\n"
        await self._trust_config(config() + rule)
        dave = self.name.join(
            await self.play(Play("aileron people add dave --role approver --group finance", answers=[LOG_IN]))
        )
        await self.play(
            Play(
                "aileron people groups alice --group finance --group board",
                answers=[LOG_IN],
                shows=["The groups of alice are now: board, finance."],
            )
        )
        reply = await self.run_action(await self.session("opencode"), GATED)
        self.assertEqual(reply.status, 202)
        [waiting] = (await self.json("approval", "list", "--json"))["items"]
        for page in (carol, carol):
            status, text = self.name.decide(page, waiting)
        self.assertEqual(status, 409, text)
        [waiting] = (await self.json("approval", "list", "--json"))["items"]
        self.assertEqual(waiting["progress"], "1 of 2 approvals: carol")
        status, text = self.name.decide(dave, waiting)
        self.assertEqual((status, json.loads(text)["run"]["state"]), (200, "approved"), text)
        await self.posted(14)  # ten of the team, two by their owners, and one of before
        started = await self.json("audit", "list", "--type", "execution.started", "--json")
        begun = [each for each in started["items"] if each["run_id"] == waiting["id"]]
        self.assertEqual(len(begun), 1)
        self.assertEqual((await self.aileron("audit", "verify")).exit_code, 0)

    async def json(self, *arguments: str) -> Any:
        """What a command shows as JSON."""
        return json.loads((await self.aileron(*arguments)).stdout)
