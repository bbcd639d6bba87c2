"""Arguments are what the action declares, or every problem is told at once."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.actions import check_arguments, input_schema
from aileron.base.json import JSON, json_problems
from aileron.model.actions import Action, Input
from aileron.model.errors import InvalidRequest
from tests.extent import examples

from .files import action, one_input

EVERY_TYPE = "".join(
    (
        one_input("text", "string", "max_length = 5"),
        one_input("choice", "string", 'enum = ["a", "b"]', "required = false"),
        one_input("count", "integer", "minimum = 1", "maximum = 9", "required = false"),
        one_input("ratio", "number", "required = false"),
        one_input("flag", "boolean", "default = false"),
        one_input("names", "array", 'items_type = "string"', "max_length = 2", "required = false"),
        one_input("any", "array", "required = false"),
        one_input("table", "object", "required = false"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["a", "b", 1, 9.0, 1.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["text", "choice", "count", "ratio", "flag", "names", "any", "table", "other"]), VALUES, max_size=4
)


class SchemaTests(SynchronousTestCase):
    """L{input_schema}."""

    def test_shape(self) -> None:
        """The schema is closed, names what is required and carries every constraint."""
        inputs = (
            Input("a", "string", "A", label="Letter", enum=("x",), default="x", has_default=True, required=False),
            Input("b", "integer", "B", minimum=1, maximum=2),
            Input("c", "array", "C", items_type="integer", max_length=3, required=False),
            Input("d", "array", "D"),
            Input("e", "string", "E", max_length=9, format="uri", required=False),
        )
        self.assertEqual(
            input_schema(inputs),
            {
                "type": "object",
                "properties": {
                    "a": {"type": "string", "description": "A", "title": "Letter", "enum": ["x"], "default": "x"},
                    "b": {"type": "integer", "description": "B", "minimum": 1, "maximum": 2},
                    "c": {"type": "array", "description": "C", "items": {"type": "integer"}, "maxItems": 3},
                    "d": {"type": "array", "description": "D", "items": {}},
                    "e": {"type": "string", "description": "E", "maxLength": 9, "format": "uri"},
                },
                "required": ["b", "d"],
                "additionalProperties": False,
            },
        )

    def test_valid(self) -> None:
        """An action's schema is itself a valid schema of 2020-12, and strings are always bounded."""
        schema = action(EVERY_TYPE + one_input("long", "string")).input_schema
        Draft202012Validator.check_schema(schema)
        properties = schema["properties"]
        assert isinstance(properties, dict)
        self.assertEqual(properties["long"]["maxLength"], 65536)


