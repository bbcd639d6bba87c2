"""Replaces the references in a step's inputs with the values of a run. The values keep their types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import TypeAlias

from attrs import field, frozen

from aileron.base.json import JSON, canonical, json_pointer, strings_in
from aileron.model.actions import Inverse, PreviewRule, Step
from aileron.model.errors import InvalidRequest

from ._references import ArgumentReference, OutputReference, Part, PreviewReference, Reference, template_parts

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


class _MissingValue(Enum):
    """The marker for an optional argument that was left out."""

    ABSENT = auto()


_Found: TypeAlias = JSON | _MissingValue
_Path: TypeAlias = tuple[str | int, ...]  # converted to a pointer only for an error


@frozen
class KnownValues:
    """The values that references can refer to.

    :ivar arguments: the arguments with defaults, as L{check_arguments} returned them.
    :ivar outputs: the outputs of earlier steps, by id.
    :ivar carried: the values that the preview showed, by path into the preview.
    """

    arguments: Mapping[str, JSON]
    outputs: Mapping[str, JSON] = field(factory=dict)
    carried: Mapping[str, JSON] = field(factory=dict)


def resolve(step: Step, known: KnownValues) -> Mapping[str, JSON]:
    """Return the inputs of C{step}'s operation with every reference replaced.

    A value that is only one reference keeps the type of the referenced value. Within a longer text, texts, numbers and
    booleans are inserted. An optional argument that was left out drops its key or element. Inserted values are not
    searched for further references.

    :raises InvalidRequest: if a reference cannot be replaced.
    """
    return _Values(known).fill_table(step.inputs, ("steps", step.id, "inputs"))


def resolve_preview(rule: PreviewRule, arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the inputs of the operation of a preview with every reference replaced by its value.

    An optional argument that was left out drops its key or element.

    :raises InvalidRequest: if a reference has no value.
    """
    return _Values(KnownValues(arguments)).fill_table(rule.args, ("approval", "preview", "args"))


def resolve_inverse(rule: Inverse, known: KnownValues) -> Mapping[str, JSON]:
    """Return the arguments of the action that undoes a run with every reference replaced by its value.

    An optional argument that was left out drops its key or element.

    :raises InvalidRequest: if a reference has no value.
    """
    return _Values(known).fill_table(rule.arguments, ("undo", "args"))


def uses_outputs(step: Step) -> bool:
    """Return whether C{step} can only be built once an earlier step has completed."""
    return any(isinstance(part, OutputReference) for part in _parts(step.inputs))


def inputs_given(step: Step, argument: str) -> tuple[str, ...]:
    """Return the names of the step's inputs whose value refers to C{argument} alone, or is a list with such a value."""
    return tuple(name for name, value in step.inputs.items() if _is_given(value, ArgumentReference(argument)))


def _is_given(value: JSON, reference: ArgumentReference) -> bool:
    texts = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else ()
    return any(isinstance(each, str) and template_parts(each) == (reference,) for each in texts)


def preview_paths(inputs: JSON) -> tuple[str, ...]:
    """Return the paths into the preview that C{inputs} refer to, without duplicates."""
    return tuple(dict.fromkeys(part.path for part in _parts(inputs) if isinstance(part, PreviewReference)))


def _parts(inputs: JSON) -> Iterator[Part]:
    return (part for text in strings_in(inputs) for part in template_parts(text))


@frozen
class _Values:
    """The values of a run, with methods that replace references by these values."""

    known: KnownValues

    def fill_table(self, table: Mapping[str, JSON], path: _Path) -> Mapping[str, JSON]:
        """Return C{table} with every reference replaced. C{path} is the place of the table, for errors.

        A missing optional argument is left out.

        :raises InvalidRequest: if a reference leads to no value. The error has the place.
        """
        filled = ((key, self._fill(value, (*path, key))) for key, value in table.items())
        return {key: value for key, value in filled if not isinstance(value, _MissingValue)}

    def _fill(self, value: JSON, path: _Path) -> _Found:
        if isinstance(value, str):
            return self._fill_text(value, path)
        if isinstance(value, Mapping):
            return self.fill_table(value, path)
        if isinstance(value, Sequence):
            filled = (self._fill(item, (*path, index)) for index, item in enumerate(value))
            return [item for item in filled if not isinstance(item, _MissingValue)]
        return value

    def _fill_text(self, text: str, path: _Path) -> _Found:
        try:
            parts = template_parts(text)
            if len(parts) == 1 and not isinstance(parts[0], str):
                return self._look_up(parts[0])
            return "".join(part if isinstance(part, str) else _as_text(self._look_up(part)) for part in parts)
        except ValueError as error:
            pointer, message = json_pointer("", *path), str(error)
            what = f"a step's input cannot be built: {pointer} {message}"
            raise InvalidRequest.listing(what, (pointer, message)) from None

    def _look_up(self, reference: Reference) -> _Found:
        match reference:
            case ArgumentReference(name):
                return self.known.arguments.get(name, _MissingValue.ABSENT)
            case OutputReference(step, path):
                return _follow(self.known.outputs, (step, *path))
            case PreviewReference(path=shown):
                return _carry(self.known.carried, shown)


def _carry(carried: Mapping[str, JSON], path: str) -> JSON:
    """Return the value that the preview showed at C{path}.

    :raises ValueError: if the preview showed no value there. The request must not be sent then, because the operator
        did not see the value that it depends on.
    """
    if path not in carried:
        raise ValueError(f"needs `preview.{path}`, of which the preview shows nothing")
    return carried[path]


def _follow(value: JSON, path: Sequence[str]) -> JSON:
    """Return the value at C{path} below C{value}: keys of objects, indexes of arrays.

    :raises ValueError: if there is no such value.
    """
    for segment in path:
        try:
            value = _child(value, segment)
        except LookupError:
            raise ValueError(f"refers to `steps.{'.'.join(path)}`, which is not in the result") from None
    return value


def _child(value: JSON, segment: str) -> JSON:
    if isinstance(value, Mapping):
        return value[segment]
    if isinstance(value, Sequence) and not isinstance(value, str) and _INDEX.fullmatch(segment):
        return value[int(segment)]
    raise LookupError


def _as_text(value: _Found) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return canonical(value).decode("ascii")
    if isinstance(value, _MissingValue):
        raise ValueError("needs an argument that was left out")
    raise ValueError("would put an object, an array or null into a text")
