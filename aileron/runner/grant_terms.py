"""The terms of a standing grant: predicates on arguments, and the files and credentials that must not change."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from attrs import evolve

from aileron.base.converter import to_json
from aileron.base.domains import encode_domain
from aileron.base.json import JSON, compact, digest, json_pointer, json_problems
from aileron.model.actions import Action, PreviewRule
from aileron.model.authority import MOST_GRANT_DAYS, MOST_USES, Grant, NewGrant, Predicate, PredicateKind
from aileron.model.errors import InvalidRequest

from .plan import Plan, PlannedStep

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]


MOST_PATTERN_BYTES = 512
MOST_SUBJECT_BYTES = 4096
MOST_ADDRESSES = 100
_PATTERN_MEMORY_BYTES = 64 * 1024


class Absent:
    """The type of L{ABSENT}, which stands for the value of an argument that a call does not have."""


ABSENT = Absent()


def holds(predicate: Predicate, value: JSON | Absent) -> bool:
    """Return whether C{predicate} allows C{value}. Only L{PredicateKind.ANY} allows a missing argument."""
    if predicate.kind is PredicateKind.ANY:
        return True
    return not isinstance(value, Absent) and _CHECKS[predicate.kind](predicate.given, value)


def same(one: JSON | Absent, other: JSON | Absent) -> bool:
    """Return whether two values are identical: 1 is not true, not 1.0 and not "1"; 0.0 is not -0.0."""
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, Sequence) and not isinstance(one, str):
        if isinstance(other, str) or not isinstance(other, Sequence):
            return False
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and one == other


def allows(grant: Grant, arguments: Mapping[str, JSON]) -> bool:
    """Return whether the predicates and exact values of C{grant} allow these arguments.

    The state, session and bounds of the grant are not checked.
    """
    rest = select_exact(grant.predicates, arguments)
    return same(grant.exact, rest) and all(
        holds(predicate, arguments.get(predicate.argument, ABSENT)) for predicate in grant.predicates
    )


def compile_pattern(pattern: str) -> re2._Regexp:
    """Compile an RE2 pattern, which matches in time linear in the text and within 64 KiB of memory.

    :raises ValueError: if the pattern is invalid or needs more memory. The message is RE2's.
    """
    import re2  # imported here because it takes two megabytes and few grants have a pattern

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(*error.args) from None


def _one_of(given: JSON, value: JSON) -> bool:
    return any(same(each, value) for each in array(given))


def _pattern(given: JSON, value: JSON) -> bool:
    if not (isinstance(given, str) and isinstance(value, str) and value.isascii()):
        return False
    if len(value) > MOST_SUBJECT_BYTES:
        return False
    try:
        return compile_pattern(given).fullmatch(value) is not None
    except ValueError:
        return False


def _range(given: JSON, value: JSON) -> bool:
    """Return whether a number is within inclusive bounds. If all bounds are integers, only integers are allowed."""
    if not isinstance(given, Mapping) or not _is_number(value):
        return False
    bounds = [given.get(name) for name in ("minimum", "maximum")]
    if all(bound is None or type(bound) is int for bound in bounds) and type(value) is not int:
        return False
    low, high = (float("inf") * sign if bound is None else bound for bound, sign in zip(bounds, (-1, 1), strict=True))
    return _is_bound(low) and _is_bound(high) and low <= value <= high  # type: ignore[operator]


def _domain(given: JSON, value: JSON) -> bool:
    """Return whether a mail address, or each address of an array, has one of the given domains.

    It is False for an empty array, and for one of more than L{MOST_ADDRESSES}.
    """
    addresses = [value] if isinstance(value, str) else array(value)
    names = [str(name) for name in array(given)]
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        return False
    return all(isinstance(each, str) and _at_one_of(names, each) for each in addresses)


def _at_one_of(names: Sequence[str], address: str) -> bool:
    """Return whether the domain of C{address} is one of C{names} or below one that begins with C{*.}.

    :param names: domain names in their ASCII form.
    """
    domain = parse_domain(address)
    if domain is None:
        return False
    return any(domain.endswith(name[1:]) if name.startswith("*.") else domain == name for name in names)


def array(value: JSON) -> Sequence[JSON]:
    """Return C{value} if it is an array, else an empty tuple."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _is_bound(value: JSON) -> bool:
    return type(value) in (int, float) and not math.isnan(value)  # type: ignore[arg-type]


_CHECKS: Mapping[PredicateKind, Callable[[JSON, JSON], bool]] = {
    PredicateKind.EQUALS: same,
    PredicateKind.ONE_OF: _one_of,
    PredicateKind.PATTERN: _pattern,
    PredicateKind.RANGE: _range,
    PredicateKind.DOMAIN: _domain,
}


_MOST_ADDRESS_CHARACTERS = 320
# A dot-atom of RFC 5322 with at most 64 characters, without % and !, which old relays use to route mail elsewhere.
_ATOM = r"[A-Za-z0-9#$&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"(?=.{{1,64}}\Z){_ATOM}(?:\.{_ATOM})*\Z")


def parse_domain(address: str) -> str | None:
    """Return the domain, in ASCII form, of a single bare address C{local@domain}, or None for any other text.

    Addresses with a display name, comment, quote, group, list, blank, control character or IP literal are refused.
    """
    if len(address) > _MOST_ADDRESS_CHARACTERS:
        return None
    local, at, domain = address.partition("@")
    if not at or "@" in domain or not _LOCAL.match(local):
        return None
    return encode_domain(domain)


_MOST_CHOICES = 100
_MOST_KEPT_CHARACTERS = 16 * 1024
_ESCAPED, _FLAGS = re.compile(r"\\.", re.DOTALL), re.compile(r"\(\?(?!:)")

