"""Every expression takes time in proportion to its text, whoever wrote that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.actions._formats import FORMATS
from aileron.api._sites import agent_routes, operator_routes
from aileron.api.shapes.problems import expression
from aileron.base.comparison import normalize_text
from aileron.base.text import cautions, visible
from aileron.model.precedents import Precedents
from aileron.review import addresses, markup, recipients
from aileron.web.approvals.reading import reading

from .extent import is_all, place_among
from .growth import fault, made_for, usual
from .rules._expressions import ROOT, Expression, expressions, imported_otherwise, missed, uncompiled

TRUSTED: dict[str, str] = {}
"""Expressions that never meet a text of others, by place, each with the reason."""

LATER = {
    "aileron/base/tables.py": "TextRule.shape is called while its callers are imported, and what it compiles is tried",
    "aileron/api/shapes/problems.py": "of the daemon's own schemas alone, and test_schemas tries each",
}
"""Where one is compiled or used by its text within a function, each with the reason."""

# As they were, before sixty thousand characters kept the reactor busy for 43 s.
_MARKDOWN = r"(?P<picture>!?)\[(?P<words>[^\[\]\n]{0,400})\]\((?P<target>[^)\s]{1,2000})[^)\n]{0,200}\)"
_HREF = r"<a\b[^<>]{0,400}?\bhref\s{0,9}=\s{0,9}[\"']?(?P<target>[^\"'>\s]{1,2000})[^<>]{0,400}>(?P<words>[^<]{0,400})<"
_ADDRESS = r"[@#]\S+|\S+@\S+\.\S+|https?://\S+|\+[\d ()-]{6,20}"


def calls(found: Expression) -> Iterator[Callable[[str], object]]:
    """The expression, used as it is, on a text."""
    pattern = found.pattern
    binary = isinstance(pattern.pattern, bytes)
    for mode in found.modes:
        yield _call(pattern, mode, binary)


def _call(pattern: re.Pattern[Any], mode: str, binary: bool) -> Callable[[str], object]:
    nothing: Any = b"" if binary else ""
    uses: dict[str, Callable[[Any], object]] = {
        "finditer": lambda text: sum(1 for _ in pattern.finditer(text)),
        "sub": lambda text: pattern.sub(nothing, text),
    }
    use = uses.get(mode) or getattr(pattern, mode)
    return (lambda text: use(text.encode("latin-1", "replace"))) if binary else use


def faults(tried: Expression, parts: int = 1) -> Iterator[str]:
    """Why it is too slow, if it is.

    :param parts: of what many are slow on it is tried on one of so many parts, another in each run.
    """
    texts = [*made_for(tried.pattern), *[*usual()][place_among(tried.place, parts) :: parts]]
    for call in calls(tried):
        for text in texts:
            found = fault(call, text)
            if found:
                yield f"{tried.place} {tried.pattern.pattern!r} on {text(30)!r}: {found}"
                return


def patterns_in(schema: Any) -> Iterator[str]:
    """What it says of texts, however deep."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"]
        schema = list(schema.values())
    if isinstance(schema, (list, tuple)):
        for each in schema:
            yield from patterns_in(each)


class ExpressionTests(SynchronousTestCase):
    """All of the package."""

    maxDiff = None

    def test_all(self) -> None:
        """Each, used as it is, on texts made of its own parts and on others, takes time in proportion."""
        found = [each for each in expressions() if each.place not in TRUSTED]
        self.assertGreater(len(found), 100)
        parts = 1 if is_all() else 4
        self.assertEqual("\n".join(line for each in found for line in faults(each, parts)), "")

    def test_none_is_missed(self) -> None:
        """Each call that compiles one is tried; none is compiled once a text is there."""
        left = {place.partition(":")[0] for place in missed(expressions())}
        self.assertEqual(left - {*LATER}, set())
        self.assertEqual(sorted({place.partition(":")[0] for place in uncompiled()} ^ {*LATER}), [])

    def test_none_is_hidden(self) -> None:
        """None comes by another way than C{re.compile}, where it would not be seen."""
        for line in ("from re import compile", "import re as r", "import regex", "from fnmatch import fnmatch"):
            self.assertEqual(imported_otherwise(f"import re\n{line}"), [2])
        paths = (ROOT / "aileron").rglob("*.py")
        self.assertEqual([path.name for path in paths if imported_otherwise(path.read_text("utf-8"))], [])

    def test_schemas(self) -> None:
        """So does each pattern that a request is held against."""
        endpoints = [endpoint for routes in (agent_routes(), operator_routes()) for endpoint, _ in routes.endpoints]
        patterns = {found for each in endpoints for found in patterns_in([each.body.schema, each.query.schema])}
        self.assertGreaterEqual(len(patterns), 3)
        found = [Expression("a schema", expression(each), ("search",)) for each in sorted(patterns)]
        self.assertEqual("\n".join(line for each in found for line in faults(each)), "")

    def test_readers(self) -> None:
        """So does whatever reads a foreign text with several of them, or with none."""
        readers: dict[str, Callable[[str], object]] = {
            "visible": visible,
            "cautions": lambda text: sum(1 for _ in cautions(text)),
            "reading": reading,
            "markup": lambda text: sum(1 for _ in markup(text)),
            "addresses": lambda text: sum(1 for _ in addresses(text)),
            "recipients": lambda text: list(recipients(Precedents(1, True, {"text": (text,), text: ("x",)}))),
            "normalize_text": normalize_text,
            "reading of keys": lambda text: reading({text[at : at + 40]: at for at in range(0, len(text), 40)}),
            **{f"format {name}": holds for name, holds in FORMATS.items()},
        }
        texts = [*usual()]
        tried = ((name, text, fault(call, text)) for name, call in readers.items() for text in texts)
        slow = [f"{name} on {text(30)!r}: {said}" for name, text, said in tried if said]
        self.assertEqual("\n".join(slow), "")


class ControlTests(SynchronousTestCase):
    """That it fails when it should."""

    def test_former(self) -> None:
        """Those that were too slow are found to be, and textbook ones; those that are not are not."""
        for source, mode in (
            (_MARKDOWN, "finditer"),
            (_HREF, "finditer"),
            (_ADDRESS, "fullmatch"),
            (r"(a+)+b", "match"),
            (r"(?:a|aa)+b", "fullmatch"),
            (r".*@.*\..*x", "search"),
            (r"\s+$", "search"),
        ):
            slow = Expression("here:1", re.compile(source), (mode,))
            self.assertEqual(len(list(faults(slow))), 1, source)
        for source, mode in ((r"a", "sub"), (r"[a-z]+", "finditer"), (r"\[[^\[\]]*+\]\(\s*+", "finditer")):
            self.assertEqual(list(faults(Expression("here:1", re.compile(source), (mode,)))), [])
