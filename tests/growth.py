"""How the time that a function takes grows with its text, and texts that are made for an expression to be slow on."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

SMALL, LARGE = 512, 4_096
"""Characters of the texts that are compared."""

_FIRST = (12, 18, 22, 27, 40, 60, 120)
_SLOW_STEPS = 150_000  # for texts that short: only what tries combinations takes so many
_FLOOR_STEPS = 150_000
_MOST_TIMES = 4.0  # as long for each character of a large text as of a small one: twice is noise, 8 times is squares
_MOST_STEPS_EACH = 400  # a character; words in many scripts take up to 250
_STEPS_TIMED = 20_000
_TRIES = 5
_HOPELESS = 100  # times what is enough: no machine is as slow as that by chance
_ALPHABET: str = "a1 @.-/<[(\"'=:\\\n\t_A%#é\0"
_SIGNS = "[](<>@.:/ \n\\\"'=-+a1A%&#;,*_|!{}~é\0"
_HTML = ("<a ", "<a href", "<a href=b", "<a/href=b", "<a href=b ", "<img src", "<img/src=b", "<http://a|")
_MARKS = ("[](", "![", "@a@a.", "a@", "+1 1 1", "a.", "-a", "ab ", "http://", "://", "%2f", "..", "/.", "\x1b[")
_CODE = ("\r\n", "a:", "\r\na:", "${", "$${", "/*", "//", '"', '\\"', '"a",')
_ALIKE = ("\u0430", "\u0440\u0430\u0443 ", "a\u0430", "\uff41", "\u3002a")
_FOREIGN = (*_ALIKE, "e\u0301", "\u0301", "\u05d0", "\u05d0a ", "\u202ea")
_PUMPS = (*_SIGNS, *_HTML, *_MARKS, *_CODE, *_FOREIGN)
_ENDINGS = ("", "\0", "!")


def fault(call: Callable[[str], object], text: Callable[[int], str]) -> str:
    """Why C{call} takes more than its share for a long C{text}; empty where it does not.

    What counts is the time of this thread's own work, at its best, in steps of a plain loop on this machine now.  What
    seems to be slow is measured once more, with a step that is measured anew: a machine may slow down meanwhile.
    """
    return _fault(call, text, _step_seconds()) and _fault(call, text, _step_seconds(anew=True))


def _fault(call: Callable[[str], object], text: Callable[[int], str], step: float) -> str:
    for size in _FIRST:
        if _steps(call, text(size), step, _SLOW_STEPS) > _SLOW_STEPS:
            return f"over {_SLOW_STEPS} steps for {size} characters"
    before, size = 0.0, SMALL
    while size < LARGE:
        size *= 4 if size * 4 <= LARGE else 2
        now = _steps(call, text(size), step, _FLOOR_STEPS)
        before = before or _steps(call, text(SMALL), step, 0.0)
        each, each_before = now / size, max(before / SMALL, 0.3)
        if now > _FLOOR_STEPS and (each > _MOST_STEPS_EACH or each > each_before * _MOST_TIMES):
            return f"{before:.0f} steps for {SMALL} characters, {now:.0f} for {size}"
    return ""


def _steps(call: Callable[[str], object], text: str, step: float, enough: float) -> float:
    """The least that it took; tried again only while it took more than C{enough}, but not beyond all hope."""
    best = float("inf")
    for _ in range(_TRIES):
        best = min(best, seconds(partial(call, text)) / step)
        if best <= enough or best > enough * _HOPELESS > 0:
            break
    return best


def seconds(call: Callable[[], object]) -> float:
    """How much of the processor's time a call takes.

    No garbage is collected meanwhile: to look through all that the tests before have left takes seconds.
    """
    gc.disable()
    try:
        began = time.thread_time()
        call()
        return time.thread_time() - began
    finally:
        gc.enable()


def times_as_long(prepare: Callable[[int], Callable[[], object]], few: int, many: int) -> float:
    """How many times as long a call takes for each of many items as for each of few; about 1 where it grows with them.

    :param prepare: makes the call for so many items; what it takes to make it is not counted.
    """
    before, now = (min(seconds(prepare(size)) for _ in range(_TRIES)) / size for size in (few, many))
    return now / before


_measured: list[float] = []


def _step_seconds(*, anew: bool = False) -> float:
    """How long one step of a plain loop takes here."""
    if anew or not _measured:
        text, seen = "a" * _STEPS_TIMED, {"a": 0}

        def loop(text: str) -> None:
            for sign in text:
                seen[sign] = 1

        _measured[:] = [_steps(loop, text, 1.0, 0.0) / _STEPS_TIMED]
    return _measured[0]


def repeated(before: str, piece: str, ending: str) -> Callable[[int], str]:
    """Texts of any size."""
    return lambda size: before + piece * (size // max(1, len(piece))) + ending


def usual() -> Iterator[Callable[[int], str]]:
    """Texts that are slow for many a reader of text."""
    for piece in _PUMPS:
        yield repeated("", piece, "")
    for first, different in ((0x61, 26), (0x430, 32), (0x4E00, 20_000), (0xC0, 40_000)):
        yield partial(_different, first, different)


@cache
def _different(first: int, letters: int, size: int) -> str:
    """Words of three letters, of which no two are the same for long."""
    return "".join(chr(first + place**3 % letters) + " " * (place % 3 == 2) for place in range(size))[:size]


def made_for(pattern: re.Pattern[Any]) -> Iterator[Callable[[int], str]]:
    """Texts that nearly match, again and again: of its beginnings, and of each part that may come more than once."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    pieces = dict.fromkeys([*_beginnings(tree), *_repeats(tree, "")])
    for before, piece in pieces:
        for ending in _ENDINGS:
            if piece:
                yield repeated(before, piece, ending)


