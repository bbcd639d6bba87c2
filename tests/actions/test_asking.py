"""Only what a form can show is for the person to say."""

from __future__ import annotations

from .files import action, manifest, one_input
from .test_own_schema import own
from .test_parse import Faults

SEVERAL = '{ type = "array", items = { %s } }'


class AskTests(Faults):
    """The key C{ask}."""

    def test_taken(self) -> None:
        """Texts, numbers, booleans and several of a choice can be asked for; unsaid, nothing is."""
        for inputs in (
            *(one_input("a", kind, "ask = true") for kind in ("string", "integer", "number", "boolean")),
            one_input("a", "string", 'enum = ["x"]', "ask = true"),
            *(
                own(f"{{ {schema} }}", "ask = true")
                for schema in (
                    'type = "string", oneOf = [{ const = "x", title = "X" }]',
                    'type = "string", anyOf = [{ const = "x", title = "X" }]',
                    'type = "string", enum = ["x"], enumNames = ["X"]',
                    'type = "string", minLength = 1, maxLength = 9, format = "email"',
                    'type = "string", pattern = "^x"',
                    'type = "number", minimum = 1, maximum = 2',
                    'type = "array", items = { type = "string", enum = ["x", "y"] }',
                    'type = "array", items = { anyOf = [{ const = "x", title = "X" }] }',
                    'type = "array", minItems = 1, maxItems = 2, items = { type = "string", enum = ["x", "y"] }',
                )
            ),
        ):
            (one,) = action(inputs).inputs
            self.assertTrue(one.ask, inputs)
            self.assertFalse(action(inputs.replace("ask = true", "")).inputs[0].ask)

    def test_goes_with(self) -> None:
        """A default and not being required go with it, and the tool's schema says nothing of it."""
        plain = action(one_input("a", "integer", "default = 3") + one_input("b", "string", "required = false"))
        asking = action(
            one_input("a", "integer", "default = 3", "ask = true")
            + one_input("b", "string", "required = false", "ask = true")
        )
        self.assertEqual([one.ask for one in asking.inputs], [True, True])
        self.assertEqual(asking.input_schema, plain.input_schema)

    def test_refused(self) -> None:
        """What no form can show is a fault of its line."""
        refused = [
            (one_input("a", "object", "ask = true"), "no form can ask for an object"),
            (own('{ type = "object" }', "ask = true"), "no form can ask for an object"),
            (one_input("a", "array", 'items_type = "string"', "ask = true"), "only for several of a choice"),
        ]
        several = (
            'type = "string"',
            'enum = ["x"]',
            'type = "string", enum = [1]',
            'type = "integer", enum = ["x"]',
            'type = "string", enum = ["x"], minLength = 1',
            'anyOf = [{ const = "x" }]',
            'anyOf = [{ const = 1, title = "X" }]',
            'anyOf = [{ const = "x", title = "X" }, { pattern = "y" }]',
            'oneOf = [{ const = "x", title = "X" }]',
        )
        refused += [(own(SEVERAL % items, "ask = true"), "only for several of a choice") for items in several]
        refused += [
            (own(f"{{ {schema} }}", "ask = true"), part)
            for schema, part in (
                ('type = "array"', "only for several of a choice"),
                ('type = "array", uniqueItems = true, items = { type = "string", enum = ["x"] }', "`uniqueItems`"),
                ('type = "string", anyOf = [{ format = "email" }, { format = "uri" }]', "can offer `anyOf` only where"),
                (
                    'type = "string", oneOf = [{ const = "x", title = "X" }, { minLength = 1 }]',
                    "can offer `oneOf`",
                ),
                ('type = "string", oneOf = [{ const = "x" }]', "a `const` and a `title`"),
                ('type = "string", enum = [1]', "only texts as `enum`"),
                ('type = "string", enum = ["x"], oneOf = [{ const = "x", title = "X" }]', "both `enum` and `oneOf`"),
                ('type = "string", const = "x"', "no form can say `const`"),
                ('type = "string", format = "ipv4"', "another `format` than email"),
                ('type = "integer", multipleOf = 2', "no form can say `multipleOf` of a value of type integer"),
                ('type = "boolean", enum = [true]', "no form can say `enum` of a value of type boolean"),
            )
        ]
        refused.append((one_input("a", "integer", "enum = [1]", "ask = true"), "no form can say `enum`"))
        for inputs, part in refused:
            self.assert_fault(manifest(inputs=inputs), part, "ask =")
        self.assert_fault(manifest(inputs=one_input("a", "string", 'ask = "yes"')), "must be true or false", "ask =")
