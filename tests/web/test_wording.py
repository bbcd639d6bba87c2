"""The words of the pages: phrases that needed a second reading do not come back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

PACKAGE = Path(__file__).parents[2] / "aileron" / "web"
BANNED = (
    "all that waits",
    "anew",
    "approve the ticked",
    "asked at",
    "be let in",
    "begins at",
    "calls itself",
    "done twice",
    "from now on allow",
    "hangs in the chain",
    "it goes to",
    "it holds",
    "it was: ",
    "look twice",
    "long blanks",
    "may have happened",
    "more calls like it",
    "never done before",
    "no moment",
    "nobody here can say",
    "nobody knows",
    "nobody would see",
    "not begun",
    "on record",
    "reading round",
    "really?",
    "says that it works",
    "sure?",
    "take it back",
    "the ticked",
    "the whole of it",
    "those that",
    "waits for you",
    "what differs",
    "what it takes",
    "what the daemon",
    "what waits",
    "what was sent",
    "what will be sent",
    "what you allowed",
    "whatever you do",
    "with these arguments",
)


def words(path: Path) -> str:
    """Return the text of a file without its comments and docstrings."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return "\n".join(_strings(ast.parse(text)))
    if path.suffix == ".js":
        return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))
    return text


def _strings(tree: ast.Module) -> Iterator[str]:
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


class WordingTests(SynchronousTestCase):
    """What modules, templates, scripts and the shell say."""

    def files(self) -> list[Path]:
        """All of them."""
        paths = (*sorted(PACKAGE.rglob("*")), *sorted(PACKAGE.with_name("review").rglob("*")))
        return [path for path in paths if path.suffix in (".py", ".js", ".xml", ".html")]

    def test_read(self) -> None:
        """Words are read from each kind of file, and comments and docstrings are not."""
        everything = "\n".join(map(words, self.files()))
        for each in ("First time this action runs.", "Pending approvals", "Approve selected", "You are not logged in"):
            self.assertIn(each, everything)
        self.assertNotIn("Draw approvals, oldest first.", everything)
        self.assertNotIn("Several decisions at once", everything)

    def test_banned(self) -> None:
        """No phrase of the old wording is shown."""
        texts = {path: words(path).lower() for path in self.files()}
        found = [(path.name, phrase) for path, text in texts.items() for phrase in BANNED if phrase in text]
        self.assertEqual(found, [])

    def test_counted(self) -> None:
        """A number of things is written by C{count}, so that no page says "1 runs"."""
        for path in self.files():
            if path.suffix != ".py":
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    self.assertNotRegex(ast.unparse(node), r"\{len\([^{}]*\)\} (?!more\b)(\w+ )?\w+s\b", path.name)
