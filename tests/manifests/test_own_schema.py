"""An input's own schema is taken as it stands, checked as the other keys are, and refused with its line."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aileron.errors import InvalidRequest
from aileron.manifests import ManifestFault, check_arguments, parse
from aileron.values import JSON, Action

from .files import action, manifest
from .test_parse import Faults

PLACE = """[[inputs]]
name = "place"
description = "Where"

[inputs.schema]
type = "object"
required = ["lat", "lon"]
additionalProperties = false
properties.lat = { "$ref" = "#/$defs/degrees" }
properties.lon = { "$ref" = "#/$defs/degrees" }
properties.kind = { oneOf = [{ const = "sea", title = "At sea" }, { const = "land" }] }
"$defs".degrees = { type = "number", minimum = -180, maximum = 180 }
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
        """It stands in the tool's schema as it is written, with a description where it has none."""
        several = '{ type = "array", items = { anyOf = [{ const = "x", title = "X" }] }, uniqueItems = true }'
        self.assertEqual(
            published(own(several)),
            {
                "type": "array",
                "items": {"anyOf": [{"const": "x", "title": "X"}]},
                "uniqueItems": True,
                "description": "d",
            },
        )
        said = published(own('{ type = "integer", description = "mine", title = "T" }', 'label = "L"'))
        self.assertEqual(said, {"type": "integer", "description": "mine", "title": "T"})

    def test_words_beside(self) -> None:
        """A label and a default stand in it too; an array says that it holds anything."""
        said = published(own('{ type = "array" }', 'label = "L"', "default = [1]"))
        self.assertEqual(said, {"type": "array", "title": "L", "description": "d", "default": [1], "items": {}})

    def test_length(self) -> None:
        """A string has the usual limit, unless it has its own or is one of a choice."""
        self.assertEqual(published(own('{ type = "string" }'))["maxLength"], 65536)
        self.assertEqual(published(own('{ type = "string", maxLength = 9 }'))["maxLength"], 9)
        for choice in ('enum = ["x"]', 'const = "x"', 'oneOf = [{ const = "x" }]', 'anyOf = [{ const = "x" }]'):
            self.assertNotIn("maxLength", published(own(f'{{ type = "string", {choice} }}')))
        self.assertIn("maxLength", published(own('{ type = "string", oneOf = [{ const = "x" }, { minLength = 3 }] }')))

    def test_references(self) -> None:
        """What it says of its own parts says where they are in the tool's schema; its data is no part of it."""
        said = published(PLACE, "place")
        self.assertEqual(said["properties"]["lat"], {"$ref": "#/properties/place/$defs/degrees"})
        data = '{ type = "object", "$defs" = { x = true }, enum = [{ "$ref" = "#/$defs/x" }] }'
        self.assertEqual(published(own(data))["enum"], [{"$ref": "#/$defs/x"}])
        made = action(PLACE)
        Draft202012Validator.check_schema(made.input_schema)
        checks = Draft202012Validator(made.input_schema)
        self.assertTrue(checks.is_valid({"place": {"lat": 1, "lon": 2}}))
        self.assertFalse(checks.is_valid({"place": {"lat": 181, "lon": 2}}))

    def test_input(self) -> None:
        """Its type is the input's, and nothing else is said of it twice."""
        (one,) = action(own('{ type = "string", enum = ["x"] }', "multiline = true")).inputs
        self.assertEqual((one.type, one.enum, one.max_length, one.multiline), ("string", None, None, True))
        self.assertEqual(one.schema, {"type": "string", "enum": ["x"]})


