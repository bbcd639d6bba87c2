"""Conversion of attrs values to JSON and back, by C{cattrs} with a table of the differences (ADR 39)."""

from __future__ import annotations

import base64
import math
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from operator import attrgetter
from types import GenericAlias, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, cast, get_args, get_origin

from attrs import AttrsInstance, field, fields, frozen, has, resolve_types

from .json import JSON, from_timestamp, json_pointer, timestamp

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


@frozen
class Member:
    """The difference between an attribute and its JSON. An attribute without differences needs none.

    :ivar name: the name of the JSON member, or None if it is the attribute's name.
    :ivar omitted: whether the attribute is never written, and gets its default when read.
    :ivar optional: whether the member is omitted if it has its default.
    :ivar inline: whether the value's members are merged into the surrounding object.
    :ivar fallback: whether the attribute stores the object unchanged if it does not match the class.
    :ivar write: converts the value to JSON.
    :ivar read: converts JSON to the value. Raises C{ValueError} if the JSON is invalid.
    """

    name: str | None = None
    omitted: bool = False
    optional: bool = False
    inline: bool = False
    fallback: bool = False
    write: Callable[[Any], JSON] | None = None
    read: Callable[[Any], Any] | None = None


OMITTED = Member(omitted=True)
INLINE = Member(inline=True)
FALLBACK = Member(omitted=True, fallback=True)


@frozen
class _JsonForm:
    """The differences between the JSON of one class and its attributes: one L{Member} for each such attribute."""

    members: Mapping[str, Member] = field(factory=dict)
    computed: Mapping[str, Callable[[Any], object]] = field(factory=dict)
    constants: Mapping[str, JSON] = field(factory=dict)

    def name(self, attribute: str) -> str:
        """Return the JSON member's name for an attribute of the class."""
        member = self.members.get(attribute)
        return attribute if member is None or member.name is None else member.name

    def inline(self) -> tuple[str, ...]:
        """Return the attributes whose members are merged into the surrounding object."""
        return tuple(name for name, member in self.members.items() if member.inline)

    def fallback(self) -> str | None:
        """Return the attribute that stores an object that does not match the class, or None if there is none."""
        return next((name for name, member in self.members.items() if member.fallback), None)

    def names(self, cls: Any) -> tuple[set[str], set[str]]:
        """Return the names of a class's required members in JSON, and the names of all its members."""
        plain = Member()
        by_name = {self.name(each.name): self.members.get(each.name, plain) for each in fields(cls)}
        known = {name for name, member in by_name.items() if not member.omitted}
        return {name for name in known if not by_name[name].optional}, known

    def overrides(self) -> dict[str, Any]:
        """Return these differences as arguments for C{cattrs}, the library that converts the objects."""
        from cattrs import override

        return {
            name: override(
                rename=member.name,
                omit=member.omitted or None,
                omit_if_default=member.optional or None,
                unstruct_hook=member.write,
                struct_hook=None if member.read is None else _ignoring_type(member.read),
            )
            for name, member in self.members.items()
        }


_AS_IT_IS = _JsonForm()


