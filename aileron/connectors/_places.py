"""Reads the addresses of a connector: its base URL, the variables in it, and its other hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from aileron.base.addresses import WILDCARD, BaseUrl, read_base_url, read_host_and_port
from aileron.base.patterns import compile_pattern
from aileron.base.tables import FileTable, quote
from aileron.model.places import (
    MOST_PATTERN_CHARACTERS,
    UrlTemplate,
    UrlVariable,
    fill,
    misplaced,
    variables_in,
)

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LEAST_DOTS = 2


@frozen
class Places:
    """The base URLs and hosts that a file declares.

    :ivar hosts: C{host:port}, with variables in braces.
    :ivar others: base URLs, with variables in braces, by the names that operations use.
    """

    base_url: str | None
    bindable: bool
    hosts: tuple[str, ...]
    template: UrlTemplate | None
    others: Mapping[str, str]

    @property
    def examples(self) -> Mapping[str, str]:
        """An example value of each variable in the base URLs and hosts, by the variable's name."""
        return {} if self.template is None else _examples(self.template.variables)


def own_base_url(text: str, *, private_network: bool, ssh: bool = False) -> BaseUrl:
    """Parse the base URL of a connector. The text must be in normal form, because digests cover it.

    :param private_network: whether the connector declares a private network. If not, plain http is refused.
    :param ssh: whether it may be a URL of SSH.
    :raises ValueError: if the URL is not permitted. The message is the end of a sentence.
    """
    base = read_base_url(text, exact=True, ssh=ssh)
    if base.origin.scheme == "http" and not private_network:
        raise ValueError("must begin with https:// (plain http is for loopback, where private_network is declared)")
    return base


def read_places(document: FileTable, head: FileTable, *, private_network: bool, ssh: bool = False) -> Places:
    """Read the addresses from C{[connector]}, C{[variables]} and C{[hosts]}. Faults are added to the tables."""
    variables = tuple(_variables(document.table("variables")))
    reader = _BaseUrlReader(_examples(variables), private_network, ssh)
    base_url, bindable = reader.base_url(head)
    template = UrlTemplate(base_url, variables) if variables and base_url else None
    if template is None or bindable:
        _refuse(document, variables, "which needs a base URL that is a text")
    else:
        settings = [text for text in document.table("credential").values.values() if isinstance(text, str)]
        lost = [each for each in template.unplaced if not any(each.name in variables_in(text) for text in settings)]
        _refuse(document, lost, "which is neither in the base URL nor in a setting of the credential")
        unclear = [each for each in template.unplaced if any(_beside_another(each.name, text) for text in settings)]
        _refuse(document, unclear, "which stands directly beside another variable in a setting of the credential")
        reader = evolve(reader, examples=_examples(template.placed))  # hosts depend on the base URL's variables only
    others = reader.others(document.table("hosts"))
    declared = [each for each in (base_url, *others.values()) if each]
    return Places(
        base_url=base_url if template is None else template.default,
        bindable=bindable or template is not None,
        hosts=_hosts(head, declared, reader.examples, bindable=bindable),
        template=template,
        others=others,
    )


@frozen
class _BaseUrlReader:
    """The reader of base URLs with variables.

    :ivar examples: values of the variables, used to check the URLs.
    """

    examples: Mapping[str, str]
    private_network: bool
    ssh: bool

    def base_url(self, head: FileTable) -> tuple[str | None, bool]:
        """Read the key C{base_url}, which is a URL or a table. Faults are added to C{head}.

        :return: the base URL, or None if it is missing or not valid, and whether a binding may choose any base URL.
        """
        if not isinstance(head.values.get("base_url"), dict):
            return head.read("base_url", self.read, None, required=True), False
        table = head.table("base_url")
        bindable = table.flag("bindable", default=False)
        chosen = table.read("default", self._own, None)
        if "default" not in table.values and not bindable:
            table.fault("default", "is missing, and no binding may choose one")
        table.close()
        return None if chosen is None else chosen.url, bindable

    def others(self, table: FileTable) -> Mapping[str, str]:
        """Return the base URLs of the other hosts, by name. Invalid URLs are left out.

        Faults are added to the table.
        """
        for name in table.values:
            if not NAME.fullmatch(name):
                table.fault(name, "must be named in a-z, 0-9 and '_'")
        found = {name: table.read(name, self.read, "", required=True) for name in table.values}
        return {name: url for name, url in found.items() if url}

    def read(self, text: str) -> str:
        """Check a base URL with variables, and return it in normal form.

        :raises ValueError: if the URL is invalid. The message is the end of a sentence.
        """
        if (problem := misplaced(text)) is not None:
            raise ValueError(problem)
        example = fill(text, self.examples)
        if unknown := variables_in(example):
            raise ValueError(f"has the variable {quote(unknown[0])}, which [variables] does not declare")
        base = self._own(example)
        if example not in (text, base.url):
            raise ValueError(f"must be written so that it can be {base.url}")
        return base.url if example == text else text

    def _own(self, text: str) -> BaseUrl:
        return own_base_url(text, private_network=self.private_network, ssh=self.ssh)


