"""Reads a JSON or YAML document as plain JSON, with limits on its size, depth and number of values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from attrs import define

from aileron.base.json import JSON

from .description import NotImported

MOST_BYTES = 32 * 1024 * 1024
MOST_VALUES = 1_000_000
MOST_DEPTH = 100

_TAG = "tag:yaml.org,2002:"
_CORE = {
    "null": (re.compile(r"\A(?:~|null|Null|NULL|)\Z"), ["~", "n", "N", ""]),
    "bool": (re.compile(r"\A(?:true|True|TRUE|false|False|FALSE)\Z"), [*"tTfF"]),
    "int": (re.compile(r"\A-?+(?:0|[1-9][0-9]{0,400}+)\Z"), [*"-0123456789"]),
    "float": (
        re.compile(r"\A-?+(?:0|[1-9][0-9]{0,400}+)(?:\.[0-9]{0,400}+)?(?:[eE][-+]?[0-9]{1,5})?\Z"),
        [*"-0123456789"],
    ),
}
"""The types of an unquoted scalar that is not text, as in JSON and YAML 1.2. C{no} and dates are text."""


def read_document(data: bytes) -> Mapping[str, JSON]:
    """Parse a JSON or YAML document whose root is an object.

    A YAML alias counts each time it is used, so a small file cannot become a large value.

    :raises NotImported: if the document is invalid, too large or nested too deeply, or its root is not an object.
    """
    if len(data) > MOST_BYTES:
        raise NotImported(f"The document is larger than {MOST_BYTES // 1024 // 1024} MiB.")
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text) if text.lstrip()[:1] in ("{", "[") else _read_yaml(text)
        plain = _PlainCopy(MOST_VALUES).of(value, MOST_DEPTH)
    except RecursionError:
        raise NotImported("The document is nested too deeply.") from None
    except UnicodeDecodeError:
        raise NotImported("The document is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise NotImported(f"The document is not valid JSON: {error.msg} (line {error.lineno}).") from None
    except ValueError as error:
        raise error if isinstance(error, NotImported) else NotImported(f"The document {error}.") from None
    if not isinstance(plain, Mapping):
        raise NotImported("The document is not an object.")
    return plain


def _read_yaml(text: str) -> Any:
    import yaml

    try:
        from yaml import CSafeLoader as SafeLoader
    except ImportError:  # a build without libyaml
        from yaml import SafeLoader  # type: ignore[assignment]

    class Loader(SafeLoader):
        """A YAML loader that knows only JSON's scalars and does not apply merge keys."""

        yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            """Do not apply merge keys: nested merges could grow exponentially."""

    for name, (pattern, first) in _CORE.items():
        Loader.add_implicit_resolver(_TAG + name, pattern, first)
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe loader that can do less
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise NotImported(f"The document is not valid YAML: {error.problem} (line {line}).") from None
    except (yaml.YAMLError, TypeError) as error:  # an unhashable key is a TypeError
        raise NotImported("The document is not valid YAML.") from error


@define
class _PlainCopy:
    """Copies a value as plain JSON, with a limit on the number of values.

    :ivar left: how many values may still be copied.
    """

    left: int

    def of(self, value: Any, depth: int) -> JSON:
        """Copy C{value}.

        :raises ValueError: if the value is not JSON, is nested deeper than C{depth}, or has too many values.
        """
        self.left -= 1
        if self.left < 0:
            raise ValueError("has too many values")
        if depth == 0:
            raise ValueError("is nested too deeply")
        if isinstance(value, str):
            return _proper(value)
        if isinstance(value, dict):
            return {self._key(key): self.of(each, depth - 1) for key, each in value.items()}
        if isinstance(value, list):
            return [self.of(each, depth - 1) for each in value]
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return value
        raise ValueError("holds a value that JSON cannot say")

    def _key(self, key: Any) -> str:
        if key == "<<":
            raise ValueError("uses the merge key of YAML, which is not read")
        return _proper(key) if isinstance(key, str) else json.dumps(key)


def _proper(text: str) -> str:
    """Return the text with each lone surrogate replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
