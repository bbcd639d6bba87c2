"""Taking an entry out of settings: all else stays, byte for byte, or nothing is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis.strategies import DrawFn, booleans, composite, dictionaries, integers, lists, sampled_from, text
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.editing import JSONC, TOML, YAML, Syntax
from tests.extent import examples
from tests.growth import seconds

_FEW = settings(deadline=None, max_examples=examples(80))

CHARACTERS = "ab#,:{}[]\"'/*\\ é"
NAMES = sampled_from(("github", "linear", "git", "a b", "x.y", "mcp", "é"))
VALUES = text(CHARACTERS, max_size=8) | integers(0, 9) | booleans() | lists(text(CHARACTERS, max_size=4), max_size=3)
ENTRIES = dictionaries(NAMES, VALUES | dictionaries(NAMES, VALUES, max_size=2), max_size=3)
SETTINGS = dictionaries(NAMES, ENTRIES, min_size=1, max_size=4)


@composite
def commented(draw: DrawFn, settings: Mapping[str, Any]) -> str:
    """The settings as JSON of many lines, with comments and trailing commas as people write them."""
    lines = json.dumps(settings, indent=draw(sampled_from((2, 4))), ensure_ascii=draw(booleans())).split("\n")
    ends = sampled_from(("", "", " // github: {", " /* } */"))
    mark = draw(sampled_from(("\n", "\r\n")))
    return mark.join(f"{line}{draw(ends)}" for line in lines)


def without(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What should be left below C{mcp}."""
    return {"before": 1, "mcp": {each: value for each, value in settings.items() if each != name}, "after": [2]}


class RoundTripTests(SynchronousTestCase):
    """Any settings."""

    @_FEW
    @given(SETTINGS.flatmap(lambda found: commented({"before": 1, "mcp": found, "after": [2]})))
    def test_json(self, written: str) -> None:
        """Without an entry the settings say all else as before, and no other character is lost but a comma."""
        found = JSONC.parse(written)["mcp"]
        for name in found:
            changed = JSONC.remove(written, ("mcp", name))
            self.assertEqual(JSONC.parse(changed), without(found, name))
            self.assert_only_lines(written, changed, commas=1)

    @_FEW
    @given(SETTINGS)
    def test_strict(self, found: Mapping[str, Any]) -> None:
        """JSON for readers that know neither comments nor trailing commas stays that."""
        for name in found:
            changed = JSONC.remove(json.dumps({"before": 1, "mcp": found, "after": [2]}, indent=1), ("mcp", name))
            self.assertEqual(json.loads(changed), without(found, name))

    @_FEW
    @given(SETTINGS)
    def test_toml(self, found: Mapping[str, Any]) -> None:
        """So is TOML, in which each entry is a table, with tables below it."""
        lines = ["before = 1 # mcp", ""]
        for name, entry in found.items():
            flat = {key: value for key, value in entry.items() if not isinstance(value, dict)}
            lines += [f"# about {name}", f"[mcp.{json.dumps(name)}]", *map(_line, flat.items()), ""]
            for key, below in entry.items():
                if isinstance(below, dict):
                    lines += [f"[mcp.{json.dumps(name)}.{json.dumps(key)}]", *map(_line, below.items())]
        written = "\n".join([*lines, "[after]", "z = 2"])
        for name in found:
            changed = TOML.remove(written, ("mcp", name))
            left = {each: value for each, value in found.items() if each != name}
            self.assertEqual(TOML.parse(changed), {"before": 1, **({"mcp": left} if left else {}), "after": {"z": 2}})
            self.assert_only_lines(written, changed)

    @_FEW
    @given(SETTINGS)
    def test_yaml(self, found: Mapping[str, Any]) -> None:
        """So is YAML in blocks, where more than one entry is there."""
        assume(len(found) > 1)
        lines = ["before: 1", "mcp: # all"]
        for name, entry in found.items():
            lines += [f"  # about {name}", f"  {json.dumps(name)}:" + ("" if entry else " {}")]
            lines += [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in entry.items()]
        written = "\n".join([*lines, "", "after: [2]", ""])
        for name in found:
            changed = YAML.remove(written, ("mcp", name))
            self.assertEqual(YAML.parse(changed), without(found, name))
            self.assert_only_lines(written, changed)

    def assert_only_lines(self, before: str, after: str, commas: int = 0) -> None:
        """What is left is what was there without some lines that follow each other, and without so many commas."""
        old, new = before.split("\n"), after.split("\n")
        gone = len(old) - len(new)
        left = ("\n".join(old[:at] + old[at + gone :]) for at in range(len(new) + 1))
        same = [each for each in left if each.replace(",", "") == after.replace(",", "")]
        self.assertTrue(any(len(each) - len(after) in range(commas + 1) for each in same), (before, after))


