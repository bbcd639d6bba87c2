"""Each error says what happened, what was kept and what to do: each class of failure, and every sentence of ours."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.errors import lines_of
from aileron.client import DaemonFault
from aileron.model import errors
from aileron.model.errors import STATUS, AileronError
from aileron.model.faults import ADVICE, Fault, what_then
from tests.cli.test_doc import fault, typed

PACKAGE = Path(__file__).parents[2] / "aileron"
CLASSES = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, AileronError)}
TROUBLE = "CommandError"
SENTENCE = re.compile(r"[A-Z{`\"].*([.?:…}]|[a-z]\)|: aileron [a-z ]+)$", re.DOTALL)
SAYS_WHAT_IS_LEFT = re.compile(
    r"\b(nothing|left|waits?|was not|not killed|no other|does nothing|so no|not done|kept|as it is|as they are)\b",
    re.IGNORECASE,
)
SAYS_WHAT_TO_DO = re.compile(
    r": (add|want|run|stop|unset|correct|use|aileron)|\baileron [a-z]+|look again", re.IGNORECASE
)


def raised(source: str, names: set[str]) -> Iterator[tuple[str, str, bool]]:
    """What is made of these names: name, sentence with C{{}} for what is filled in, and whether more is given."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "listing" else node.func
        text = _text(node.args[0])
        if isinstance(called, ast.Name) and called.id in names and text:
            yield called.id, text, len(node.args) > 1 or bool(node.keywords)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def everywhere(names: set[str]) -> list[tuple[str, str, str, bool]]:
    """The same of the whole package, without what it ships for tests."""
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if "testing" not in path.parts]
    texts = [(path.name, text) for path in paths if any(name in (text := path.read_text("utf-8")) for name in names)]
    return [(name, *each) for name, text in texts for each in raised(text, names)]


def told(kind: str, message: str = "It is so.") -> list[str]:
    """What the command line says of a failure that the daemon tells."""
    return list(lines_of(DaemonFault(message, STATUS[kind], Fault(kind, message))))


class ClassesTests(SynchronousTestCase):
    def test_three_parts(self) -> None:
        """What the daemon refuses is told with what happened, what was kept and what to do, and nothing twice."""
        for kind in STATUS:
            lines = told(kind)
            self.assertEqual(lines[0], "It is so.")
            self.assertEqual(lines[1], ADVICE[kind].kept, kind)
            self.assertEqual(lines[2:], [ADVICE[kind].then] if ADVICE[kind].then else [], kind)
            self.assertTrue(ADVICE[kind].then or kind == "invalid_request", kind)
        self.assertEqual(
            told("vault_locked", "It is locked, nothing was sent: run `aileron vault unlock`."),
            ["It is locked, nothing was sent: run `aileron vault unlock`."],
        )
        self.assertEqual(set(ADVICE), {*STATUS, AileronError.kind})

    def test_details(self) -> None:
        """How long to wait, and what state a vault is in, are told from the details."""
        self.assertIn("Try again in 30 s.", what_then("limit_exceeded", "Too many.", {"retry_after": 30}))
        self.assertIn("vault init", what_then("vault_locked", "It is missing.", {"state": "missing"}))
        self.assertIn("vault reset", what_then("vault_locked", "It is lost.", {"state": "lost"}))
        self.assertIn("approve ID --force", what_then("forbidden", "It needs bob.", {"rule": True}))
        self.assertEqual(what_then("another_daemons_class", "Odd.", {}), "")

    def test_commands(self) -> None:
        """Every command that an advice names is there."""
        lines = [f"`{each}`" for advice in ADVICE.values() for each in re.findall(r"aileron [^;.(]+", advice.then)]
        self.assertGreater(len(lines), 12)
        self.assertEqual([line for text in lines for line in typed(text) if fault(line)], [])


class SentencesTests(SynchronousTestCase):
    def test_sentences(self) -> None:
        """Every message is a sentence: it begins large, and ends."""
        found = everywhere({*CLASSES, TROUBLE, "WrongPassphrase", "WeakPassphrase"})
        self.assertGreater(len(found), 200)
        self.assertEqual([each[:3] for each in found if not SENTENCE.match(each[2])], [])

    def test_troubles(self) -> None:
        """Every trouble of a command says what to do, or what was left as it was."""
        found = everywhere({TROUBLE})
        self.assertGreater(len(found), 50)
        poor = [
            (place, text)
            for place, _, text, hinted in found
            if not (hinted or SAYS_WHAT_IS_LEFT.search(text) or SAYS_WHAT_TO_DO.search(text))
        ]
        self.assertEqual(poor, [])
