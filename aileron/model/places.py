"""Base URLs with variables that the operator sets when binding a credential, such as a site's name or a region."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from aileron.base.addresses import base_url_problem
from aileron.base.patterns import compile_pattern

MOST_PATTERN_CHARACTERS = 200

_REFERENCE = re.compile(r"\{([^{}]*)\}")
_SEPARATORS = re.compile(r"([./:]+)")
_VALUE = re.compile(r"[A-Za-z0-9_~-]{1,63}")


@frozen
class UrlVariable:
    """A part of a base URL that the operator sets.

    :ivar pattern: the RE2 pattern that the whole value must match.
    :ivar example: a sample value for people.
    :ivar default: the default value, or None if the variable must be set.
    """

    name: str
    title: str
    pattern: str
    example: str
    default: str | None = None

    def check(self, text: str) -> str:
        """Return C{text} if it is a valid value.

        :raises ValueError: if C{text} is not a valid value. The message completes a sentence that begins with the
            value.
        """
        if not _VALUE.fullmatch(text) or not compile_pattern(self.pattern).fullmatch(text):
            raise ValueError(f"must match {self.pattern}, such as {self.example}")
        return text


@frozen
class UrlTemplate:
    """A base URL with variables in braces, each within one label of the host or one segment of the path.

    :ivar variables: all variables. Each occurs in C{text}, or else in a setting of the credential.
    """

    text: str
    variables: tuple[UrlVariable, ...]

    @property
    def example(self) -> str:
        """The base URL in which each variable has its default, or its example if it has no default."""
        return fill(self.text, {each.name: each.default or each.example for each in self.variables})

    @property
    def placed(self) -> tuple[UrlVariable, ...]:
        """The variables in the base URL, whose values can be parsed back from a URL."""
        return tuple(each for each in self.variables if each.name in variables_in(self.text))

    @property
    def unplaced(self) -> tuple[UrlVariable, ...]:
        """The variables outside the base URL, whose values are in the settings that a credential was encrypted with."""
        return tuple(each for each in self.variables if each not in self.placed)

    @property
    def origin(self) -> UrlTemplate:
        """The template of the origin alone: scheme, host and port, without the path."""
        return UrlTemplate("/".join(self.text.split("/")[:3]), self.variables)

    @property
    def default(self) -> str | None:
        """The base URL with all defaults, or None if a variable must be set."""
        return None if any(each.default is None for each in self.variables) else self.example

    def filled(self, given: Mapping[str, str]) -> str:
        """Return the base URL with these values, and defaults for the other variables.

        :raises ValueError: if a value is missing, unknown or invalid. The message is a sentence.
        """
        known = {each.name: each for each in self.variables}
        if unknown := sorted(given.keys() - known.keys()):
            raise ValueError(f"There is no variable {unknown[0]!r}, only {', '.join(known)}.")
        missing = [each for each in self.variables if each.default is None and each.name not in given]
        if missing:
            raise ValueError(f"{missing[0].title} ({missing[0].name}) is required, such as {missing[0].example}.")
        values = {name: given.get(name, each.default or "") for name, each in known.items()}
        url = fill(self.text, values)
        self._check(values)
        if (problem := base_url_problem(url)) is not None:
            raise ValueError(f"The base URL {problem}.")
        return url

    def values_of(self, url: str) -> Mapping[str, str]:
        """Return the values of the variables in C{url}.

        :raises ValueError: if the template does not match. The message completes a sentence that begins with the URL.
        """
        values = self.read(url)
        if (problem := base_url_problem(url)) is not None:
            raise ValueError(problem)
        return values

    def read(self, text: str) -> Mapping[str, str]:
        """Return the values of the variables in C{text}, which need not be a base URL.

        :raises ValueError: if the template does not match. The message completes a sentence that begins with C{text}.
        """
        values = dict(self._read(text))
        if fill(self.text, values) != text:
            raise self._mismatch()
        self._check(values, "has a {} that {}")
        return values

    def _check(self, values: Mapping[str, str], words: str = "The {} {}.") -> None:
        for each in self.variables:
            try:
                each.check(values.get(each.name, each.example))
            except ValueError as error:
                raise ValueError(words.format(each.name, error)) from None

    def _read(self, url: str) -> Iterator[tuple[str, str]]:
        wanted, given = _SEPARATORS.split(self.text), _SEPARATORS.split(url)
        if len(wanted) != len(given):
            raise self._mismatch()
        for part, text in zip(wanted, given, strict=True):
            for found in _REFERENCE.finditer(part):
                yield found[1], text[found.start() : len(text) - (len(part) - found.end())]

    def _mismatch(self) -> ValueError:
        return ValueError(f"must be like {self.text}, such as {self.example}")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Return C{text} with each variable in braces that has a value replaced by the value."""
    return _REFERENCE.sub(lambda found: values.get(found[1], found[0]), text)


def variables_in(text: str) -> list[str]:
    """Return the names of the variables in C{text}, in order."""
    return _REFERENCE.findall(text)


def misplaced(text: str) -> str | None:
    """Return why the variables of a base URL could not be parsed back from a filled URL, or None if they can.

    :return: a text that completes a sentence that begins with the base URL, or None.
    """
    scheme, *parts = _SEPARATORS.split(text)
    if variables_in(scheme):
        return "must have no variable before its host"
    if any(len(variables_in(part)) > 1 for part in parts):
        return "must have a '.', ':' or '/' between two variables"
    if set("{}") & set(_REFERENCE.sub("", text)):
        return "has a brace that is part of no variable"
    return None
