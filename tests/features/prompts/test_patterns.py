"""Patterns: an allowing one is cautious, a denying one broad."""

from __future__ import annotations

import time
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.prompts.calls import describe_call
from aileron.features.prompts.patterns import MOST_PARTS, matches, read_rule, suggest_patterns
from tests.features.prompts.case import rule

TRICKS = (
    "npm test; rm -rf ~",
    "npm test && rm -rf ~",
    "npm test || rm -rf ~",
    "npm test & rm -rf ~",
    "npm test | sh",
    "npm test $(rm -rf ~)",
    "npm test `rm -rf ~`",
    "npm test ${HOME}",
    "npm test\nrm -rf ~",
    "npm test\r\nrm -rf ~",
    "npm test > ~/.bashrc",
    "npm test < /etc/passwd",
    "npm test <(rm -rf ~)",
    "npm test \\\nrm",
    "npm test {a,b}",
    "npm test \u2028rm",
    "npm test \x00rm",
    "npm test \u202etxet",
    "npm test (rm)",
)


def allows(words: str, command: str) -> bool:
    """Whether an allowing rule applies to a command."""
    return matches(rule("allow", words), "Bash", describe_call({"command": command}))


def denies(words: str, command: str) -> bool:
    """Whether a denying rule applies to a command."""
    return matches(rule("deny", words), "Bash", describe_call({"command": command}))


class AllowTests(SynchronousTestCase):
    """What an allowing pattern covers."""

    def test_covers(self) -> None:
        """A star stands for any words, none at the end, and other text for itself."""
        for words, command, is_covered in (
            ("Bash(npm test *)", "npm test -- --watch=false 'a b'", True),
            ("Bash(npm test *)", "npm test", True),
            ("Bash(npm test *)", "npm tests", False),
            ("Bash(npm test *)", "sudo npm test x", False),
            ("Bash(npm * --dry-run)", "npm publish --dry-run", True),
            ("Bash(npm * --dry-run)", "npm publish --dry-run x", False),
            ("Bash(a*b*c)", "a1b2c", True),
            ("Bash(a*b*c)", "acb", False),
            ("Bash(aa*aa)", "aaa", False),
            ("Bash(npm test)", "npm test", True),
            ("Bash(npm test)", "npm test ", False),
            ("Bash(ls \\*)", "ls *", True),
            ("Bash(ls \\*)", "ls x", False),
            ("Bash", "anything; at all", True),
            ("*(npm test)", "npm test", True),
            ("shell(npm test)", "npm test", True),
            ("Read(npm test)", "npm test", False),
        ):
            self.assertEqual(allows(words, command), is_covered, (words, command))

    def test_shell_tricks(self) -> None:
        """A star stands for no character with which another command begins, nor for one that is not seen."""
        for command in TRICKS:
            self.assertFalse(allows("Bash(npm test *)", command), command)
            self.assertFalse(allows("Bash(npm*)", command), command)
            self.assertFalse(allows("Bash(*)", command), command)

    def test_tricks_of_its_own(self) -> None:
        """What the pattern itself has is allowed exactly there."""
        self.assertTrue(allows("Bash(cd app && npm test *)", "cd app && npm test x"))
        self.assertFalse(allows("Bash(cd app && npm test *)", "cd app && npm test x && rm -rf ~"))
        self.assertFalse(allows("Bash(cd * && npm test)", "cd a; rm -rf ~ && npm test"))
        self.assertFalse(allows("Bash(cd * && npm test)", "cd a && rm -rf ~ && npm test"))

    def test_other_members(self) -> None:
        """A call with a member that may change what it does is allowed by no pattern."""
        given: dict[str, Any] = {"command": "npm test", "description": "Run tests", "timeout": 1000}
        self.assertTrue(matches(rule("allow", "Bash(npm test)"), "Bash", describe_call(given)))
        given["dangerouslyDisableSandbox"] = True
        self.assertFalse(matches(rule("allow", "Bash(npm test)"), "Bash", describe_call(given)))
        self.assertFalse(matches(rule("allow", "Bash"), "Bash", describe_call(given)))

    def test_parents(self) -> None:
        """A path that leads out of a directory is not covered by a star behind that directory."""
        edit: dict[str, Any] = {"old_string": "a", "new_string": "b"}
        words = rule("allow", "Edit(/src/*)")
        for path, is_covered in (
            ("/src/a/b.py", True),
            ("/src/../etc/x", False),
            ("/src/a..b", True),
            ("/etc/x", False),
        ):
            call = describe_call({"file_path": path, **edit})
            self.assertEqual(matches(words, "Edit", call), is_covered, path)

    def test_linear(self) -> None:
        """A long text is compared with a pattern of many stars in a moment."""
        words, command = f"Bash({'a*' * 200}b)", "a" * 60_000
        began = time.process_time()
        self.assertFalse(allows(words, command))
        self.assertLess(time.process_time() - began, 1.0)


