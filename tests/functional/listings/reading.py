"""What the listings of a page have a reader type, and what they say is shown then."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import dedent

import attrs

VARIABLE = "AILERON_TEST_PAGES"
"""Names the directory of the pages where it is not beside the tests."""
ANY = "…"
"""In a listing: anything within a line, or, alone on a line, any lines."""

_LISTING = re.compile(r"^ *```(console|sh)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)  # in a list it is indented
_COMMENT = re.compile(r"(?:^|\s+)#\s.*$")
_PROMPT = "$ "
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>])")


@attrs.frozen
class Listed:
    """One command of a listing.

    :ivar line: what is typed, continuation lines joined, without a comment.
    :ivar output: the lines that the listing shows after it; of ``sh`` there are none.
    """

    line: str
    output: Sequence[str] = ()


def pages() -> Path:
    """The directory of the documentation."""
    return Path(os.environ.get(VARIABLE) or Path(__file__).resolve().parents[3] / "doc")


def read_commands(text: str) -> list[Listed]:
    """The commands of a page, in their order.

    A listing that begins with ``#!`` is a file to be saved, and none is typed.
    """
    found: list[Listed] = []
    for kind, body in _LISTING.findall(text):
        lines = dedent(body).splitlines()
        if kind == "console":
            found += _read_console(lines)
        elif lines and not lines[0].startswith("#!"):
            found += [Listed(line) for each in _join(lines) if (line := _COMMENT.sub("", each).strip())]
    return found


def find_listings(text: str, kind: str) -> list[str]:
    """The listings of a page that are of a kind, such as ``toml``: files that a reader saves, or what is printed."""
    found = re.findall(rf"^ *```{kind}\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [dedent(body) for body in found]


def find_approval(printed: str) -> str:
    """The number of the approval that a command waits for."""
    (number,) = set(re.findall(r"approvals/(\w+)", printed))
    return str(number)


def find_missing(listed: Sequence[str], printed: str, varies: Mapping[str, str]) -> str | None:
    """The first line of a listing that was not printed after those before it; None if all were.

    :param varies: texts of a listing, and for each the regular expression of what is printed in its place.
    """
    left = iter(clean(printed).splitlines())
    for line in listed:
        wanted = _pattern(line.rstrip(), {**varies, ANY: ".*"})
        if line.strip() != ANY and not any(wanted.fullmatch(each) for each in left):
            return line
    return None


def clean(printed: str) -> str:
    """The text that a terminal was sent, without colours, and without blanks at the ends of lines."""
    plain = _SEQUENCE.sub("", printed).replace("\r\n", "\n")
    return "\n".join(line.rpartition("\r")[2].rstrip() for line in plain.split("\n"))


def _read_console(lines: Sequence[str]) -> Iterator[Listed]:
    line, output = "", list[str]()
    for each in _join(lines):
        if each.startswith(_PROMPT):
            if line:
                yield Listed(line, tuple(output))
            line, output = _COMMENT.sub("", each.removeprefix(_PROMPT)).strip(), []
        else:
            output.append(each)
    if line:
        yield Listed(line, tuple(output))


def _join(lines: Sequence[str]) -> Iterator[str]:
    """The lines, each with those that continue it."""
    begun = ""
    for line in lines:
        if line.endswith("\\"):
            begun += line.removesuffix("\\").strip() + " "
        else:
            yield begun + line.strip() if begun else line
            begun = ""
    if begun:
        yield begun


def _pattern(line: str, varies: Mapping[str, str]) -> re.Pattern[str]:
    longest_first = sorted(varies, key=len, reverse=True)
    pieces = re.split("(" + "|".join(map(re.escape, longest_first)) + ")", line)
    return re.compile("".join(varies.get(piece, re.escape(piece)) for piece in pieces))
