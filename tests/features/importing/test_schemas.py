"""Of narrowing schemas: what comes out allows nothing that the document refuses."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import input_schema_problem
from aileron.features.importing._references import ApiDocument, Inexpressible, WorkBudget
from aileron.features.importing._schemas import Narrowed, narrow
from tests.extent import examples

SCALARS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 3), "maxLength": st.integers(2, 5)}
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-3, 3), "exclusiveMaximum": st.integers(0, 6), "multipleOf": st.just(2)},
    ),
    st.fixed_dictionaries({"enum": st.lists(st.sampled_from([1, 2, "a", "b", True, None]), min_size=1, max_size=4)}),
    st.fixed_dictionaries({"type": st.just("string"), "pattern": st.sampled_from(["^a", "b+$", "(?=a)", "["])}),
    st.sampled_from([{"type": "boolean"}, {"const": "a"}, {"type": ["string", "null"]}, {"$ref": "#/self"}, {}]),
)
NAMES = st.sampled_from(["a", "b", "c"])


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    objects = st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
        optional={
            "required": st.lists(NAMES, unique=True, max_size=2),
            "additionalProperties": st.booleans() | SCALARS,
            "not": st.just({"required": ["a"]}),
        },
    )
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        objects,
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}, optional={"maxItems": st.integers(0, 2)}),
        *(st.fixed_dictionaries({key: several}) for key in ("allOf", "anyOf", "oneOf")),
    )


SCHEMAS = st.recursive(SCALARS, _larger, max_leaves=8)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, 1, 2, 3, 5, 1.5, "", "a", "ab", "bbb", "abcd"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


class NarrowTests(SynchronousTestCase):
    def narrowed(self, schema: object, **others: object) -> Narrowed:
        """The schema, narrowed in a document with others."""
        return narrow(ApiDocument({"root": schema, **others}), {"$ref": "#/root"}, WorkBudget())  # type: ignore[dict-item]

    def schema(self, schema: object, **others: object) -> object:
        """The same, if nothing of it is marked."""
        narrowed = self.narrowed(schema, **others)
        self.assertEqual(narrowed.marks, ())
        return narrowed.schema

    @settings(max_examples=examples(400), suppress_health_check=list(HealthCheck), deadline=None)
    @given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=12))
    def test_only_narrows(self, schema: dict[str, Any], values: list[Any]) -> None:
        """An unmarked result is one that an input can have, and allows no value that the schema refuses."""
        document = {"self": schema}
        try:
            narrowed = narrow(ApiDocument(document), schema, WorkBudget())
        except Inexpressible:
            return
        self.assertIsNone(input_schema_problem(narrowed.schema))
        assume(not narrowed.marks)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            original = Draft202012Validator({**schema, "self": schema} if "$ref" not in schema else {})
            ours = Draft202012Validator(dict(narrowed.schema))
            for value in values:
                if ours.is_valid(value):
                    self.assertTrue(original.is_valid(value), (value, narrowed.schema))

    def test_nothing(self) -> None:
        """That there may be nothing, as null or an empty text, is not passed on."""
        self.assertEqual(self.schema({"type": ["null", "string"]}), {"type": "string"})
        self.assertEqual(self.schema({"type": "string", "nullable": True}), {"type": "string"})
        options = [{"type": "integer"}, {"enum": ["", None]}, {"type": "null"}]
        self.assertEqual(self.schema({"anyOf": options}), {"type": "integer"})

    def test_all_of(self) -> None:
        """What must hold together becomes one schema; what contradicts itself is refused."""
        one = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 9}}, "required": ["a"]}
        other = {"properties": {"a": {"maxLength": 5}, "b": {"type": "boolean"}}, "required": ["b"]}
        self.assertEqual(
            self.schema({"allOf": [{"$ref": "#/one"}, other], "additionalProperties": False}, one=one),
            {
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 5}, "b": {"type": "boolean"}},
                "required": ["b", "a"],
                "additionalProperties": False,
            },
        )
        for contradiction in ({"type": "string"}, {"pattern": "x"}):
            with self.assertRaises(Inexpressible):
                self.narrowed({"allOf": [{"type": "integer", "pattern": "y"}, contradiction]})

    def test_one_of(self) -> None:
        """Where what is not passed on would have matched a second alternative, that is marked; elsewhere it is not."""
        text, nullable, anything = {"type": "string"}, {"type": ["string", "null"]}, {"description": "Anything."}
        blank, null = {"enum": ["", None]}, {"type": "null"}
        choices = [{"enum": ["a", None]}, {"enum": ["b", None]}]
        members = [{"type": "object", "properties": {name: nullable}} for name in "ab"]
        mark = ("that it matches only one alternative is not checked",)
        for options, marks in (
            ([nullable, anything], mark),
            ([null, anything], mark),
            ([blank, text], mark),
            ([blank, {"enum": ["a", ""]}], mark),
            ([{"properties": {}}, text], mark),
            (members, mark),
            ([{"type": "array", "items": nullable}, {"type": "array"}], mark),
            ([{"enum": [2**60, 1]}, {"type": "integer"}], mark),
            ([nullable, {"type": "integer"}], ()),
            ([members[0], {"type": "array", "items": nullable}], ()),
            ([blank, {"enum": ["a"]}], ()),
            ([null, text], ()),
            (choices, ()),
        ):
            self.assertEqual(self.narrowed({"type": "array", "items": {"oneOf": options}}).marks, marks, options)

    def test_closed_part(self) -> None:
        """A member that one part describes and another does not allow stays, and is marked, however they are joined."""
        closed = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
        other = {"properties": {"b": {"type": "string"}}}
        both = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
        for schema in (
            {"allOf": [closed, other]},
            {"allOf": [other, closed]},
            {**closed, "allOf": [other]},
            {"allOf": [{"$ref": "#/closed", **other}]},
            {"allOf": [{"allOf": [closed, other]}]},
        ):
            narrowed = self.narrowed(schema, closed=closed)
            self.assertEqual(narrowed.schema, {**both, "additionalProperties": False}, schema)
            self.assertEqual(narrowed.marks, ("another part of the schema does not allow b",), schema)
        self.schema({"allOf": [closed, {"properties": {"a": {"maxLength": 5}}}]})

    def test_references_of_references(self) -> None:
        """What stands beside a reference holds as well, however many references lead on from there."""
        end = {"type": "string", "maxLength": 9, "description": "The end."}
        one = {"$ref": "#/two", "maxLength": 5, "description": "One."}
        two = {"$ref": "#/end", "minLength": 2, "pattern": "^a"}
        found = self.narrowed({"$ref": "#/one", "maxLength": 7}, one=one, two=two, end=end)
        expected = {"type": "string", "description": "One.", "minLength": 2, "maxLength": 5, "pattern": "^a"}
        self.assertEqual((found.schema, found.marks), (expected, ()))
        closed = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
        found = self.narrowed({"$ref": "#/one"}, one={"$ref": "#/two", "properties": {"b": {}}}, two=closed)
        self.assertEqual(found.marks, ("another part of the schema does not allow b",))
        with self.assertRaisesRegex(Inexpressible, "two of `pattern`"):
            self.narrowed({"$ref": "#/one"}, one={**two, "$ref": "#/two"} | {"pattern": "b"}, two=two, end=end)

    def test_old_bounds(self) -> None:
        """A bound of OpenAPI 3.0 that is exclusive stays so; one beyond every number is none."""
        schema = {
            "type": "integer",
            "minimum": 3,
            "exclusiveMinimum": True,
            "maximum": 2**63,
            "exclusiveMaximum": False,
        }
        self.assertEqual(self.schema(schema), {"type": "integer", "exclusiveMinimum": 3})

    def test_like_values(self) -> None:
        """A bound of 0 or 1 is no truth value, nor is a choice; what must be two constants at once is refused."""
        for bound in (0, 1):
            schema = {"type": "integer", "exclusiveMaximum": bound}
            self.assertEqual(self.schema(schema), schema)
        for one, other in (({"const": "a"}, {"enum": [1]}), ({"enum": [True]}, {"enum": [1]}), ({"enum": []}, {})):
            with self.assertRaises(Inexpressible):
                self.narrowed({"allOf": [one, other]})

    def test_circles(self) -> None:
        """A member that leads back is left out, and no other can then be given; a required one refuses the whole."""
        tree = {"type": "object", "properties": {"name": {"type": "string"}, "under": {"$ref": "#/root"}}}
        found = self.narrowed(tree)
        self.assertEqual(
            found.schema,
            {"type": "object", "properties": {"name": {"type": "string"}}, "additionalProperties": False},
        )
        self.assertIn("under in it refers to itself", found.marks[0])
        with self.assertRaises(Inexpressible):
            self.narrowed({**tree, "required": ["under"]})

    def test_read_only(self) -> None:
        """What only the service says is not given, and not required."""
        properties = {"id": {"type": "string", "readOnly": True}, "a": {"type": "string"}}
        schema = {"type": "object", "properties": properties, "required": ["id", "a"]}
        self.assertEqual(
            self.schema(schema), {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        )

    def test_marked(self) -> None:
        """What is not checked, or no longer allowed, is marked."""
        for schema, words in (
            ({"type": "string", "pattern": "(?=x)"}, "the pattern (?=x) is not checked"),
            ({"type": "string", "not": {"const": "x"}}, "`not` is not checked"),
            ({"type": "object", "additionalProperties": {"type": "string"}}, "further members are not checked"),
            ({"type": ["string", "integer"]}, "only the type string can be given"),
            ({}, "only the type string can be given"),
            ({"oneOf": [{"type": "string"}, {"$ref": "#/no"}, {"const": "x"}]}, "an alternative of it"),
        ):
            self.assertIn(words, " ".join(self.narrowed(schema).marks), schema)

    def test_too_large(self) -> None:
        """A schema that is too large loses its words first, then what lies deepest; what is left is said."""
        deep: dict[str, Any] = {"type": "string", "description": "x" * 200}
        for _ in range(4):
            deep = {"type": "object", "properties": {f"member{i}": deep for i in range(6)}}
        found = self.narrowed(deep)
        self.assertIsNone(input_schema_problem(found.schema))
        self.assertTrue(found.marks)
        with self.assertRaises(Inexpressible):
            self.narrowed({"enum": ["x" * 100 + str(i) for i in range(400)]})

    def test_hostile_words(self) -> None:
        """Words inside a schema are one line, fit to be shown, and cut."""
        found = self.schema(
            {"type": "object", "properties": {"a": {"type": "string", "description": "x\u202e\n" * 999}}}
        )
        words = found["properties"]["a"]["description"]  # type: ignore[index]
        self.assertLessEqual(len(words), 160)
        self.assertNotIn("\u202e", words)
        self.assertNotIn("\n", words)

    def test_no_schemas(self) -> None:
        """Whatever stands where a schema should be is refused, or becomes a schema that an input can have."""
        no_members = {"properties": {"a": 3}, "required": ["a"]}
        none: list[object] = [[], 1, "x", {"type": 7}, {"type": []}, {"allOf": [1]}, no_members, {"enum": [None]}]
        for wrong in none:
            with self.subTest(repr(wrong)), self.assertRaises(Inexpressible):
                self.narrowed(wrong)
        some: list[object] = [{"enum": {}}, {"properties": []}, {"type": "string", "minLength": 1, "format": 3}]
        for odd in some:
            with self.subTest(repr(odd)), contextlib.suppress(Inexpressible):
                self.assertIsNone(input_schema_problem(self.narrowed(odd).schema))