class DenyTests(SynchronousTestCase):
    """What a denying pattern covers."""

    def test_covers(self) -> None:
        """A star stands for anything, and each part of a composed command counts."""
        for command in (
            "rm -rf /",
            "cd x && rm -rf y",
            "(rm -rf y)",
            "x; rm -rf $(pwd)",
            "true|rm -rf y\n",
            "a $(rm -rf y)",
        ):
            self.assertTrue(denies("Bash(rm -rf *)", command), command)
        self.assertFalse(denies("Bash(rm -rf *)", "echo rm -rf y"))
        self.assertTrue(denies("Bash(*--force*)", "git push --force"))
        self.assertTrue(denies("Bash", "anything"))

    def test_many_parts(self) -> None:
        """A command of too many parts to compare counts as covered, and takes no time."""
        command = "a;" * 250_000
        began = time.process_time()
        for _ in range(20):
            self.assertTrue(denies("Bash(rm *)", command))
        self.assertLess(time.process_time() - began, 1.0)
        self.assertFalse(denies("Bash(rm *)", "a;" * (MOST_PARTS - 2)))
        self.assertFalse(denies("Read(rm *)", command))


class RuleTests(SynchronousTestCase):
    """How rules are written, and which are suggested."""

    def test_read(self) -> None:
        """A tool, or a tool and its pattern."""
        self.assertEqual(read_rule("Bash"), ("Bash", None))
        self.assertEqual(read_rule("mcp__x__y(a (b) *)"), ("mcp__x__y", "a (b) *"))
        for text in ("", "Bash(", "Bash()", "Ba sh", "B*(x)", "Bash(x) y", "Bash(\0)", f"Bash({'x' * 600})"):
            self.assertRaises(ValueError, read_rule, text)

    def suggested(self, tool: str, **given: Any) -> list[str]:
        """What is suggested for a call."""
        return list(suggest_patterns(tool, describe_call(given)))

    def test_suggested(self) -> None:
        """The call itself first, then calls like it; nothing wide for programs that run others."""
        self.assertEqual(self.suggested("Bash", command="npm test -- x"), ["Bash(npm test -- x)", "Bash(npm test *)"])
        self.assertEqual(self.suggested("Bash", command="npm test && x y"), ["Bash(npm test && x y)"])
        self.assertEqual(self.suggested("Bash", command="ls *.py"), ["Bash(ls \\*.py)"])
        for command in ("sudo rm x", "/bin/bash -c x", "rm -rf y"):
            self.assertEqual(self.suggested("Bash", command=command), [f"Bash({command})"])
        self.assertEqual(self.suggested("Write", file_path="/p/a.py", content="x"), ["Write(/p/a.py)", "Write(/p/*)"])
        self.assertEqual(self.suggested("WebSearch", query="x"), ["WebSearch"])
        self.assertEqual(self.suggested("Bash", command="x" * 600), [])
        self.assertEqual(self.suggested("Bash", command="x", dangerouslyDisableSandbox=True), [])