def _line(item: tuple[str, Any]) -> str:
    return f"{json.dumps(item[0])} = {json.dumps(item[1])}"


class KeptTests(SynchronousTestCase):
    """Single forms."""

    def removed(self, syntax: Syntax, written: str, *keys: str) -> str:
        """The settings without an entry."""
        return syntax.remove(written, keys)

    def test_last(self) -> None:
        """The comma before the last member goes, behind a comment too, unless trailing commas are in use."""
        for before, after in (
            ('{"m": {\n "a": 1, // one\n "b": 2\n}}', '{"m": {\n "a": 1 // one\n}}'),
            ('{"m": {\n "a": 1,\n "b": 2,\n}}', '{"m": {\n "a": 1,\n}}'),
            ('\ufeff{"m": {\n "b": 2\n}}\n', '\ufeff{"m": {\n}}\n'),
        ):
            self.assertEqual(self.removed(JSONC, before, "m", "b"), after)

    def test_namesakes(self) -> None:
        """Of entries of one name only the one that is meant goes."""
        before = '{\n "p": {\n  "x": {\n   "a": 1\n  }\n },\n "m": {\n  "x": 2,\n  "a": {\n   "x": 3\n  }\n }\n}'
        after = '{\n "p": {\n  "x": {\n   "a": 1\n  }\n },\n "m": {\n  "a": {\n   "x": 3\n  }\n }\n}'
        self.assertEqual(self.removed(JSONC, before, "m", "x"), after)

    def test_large(self) -> None:
        """A name that stands in thousands of other lines costs nothing: only keys are looked at."""
        projects = {f"/home/me/git/{number}": {"history": ["git", "a git repository"]} for number in range(3000)}
        before = json.dumps({"projects": projects, "mcpServers": {"git": {"command": "x"}, "b": 1}}, indent=2)
        after = json.dumps({"projects": projects, "mcpServers": {"b": 1}}, indent=2)
        self.assertEqual(self.removed(JSONC, before, "mcpServers", "git"), after)
        self.assertLess(seconds(partial(self.removed, JSONC, before, "mcpServers", "git")), 10)

    def test_hostile(self) -> None:
        """A file with thousands of lines that may be the entry is given up in time."""
        others = ",\n".join(['{\n"a": {\n"a": 1}}'] * 3000)
        before = f'{{"m": {{"a": 1, "b": 2}},\n"others": [\n{others}\n]}}'
        tried = list[str]()

        def parse(text: str) -> Any:
            tried.append(text)
            return {} if len(tried) > 1 else JSONC.read(text)

        with self.assertRaises(ValueError):
            self.removed(evolve(JSONC, read=parse), before, "m", "a")
        self.assertLess(len(tried), 1100)

    def test_comments(self) -> None:
        """Comments about the next entry stay."""
        before = "[m.a]\nx = 1\n\n# about a's y\n[m.a.y]\nz = 1\n\n# about b, not a\n[m.b]\n"
        self.assertEqual(self.removed(TOML, before, "m", "a"), "\n# about b, not a\n[m.b]\n")
        before = "m:\n  a:\n    x: |\n      1\n\n  # about b\n  b: 2\n"
        self.assertEqual(self.removed(YAML, before, "m", "a"), "m:\n\n  # about b\n  b: 2\n")

    def test_refused(self) -> None:
        """An entry without lines of its own, referred to from elsewhere, or not there is left alone."""
        for syntax, written in (
            (JSONC, '{"m": {"a": 1, "b": 2}}'),
            (TOML, "m = { a = { x = 1 }, b = { x = 1 } }"),
            (YAML, "m: {a: 1, b: 2}\n"),
            (YAML, "m:\n  a: &here {x: 1}\n  b: *here\n"),
            (YAML, "m:\n  a: 1\n"),
            (JSONC, '{"m": {\n"b": 2\n}}'),
        ):
            self.assertRaises(ValueError, syntax.remove, written, ("m", "a"))
