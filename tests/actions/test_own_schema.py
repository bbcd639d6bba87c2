"""An input's own schema is taken as it stands, checked as the other keys are, and refused with its line."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from jsonschema import Draft202012Validator
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from aileron.actions import check_arguments
from aileron.base.json import JSON
from aileron.model.actions import Action
from aileron.model.errors import InvalidRequest

from .files import action, manifest, one_input
from .test_parse import Faults

PLACE = """[[inputs]]
name = "place"
description = "Where"

[inputs.schema]
type = "object"
required = ["lat", "lon"]
additionalProperties = false
properties.lat = { type = "number", minimum = -180, maximum = 180 }
properties.lon = { type = "number", minimum = -180, maximum = 180 }
properties.kind = { oneOf = [{ const = "sea", title = "At sea" }, { const = "land" }] }
"""


def own(schema: str, *lines: str) -> str:
    """One C{[[inputs]]} table with a schema, which is written inline."""
    return "\n".join(["[[inputs]]", 'name = "a"', 'description = "d"', f"schema = {schema}", *lines, ""])


def published(inputs: str, name: str = "a") -> Any:
    """What agents are given of one input."""
    schema: Any = action(inputs).input_schema
    return schema["properties"][name]


class PublishedTests(Faults):
    """What agents and the rest of the daemon see of it."""

    def test_as_written(self) -> None:
        """It stands in the tool's schema as written, with the words beside it where it has none of its own."""
        several: dict[str, JSON] = {
            "type": "array",
            "items": {"anyOf": [{"const": "x", "title": "X"}]},
            "uniqueItems": True,
        }
        for schema, lines, expected in (
            (
                '{ type = "array", items = { anyOf = [{ const = "x", title = "X" }] }, uniqueItems = true }',
                [],
                {**several, "description": "d"},
            ),
            (
                '{ type = "integer", description = "mine", title = "T" }',
                ['label = "L"'],
                {"type": "integer", "description": "mine", "title": "T"},
            ),
            (
                '{ type = "array" }',
                ['label = "L"', "default = [1]"],
                {"type": "array", "title": "L", "description": "d", "default": [1], "items": {}},
            ),
        ):
            self.assertEqual(published(own(schema, *lines)), expected)

    def test_length(self) -> None:
        """A string has the usual limit, unless it has its own or is one of a choice."""
        self.assertEqual(published(own('{ type = "string" }'))["maxLength"], 65536)
        self.assertEqual(published(own('{ type = "string", maxLength = 9 }'))["maxLength"], 9)
        for choice in ('enum = ["x"]', 'const = "x"', 'oneOf = [{ const = "x" }]', 'anyOf = [{ const = "x" }]'):
            self.assertNotIn("maxLength", published(own(f'{{ type = "string", {choice} }}')))
        self.assertIn("maxLength", published(own('{ type = "string", oneOf = [{ const = "x" }, { minLength = 3 }] }')))

    def test_pattern_length(self) -> None:
        """Wherever a pattern stands without a limit, there is the usual one."""
        either = '{ anyOf = [{ pattern = "y", maxLength = 3 }, { pattern = "z" }] }'
        inner = f'{{ a = {{ pattern = "x" }}, b = {{ items = {either} }} }}'
        said = published(own(f'{{ type = "object", properties = {inner}, examples = [{{ pattern = "(" }}] }}'))
        self.assertEqual(said["properties"]["a"], {"pattern": "x", "maxLength": 65536})
        self.assertEqual(
            said["properties"]["b"]["items"]["anyOf"],
            [{"pattern": "y", "maxLength": 3}, {"pattern": "z", "maxLength": 65536}],
        )
        self.assertEqual(said["examples"], [{"pattern": "("}])

    def test_valid(self) -> None:
        """The tool's schema says by itself what is taken; its type is the input's, and nothing else is said twice."""
        made = action(PLACE)
        Draft202012Validator.check_schema(made.input_schema)
        checks = Draft202012Validator(made.input_schema)
        self.assertTrue(checks.is_valid({"place": {"lat": 1, "lon": 2}}))
        self.assertFalse(checks.is_valid({"place": {"lat": 181, "lon": 2}}))
        (one,) = action(own('{ type = "string", enum = ["x"] }', "multiline = true")).inputs
        self.assertEqual((one.type, one.enum, one.max_length, one.multiline), ("string", None, None, True))
        self.assertEqual(one.schema, {"type": "string", "enum": ["x"]})


