"""What an action says of how its runs are undone."""

from __future__ import annotations

from aileron.actions import KnownValues, parse, resolve_inverse

from .files import manifest, one_input
from .test_parse import Faults

UNDO = """
[undo]
action = "delete-message"
args = { channel = "${args.channel}", ts = "${steps.post.ts}", why = "Undone" }
"""
GATED = "\n[approval]\nrequired = true\n"
INPUT = one_input("channel", "string")


class UndoTests(Faults):
    """C{[undo]}."""

    def test_whole(self) -> None:
        """It names an action, and what that is given of the run: its arguments, and the answers of its steps."""
        for tail in (UNDO, UNDO + GATED):
            inverse = parse(manifest(inputs=INPUT, tail=tail), "x.md").inverse
            assert inverse is not None
            known = KnownValues({"channel": "C1"}, {"post": {"ts": "17.4"}})
            self.assertEqual(inverse.action, "delete-message")
            self.assertEqual(resolve_inverse(inverse, known), {"channel": "C1", "ts": "17.4", "why": "Undone"})
        self.assertIsNone(parse(manifest(inputs=INPUT), "x.md").inverse)

    def test_faults(self) -> None:
        """What is wrong is told with its line."""
        for old, new, part, line in (
            ('action = "delete-message"\n', "", "`action` is missing", None),
            ("delete-message", "Delete!", "must match", "action ="),
            ("${args.channel}", "${args.nobody}", "not a declared input", "args ="),
            ("steps.post.ts", "steps.sent.ts", "not an earlier step", "args ="),
            ("steps.post.ts", "preview.ts", "undoing uses what the run was given", "args ="),
            ("args =", "arguments =", "`arguments` is not a known key", "arguments ="),
        ):
            self.assert_fault(manifest(inputs=INPUT, tail=UNDO.replace(old, new)), part, line)