class JsonConverter:
    """A converter that writes attrs values as JSON objects and reads them strictly.

    When read, an object must have exactly the expected members with exactly the expected types.  Times are texts in the
    format of L{timestamp}, bytes are base64, and JSON stays unchanged.  Attributes with C{repr=False} are written only
    if a form names them.

    :param base: the converter whose forms apply unless this one overrides them.
    """

    def __init__(self, base: JsonConverter | None = None) -> None:
        self.forms: ChainMap[type, _JsonForm] = ChainMap({}) if base is None else base.forms.new_child()
        self._used: set[type] = set()

    def differ(
        self,
        cls: type[AttrsInstance],
        *,
        computed: Mapping[str, Callable[[Any], object]] | None = None,
        constants: Mapping[str, JSON] | None = None,
        **members: Member,
    ) -> None:
        """Register the differences between the JSON of a class and its attributes.

        :param computed: additional members, each computed from the complete value. Objects of such a class cannot be
            read.
        :param constants: members with a fixed value. Objects with another value are refused.
        :raises ValueError: if the class has no such attribute, or was converted already.
        """
        unknown = members.keys() - {each.name for each in fields(cls)}
        if unknown:
            raise ValueError(f"{cls.__name__} has no {', '.join(sorted(unknown))}")
        if cls in self._used:
            raise ValueError(f"{cls.__name__} was converted already, in another form")
        self.forms[cls] = _JsonForm(members=members, computed=computed or {}, constants=constants or {})

    def to_json(self, value: AttrsInstance) -> dict[str, JSON]:
        """Return the JSON of a value."""
        return cast("dict[str, JSON]", self._converter.unstructure(value))

    def from_json(self, cls: type[T], value: JSON) -> T:
        """Return the value of C{cls} in C{value}, as written by L{to_json}.

        :raises ValueError: if C{value} is not a C{cls}. The message names the place by a JSON pointer and repeats no
            value.
        """
        try:
            return self._converter.structure(value, cls)
        except (ValueError, BaseExceptionGroup) as error:
            pointer, message = next(self._problems(error, ""))
        raise ValueError(f"{pointer or 'the object'} {message}")

    @cached_property
    def _converter(self) -> Converter:
        from cattrs import Converter  # slow to load, and most commands need no converter

        converter = Converter(unstruct_collection_overrides={tuple: list})
        _add_scalars(converter)
        _add_containers(converter)
        converter.register_unstructure_hook_factory(has, self._writer)
        converter.register_structure_hook_factory(has, self._reader)
        return converter

    def _form(self, cls: type) -> _JsonForm:
        self._used.add(cls)
        return self.forms.get(cls, _AS_IT_IS)

    def _writer(self, cls: Any) -> Callable[[Any], Any]:
        from cattrs.gen import make_dict_unstructure_fn

        form = self._form(cls)
        resolve_types(cls)
        _check_open(cls, form)
        write: Callable[[Any], dict[str, Any]] = make_dict_unstructure_fn(cls, self._converter, **form.overrides())
        inline, computed, unstructure = form.inline(), tuple(form.computed.items()), self._converter.unstructure
        fallback = form.fallback()
        if not (inline or computed or form.constants or fallback):
            return write

        def write_all(value: Any) -> dict[str, Any]:
            if fallback is not None and (kept := getattr(value, fallback)) is not None:
                return cast("dict[str, Any]", kept)
            written = {**form.constants, **write(value)}
            for name in inline:
                written |= written.pop(name)
            for name, make in computed:
                written[name] = unstructure(make(value))
            return written

        return write_all

    def _reader(self, cls: Any) -> Callable[[Any, Any], Any]:
        from cattrs.gen import make_dict_structure_fn

        form = self._form(cls)
        resolve_types(cls)
        read: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, self._converter, **form.overrides())
        required, known = form.names(cls)
        types = {each.name: each.type for each in fields(cls)}
        inline = {name: self.forms.get(types[name], _AS_IT_IS).names(types[name])[1] for name in form.inline()}

        def structure(value: Any, type_: Any) -> Any:
            if type(value) is not dict:
                raise ValueError("is no object")
            if form.constants or inline:
                value = _gather(value, form.constants, inline)
            _check_members(value, required, known)
            return read(value, type_)

        fallback = form.fallback()
        return structure if fallback is None else _or_keep(structure, fallback)

    def _problems(self, error: BaseException, pointer: str) -> Iterator[tuple[str, str]]:
        """Yield the JSON pointer and message of each fault in C{error}.  Raise C{error} if no reader raised it."""
        if isinstance(error, BaseExceptionGroup):
            form = self.forms.get(getattr(error, "cl", type(None)), _AS_IT_IS)
            for each in error.exceptions:
                steps = [_step(note, form) for note in getattr(each, "__notes__", ())]
                yield from self._problems(each, json_pointer(pointer, *steps))
        elif isinstance(error, ValueError):
            yield pointer, str(error)
        else:
            raise error


OWN = JsonConverter()
"""The default form of a value: in rows, in the audit log, under a digest."""

differ, to_json, from_json = OWN.differ, OWN.to_json, OWN.from_json


def _step(note: Any, form: _JsonForm) -> str | int:
    """Return the JSON member or the index of an array in which C{cattrs} found an error.

    :param note: the note that C{cattrs} attached to the error.
    """
    from cattrs import AttributeValidationNote, IterableValidationNote

    if isinstance(note, AttributeValidationNote):
        return form.name(note.name)
    return note.index if isinstance(note, IterableValidationNote) else ""


def _check_open(cls: Any, form: _JsonForm) -> None:
    """Refuse to write attributes with C{repr=False}, which may be secrets, unless the form names them.

    :raises TypeError: if the class has such an attribute.
    """
    hidden = [each.name for each in fields(cls) if each.repr is False and each.name not in form.members]
    if hidden:
        raise TypeError(f"{cls.__name__}.{hidden[0]} is written only where its form says so")


def _gather(
    value: dict[str, Any], constants: Mapping[str, JSON], inline: Mapping[str, Collection[str]]
) -> dict[str, Any]:
    """Return the object without its constants, and with inline members grouped into objects.

    :raises ValueError: if a constant has another value.
    """
    for name, constant in constants.items():
        if type(value.get(name)) is not type(constant) or value[name] != constant:
            raise ValueError(f"says another {name} than {constant}")
    left = {name: each for name, each in value.items() if name not in constants}
    for attribute, names in inline.items():
        left[attribute] = {name: left.pop(name) for name in names if name in left}
    return left