class FaultTests(Faults):
    """What is refused."""

    def test_faults(self) -> None:
        """Whatever no agent could be handed, or we could not check, is a fault of its line."""
        long = ", ".join(f'"{n:>0100}"' for n in range(170))
        patterns = ", ".join(f'{{ pattern = "[^a]{{10}}{n}" }}' for n in range(120))
        for schema, part in (
            ("3", "must be a table"),
            ("[]", "must be a table"),
            ("{}", "must say its own `type`: one of string, integer"),
            ('{ type = "null" }', "must say its own `type`"),
            ('{ type = ["string", "integer"] }', "must say its own `type`"),
            ('{ type = "text" }', "must say its own `type`"),
            ('{ type = "string", enum = 3 }', "has a `enum` that must be an array"),
            ('{ type = "string", enum = [2030-01-31] }', "must be written as a string"),
            (f'{{ type = "string", enum = [{long}] }}', "at most 16384 bytes"),
            ('{ type = "string", default = "x" }', "must not hold `default`: write it beside"),
            ('{ type = "string", minLength = "q" }', "has a `minLength` that must be a whole number of 0 or more"),
            ('{ type = "string", minLength = -1 }', "a whole number"),
            ('{ type = "string", minLength = true }', "a whole number"),
            ('{ type = "integer", multipleOf = 0 }', "a number of more than 0"),
            ('{ type = "integer", minimum = "1" }', "a number"),
            ('{ type = "object", required = ["a", "a"] }', "none of them twice"),
            ('{ type = "object", properties = { x = true } }', "at /properties/x must be a table"),
            ('{ type = "array", items = false }', "has a `items` that must be a table"),
            ('{ type = "array", items = { oneOf = [3] } }', "at /items/oneOf/0 must be a table"),
            ('{ type = "array", items = { type = ["string"] } }', "at /items has a `type` that must be one of"),
            ('{ type = "string", enumNames = ["x"] }', "`enumNames` without `enum`"),
            ('{ type = "string", pattern = "(" }', "none of RE2's: "),
            ('{ type = "string", pattern = "(?=a)" }', "none of RE2's: "),
            ('{ type = "array", items = { anyOf = [{ pattern = "(?=a)" }] } }', "at /items/anyOf/0 has the `pattern`"),
            (
                '{ type = "string", pattern = "a", maxLength = 65537 }',
                "`maxLength` of at most 65536 beside its",
            ),
            ('{ type = "string", pattern = "[ab]{900}" }', "beside so large a `pattern`"),
            ('{ type = "string", maxLength = 9, pattern = "[^a]{900}" }', "is too large"),
            (f'{{ type = "string", anyOf = [{patterns}] }}', "patterns that are too large together"),
        ):
            self.assert_fault(manifest(inputs=own(schema)), part, "schema =")

    def test_other_keywords(self) -> None:
        """What is not in the closed set is named, with its place and with what may stand there."""
        for keyword, value in (
            ("$ref", '"#/examples/0"'),
            ("$defs", "{}"),
            ("$id", '"x"'),
            ("allOf", "[{}]"),
            ("not", "{}"),
            ("if", "{}"),
            ("patternProperties", "{}"),
            ("propertyNames", "{}"),
            ("prefixItems", "[]"),
            ("contains", "{}"),
            ("dependentSchemas", "{}"),
            ("unevaluatedItems", "false"),
            ("x-mine", "1"),
        ):
            words = f"must not hold `{keyword}`; what may stand there is type, title, description"
            held = f'{{ "{keyword}" = {value} }}'
            self.assert_fault(manifest(inputs=own(f'{{ type = "object", {held[2:]}')), f"`schema` {words}", "schema =")
            for around, place in (
                ("properties = { a = %s }", "/properties/a"),
                ("items = %s", "/items"),
                ("anyOf = [{ items = %s }]", "/anyOf/0/items"),
            ):
                inputs = own(f'{{ type = "object", {around % held} }}')
                self.assert_fault(manifest(inputs=inputs), f"at {place} {words}", "schema =")
        hidden = '{ type = "string", "$ref" = "#/examples/0", examples = [{ minLength = "q" }] }'
        self.assert_fault(manifest(inputs=own(hidden, 'default = "x"')), "must not hold `$ref`", "schema =")

    def test_levels(self) -> None:
        """Sixteen levels are allowed."""
        deep = "{}"
        for _ in range(14):
            deep = f"{{ items = {deep} }}"
        self.assertEqual(check_arguments(action(own(f'{{ type = "array", items = {deep} }}')), {"a": []}), {"a": []})
        deeper = f'{{ type = "array", items = {{ items = {deep} }} }}'
        self.assert_fault(manifest(inputs=own(deeper)), "is nested too deeply: 16 levels are allowed", "schema =")

    def test_foreign_words(self) -> None:
        """What a fault repeats of the file is short, and nothing in it acts."""
        for schema in (f'{{ type = "string", enum = "{"x" * 9000}" }}', '{ type = "string", pattern = "(?=\\u001b)" }'):
            (fault,) = self.faults(manifest(inputs=own(schema)))
            self.assertLess(len(fault.message), 450)
            self.assertNotIn("\x1b", fault.message)

    def test_beside(self) -> None:
        """The keys that it stands in place of cannot stand beside it, each a fault of its own line."""
        for line in ('type = "string"', 'items_type = "string"', 'enum = ["x"]', "minimum = 1", "maximum = 1"):
            self.assert_fault(manifest(inputs=own('{ type = "array" }', line)), "cannot stand beside `schema`", line)
        for line in ("max_length = 1", 'format = "date"'):
            self.assert_fault(manifest(inputs=own('{ type = "string" }', line)), "cannot stand beside `schema`", line)

    def test_own_line(self) -> None:
        """A schema that is a table of its own is told by its line."""
        self.assert_fault(manifest(inputs=PLACE.replace('"object"', '"thing"')), "`type`", "[inputs.schema]")

    def test_other_keys(self) -> None:
        """The keys that go with it are checked by it."""
        text = '{ type = "string", pattern = "^[a-z]+$" }'
        self.assertEqual(action(own(text, 'default = "x"')).inputs[0].default, "x")
        self.assert_fault(manifest(inputs=own(text, 'default = "X"')), "a value that must match ^[a-z]+$", "default =")
        self.assert_fault(manifest(inputs=own('{ type = "array" }', "multiline = true")), "for inputs of type string")
        self.assert_fault(
            manifest(inputs=PLACE.replace("\n\n", "\ndefault = { lat = 200, lon = 1 }\n\n", 1)),
            "`default` has a value that at /lat must be 180 or less",
            "default =",
        )

    def test_costly_default(self) -> None:
        """A file that nobody trusts yet cannot make its reading long."""
        options = ", ".join(f"{{ minimum = {n} }}" for n in range(1, 600))
        schema = f'{{ type = "array", items = {{ anyOf = [{options}] }} }}'
        default = f"default = [{'0, ' * 100}]"
        self.assert_fault(manifest(inputs=own(schema, default)), "too much to be checked", "default =")


