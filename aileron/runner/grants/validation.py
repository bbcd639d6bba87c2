"""Finds what is wrong with a grant that the operator asks for, every fault at once."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from attrs import evolve

from aileron.errors import InvalidRequest
from aileron.values import (
    JSON,
    MOST_GRANT_DAYS,
    MOST_USES,
    NewGrant,
    Predicate,
    PredicateKind,
    compact,
    json_pointer,
    json_problems,
)

from .predicates import ABSENT, MOST_PATTERN_BYTES, array, compile_pattern, encode_domain, holds

_MOST_CHOICES = 100
_MOST_KEPT_CHARACTERS = 16 * 1024
_ESCAPED, _FLAGS = re.compile(r"\\.", re.DOTALL), re.compile(r"\(\?(?!:)")

_Fault = tuple[str, str]


def validate_grant(wish: NewGrant, arguments: Mapping[str, JSON], inputs: Sequence[str], now: datetime) -> NewGrant:
    """Return C{wish}, domain names in their ASCII form, if it can be granted and matches the approved call itself.

    :param arguments: of the approved call.
    :param inputs: the names that the action's arguments can have.
    :raises InvalidRequest: with every problem at once, each by its pointer from C{/grant} on.
    """
    problems = [*_limit_faults(wish, now), *_faults(wish.predicates, inputs)]
    if not problems:
        wish = evolve(wish, predicates=tuple(map(_in_ascii, wish.predicates)))
        problems = [*_mismatches(wish.predicates, arguments), *_too_long(wish, arguments)]
    if problems:
        raise InvalidRequest.listing("This cannot be granted.", *problems)
    return wish


def select_exact(predicates: Sequence[Predicate], arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Select the arguments that no predicate names, each of which must stay what it is."""
    named = {predicate.argument for predicate in predicates}
    return {name: value for name, value in arguments.items() if name not in named}


def _limit_faults(wish: NewGrant, now: datetime) -> Iterator[_Fault]:
    if not 1 <= wish.uses <= MOST_USES:
        yield "/grant/uses", f"must be 1 to {MOST_USES}"
    if not now < wish.not_after <= now + timedelta(days=MOST_GRANT_DAYS):
        yield "/grant/not_after", f"must be in the future, and at most {MOST_GRANT_DAYS} days away"


def _faults(predicates: Sequence[Predicate], inputs: Sequence[str]) -> Iterator[_Fault]:
    times = Counter(predicate.argument for predicate in predicates)
    for position, predicate in enumerate(predicates):
        pointer = json_pointer("/grant/predicates", position)
        if predicate.argument not in inputs:
            yield f"{pointer}/argument", "is not an input of this action"
        if times[predicate.argument] > 1:
            yield f"{pointer}/argument", "is named more than once"
        for message in _given_faults(predicate):
            yield f"{pointer}/given", message


def _given_faults(predicate: Predicate) -> Iterator[str]:
    if list(json_problems(predicate.given)):
        yield "holds a number or a text that two readers could read differently"
    else:
        yield from _FAULTS[predicate.kind](predicate.given)


def _equals_faults(_given: JSON) -> Iterator[str]:
    yield from ()


def _one_of_faults(given: JSON) -> Iterator[str]:
    if not 1 <= len(array(given)) <= _MOST_CHOICES:
        yield f"must be an array of 1 to {_MOST_CHOICES} values"


def _pattern_faults(given: JSON) -> Iterator[str]:
    if not isinstance(given, str) or not given:
        yield "must be a pattern"
    elif not given.isascii() or len(given) > MOST_PATTERN_BYTES:
        yield f"must be ASCII, at most {MOST_PATTERN_BYTES} characters"
    elif _FLAGS.search(_ESCAPED.sub("", given)):
        yield "takes no flags and no named groups: the whole text must match as it stands"
    else:
        try:
            compile_pattern(given)
        except ValueError as error:
            yield f"is no RE2 pattern that can be kept: {_said(error)}"


def _range_faults(given: JSON) -> Iterator[str]:
    if not isinstance(given, Mapping) or not given or not given.keys() <= {"minimum", "maximum"}:
        yield "must be an object of minimum, maximum or both"
        return
    bounds = list(given.values())
    if not all(type(bound) in (int, float) and math.isfinite(bound) for bound in bounds):  # type: ignore[arg-type]
        yield "must have finite numbers for its bounds"
    elif len(bounds) > 1 and given["minimum"] > given["maximum"]:  # type: ignore[operator]
        yield "has a minimum above its maximum"


def _domain_faults(given: JSON) -> Iterator[str]:
    names = array(given)
    if not 1 <= len(names) <= _MOST_CHOICES:
        yield f"must be an array of 1 to {_MOST_CHOICES} domain names"
    elif not all(isinstance(name, str) and encode_domain(name.removeprefix("*.")) for name in names):
        yield "must hold whole domain names such as example.com, or *.example.com for all below one"


def _any_faults(given: JSON) -> Iterator[str]:
    if given is not None:
        yield "must be null: any value does"


_FAULTS: Mapping[PredicateKind, Callable[[JSON], Iterator[str]]] = {
    PredicateKind.EQUALS: _equals_faults,
    PredicateKind.ONE_OF: _one_of_faults,
    PredicateKind.PATTERN: _pattern_faults,
    PredicateKind.RANGE: _range_faults,
    PredicateKind.DOMAIN: _domain_faults,
    PredicateKind.ANY: _any_faults,
}


def _in_ascii(predicate: Predicate) -> Predicate:
    if predicate.kind is not PredicateKind.DOMAIN:
        return predicate
    names = [str(name) for name in array(predicate.given)]
    return evolve(predicate, given=[_name_in_ascii(name) for name in names])


def _name_in_ascii(name: str) -> str:
    below = "*." if name.startswith("*.") else ""
    return f"{below}{encode_domain(name.removeprefix('*.'))}"


def _mismatches(predicates: Sequence[Predicate], arguments: Mapping[str, JSON]) -> Iterator[_Fault]:
    for position, predicate in enumerate(predicates):
        if not holds(predicate, arguments.get(predicate.argument, ABSENT)):
            yield json_pointer("/grant/predicates", position), "does not hold of the call that is approved"


def _too_long(wish: NewGrant, arguments: Mapping[str, JSON]) -> Iterator[_Fault]:
    kept: JSON = [select_exact(wish.predicates, arguments), [each.as_json() for each in wish.predicates]]
    if len(compact(kept)) > _MOST_KEPT_CHARACTERS:
        yield "/grant/predicates", "leave too much that would have to stay the same: name the long arguments as well"


def _said(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
