"""Every constraint of a schema is told in words."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.values import JSON, violation


class ViolationTests(SynchronousTestCase):
    """L{violation}."""

    def test_words(self) -> None:
        """Each keyword has words of its own, which say what is wanted as JSON says it."""
        cases: tuple[tuple[str, JSON, str], ...] = (
            ("type", "integer", "must be an integer"),
            ("type", ["string", "null"], "must be a string or null"),
            ("enum", ["é", 1, None], 'must be one of "é", 1, null'),
            ("const", True, "must be true"),
            ("minimum", 1, "must be 1 or more"),
            ("maximum", 9, "must be 9 or less"),
            ("exclusiveMinimum", 0, "must be more than 0"),
            ("minLength", 2, "must have at least 2 characters"),
            ("maxLength", 5, "must have at most 5 characters"),
            ("minItems", 1, "must have at least 1 elements"),
            ("maxItems", 3, "must have at most 3 elements"),
            ("pattern", "^a$", "must match ^a$"),
            ("format", "email", "must be a valid email"),
            ("exclusiveMaximum", 9, "must be less than 9"),
            ("multipleOf", 5, "must be a multiple of 5"),
            ("uniqueItems", True, "must have no element twice"),
            ("minProperties", 1, "must have at least 1 members"),
            ("maxProperties", 2, "must have at most 2 members"),
            ("oneOf", [{"const": "a", "title": "A"}, {"const": 1}], 'must be one of "a", 1'),
            ("anyOf", [{"const": "a"}], 'must be one of "a"'),
            ("anyOf", [{"const": "a"}, True], "fits nothing that is allowed here"),
            ("oneOf", [{"type": "string"}], "fits none, or more than one, of what is allowed here"),
        )
        for keyword, wanted, words in cases:
            self.assertEqual(violation(keyword, wanted), words)

    def test_another_keyword(self) -> None:
        """A keyword without words of its own still refuses, and repeats nothing."""
        self.assertEqual(violation("not", {"const": "x"}), "is not allowed here")