def _or_keep(read: Callable[[Any, Any], Any], fallback: str) -> Callable[[Any, Any], Any]:
    """Return a reader that stores the object unchanged in the attribute C{fallback} if C{read} refuses it."""

    def read_or_keep(value: Any, type_: Any) -> Any:
        try:
            return read(value, type_)
        except (ValueError, BaseExceptionGroup):
            if type(value) is not dict:
                raise
            return type_(**{fallback: value})

    return read_or_keep


def _check_members(value: dict[str, Any], required: set[str], known: set[str]) -> None:
    missing, unknown = required - value.keys(), value.keys() - known
    if missing:
        raise ValueError(f"lacks {', '.join(sorted(missing))}")
    if unknown:
        raise ValueError(
            f"has unknown members: {', '.join(json_pointer('', name)[1:] for name in sorted(unknown))[:100]}"
        )


def _ignoring_type(read: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda value, _type: read(value)


def _add_scalars(converter: Converter) -> None:
    """Add hooks for scalars, which are read by exact type because C{isinstance} accepts C{True} as an C{int}."""
    for type_, words in ((str, "is no text"), (int, "is no whole number"), (bool, "is neither true nor false")):
        converter.register_structure_hook(type_, _read_exactly(type_, words))
    converter.register_structure_hook(float, lambda value, _type: _read_number(value))
    converter.register_structure_hook(bytes, lambda value, _type: _read_bytes(value))
    converter.register_structure_hook(datetime, lambda value, _type: _read_moment(value))
    converter.register_structure_hook(StrEnum, _read_enum)
    converter.register_unstructure_hook(bytes, lambda data: base64.b64encode(data).decode("ascii"))
    converter.register_unstructure_hook(datetime, timestamp)
    converter.register_unstructure_hook(StrEnum, attrgetter("value"))


def _add_containers(converter: Converter) -> None:
    def tuples(type_: Any) -> Callable[[Any, Any], Any]:
        whole: Any = GenericAlias(list, get_args(type_)[:1])
        inner = converter.get_structure_hook(whole)
        length = None if get_args(type_)[-1] is ... else len(get_args(type_))

        def read(value: Any, _type: Any) -> Any:
            if length not in (None, len(_instance(value, list, "is no array"))):
                raise ValueError(f"is no array of {length}")
            return tuple(inner(value, whole))

        return read

    def mappings(type_: Any) -> Callable[[Any, Any], Any]:
        whole: Any = GenericAlias(dict, get_args(type_))
        inner = converter.get_structure_hook(whole)
        return lambda value, _type: inner(_instance(value, dict, "is no object"), whole)

    converter.register_structure_hook_factory(_has_origin(tuple), tuples)
    converter.register_structure_hook_factory(_has_origin(Mapping), mappings)
    # Register these last, because the last matching hook is used.
    converter.register_structure_hook_func(_is_json, lambda value, _type: value)
    converter.register_structure_hook_func(_is_json_object, lambda value, _: _instance(value, dict, "is no object"))
    converter.register_unstructure_hook_func(_is_json, lambda value: value)
    converter.register_unstructure_hook_func(_is_json_object, lambda value: value)


def _has_origin(origin: type) -> Callable[[Any], bool]:
    return lambda type_: get_origin(type_) is origin


def _is_json(type_: Any) -> bool:
    """Return True if the type is L{JSON}, whose references C{attrs} may have resolved to some depth."""
    return get_origin(type_) in (Union, UnionType) and {bool, int, float, str} <= set(get_args(type_))


def _is_json_object(type_: Any) -> bool:
    arguments = get_args(type_)
    return len(arguments) == 2 and _has_origin(Mapping)(type_) and _is_json(arguments[1])


def _instance(value: Any, type_: type, words: str) -> Any:
    if type(value) is not type_:
        raise ValueError(words)
    return value


def _read_exactly(type_: type, words: str) -> Callable[[Any, Any], Any]:
    return lambda value, _type: _instance(value, type_, words)


def _read_number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("is no number")
    return float(value)


def _read_bytes(value: Any) -> bytes:
    text = _instance(value, str, "is no text")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("is no base64") from None


def _read_moment(value: Any) -> datetime:
    text = _instance(value, str, "is no text")
    try:
        return from_timestamp(text)
    except (ValueError, OverflowError):
        raise ValueError("is no moment") from None


def _read_enum(value: Any, type_: Any) -> Any:
    try:
        return type_(_instance(value, str, "is no text"))
    except ValueError:
        raise ValueError("is none of what it can be") from None