def _beginnings(tree: Sequence[Any]) -> Iterator[tuple[str, str]]:
    for length in range(1, len(tree) + 1):
        for choice in range(3):
            yield "", _sample(tree[:length], choice)


def _repeats(tree: Sequence[Any], before: str) -> Iterator[tuple[str, str]]:
    """What stands before each part that may come more than once, and the part."""
    for place, (kind, value) in enumerate(tree):
        here = before + _sample(tree[:place], 0)
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            yield from ((here, _sample(value[2], choice)) for choice in range(3))
        for part in _parts(kind, value):
            yield from _repeats(part, here)


def _parts(kind: Any, value: Any) -> Sequence[Any]:
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if kind is sre.SUBPATTERN:
        return [value[3]]
    if kind is sre.BRANCH:
        return list(value[1])
    if kind is sre.ATOMIC_GROUP:
        return [value]
    return [value[1]] if kind in (sre.ASSERT, sre.ASSERT_NOT) else []


def _sample(tree: Sequence[Any], choice: int) -> str:
    """A text that it matches, or nearly; another for another C{choice}."""
    return "".join(_one(kind, value, choice) for kind, value in tree)


def _one(kind: Any, value: Any, choice: int) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return "a" if value != ord("a") else "1"
    if kind is sre.ANY:
        return _ALPHABET[choice]
    if kind is sre.IN:
        return _member(value, choice)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        count: int = max(value[0], min(1 if choice else 0, value[1]))
        return _sample(value[2], choice) * count
    if kind in (sre.ASSERT, sre.ASSERT_NOT, sre.AT, sre.GROUPREF):
        return ""
    parts = _parts(kind, value)
    return _sample(parts[choice % len(parts)], choice) if parts else ""


def _member(chosen: Sequence[Any], choice: int) -> str:
    """A character of a class: of those that many classes have, else of those that it names."""
    matches = re.compile(_class(chosen), re.DOTALL).fullmatch
    found = list(islice((each for each in _ALPHABET if matches(each)), choice + 1))
    return found[-1] if found else chr(next(_first(value) for kind, value in chosen if kind is not sre.NEGATE))


def _first(value: Any) -> int:
    return int(value[0] if isinstance(value, tuple) else value)


def _class(chosen: Sequence[Any]) -> str:
    """A class as it is written."""
    categories = {
        sre.CATEGORY_DIGIT: r"\d",
        sre.CATEGORY_NOT_DIGIT: r"\D",
        sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S",
        sre.CATEGORY_WORD: r"\w",
        sre.CATEGORY_NOT_WORD: r"\W",
    }
    written = ""
    for kind, value in chosen:
        if kind is sre.NEGATE:
            written += "^"
        elif kind is sre.CATEGORY:
            written += categories[value]
        elif kind is sre.RANGE:
            written += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            written += re.escape(chr(value))
    return f"[{written}]"
