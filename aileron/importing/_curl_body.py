"""Makes inputs of what a C{curl} command sends: of the members of a JSON body, or of the fields of a form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import parse_qsl

from aileron.manifests import MAX_INPUTS
from aileron.values import JSON, loads_strict

from ._curl_words import CurlRequest
from ._files import one_line
from ._references import Inexpressible
from ._requests import FORM_TYPE, JSON_TYPE, REROUTING, Arguments

_WITHOUT_BODY = ("GET", "HEAD")
_KEYS = frozenset("access_token api_key apikey api-key auth_token client_secret password secret token".split())
_TYPES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def add_body(arguments: Arguments, request: CurlRequest, *, has_key: bool) -> dict[str, JSON]:
    """Take in the body of a request.

    :param has_key: whether its key was found elsewhere.
    :return: the key of the operation that is the body itself, if nothing in it is an input.
    :raises Inexpressible: it is neither JSON nor a form, or holds the key.
    """
    data = request.data or ""
    if request.method in _WITHOUT_BODY:
        raise Inexpressible(f"it has a body, which a {request.method} cannot have here")
    kinds = [value for name, value in request.headers if name.lower() == "content-type"]
    kind = kinds[-1].partition(";")[0].strip().lower() if kinds else ""
    if request.is_json or (JSON_TYPE.fullmatch(kind) if kind else data.lstrip()[:1] in ("{", "[")):
        return _add_json(arguments, data, has_key=has_key)
    if kind not in ("", FORM_TYPE) or "=" not in data:
        raise Inexpressible("it has a body that is neither a JSON object or array nor a form")
    pairs = parse_qsl(data, keep_blank_values=True)
    refuse_ambiguous(pairs)
    _refuse_keys((name for name, _ in pairs), has_key=has_key)
    arguments.body = "form"
    for name, _ in pairs:
        arguments.add_leaf((name,), {"type": "string"})
    return {}


def refuse_ambiguous(pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse parameters that no table can hold, or that make another request of it.

    :raises Inexpressible: there is one.
    """
    names = [name for name, _ in pairs]
    if len({*names}) < len(names) or REROUTING & {name.lower() for name in names}:
        raise Inexpressible("it has a parameter twice, or one that makes another request of it")


def _add_json(arguments: Arguments, data: str, *, has_key: bool) -> dict[str, JSON]:
    try:
        value = loads_strict(data.encode())
    except (ValueError, RecursionError):
        raise Inexpressible("it has a body that is not JSON; put variables in it into quotes") from None
    if value == {}:
        return {"json": {}}
    leaves = list(islice(_leaves(value, ()), MAX_INPUTS + 1))
    if len(leaves) > MAX_INPUTS:
        raise Inexpressible(f"it has more than {MAX_INPUTS} fields in its body")
    _refuse_keys((steps[-1] for steps, _ in leaves if steps), has_key=has_key)
    arguments.body = "json"
    for steps, each in leaves:
        if each == {}:
            arguments.constant.append((steps, {}))
        else:
            arguments.add_leaf(steps, _schema(each))
    return {}


def _refuse_keys(names: Iterable[str], *, has_key: bool) -> None:
    if not has_key and any(each.lower() in _KEYS for each in names):
        raise Inexpressible("it carries its key in the body, where a connector cannot put one")


def _leaves(value: JSON, steps: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], JSON]]:
    """Yield what is in a body and no object with members, with the names that lead to it.

    :raises Inexpressible: it is null, or the whole body and no array.
    """
    if isinstance(value, Mapping) and value:
        for name, each in value.items():
            yield from _leaves(each, (*steps, name))
    elif value is None and steps:
        raise Inexpressible(f"it has null as {one_line('.'.join(steps), 60)}; leave that out, or give it a value")
    elif not steps and not isinstance(value, list):
        raise Inexpressible("it has a body that is neither a JSON object nor an array")
    else:
        yield steps, value


def _schema(value: JSON) -> JSON:
    """Describe the type of a value, whatever it is; what an object has may be left out."""
    if isinstance(value, Mapping):
        members: dict[str, JSON] = {name: _schema(each) for name, each in value.items()}
        return {"type": "object", "properties": members} if members else {"type": "object"}
    if isinstance(value, list):
        kinds = [_schema(each) for each in value]
        return (
            {"type": "array", "items": kinds[0]} if kinds and kinds.count(kinds[0]) == len(kinds) else {"type": "array"}
        )
    return {"type": _TYPES[type(value)]} if value is not None else {}
