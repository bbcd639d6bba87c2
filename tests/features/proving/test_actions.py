"""Installed actions in a proof, and the arguments that are made for them."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import read_actions
from aileron.base.json import canonical, json_problems
from aileron.cli.output import capture_lines
from aileron.connectors import find_specimens
from aileron.features.proving._bench import Bench, with_bench
from aileron.features.proving._prover import FAILS, HOLDS, NOT_APPLICABLE, ProofCard, prove
from aileron.features.proving.actions import make_value
from aileron.features.proving.commands import show_card
from tests.extent import seldom

from .kinds import FILES, GivesUp, wrapped
from .test_prove import ProofTestCase, _running_reactor

PAGE = Path(__file__).parents[3] / "doc" / "proving-a-connector.md"
ACTIONS = Path(__file__).parents[3] / "aileron" / "connectors" / "builtin" / "actions"

ACTION = """+++
name = "send-mail"
version = "1.0.0"
[[requires.connectors]]
name = "local://me/smtp"
version = "1.0.0"
capabilities = ["send_mail"]
[[inputs]]
name = "subject"
type = "string"
description = "One line"
[[inputs]]
name = "extra"
schema = { type = "object", required = ["a"], properties = { a = { type = "integer", minimum = 7 } } }
description = "Nothing"
required = false
[[execute]]
id = "one"
connector = "local://me/smtp"
op = "send_mail"
inputs = { to = "ada@example.org", subject = "${args.subject}", text = "Hello" }
[approval]
required = true
+++
Sends a message.
"""
SECOND = '[[execute]]\nid = "two"\nconnector = "local://me/smtp"\nop = "list_mailboxes"\n[approval]'


class ActionTests(ProofTestCase):
    """Actions of a home."""

    async def proved_with(self, kind: str, files: dict[str, str], **options: Any) -> ProofCard:
        """The card of a connector, with some actions installed."""
        directory = Path(self.mktemp())
        directory.mkdir()
        for name, text in files.items():
            (directory / f"{name}.md").write_text(text)
        specimen, actions = self.written(FILES[kind], None), read_actions(str(directory))
        self.assertEqual(len(actions), len(files))

        async def work(bench: Bench) -> ProofCard:
            return await prove(bench, specimen, ("send_mail",), actions=actions, **options)

        return await with_bench(_running_reactor(), work)

    async def test_verdicts(self) -> None:
        """An action is approved and holds; one with more steps, of another version, or of no sample says why not."""
        files = {
            "send-mail": ACTION,
            "send-and-list": ACTION.replace('"send-mail"', '"send-and-list"')
            .replace("[approval]", SECOND)
            .replace('"send_mail"]', '"send_mail", "list_mailboxes"]'),
            "send-by-old": ACTION.replace('"send-mail"', '"send-by-old"').replace(
                'smtp"\nversion = "1.0.0"', 'smtp"\nversion = "0.9.0"'
            ),
        }
        card = await self.proved_with("mail", files)
        self.assertEqual(
            {name: each.verdict for name, each in card.actions.items()},
            {"send-mail": HOLDS, "send-and-list": NOT_APPLICABLE, "send-by-old": NOT_APPLICABLE},
            card,
        )
        self.assertEqual(card.actions["send-mail"].runs, 3)
        lines = list(capture_lines(partial(show_card, card)))
        self.assertEqual([line for line in lines if len(line) > 80], [])
        shown = "\n".join(lines[lines.index("  Actions") :])
        self.assertIn(f"```text\n{shown.rstrip()}\n```", PAGE.read_text("utf-8"), shown)
        self.assertIn("2 steps", card.actions["send-and-list"].why)
        self.assertIn("another version", card.actions["send-by-old"].why)
        self.assertTrue(card.holds)

    async def test_wrong(self) -> None:
        """An action of a connector that reports wrongly fails, and with it the card."""
        card = await self.proved_with("mail", {"send-mail": ACTION}, make=wrapped(GivesUp))
        self.assertEqual(card.actions["send-mail"].verdict, FAILS)
        self.assertFalse(card.holds)

    @seldom
    async def test_shipped(self) -> None:
        """Every action that ships with a connector holds, or says why it cannot be run."""
        specimens = list(find_specimens(Path("/nonexistent")))
        for specimen in specimens:
            actions = [each for place in ACTIONS.iterdir() for each in read_actions(str(place))]
            used = [each for each in actions if any(step.connector == specimen.name for step in each.steps)]

            async def work(bench: Bench, specimen: Any = specimen, used: Any = used) -> ProofCard:
                return await prove(bench, specimen, actions=used)

            card = await with_bench(_running_reactor(), work)
            self.assertTrue(card.holds, card)


class ValueTests(SynchronousTestCase):
    """Values by a schema."""

    def test_kinds(self) -> None:
        """A value keeps the bounds, the choices and the formats of its schema."""
        for schema, value in (
            ({"type": "string", "minLength": 9}, "samplexxx"),
            ({"type": "string", "maxLength": 3}, "sam"),
            ({"type": "string", "format": "date"}, "2026-01-02"),
            ({"type": "integer", "minimum": 7}, 7),
            ({"type": "number", "maximum": -2}, -2),
            ({"enum": ["b", "a"]}, "b"),
            ({"const": None}, None),
            ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, True),
            ({"type": ["array", "null"], "minItems": 2, "items": {"type": "integer"}}, [1, 1]),
            ({"type": "object", "required": ["a"], "properties": {"a": {"type": "null"}}}, {"a": None}),
        ):
            self.assertEqual(make_value(schema), value, schema)
            self.assertEqual([*json_problems(value)], [])
        for schema in (
            {"type": "string", "minLength": 10**12},
            {"type": "array", "minItems": 10**12},
            {"type": "array", "minItems": 10**4, "items": {"type": "array", "minItems": 10**4}},
        ):
            self.assertLess(len(canonical(make_value(schema))), 10**6, "no schema fills the memory")
        date.fromisoformat(str(make_value({"format": "date"})))