class ArgumentTests(Faults):
    """What a call is told."""

    def problems(self, made: Action, arguments: JSON) -> list[tuple[str, str]]:
        error = self.assertRaises(InvalidRequest, check_arguments, made, arguments)
        problems: Any = error.details["problems"]
        return [(problem["pointer"], problem["message"]) for problem in problems]

    def test_right(self) -> None:
        """What fits passes as it is: true is not 1 among elements, nor is a type asked for what it does not have.

        A member may have the name of a keyword that is refused.
        """
        keys = 'type = "integer", required = ["x"], additionalProperties = false, pattern = "a", uniqueItems = true'
        members = '"$ref" = { type = "object" }, pattern = { const = "(" }'
        cases: tuple[tuple[str, JSON], ...] = (
            ('type = "array", uniqueItems = true', [1, True, "1", None]),
            ('type = "array", uniqueItems = false', [1, 1]),
            ('type = "object", additionalProperties = true', {"b": "x"}),
            (keys, 1),
            (f'type = "object", properties = {{ {members} }}', {"pattern": "("}),
        )
        for schema, value in cases:
            arguments: JSON = {"a": value}
            self.assertEqual(check_arguments(action(own(f"{{ {schema} }}")), arguments), arguments)
        place: JSON = {"place": {"lat": 1.5, "lon": 2, "kind": "sea"}}
        self.assertEqual(check_arguments(action(PLACE), place), place)

    def test_each_problem(self) -> None:
        """Each problem has its own place and words, the members of an object too."""
        wrong: JSON = {"place": {"lat": 200, "kind": "air", "x/y": 1}, "more": 1}
        self.assertEqual(
            sorted(self.problems(action(PLACE), wrong)),
            [
                ("/args/more", "is not an input of this action"),
                ("/args/place/kind", 'must be one of "sea", "land"'),
                ("/args/place/lat", "must be 180 or less"),
                ("/args/place/lon", "is missing"),
                ("/args/place/x~1y", "is not known here"),
            ],
        )
        self.assertEqual(self.problems(action(PLACE), {}), [("/args/place", "is missing")])

    def test_words(self) -> None:
        """What a schema can ask for beyond the keys has words of its own."""
        cases: tuple[tuple[str, JSON, str, str], ...] = (
            ('type = "string", pattern = "^[a-z]+$"', "a\n", "", "must match ^[a-z]+$"),
            ('type = "string", enum = ["x"]', "y", "", 'must be one of "x"'),
            ('type = "array", items = { enum = ["x"] }', ["x", "y"], "/1", 'must be one of "x"'),
            ('type = "array", uniqueItems = true', [1, "a", 1.0], "", "must have no element twice"),
            ('type = "object", maxProperties = 1', {"a": 1, "b": 2}, "", "must have at most 1 members"),
            ('type = "string", format = "date"', "x", "", "must be a valid date"),
        )
        for schema, value, pointer, words in cases:
            ((found, said),) = self.problems(action(own(f"{{ {schema} }}")), {"a": value})
            self.assertEqual(found, f"/args/a{pointer}")
            self.assertIn(words, said)

    def test_long_words(self) -> None:
        """The author's words are visible and cut; the caller's are not repeated."""
        options = ", ".join(f'"\\u202e{n:>0100}"' for n in range(100))
        made = action(own(f'{{ type = "string", enum = [{options}] }}'))
        ((_, said),) = self.problems(made, {"a": "hunter2"})
        self.assertLess(len(said), 450)
        self.assertIn("\\u202e", said)
        self.assertNotIn("\u202e", said)
        self.assertNotIn("hunter2", said)

    def test_slow_pattern(self) -> None:
        """A pattern that a backtracking matcher would never be done with is."""
        made = action(own('{ type = "string", pattern = "^(a+)+$" }'))
        self.assertEqual(self.problems(made, {"a": "a" * 60000 + "b"}), [("/args/a", "must match ^(a+)+$")])

    def test_too_much_work(self) -> None:
        """A call whose check would take too long is refused, whichever of its arguments it is that do."""
        options = ", ".join(f"{{ const = {n} }}" for n in range(200))
        made = action(own(f'{{ type = "array", items = {{ anyOf = [{options}] }} }}'))
        value: JSON = [199] * 1000
        self.assertEqual(self.problems(made, {"a": value}), [("/args", "holds too much to be checked by its schema")])
        integers = own('{ type = "array", items = { type = "integer" } }')
        two = action(integers + integers.replace('"a"', '"b"'))
        half: JSON = [0] * 30_000
        self.assertEqual(check_arguments(action(integers), {"a": half}), {"a": half})
        self.assertEqual(self.problems(two, {"a": half, "b": half})[0][0], "/args")

    def test_other_keys_are_free(self) -> None:
        """What no author's schema is asked about is taken at any size, beside such a schema too."""
        made = action(own('{ type = "string", pattern = "x" }') + one_input("b", "array", 'items_type = "integer"'))
        arguments: JSON = {"a": "x", "b": [0] * 300_000}
        self.assertEqual(check_arguments(made, arguments), arguments)

    def test_broken_schema(self) -> None:
        """A schema that nobody can follow ends the call, and no value of it is told."""
        made = evolve(action(), digest="broken", input_schema={"properties": {"a": {"minLength": "q"}}})
        heard: list[str] = []

        @implementer(ILogObserver)
        def hear(event: LogEvent) -> None:
            heard.append(repr(event))

        globalLogPublisher.addObserver(hear)
        self.addCleanup(globalLogPublisher.removeObserver, hear)
        self.assertEqual(self.problems(made, {"a": "hunter2"}), [("/args", "cannot be checked")])
        (line,) = (each for each in heard if "checking arguments" in each)
        self.assertIn("TypeError", line)
        self.assertNotIn("hunter2", line)
