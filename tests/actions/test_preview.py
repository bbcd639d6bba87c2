"""What an action says of its preview, and what its steps may take from it."""

from __future__ import annotations

from aileron.actions import KnownValues, look_up, parse, preview_paths, resolve, resolve_preview
from aileron.base.json import JSON

from .files import PIN, STEP, manifest, one_input
from .test_parse import Faults

PREVIEW = """
[approval]
required = true

[approval.preview]
op = "list_channels"
args = { id = "${args.channel}" }
render = { Topic = "topic.value", Members = "members.0" }
multiline = ["Topic"]
"""
TIED = STEP + 'inputs = { etag = "${preview.head.etag}" }\n'
_LONG = 'multiline = ["Topic"]\n'
INPUT = one_input("channel", "string")
OTHER = PIN.replace("slack", "other")


def made(tail: str = PREVIEW, step: str = TIED, pin: str = PIN) -> bytes:
    """A file with a preview."""
    return manifest(inputs=INPUT, step=step, tail=tail, pin=pin)


class PreviewTests(Faults):
    """C{[approval.preview]}."""

    def test_whole(self) -> None:
        """Every key is kept, the labels in their order; the connector is the first step's, or one that is required."""
        action = parse(made(), "x.md")
        rule = action.approval.preview
        assert rule is not None
        self.assertEqual((rule.connector, rule.operation), ("builtin://slack", "list_channels"))
        self.assertEqual(rule.render, (("Topic", "topic.value"), ("Members", "members.0")))
        self.assertEqual(rule.multiline, ("Topic",))
        self.assertEqual(resolve_preview(rule, {"channel": "#a"}), {"id": "#a"})
        self.assertEqual(preview_paths(action.steps[0].inputs), ("head.etag",))
        self.assertEqual(resolve(action.steps[0], KnownValues({}, {}, {"head.etag": "v1"})), {"etag": "v1"})
        other = parse(made(PREVIEW + 'connector = "builtin://other"\n', pin=PIN + OTHER), "x.md").approval.preview
        self.assertEqual(other and other.connector, "builtin://other")

    def test_faults(self) -> None:
        """What is wrong is told with its line."""
        for old, new, part, line in (
            ('op = "list_channels"\n', "", "`op` is missing", None),
            ('"list_channels"', '"delete_all"', "not among the `capabilities`", "op ="),
            ('render = { Topic = "topic.value", Members = "members.0" }', "", "there must be 1 to 32", None),
            ('{ Topic = "topic.value", Members = "members.0" }', "{}", "there must be 1 to 32", "render ="),
            ('"topic.value"', '"topic..value"', "dotted path", None),
            ('"topic.value"', "1", "must be a string", None),
            ('["Topic"]', '["Topics"]', "no label of `render`", "multiline ="),
            ("${args.channel}", "${args.nobody}", "not a declared input", "args ="),
            ("${args.channel}", "${preview.topic}", "a preview comes first", "args ="),
            ("${args.channel}", "${steps.post.ts}", "a preview comes first", "args ="),
            ("required = true", "required = false", "needs `required = true`", None),
        ):
            tail = PREVIEW.replace(old, new)
            shows_topic = "Topic =" in tail or "Topics" in tail
            self.assert_fault(made(tail if shows_topic else tail.replace(_LONG, "")), part, line)
        labels = ", ".join(f'L{number} = "a"' for number in range(33))
        many = PREVIEW.replace('{ Topic = "topic.value", Members = "members.0" }', f"{{ {labels} }}")
        self.assert_fault(made(many.replace(_LONG, "")), "there must be 1 to 32")
        self.assert_fault(made(PREVIEW + "show = 1\n"), "`show` is not a known key")
        unpinned = made(PREVIEW + 'connector = "builtin://other"\n')
        self.assert_fault(unpinned, "not among `[[requires.connectors]]`", "connector =")
        unseen = made("\n[approval]\nrequired = true\n")
        self.assert_fault(unseen, "needs `[approval.preview]`", "inputs =")


class PathTests(Faults):
    """Where a path leads in an answer."""

    def test_paths(self) -> None:
        """Keys, indexes, and entries of a list by their name; nowhere and null are the same."""
        headers: JSON = [{"name": "To", "value": "ann"}, {"name": "0", "value": "zero"}, {"name": "X"}]
        answer: JSON = {"headers": headers, "list": ["a", "b"], "null": None, "text": "abc"}
        for path, expected in (
            ("headers.To", "ann"),
            ("headers.0", "zero"),
            ("headers.1.name", "0"),
            ("headers.X", None),
            ("list.1", "b"),
            ("list.2", None),
            ("list.-1", None),
            ("list.01", None),
            ("null.deeper", None),
            ("text.0", None),
            ("nobody", None),
        ):
            self.assertEqual(look_up(answer, path), expected, path)