class FaultTests(Faults):
    """What is refused."""

    def test_faults(self) -> None:
        """Whatever no agent could be handed, or we could not check, is a fault of its line."""
        long = ", ".join(f'"{n:>0100}"' for n in range(170))
        for schema, part in (
            ("3", "must be a table"),
            ("[]", "must be a table"),
            ("{}", "must say its own `type`: one of string, integer"),
            ('{ type = "null" }', "must say its own `type`"),
            ('{ type = ["string", "integer"] }', "must say its own `type`"),
            ('{ type = "text" }', "must be a JSON Schema"),
            ('{ type = "string", enum = 3 }', "must be a JSON Schema"),
            ('{ type = "string", enum = [2030-01-31] }', "must be written as a string"),
            (f'{{ type = "string", enum = [{long}] }}', "at most 16384 bytes"),
            ('{ type = "string", "$ref" = "https://example.org/x" }', "must not refer to"),
            ('{ type = "string", "$ref" = "#/$defs/x" }', "no schema is there"),
            ('{ type = "string", default = "x" }', "must not hold `default`"),
            ('{ type = "string", pattern = "(" }', "must be a JSON Schema"),
            ('{ type = "string", pattern = "(?=a)" }', "none of RE2's: "),
            ('{ type = "array", items = { anyOf = [{ pattern = "(?=a)" }] } }', "none of RE2's"),
            ('{ type = "object", patternProperties = { a = true } }', "must not hold `patternProperties`"),
            ('{ type = "object", properties = { x = { unevaluatedItems = false } } }', "`unevaluatedItems`"),
            ('{ type = "string", "$ref" = "#/$defs/x", "$defs" = { x = { "$ref" = "#/$defs/x" } } }', "in a circle"),
        ):
            self.assert_fault(manifest(inputs=own(schema)), part, "schema =")

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
        self.assert_fault(manifest(inputs=PLACE.replace('"object"', '"thing"')), "JSON Schema", "[inputs.schema]")

    def test_other_keys(self) -> None:
        """The keys that go with it are checked by it."""
        text = '{ type = "string", pattern = "^[a-z]+$" }'
        self.assertEqual(action(own(text, 'default = "x"')).inputs[0].default, "x")
        self.assert_fault(manifest(inputs=own(text, 'default = "X"')), "a value must match ^[a-z]+$", "default =")
        self.assert_fault(manifest(inputs=own('{ type = "array" }', "multiline = true")), "for inputs of type string")
        self.assert_fault(
            manifest(inputs=PLACE.replace("\n\n", "\ndefault = { lat = 200, lon = 1 }\n\n", 1)),
            "`default`: a value at /lat must be 180 or less",
            "default =",
        )

    def test_costly_default(self) -> None:
        """A file that nobody trusts yet cannot make its reading long."""
        twice = 'd%d = { allOf = [{ "$ref" = "#/$defs/d%d" }, { "$ref" = "#/$defs/d%d" }] }'
        doubled = ", ".join(twice % (n, n + 1, n + 1) for n in range(60))
        schema = f'{{ type = "string", "$ref" = "#/$defs/d0", "$defs" = {{ {doubled}, d60 = true }} }}'
        self.assert_fault(manifest(inputs=own(schema, 'default = "x"')), "too much to be checked", "default =")

    def test_words_that_look_like_keywords(self) -> None:
        """A member may have the name of a keyword that is refused."""
        schema = (
            '{ type = "object", properties = { patternProperties = { type = "object" }, pattern = { const = "(" } } }'
        )
        self.assertEqual(check_arguments(action(own(schema)), {"a": {"pattern": "("}}), {"a": {"pattern": "("}})

    @given(
        st.recursive(
            st.booleans() | st.integers(-3, 3) | st.text("a(#/$", max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from("type items properties $ref $defs anyOf not pattern enum const required a".split()),
                    inner,
                    max_size=3,
                )
            ),
            max_leaves=8,
        ),
        st.sampled_from(["string", "object", "array", 1]),
    )
    @settings(deadline=None, max_examples=200)
    def test_wild(self, drawn: JSON, kind: JSON) -> None:
        """Whatever is written, it loads or is refused by a fault; and where it loads calls are answered."""
        schema = {**drawn, "type": kind} if isinstance(drawn, dict) else drawn
        try:
            made = parse(manifest(inputs=own(_toml(schema))), "x")
        except ManifestFault as fault:
            self.assertTrue(all("a" in error.file or error.line for error in fault.errors))
            return
        values: tuple[JSON, ...] = ("a", {"a": "("}, [[]], 3)
        for value in values:
            try:
                check_arguments(made, {"a": value})
            except InvalidRequest as refused:
                self.assertTrue(refused.details["problems"])


