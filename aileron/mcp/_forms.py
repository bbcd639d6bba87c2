"""Finds which arguments of a call are for a person to say, and makes the form that asks for them.

What a person types into a form of the agent's program passes through that program: it is an argument like any other,
and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.schemas import fits

from ._definitions import ToolDefinition

Answers = Mapping[str, JSON]
"""What a person said, by the argument's name."""

_PLAIN = ("type", "enum", "const", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")


@frozen
class Form:
    """A question of a few values.

    :ivar message: what they are wanted for.
    :ivar properties: the JSON Schema of each, by its name.
    :ivar required: those that cannot be left blank.
    """

    message: str
    properties: Mapping[str, JSON]
    required: tuple[str, ...]

    @property
    def schema(self) -> dict[str, JSON]:
        """JSON Schema of all of them: an object of one level."""
        return {"type": "object", "properties": self.properties, "required": self.required}


def fill_in(
    definition: ToolDefinition, arguments: Mapping[str, JSON], answers: Answers | None
) -> Mapping[str, JSON] | Form:
    """Fill in what a call leaves out from what a person said; or tell what is still to be asked.

    Only what is for the person to say, and was left out, is taken from C{answers}.

    :param answers: L{None}: nobody was asked yet.
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
    """List the arguments of a call that were taken from C{answers}."""
    return [name for name in definition.asks if answers and name in answers and name not in arguments]


def relax_schema(definition: ToolDefinition) -> Mapping[str, JSON]:
    """Relax the schema to what the agent must give itself, where the person is asked for the rest."""
    required: JSON = [name for name in _list_required(definition) if name not in definition.asks]
    return {**definition.input_schema, "required": required}


def _for_a_person(definition: ToolDefinition) -> Mapping[str, Mapping[str, JSON]]:
    properties = definition.input_schema.get("properties")
    found = properties if isinstance(properties, Mapping) else {}
    return {name: each for name in definition.asks if isinstance(each := found.get(name), Mapping)}


def _check_plainly(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """Check what of a schema is looked at here, in little time whatever a client sends.

    The daemon looks at all of it.
    """
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
    """The state of a call that its client makes again after a question to a person.

    :ivar key: the call's idempotency key.
    :ivar answers: what a person said so far; L{None}: nobody was asked yet.
    :ivar shown: whether the client was to show the review page: then the run has begun, and nothing is asked any more.
    :ivar forms: how often the person was to be asked.
    """

    key: str
    answers: Answers | None = None
    shown: bool = False
    forms: int = 0

    def as_state(self) -> str:
        """Serialize the state for the client, which gets it sealed."""
        return json.dumps([self.key, self.answers, self.shown, self.forms])

    @classmethod
    def of(cls, state: str | None, new_key: Callable[[], str]) -> Continuation:
        """Read the state, or make a first one where nothing is brought back.

        :param state: unsealed, so that it is what we gave.
        """
        if state is None:
            return cls(new_key())
        return cls(*json.loads(state))