def _beside_another(name: str, text: str) -> bool:
    """Return whether the variable C{name} occurs in a text in which a variable is at a place that is not permitted.

    An example is a variable directly beside another, since the values could not be told apart.
    """
    return name in variables_in(text) and misplaced(f"https://{text}") is not None


def _refuse(document: FileTable, variables: Iterable[UrlVariable], why: str) -> None:
    for each in variables:
        document.fault("variables", f"has {each.name!r}, {why}")


def _examples(variables: tuple[UrlVariable, ...]) -> Mapping[str, str]:
    return {each.name: each.default or each.example for each in variables}


def _variables(table: FileTable) -> Iterator[UrlVariable]:
    for name in table.values:
        inside = table.table(name)
        if not NAME.fullmatch(name):
            table.fault(name, "must be named in a-z, 0-9 and '_'")
        pattern = inside.read("pattern", _pattern, "", required=True)
        default = inside.text("default", required=False) or None
        found = UrlVariable(name, inside.text("title"), pattern, inside.text("example"), default)
        for key in ("example", "default"):
            if pattern:
                inside.read(key, found.check, "")
        inside.close()
        yield found


def _pattern(text: str) -> str:
    if len(text) > MOST_PATTERN_CHARACTERS:
        raise ValueError(f"must have {MOST_PATTERN_CHARACTERS} characters at most")
    try:
        compile_pattern(text)
    except ValueError as error:
        raise ValueError(f"must be a regular expression as RE2 has it: {error}") from None
    return text


def _hosts(head: FileTable, declared: list[str], examples: Mapping[str, str], *, bindable: bool) -> tuple[str, ...]:
    """Read C{hosts}. If the key is missing, return the hosts of the base URLs. Faults are added to C{head}.

    :param declared: the base URLs, with variables in braces.
    """
    needed = list(dict.fromkeys(_host(each, examples) for each in declared))
    if "hosts" not in head.values:
        return tuple(needed)
    hosts = []
    for each in head.texts("hosts", required=False):
        try:
            found = _read_declared_host(fill(each, examples))
            hosts.append(each if variables_in(each) else found)
        except ValueError as error:
            head.fault("hosts", f"has {each!r}, which {error}")
    for each in needed:
        if each not in hosts:
            head.fault("hosts", f"must list the host of the base URL, {each}")
    if not hosts and not bindable:
        head.fault("hosts", "must list at least one host:port")
    return tuple(hosts)


def _read_declared_host(text: str) -> str:
    """Return a host with its port, which may have a C{*} as its first label.

    :raises ValueError: if the host is invalid, or the wildcard would stand for a whole domain.
    """
    rest = text.removeprefix(WILDCARD)
    found = read_host_and_port(rest)
    # guard of own tools: a wildcard stands for parts of a service, not for all that a registry gave away
    #    -> connectors.test_places.FileTests.test_wildcard
    if rest != text and found.count(".") < _LEAST_DOTS:
        raise ValueError("must have three labels after the '*'")
    return found if rest == text else WILDCARD + found


def _host(url: str, examples: Mapping[str, str]) -> str:
    """Return C{host:port} of a base URL, with its variables in braces."""
    origin = read_base_url(fill(url, examples), ssh=True).origin
    if not variables_in(url):
        return origin.host_and_port
    authority = url.partition("://")[2].partition("/")[0]
    return authority if origin.authority == origin.host_and_port else f"{authority}:{origin.port}"
