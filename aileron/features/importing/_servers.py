"""Converts the servers of an OpenAPI document to a base URL with variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

from aileron.base.addresses import host_shown, is_loopback, read_base_url
from aileron.model.places import fill, misplaced

from ._derive import name_of
from ._references import list_of, table_of, text_of
from .description import ApiVariable
from .files import one_line

ServerPlace = tuple[str, tuple[ApiVariable, ...], tuple[str, ...]]
"""A base URL (empty if none is usable), its variables, and marks."""

_VARIABLE = re.compile(r"\{([^{}]{1,80})\}")
_VALUE = re.compile(r"[A-Za-z0-9_~-]{1,63}")
_PORT = re.compile(r"(:)\{([^{}]{1,80})\}")
_USUAL_PORT = re.compile(r"(https://[^/?#]{1,300}):443(?=[/?#]|\Z)|(http://[^/?#]{1,300}):80(?=[/?#]|\Z)")
_MOST_TOLD = 5
FIXED = "the variable "
"""The first words of a mark on a variable that was replaced by its default."""


def choose_server(servers: Sequence[Mapping[str, Any]], address: str) -> ServerPlace:
    """Choose the first server with https://, or else the first one. A text names the others.

    :param address: the URL of the document, against which a relative URL is resolved; empty for a file.
    :return: the base URL, its variables, and texts about what is uncertain, as L{read_server} returns them.
    """
    server = next((each for each in servers if text_of(each.get("url")).startswith("https://")), {})
    server = server or (servers[0] if servers else {})
    url, variables, marks = read_server(server, address)
    others = [one_line(text_of(each.get("url")), 80) for each in servers if each is not server]
    if others:
        told = ", ".join(others[:_MOST_TOLD]) + (" and others" if others[_MOST_TOLD:] else "")
        marks = (*marks, f"the document has further servers: {told}")
    return url, variables, marks


def read_server(server: Mapping[str, Any], address: str) -> ServerPlace:
    """Convert a server's URL to a base URL with variables.

    :param address: the URL of the document, against which a relative URL is resolved; empty for a file.
    :return: the base URL (empty if none is usable), its variables, and texts about what could not be expressed.
    """
    url = urljoin(address, text_of(server.get("url")) or "/") if address else text_of(server.get("url"))
    url = f"https:{url}" if url.startswith("//") else url
    marks: tuple[str, ...]
    url, variables, fixed = _read_variables(url, table_of(server.get("variables")))
    url, marks = _USUAL_PORT.sub(lambda found: found[1] or found[2], url), ()
    examples = {each.name: each.example for each in variables}
    if url.startswith("http://") and not is_loopback(host_shown(fill(url, examples))):
        url, marks = f"https{url[4:]}", ("the document says http://; https:// is used instead",)
    if url.startswith("http://") and not address.startswith("http://"):
        marks = ("the document says that the service is on this machine: check what is there",)
    problem, base = misplaced(url), ""
    try:
        base = read_base_url(fill(url, examples), exact=True).url
    except ValueError as error:
        problem = str(error)
    if problem is not None:
        return "", (), (f"the document has no usable base URL ({one_line(url, 100) or 'none'}): it {problem}",)
    return url.rstrip("/") if variables else base, variables, (*marks, *fixed)


def _read_variables(url: str, described: Mapping[str, Any]) -> ServerPlace:
    """Convert the variables of a URL. Return the URL, its variables, and texts about what could not be expressed.

    A variable that a connector file cannot express is replaced by its default.
    """
    variables, marks = list[ApiVariable](), list[str]()
    ports = {name for _, name in _PORT.findall(url)}
    for name in dict.fromkeys(_VARIABLE.findall(url)):
        about = table_of(described.get(name))
        usual, own = str(about.get("default", "")), name_of(name, {each.name for each in variables}, 30)
        choices = [str(each) for each in list_of(about.get("enum"))]
        if name in ports or not all(_VALUE.fullmatch(each) for each in (usual, *choices)):
            url = url.replace(f"{{{name}}}", usual)
            others = [one_line(each, 40) for each in choices if each != usual][:_MOST_TOLD]
            said = f", and not {', '.join(others)}" if others else ""
            marks.append(f"{FIXED}{one_line(name, 40)} of its URL is always {one_line(usual, 60)}{said}")
            continue
        pattern = "|".join(re.escape(each).replace("\\-", "-") for each in choices) or "[A-Za-z0-9_~-]+"
        title = one_line(text_of(about.get("description")), 80) or name
        variables.append(ApiVariable(own, title, pattern if len(pattern) < 200 else "[A-Za-z0-9_~-]+", usual, usual))
        url = url.replace(f"{{{name}}}", f"{{{own}}}")
    return url, tuple(variables), tuple(marks)
