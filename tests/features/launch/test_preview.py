"""A plan that is only shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import asdict, evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import LEAN
from aileron.features.launch._preview import LaunchPreview, describe, preview_launch
from aileron.features.launch.agents import find_agents
from aileron.features.launch.plan import DaemonFacts, LaunchPlan
from aileron.features.launch.registration import GatewayAccess, Invocation, Upstream
from aileron.model.errors import Forbidden, NotFound
from tests.features.launch.test_launch import LaunchCase

OPENCODE = find_agents()["opencode"]
CANARY = "sk-canary-123"
FACTS = DaemonFacts(
    "http://127.0.0.1:9", "http://localhost:10", "ail_l_key", {"openai": Upstream("https://o.test", True)}
)


def described(before: dict[str, str], after: dict[str, str], *words: str) -> dict[str, str]:
    """The variables that are shown as added."""
    plan = LaunchPlan(words, after, directory="/d", files={"f": f"x{CANARY}"})
    return dict(describe(plan, Invocation((), before, "/project"), None).added)


class ForeseeTests(LaunchCase):
    def preview(self, *arguments: str, through_gateway: bool = True, **environment: str) -> LaunchPreview:
        """What is told of a launch."""
        parent = {"PATH": str(self.bin), "HOME": str(self.home), **environment}
        invocation = Invocation(arguments, parent, "/project")
        return preview_launch(OPENCODE, invocation, FACTS, str(self.bin / "python"), through_gateway=through_gateway)

    def test_whole(self) -> None:
        """Of a launch everything is told, with stand-ins for its secrets, and nothing is opened or started."""
        found = self.preview("run", CANARY, AILERON_X="1", OPENAI_API_KEY=CANARY)
        self.assertEqual(found.argv, (str(self.bin / "opencode"), "run", "<OPENAI_API_KEY>"))
        self.assertEqual((found.directory, found.removed), ("/project", ("AILERON_X",)))
        ours = json.loads(found.added["OPENCODE_CONFIG_CONTENT"])
        self.assertEqual(ours["mcp"]["aileron"]["environment"]["AILERON_TOKEN"], "<the session's token>")
        self.assertIn("<the session's gateway key>", found.added["OPENCODE_CONFIG_CONTENT"])
        upstreams = {"openai": "https://o.test, key from the vault"}
        self.assertEqual(found.gateway, {"url": FACTS.url, "upstreams": upstreams})
        self.assertEqual(found.notes, ("aileron: through the gateway: openai",))
        self.assertEqual((self.site.asked, self.machine.spawned, self.ensured), ([], [], 0))
        self.assertNotIn(CANARY, json.dumps(asdict(found)))
        self.assertNotIn("ail_l_key", json.dumps(asdict(found)))
        self.assertIsNone(self.preview(through_gateway=False).gateway)

    def test_prompts(self) -> None:
        """Hooks for permission prompts are shown where they would be added: by the daemon's word and the user's."""
        parent = {"PATH": str(self.bin), "HOME": str(self.home)}
        for lists, wanted, arguments, is_added in (
            (True, None, (), True),
            (True, None, ("run", "x"), False),
            (True, True, ("run", "x"), True),
            (True, False, (), False),
            (False, True, (), False),
        ):
            facts = evolve(FACTS, lists_prompts=lists)
            invocation = Invocation(arguments, parent, "/project")
            found = preview_launch(OPENCODE, invocation, facts, str(self.bin / "python"), prompts=wanted)
            self.assertEqual("AILERON_PROMPTS" in found.added, is_added, (lists, wanted, arguments))
            self.assertEqual("opencode.js" in str(found.added), is_added)

    def test_listed(self) -> None:
        """How many actions are listed as tools is the user's to say, and handed on."""
        table: list[tuple[Mapping[str, Any], str | None]] = [
            ({}, None),
            (LEAN, "12"),
            ({"AILERON_LISTED_ACTIONS": "100"}, "100"),
        ]
        for said, given in table:
            found = self.preview(**said)
            ours = json.loads(found.added["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]["environment"]
            self.assertEqual(ours.get("AILERON_LISTED_ACTIONS"), given)

    def test_refused(self) -> None:
        """What would keep a launch from starting keeps its plan from being shown."""
        self.assertRaises(Forbidden, self.preview, AILERON_VAULT_PASSPHRASE="x")
        self.assertRaises(NotFound, self.preview, PATH="/nowhere")


class AdditionTests(SynchronousTestCase):
    def test_objects(self) -> None:
        """Of an object that the user has set, only what is new in it is shown."""
        before = '{"a": {"mine": "secret"}, "b": 1, /* c */ "d": {"e": 2}}'
        after = json.dumps({"a": {"mine": "secret", "ours": 1}, "b": 2, "d": {"e": 2}})
        shown = described({"V": before}, {"V": after})["V"]
        self.assertEqual(json.loads(shown), {"a": {"ours": 1}, "b": 2})

    def test_texts(self) -> None:
        """Of another text that the user has set, theirs is not repeated."""
        self.assertEqual(described({"V": "mine"}, {"V": "mine,ours"}), {"V": "<as you have it>,ours"})
        self.assertEqual(described({"V": "mine"}, {"V": "ours"}), {"V": "<yours, changed>"})
        self.assertEqual(described({"V": "mine"}, {"V": '{"mine": 1}'}), {"V": "<yours, changed>"})
        self.assertEqual(described({"V": " "}, {"V": "ours", "W": "1"}), {"V": "ours", "W": "1"})

    def test_own_secrets(self) -> None:
        """A secret of the user's that was copied elsewhere is shown by its variable's name, in files too."""
        theirs = {"MY_TOKEN": CANARY, "LANG": "C.UTF-8"}
        self.assertEqual(described(theirs, {**theirs, "V": f"x {CANARY} C.UTF-8"}), {"V": "x <MY_TOKEN> C.UTF-8"})
        plan = LaunchPlan((), {}, directory="/d", files={"f": f"x{CANARY}"})
        shown = describe(plan, Invocation((), theirs, "/p"), GatewayAccess("http://g", "k"))
        self.assertEqual((dict(shown.files), shown.removed), ({"/d/f": "x<MY_TOKEN>"}, ("LANG", "MY_TOKEN")))