class CheckTests(SynchronousTestCase):
    """L{check_arguments}."""

    def problems(self, made: Action, arguments: JSON) -> list[tuple[str, str]]:
        error = self.assertRaises(InvalidRequest, check_arguments, made, arguments)
        problems = error.details["problems"]
        assert isinstance(problems, list)
        return [(problem["pointer"], problem["message"]) for problem in problems]

    def test_defaults(self) -> None:
        """Defaults are filled in; what the caller sent counts more, and no space or composition of it is changed."""
        made = action(one_input("a", "integer", "default = 3") + one_input("b", "string", "required = false"))
        self.assertEqual(check_arguments(made, {}), {"a": 3})
        self.assertEqual(check_arguments(made, {"a": 4, "b": " e\u0301 \r\n"}), {"a": 4, "b": " e\u0301 \r\n"})

    def test_every_problem_at_once(self) -> None:
        """Each problem has its own pointer and words, missing and undeclared arguments too, a hundred at most."""
        arguments: JSON = {"choice": "c", "count": 10, "flag": 1, "names": ["a", 2], "other/one": 1}
        self.assertEqual(
            sorted(self.problems(action(EVERY_TYPE), arguments)),
            [
                ("/args/choice", 'must be one of "a", "b"'),
                ("/args/count", "must be 9 or less"),
                ("/args/flag", "must be a boolean"),
                ("/args/names/1", "must be a string"),
                ("/args/other~1one", "is not an input of this action"),
                ("/args/text", "is missing"),
            ],
        )
        cases: tuple[tuple[JSON, tuple[str, str]], ...] = (
            ({"text": "123456"}, ("/args/text", "must have at most 5 characters")),
            ({"text": "", "count": 0}, ("/args/count", "must be 1 or more")),
            ({"text": "", "names": ["a", "b", "c"]}, ("/args/names", "must have at most 2 elements")),
            ({"text": "", "table": []}, ("/args/table", "must be an object")),
            ({"text": None}, ("/args/text", "must be a string")),
            ({"text": "", "count": True}, ("/args/count", "must be an integer")),
            ({"text": "", "ratio": False}, ("/args/ratio", "must be a number")),
            ({"text": "", "count": "3"}, ("/args/count", "must be an integer")),
            (None, ("/args", "must be an object")),
            ([], ("/args", "must be an object")),
            ("x", ("/args", "must be an object")),
        )
        for wrong, expected in cases:
            self.assertEqual(self.problems(action(EVERY_TYPE), wrong), [expected])
        self.assertEqual(len(self.problems(action(), {f"x{n}": 1 for n in range(1000)})), 100)

    def test_unsafe_values(self) -> None:
        """What two readers could read in two ways is refused, wherever it hides."""
        made = action(one_input("table", "object"))
        deep: JSON = "x"
        for _ in range(31):
            deep = [deep]
        self.assertEqual(check_arguments(made, {"table": {"x": {}}}), {"table": {"x": {}}})
        for value, part in (
            (float("nan"), "not finite"),
            (2**53, "beyond 2^53-1"),
            ("\ud800", "lone surrogate"),
            ([deep], "nested too deeply"),
        ):
            ((pointer, message),) = self.problems(made, {"table": {"x": value}})
            self.assertTrue(pointer.startswith("/args/table/x"))
            self.assertIn(part, message)

    def test_values_are_not_repeated(self) -> None:
        """A wrong value is in no message: it may be what should not be logged."""
        made = action(EVERY_TYPE + one_input("mail", "string", 'format = "email"'))
        arguments: JSON = {"text": "hunter2-hunter2", "choice": "hunter2", "mail": "hunter2", "count": "hunter2"}
        error = self.assertRaises(InvalidRequest, check_arguments, made, arguments)
        self.assertNotIn("hunter2", repr(error.fault()))

    def test_formats(self) -> None:
        """Formats are checked, each one."""
        for name, good, bad in (
            (
                "email",
                ["a@b.example", "a+b.c@localhost"],
                ["a", "a@", "@b", "a b@c", "a@b\n", "a@-b", "a@b..c", "a@b-", "<a@b.c>"],
            ),
            ("uri", ["https://a.example/x?y=%20#z", "mailto:a@b"], ["a", "//a/b", "https://a b", "http://é", "x:%zz"]),
            ("date", ["2024-02-29"], ["2023-02-29", "20240101", "2024-W01-1", "2024-1-1", "٢٠٢٤-٠١-٠١"]),
            (
                "date-time",
                ["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.123456789+02:00"],
                [
                    "2024-02-29",
                    "2024-02-29T10:00:00",
                    "2024-02-29 10:00:00Z",
                    "2024-02-30T10:00:00Z",
                    "2024-01-01T24:00:00Z",
                ],
            ),
        ):
            made = action(one_input("a", "string", f'format = "{name}"'))
            for text in good:
                self.assertEqual(check_arguments(made, {"a": text}), {"a": text})
            for text in bad:
                self.assertEqual(self.problems(made, {"a": text}), [("/args/a", f"must be a valid {name}")])

    @given(ARGUMENTS)
    @settings(deadline=None, max_examples=examples(300))
    def test_agrees_with_the_schema(self, arguments: dict[str, JSON]) -> None:
        """What the published schema allows, and JSON can say in one way, is what passes."""
        made = action(EVERY_TYPE)
        allowed = Draft202012Validator(made.input_schema).is_valid(arguments) and not any(json_problems(arguments))
        try:
            check_arguments(made, arguments)
        except InvalidRequest as error:
            self.assertFalse(allowed, error.details)
        else:
            self.assertTrue(allowed)
