"""Tells whether an argument is as a grant says: strict about types, exact about text, and of bounded work.

Whatever cannot be told is no.  Mail addresses and domain names are read so narrowly that nobody can read another
into them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import idna

from aileron.values import JSON, Grant, Predicate, PredicateKind

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]


MOST_PATTERN_BYTES = 512
MOST_SUBJECT_BYTES = 4096
MOST_ADDRESSES = 100
_PATTERN_MEMORY_BYTES = 64 * 1024


class Absent:
    """Stands for an argument that is not there: no JSON can say it."""


ABSENT = Absent()


def holds(predicate: Predicate, value: JSON | Absent) -> bool:
    """Tell whether C{value} is as C{predicate} says; what is absent is so for L{PredicateKind.ANY} alone."""
    if predicate.kind is PredicateKind.ANY:
        return True
    return not isinstance(value, Absent) and _CHECKS[predicate.kind](predicate.given, value)


def same(one: JSON | Absent, other: JSON | Absent) -> bool:
    """Tell whether two values are one and the same: 1 is not true, not 1.0 and not "1"; 0.0 is not -0.0."""
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
    """Tell whether these are arguments that C{grant} is about, whatever else it asks for."""
    named = {predicate.argument for predicate in grant.predicates}
    rest = {name: value for name, value in arguments.items() if name not in named}
    return same(grant.exact, rest) and all(
        holds(predicate, arguments.get(predicate.argument, ABSENT)) for predicate in grant.predicates
    )


def compile_pattern(pattern: str) -> re2._Regexp:
    """Compile the pattern, ready to match in time linear in its subject and within little memory.

    :raises ValueError: it is none, or needs too much; as RE2 says it.
    """
    import re2  # two megabytes, and few homes have a grant with a pattern

    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(*error.args) from None


def _equals(given: JSON, value: JSON) -> bool:
    return same(given, value)


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
    """Inclusive; between whole bounds whole numbers alone."""
    if not isinstance(given, Mapping) or not _is_number(value):
        return False
    bounds = [given.get(name) for name in ("minimum", "maximum")]
    if all(bound is None or type(bound) is int for bound in bounds) and type(value) is not int:
        return False
    low, high = (float("inf") * sign if bound is None else bound for bound, sign in zip(bounds, (-1, 1), strict=True))
    return _is_bound(low) and _is_bound(high) and low <= value <= high  # type: ignore[operator]


def _domain(given: JSON, value: JSON) -> bool:
    """One address, or an array of them, every one of which is at one of the given names."""
    addresses = [value] if isinstance(value, str) else array(value)
    names = [str(name) for name in array(given)]
    if not 1 <= len(addresses) <= MOST_ADDRESSES:
        return False
    return all(isinstance(each, str) and _at_one_of(names, each) for each in addresses)


def _at_one_of(names: Sequence[str], address: str) -> bool:
    """C{names} are in their ASCII form, as a grant keeps them."""
    domain = parse_domain(address)
    if domain is None:
        return False
    return any(domain.endswith(name[1:]) if name.startswith("*.") else domain == name for name in names)


def array(value: JSON) -> Sequence[JSON]:
    """Return C{value} if it is an array, else an empty one."""
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _is_bound(value: JSON) -> bool:
    return type(value) in (int, float) and not math.isnan(value)  # type: ignore[arg-type]


_CHECKS: Mapping[PredicateKind, Callable[[JSON, JSON], bool]] = {
    PredicateKind.EQUALS: _equals,
    PredicateKind.ONE_OF: _one_of,
    PredicateKind.PATTERN: _pattern,
    PredicateKind.RANGE: _range,
    PredicateKind.DOMAIN: _domain,
}


_MOST_ADDRESS_CHARACTERS = 320
_MOST_DOMAIN_CHARACTERS = 253
# RFC 5322's dot-atom of at most 64; without % and !, by which old relays were told to send on to somebody else.
_ATOM = r"[A-Za-z0-9#$&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"(?=.{{1,64}}\Z){_ATOM}(?:\.{_ATOM})*\Z")
_TOP = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?\Z")


def parse_domain(address: str) -> str | None:
    """Read the domain, in its ASCII form, of what is exactly one bare C{local@domain}; L{None}: it is anything else.

    No display name, comment, quote, group, list, blank, control character or IP literal is let through.
    """
    if len(address) > _MOST_ADDRESS_CHARACTERS:
        return None
    local, at, domain = address.partition("@")
    if not at or "@" in domain or not _LOCAL.match(local):
        return None
    return encode_domain(domain)


def encode_domain(name: str) -> str | None:
    """Write a domain name of two labels or more as A-labels (RFC 5891, without UTS 46's mapping), in lower case.

    :return: L{None}: it is none; a name that ends with a dot and an IP address are none.
    """
    if not 1 <= len(name) <= _MOST_DOMAIN_CHARACTERS or name.endswith(".") or "." not in name:
        return None
    lowered = "".join(chr(ord(each) | 0x20) if "A" <= each <= "Z" else each for each in name)
    try:
        encoded = idna.encode(lowered, strict=True, uts46=False, std3_rules=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return None
    return encoded if _TOP.match(encoded.rpartition(".")[2]) else None
