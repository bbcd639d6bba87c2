"""Patterns of commands, paths and addresses: plain text in which C{*} stands for any text.

Patterns are compared in linear time. An allowing pattern is cautious: its C{*} stands for no character by which a shell
begins another command, and for no control character, so such a character matches only where the pattern itself has it.
A denying pattern is broad: its C{*} stands for anything, and each part of a composed command is compared too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os.path import basename, dirname

from .values import CallKind, CallText, PromptRule, ReplyKind

MOST_CHARACTERS = 500
"""The length of a pattern at most."""

MOST_PARTS = 500
"""The number of parts of a command that are compared. A rule that asks or denies covers a command of more parts."""

_RULE = re.compile(r"([\w.:*/-]{1,100})(?:\((.+)\))?", re.DOTALL)
_SPECIAL = re.compile(r"[;&|<>`$(){}\\\n\r]")
_SEPARATORS = re.compile(r"[;&|\n\r`(){}]+")
_ANY_SHELL = frozenset(("bash", "shell", "exec_command", "local_shell", "developer__shell", "run_shell_command"))
_ESCAPED, _STAR = "\\*", "\0"
_WORDS = re.compile(r"[\w.@/+:-]+")
_RUNNERS = frozenset(
    "bash busybox chmod chown curl dash dd doas docker env eval exec find fish kill mv nice node nohup perl python "
    "python3 rm ruby setsid sh ssh sudo time timeout uv wget xargs zsh".split()
)
"""Programs that run, remove or send what their arguments name. No pattern with a C{*} is suggested for them."""


def read_rule(text: str) -> tuple[str, str | None]:
    """Parse C{Tool} or C{Tool(pattern)}, and return the tool and the pattern, or None for every call.

    :raises ValueError: if the text is neither; the message is the end of a sentence whose subject is the rule.
    """
    found = _RULE.fullmatch(text)
    if found is None or len(text) > MOST_CHARACTERS or _STAR in text:
        raise ValueError(f"must be a tool, or a tool and a pattern as in Bash(git status *), {MOST_CHARACTERS} at most")
    if "*" in found[1] and found[1] != "*":
        raise ValueError("must name a tool, or * for every tool")
    return found[1], found[2]


def matches(rule: PromptRule, tool: str, call: CallText) -> bool:
    """Return whether a rule about permission prompts applies to a call of a tool.

    The rule's project is not compared here.
    """
    if not _is_same_tool(rule.tool, tool):
        return False
    if rule.answer is ReplyKind.ALLOW:
        return call.is_plain and (rule.pattern is None or _allows(rule.pattern, call))
    parts = _split(call)
    # guard of prompts: a command of very many parts does not occupy the daemon
    #    -> test_patterns.DenyTests.test_many_parts
    if rule.pattern is None or len(parts) > MOST_PARTS:
        return True
    return any(_covers(rule.pattern, part, cautious=False) for part in parts)


def suggest_patterns(tool: str, call: CallText) -> Iterator[str]:
    """Yield rules that would allow calls like this one, the narrowest first. Each applies to this call.

    Yield none for a call that no pattern allows, or whose subject has invisible characters or several lines.
    """
    if not call.is_plain or not call.subject.isprintable():
        return
    for pattern in _candidates(call):
        rule = PromptRule(ReplyKind.ALLOW, tool, pattern)
        try:
            is_rule = read_rule(rule.words) == (tool, pattern)
        except ValueError:
            is_rule = False
        if is_rule and matches(rule, tool, call):
            yield rule.words


def _candidates(call: CallText) -> Iterator[str | None]:
    if not call.subject:
        yield None
        return
    yield call.subject.replace("*", _ESCAPED)
    if call.kind is CallKind.COMMAND:
        program, *words = call.subject.split(" ")
        is_plain = len(words) > 1 and _WORDS.fullmatch(program) and _WORDS.fullmatch(words[0])
        if is_plain and basename(program) not in _RUNNERS:
            yield f"{program} {words[0]} *"
    elif call.kind is CallKind.FILE and (above := dirname(call.subject)).strip("/"):
        yield f"{above.replace('*', _ESCAPED)}/*"


def _is_same_tool(wanted: str, tool: str) -> bool:
    one, other = wanted.casefold(), tool.casefold()
    return one in ("*", other) or {one, other} <= _ANY_SHELL


def _allows(pattern: str, call: CallText) -> bool:
    # guard of prompts: `..` leads out of the directory of a pattern
    #    -> test_patterns.AllowTests.test_parents
    if call.kind is CallKind.FILE and ".." in call.subject.split("/") and ".." not in pattern.split("/"):
        return False
    return _covers(pattern, call.subject, cautious=True)


def _split(call: CallText) -> Sequence[str]:
    """Return the subject, and the parts of a composed command: one more than L{MOST_PARTS} at most."""
    if call.kind is not CallKind.COMMAND:
        return (call.subject,)
    parts = _SEPARATORS.split(call.subject.replace("$(", "("), MOST_PARTS)
    return (call.subject, *(part.strip() for part in parts))[: MOST_PARTS + 1]


def _covers(pattern: str, text: str, *, cautious: bool) -> bool:
    """Return whether a text matches a pattern. A final C{*} after a blank matches even if no more words follow.

    :param cautious: whether each C{*} stands only for text without special characters.
    """
    head = pattern.removesuffix(" *")
    if head != pattern and "*" not in head.replace(_ESCAPED, "") and text == head.replace(_ESCAPED, "*"):
        return True
    pieces = [each.replace(_STAR, "*") for each in pattern.replace(_ESCAPED, _STAR).split("*")]
    gaps = _find_gaps(pieces, text)
    return gaps is not None and not (cautious and any(map(_is_special, gaps)))


def _find_gaps(pieces: Sequence[str], text: str) -> Sequence[str] | None:
    """Return the texts that the stars between the pieces stand for, or None if the pieces do not cover the text.

    Each piece is found at its first place. A later place would only lengthen the gap before it.
    """
    first, *others = pieces
    if not text.startswith(first):
        return None
    if not others:
        return () if text == first else None
    *middle, last = others
    gaps, place = [], len(first)
    for piece in middle:
        found = text.find(piece, place)
        if found < 0:
            return None
        gaps.append(text[place:found])
        place = found + len(piece)
    end = len(text) - len(last)
    if end < place or not text.endswith(last):
        return None
    return (*gaps, text[place:end])


def _is_special(gap: str) -> bool:
    # guard of prompts: a star must not stand for a further command
    #    -> test_patterns.AllowTests.test_shell_tricks, instead return False
    return not gap.isprintable() or _SPECIAL.search(gap) is not None