class ArgumentTests(Faults):
    """What a call is told."""

    def problems(self, made: Action, arguments: JSON) -> list[tuple[str, str]]:
        error = self.assertRaises(InvalidRequest, check_arguments, made, arguments)
        problems: Any = error.details["problems"]
        return [(problem["pointer"], problem["message"]) for problem in problems]

    def test_right(self) -> None:
        """What fits passes as it is."""
        arguments: JSON = {"place": {"lat": 1.5, "lon": 2, "kind": "sea"}}
        self.assertEqual(check_arguments(action(PLACE), arguments), arguments)

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
            ('type = "object", propertyNames = { maxLength = 1 }', {"a": 1, "ab": 2}, "/ab", "has a name that is not"),
            ('type = "object", additionalProperties = { type = "integer" }', {"b": "x"}, "/b", "must be an integer"),
            ('type = "array", items = false', [1], "", "is not allowed here"),
        )
        for schema, value, pointer, words in cases:
            ((found, said),) = self.problems(action(own(f"{{ {schema} }}")), {"a": value})
            self.assertEqual(found, f"/args/a{pointer}")
            self.assertIn(words, said)

    def test_right_words(self) -> None:
        """True is not 1 among elements that stand once, and a false word asks for nothing."""
        cases: tuple[tuple[str, JSON], ...] = (
            ('type = "array", uniqueItems = true', [1, True, "1", None]),
            ('type = "array", uniqueItems = false', [1, 1]),
            ('type = "object", additionalProperties = true', {"b": "x"}),
        )
        for schema, value in cases:
            arguments: JSON = {"a": value}
            self.assertEqual(check_arguments(action(own(f"{{ {schema} }}")), arguments), arguments)

    def test_another_type(self) -> None:
        """What the type does not have is not asked of it."""
        keys = 'type = "integer", required = ["x"], additionalProperties = false, propertyNames = false'
        made = action(own(f'{{ {keys}, pattern = "a", uniqueItems = true }}'))
        self.assertEqual(check_arguments(made, {"a": 1}), {"a": 1})

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
        """A call whose check would take too long is refused."""
        options = ", ".join(f'"{n}"' for n in range(200))
        made = action(own(f'{{ type = "array", items = {{ enum = [{options}] }} }}'))
        value: JSON = ["199"] * 6000
        ((pointer, said),) = self.problems(made, {"a": value})
        self.assertEqual((pointer, said), ("/args", "holds too much to be checked by its schema"))

    def test_far(self) -> None:
        """A schema whose references lead on and on is refused at a call, not followed for ever."""
        chain = ", ".join(f'd{n} = {{ "$ref" = "#/$defs/d{n + 1}" }}' for n in range(400))
        made = action(own(f'{{ type = "string", "$ref" = "#/$defs/d0", "$defs" = {{ {chain}, d400 = true }} }}'))
        self.assertEqual(self.problems(made, {"a": "x"}), [("/args", "holds too much to be checked by its schema")])

    def test_itself(self) -> None:
        """A schema may refer to itself for what is further in."""
        tree = '"$ref" = "#/$defs/t", "$defs" = { t = { properties = { kids = { items = { "$ref" = "#/$defs/t" } } }, '
        made = action(own(f'{{ type = "object", {tree} required = ["n"] }} }} }}'))
        right: JSON = {"a": {"n": 1, "kids": [{"n": 2}]}}
        self.assertEqual(check_arguments(made, right), right)
        self.assertEqual(self.problems(made, {"a": {"n": 1, "kids": [{}]}}), [("/args/a/kids/0/n", "is missing")])


def _toml(value: JSON) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
