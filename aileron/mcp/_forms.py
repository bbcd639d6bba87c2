"""Finds the arguments of a call that a person must provide, and makes the form for these arguments.

A value that a person types into a form passes through the agent's program. It is an argument like any other and
approves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.schemas import fits

from ._definitions import ToolDefinition

Answers = Mapping[str, JSON]
"""A person's answers, by the argument's name."""

_PLAIN = ("type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


@frozen
class Form:
    """A form that requests a few values from a person.

    :ivar message: the text that tells the person the purpose of the values.
    :ivar properties: the JSON Schema of each value, by its name.
    :ivar required: the names of the required values.
    """

    message: str
    properties: Mapping[str, JSON]
    required: tuple[str, ...]

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of the form: an object of one level."""
        return {"type": "object", "properties": self.properties, "required": self.required}


def fill_in(
    definition: ToolDefinition, arguments: Mapping[str, JSON], answers: Answers | None
) -> Mapping[str, JSON] | Form:
    """Return the arguments completed with a person's answers, or the form that requests the missing arguments.

    An argument is read from C{answers} only if a person must provide it and the call omits it.

    :param answers: the person's answers, or None if there was no form yet.
    """
    left_out = {name: schema for name, schema in _for_a_person(definition).items() if name not in arguments}
    result = {
        name: answers[name]
        for name, schema in left_out.items()
        if answers is not None and name in answers and fits(answers[name], _check_plainly(schema))
    }
    unsaid = {name: schema for name, schema in left_out.items() if name not in result}
    required = tuple(name for name in unsaid if name in _list_required(definition))
    if required or (unsaid and answers is None):
        return Form(f"{definition.title}: what the agent leaves to you. This approves nothing.", unsaid, required)
    return {**arguments, **result}


def list_answered(definition: ToolDefinition, arguments: Mapping[str, JSON], answers: Answers | None) -> list[str]:
    """Return the names of the arguments of a call that came from C{answers}."""
    return [name for name in definition.asks if answers and name in answers and name not in arguments]


def relax_schema(definition: ToolDefinition) -> Mapping[str, JSON]:
    """Return the schema of the arguments, in which arguments that a person will provide are optional."""
    required: JSON = [name for name in _list_required(definition) if name not in definition.asks]
    return {**definition.input_schema, "required": required}


def _for_a_person(definition: ToolDefinition) -> Mapping[str, Mapping[str, JSON]]:
    properties = definition.input_schema.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: each for name in definition.asks if isinstance(each := found.get(name), Mapping)}


def _check_plainly(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the parts of a schema that can be checked in bounded time for any value. The daemon checks the rest."""
    found = {key: value for key, value in schema.items() if key in _PLAIN}
    for options in (schema.get("oneOf"), schema.get("anyOf")):
        if isinstance(options, (list, tuple)):
            titled = [each["const"] for each in options if isinstance(each, Mapping) and "const" in each]
            found |= {"enum": titled} if len(titled) == len(options) else {}
    items = schema.get("items")
    return {**found, "items": _check_plainly(items)} if isinstance(items, Mapping) else found


def _list_required(definition: ToolDefinition) -> tuple[str, ...]:
    required = definition.input_schema.get("required")
    return tuple(map(str, required)) if isinstance(required, (list, tuple)) else ()


@frozen
class Continuation:
    """The state of a call that its client repeats after a question to a person.

    :ivar key: the call's idempotency key.
    :ivar answers: the person's answers so far, or None if there was no form.
    :ivar shown: whether the client was asked to open the review page. If True, the run exists and no form follows.
    :ivar forms: the number of forms that were requested.
    """

    key: str
    answers: Answers | None = None
    shown: bool = False
    forms: int = 0

    def as_state(self) -> str:
        """Return the state as text. The client gets it encrypted, and returns it when it repeats the call."""
        return json.dumps([self.key, self.answers, self.shown, self.forms])

    @classmethod
    def of(cls, state: str | None, new_key: Callable[[], str]) -> Continuation:
        """Parse the state that a client sent. If it sent none, create a new state.

        :param state: the unsealed state, which is authentic, or None.
        :param new_key: returns a new idempotency key.
        """
        if state is None:
            return cls(new_key())
        return cls(*json.loads(state))
