"""What is plainly right is right."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import plainly

_MEMBERS: dict[str, Any] = {
    "text": {"type": "string", "description": "x"},
    "short": {"type": "string", "maxLength": 2},
    "count": {"type": "integer", "minimum": 1},
    "flag": {"type": "boolean", "default": False},
    "list": {"type": "array", "items": {"type": "integer"}},
    "table": {"type": "object"},
    "either": {"type": ["string", "null"]},
    "any": {},
    "never": False,
}
_SOME = [True, 0, 1, 2.0, 1.5, None, "", "a", "abc", [], [1], ["a"], {}, {"a": 1}]
_VALUES = st.dictionaries(st.sampled_from([*_MEMBERS, "other"]), st.sampled_from(_SOME), max_size=5)
_SCHEMAS = st.fixed_dictionaries(
    {"properties": st.dictionaries(st.sampled_from(list(_MEMBERS)), st.none(), max_size=6)},
    optional={
        "type": st.sampled_from(["object", "array"]),
        "required": st.lists(st.sampled_from(list(_MEMBERS)), max_size=2, unique=True),
        "additionalProperties": st.sampled_from([False, True, {"type": "integer"}]),
        "minProperties": st.just(2),
    },
)


class PlainlyTests(SynchronousTestCase):
    """L{plainly} beside a validator."""

    @settings(deadline=None, max_examples=300)
    @given(_SCHEMAS, _VALUES | st.sampled_from(_SOME))
    def test_never_more(self, drawn: dict[str, Any], value: Any) -> None:
        """Nothing is plainly right in which the validator finds a fault."""
        schema = _made(drawn)
        if plainly(schema, Draft202012Validator)(value):
            self.assertEqual(list(Draft202012Validator(schema).iter_errors(value)), [])

    @settings(deadline=None, max_examples=300)
    @given(_SCHEMAS, _VALUES)
    def test_usual(self, drawn: dict[str, Any], value: Any) -> None:
        """Of a closed object it says all that the validator says."""
        schema = {**_made(drawn), "type": "object", "additionalProperties": False}
        schema.pop("minProperties", None)
        self.assertEqual(plainly(schema, Draft202012Validator)(value), Draft202012Validator(schema).is_valid(value))


def _made(drawn: dict[str, Any]) -> dict[str, Any]:
    return {**drawn, "properties": {name: _MEMBERS[name] for name in drawn["properties"]}}