_Fault = tuple[str, str]


def validate_grant(wish: NewGrant, arguments: Mapping[str, JSON], inputs: Sequence[str], now: datetime) -> NewGrant:
    """Return C{wish} with domain names in their ASCII form, after checking that it can be granted.

    :param arguments: the arguments of the approved call, which the grant must allow as well.
    :param inputs: the names of the action's inputs.
    :raises InvalidRequest: if the wish has problems. The error lists all of them, each with a pointer below C{/grant}.
    """
    problems = [*_limit_faults(wish, now), *_faults(wish.predicates, inputs)]
    if not problems:
        wish = evolve(wish, predicates=tuple(map(_in_ascii, wish.predicates)))
        problems = [*_mismatches(wish.predicates, arguments), *_too_long(wish, arguments)]
    if problems:
        raise InvalidRequest.listing("This cannot be granted.", *problems)
    return wish


def select_exact(predicates: Sequence[Predicate], arguments: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the arguments that no predicate names. A grant allows only calls with identical values of them."""
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
        for message in _find_given_faults(predicate):
            yield f"{pointer}/given", message


def _find_given_faults(predicate: Predicate) -> Iterator[str]:
    if list(json_problems(predicate.given)):
        yield "holds a number or a text that two readers could read differently"
    else:
        yield from _FAULTS[predicate.kind](predicate.given)


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
            yield f"is no RE2 pattern that can be kept: {_describe(error)}"


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
    PredicateKind.EQUALS: lambda _: iter(()),
    PredicateKind.ONE_OF: _one_of_faults,
    PredicateKind.PATTERN: _pattern_faults,
    PredicateKind.RANGE: _range_faults,
    PredicateKind.DOMAIN: _domain_faults,
    PredicateKind.ANY: _any_faults,
}


def _in_ascii(predicate: Predicate) -> Predicate:
    if predicate.kind is not PredicateKind.DOMAIN:
        return predicate
    return evolve(predicate, given=[_name_in_ascii(str(name)) for name in array(predicate.given)])


def _name_in_ascii(name: str) -> str:
    below = "*." if name.startswith("*.") else ""
    return f"{below}{encode_domain(name.removeprefix('*.'))}"


def _mismatches(predicates: Sequence[Predicate], arguments: Mapping[str, JSON]) -> Iterator[_Fault]:
    for position, predicate in enumerate(predicates):
        if not holds(predicate, arguments.get(predicate.argument, ABSENT)):
            yield json_pointer("/grant/predicates", position), "does not hold of the call that is approved"


def _too_long(wish: NewGrant, arguments: Mapping[str, JSON]) -> Iterator[_Fault]:
    kept: JSON = [select_exact(wish.predicates, arguments), [to_json(each) for each in wish.predicates]]
    if len(compact(kept)) > _MOST_KEPT_CHARACTERS:
        yield "/grant/predicates", "leave too much that would have to stay the same: name the long arguments as well"


def _describe(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def bounds_of_plan(plan: Plan) -> dict[str, str]:
    """Return the names and versions on which a grant for the action of C{plan} depends. See L{collect_bounds}."""
    return collect_bounds(plan.action, plan.steps, None if plan.preview is None else plan.preview.read)


def collect_bounds(action: Action, steps: Iterable[PlannedStep], read: PlannedStep | None) -> dict[str, str]:
    """Return the names and versions of everything that a grant depends on: if one changes, the grant is suspended.

    These are the action's file and preview rule, and the connector, base URL and credential of each step and of the
    preview's C{read}.
    """
    found = {"the action's file": action.digest, "the preview": _shape(action.approval.preview)}
    for planned in steps:
        found.update(_bounds_of_step(planned, f"step {planned.step.id}"))
    return found if read is None else {**found, **dict(_bounds_of_step(read, "the preview"))}


def _bounds_of_step(planned: PlannedStep, where: str) -> Iterator[tuple[str, str]]:
    binding, described = planned.binding, planned.description
    yield f"the connector of {where}", f"{described.name} {described.version}"
    yield f"the content of the connector of {where}", described.content_hash
    yield f"the base URL of {where}", planned.base_url
    yield f"the credential of {where}", "none" if binding is None else f"{binding.name} {binding.revision}"


def describe_changes(bound: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return a sentence on the differences between two results of L{collect_bounds}, or None if there are none."""
    changed = [name for name in {**bound, **now} if bound.get(name) != now.get(name)]
    if not changed:
        return None
    return f"It was granted for another state of things; changed since: {', '.join(changed)}."


def _shape(rule: PreviewRule | None) -> str:
    if rule is None:
        return "none"
    shape: JSON = {
        "connector": rule.connector,
        "operation": rule.operation,
        "args": rule.args,
        "render": [list(each) for each in rule.render],
        "multiline": list(rule.multiline),
    }
    return digest(shape)


def suggest_predicates(arguments: Mapping[str, JSON]) -> tuple[Predicate, ...]:
    """Return suggested predicates for a grant: for each argument that holds mail addresses, their domains."""
    found = ((name, _domains(value)) for name, value in arguments.items())
    return tuple(Predicate(name, PredicateKind.DOMAIN, domains) for name, domains in found if domains)


def _domains(value: JSON) -> list[JSON]:
    """Return the domains of a mail address or of an array of mail addresses. Return [] for any other value."""
    addresses = [value] if isinstance(value, str) else array(value)
    found = [parse_domain(each) if isinstance(each, str) else None for each in addresses]
    return [*sorted({domain for domain in found if domain is not None})] if all(found) else []
