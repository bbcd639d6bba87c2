"""Whatever stands as a schema, reading ends; what is taken can be asked about anything, and says what others say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from aileron.actions import ManifestFault, check_arguments, parse
from aileron.base.json import JSON
from aileron.model.actions import Action
from aileron.model.errors import InvalidRequest
from tests.extent import examples
from tests.growth import seconds

from .files import manifest
from .test_own_schema import own
from .test_parse import Faults

_TYPES = ["string", "integer", "number", "boolean", "array", "object"]
_SCALARS = st.booleans() | st.integers(-3, 9) | st.sampled_from([0.5, 2.0, 3.5, -0.0]) | st.text("ab", max_size=3)
VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)
_COUNTS = st.integers(0, 3)
_NUMBERS = st.integers(-3, 9) | st.sampled_from([0.5, 2.0])
_SIMPLE: dict[str, st.SearchStrategy[Any]] = {
    "type": st.sampled_from(_TYPES),
    "title": st.just("t"),
    "examples": st.lists(VALUES, max_size=1),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "required": st.lists(st.sampled_from("ab"), unique=True, max_size=2),
    "additionalProperties": st.booleans(),
    "uniqueItems": st.booleans(),
    "pattern": st.sampled_from(["a", "^a+$", "^$", "b$"]),
    "format": st.sampled_from(["ipv4", "x"]),
    "multipleOf": st.sampled_from([1, 2, 3, 0.5, 0.1, 5e-324]),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBERS),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"), _COUNTS),
}


def _with_parts(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _schemas(
        {
            **_SIMPLE,
            "items": inner,
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
        }
    )


def _schemas(keywords: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """Schemas of few keywords: those of many are fitted by nothing."""
    chosen = st.sets(st.sampled_from(sorted(keywords)), max_size=3)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: keywords[key] for key in sorted(keys)}))


SCHEMAS: st.SearchStrategy[Any] = st.recursive(_schemas(_SIMPLE), _with_parts, max_leaves=6)
"""Of the closed set."""

_WORDS = [*_SIMPLE, "items", "properties", "anyOf", "oneOf", "enumNames", "$ref", "$defs", "allOf", "not", "a"]
WILD: st.SearchStrategy[Any] = st.recursive(
    _SCALARS | st.sampled_from(["(", "(?=a)", "#/$defs/a", "[ab]{999}", "string", 10**9, -1]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_WORDS), inner | SCHEMAS, max_size=3) | SCHEMAS
    ),
    max_leaves=8,
)
"""Around it."""


def taken(schema: JSON, *lines: str) -> Action | None:
    """The action of a file with this schema, if it is one."""
    try:
        return parse(manifest(inputs=own(_toml(schema), *lines)), "x")
    except ManifestFault:
        return None


def fits(made: Action, value: JSON) -> bool:
    """Whether a call with this value is taken."""
    try:
        check_arguments(made, {"a": value})
    except InvalidRequest as refused:
        assert "cannot be checked" not in str(refused.details)
        return False
    return True


def _array(**items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


_COSTLY: Mapping[str, tuple[dict[str, Any], JSON]] = {
    "alternatives": (_array(anyOf=[{"const": number} for number in range(30)]), [29] * 20_000),
    "one of several": (_array(oneOf=[{"const": number} for number in range(30)]), [29] * 20_000),
    "distinct": ({"type": "array", "uniqueItems": True}, [[[[number]]] for number in range(50_000)]),
    "choices": (_array(enum=["a" * 1000]), ["a" * 1000] * 10_000),
    "nested": (_array(**_array(**_array(type="integer"))), [[[0] * 300] * 300] * 2),
    "patterns": (
        _array(type="string", pattern="(a|b|ab){2,20}(a+b+)+c|^abababc$", maxLength=9000),
        ["ab" * 4000] * 100,
    ),
}
"""Schemas that an author may write, each with arguments that fit, of which there is too much."""


class CheckTests(Faults):
    """Schemas of every kind."""

    def test_too_much(self) -> None:
        """Arguments that would take for ever to check are refused as too much, soon."""
        for name, (schema, value) in _COSTLY.items():
            made = taken(schema)
            assert made is not None, name
            check = partial(self.assertRaises, InvalidRequest, check_arguments, made, {"a": value})
            self.assertIn("holds too much to be checked", str(check().details), name)
            self.assertLess(min(seconds(check) for _ in range(3)), 1, name)

    def test_just_enough(self) -> None:
        """Few of the same are taken: it is their number that is refused."""
        for name, (schema, value) in _COSTLY.items():
            made = taken(schema)
            assert made is not None, name
            assert isinstance(value, list)
            few: Mapping[str, JSON] = {"nested": [[[0]]], "patterns": ["abababc"]}
            self.assertTrue(fits(made, few.get(name, value[:3])), name)

    @given(WILD, st.sampled_from(_TYPES), VALUES, st.booleans())
    @settings(deadline=None, max_examples=examples(400))
    def test_wild(self, drawn: Any, kind: str, value: JSON, default: bool) -> None:
        """Whatever is written, it loads or is refused by a fault, soon; and where it loads calls are answered."""
        schema = {"type": kind, **drawn} if isinstance(drawn, dict) else drawn

        def load_and_call() -> None:
            made = taken(schema, *[f"default = {_toml(value)}"] * default)
            if made is not None:
                Draft202012Validator.check_schema(made.input_schema)
                for each in (value, None, "a" * 70_000, [[0] * 2000] * 9, {"a": {"b": [value]}}):
                    fits(made, each)

        self.assertLess(seconds(load_and_call), 2)
        self.assertEqual(self.flushLoggedErrors(), [])

    @given(SCHEMAS, st.sampled_from(_TYPES), st.lists(VALUES | st.none(), max_size=8))
    @settings(deadline=None, max_examples=examples(600))
    def test_same(self, drawn: Any, kind: str, values: list[JSON]) -> None:
        """What is of the closed set is taken, and says what the published schema says to others."""
        made = taken({"type": kind, **drawn})
        assert made is not None
        others = Draft202012Validator(made.input_schema)
        for value in values:
            self.assertEqual(fits(made, value), others.is_valid({"a": value}), value)

    def test_same_of_one_type(self) -> None:
        """Each keyword is asked about each kind of value."""
        schemas: list[dict[str, Any]] = [
            *({key: 2} for key in _SIMPLE if key.startswith(("min", "max", "exclusive"))),
            {"enum": [1, "a", True, [1, {"a": 2.0}]]},
            {"const": {"a": [1.0, False]}},
            {"multipleOf": 0.1},
            {"multipleOf": 2},
            {"multipleOf": 5e-324},
            {"uniqueItems": True},
            {"required": ["a"]},
            {"additionalProperties": False, "properties": {"b": {"type": "integer"}}},
            {"oneOf": [{"type": "integer"}, {"type": "number"}]},
            *({"type": kind} for kind in _TYPES),
        ]
        values: list[JSON] = [
            0,
            1,
            1.0,
            True,
            False,
            2.5,
            0.3,
            -0.0,
            2**53 - 1,
            "",
            "a",
            "abc",
            [],
            [1, True],
            [1, 1.0],
        ]
        values += [[0, -0.0], [{"a": 1}, {"a": 1.0}], [[1], [True]], {}, {"a": [1, 0]}, {"a": [1, False]}, {"b": 1.0}]
        values += [{"b": True}, [1, {"a": 2}], [1, {"a": True}], [None, "null"], "é\n", {"a": None, "b": 1, "c": 2}]
        for schema in schemas:
            made = taken({"type": "array", "items": schema})
            assert made is not None
            others = Draft202012Validator(made.input_schema)
            for value in values:
                self.assertEqual(fits(made, [value]), others.is_valid({"a": [value]}), (schema, value))


def _toml(value: JSON) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_toml(each)}' for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)
