"""Reads a command line of C{curl}: its URL, its method, its headers and what it sends."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from getopt import GetoptError, gnu_getopt

from attrs import frozen

from ._description import NotImported

MOST_CHARACTERS = 16 * 1024
"""Of a whole command; the standard library splits text in time that grows with the square of a word."""

_SHORT = "X:H:d:u:sSLivfgN#46"
_LONG = (
    "request= header= data= data-raw= data-binary= json= url= user= silent show-error location include "
    "verbose fail fail-with-body globoff no-buffer compressed http1.1 http2 http3 tlsv1.2 tlsv1.3 ipv4 ipv6"
).split()
_DATA = dict.fromkeys(("d", "json", "data-raw", "data-binary"), "data")
_MEANINGS = {"X": "request", "H": "header", "u": "user", **_DATA}
_OPTION = re.compile(r"[A-Za-z]|[a-z]{2,20}(?:-[a-z]{1,20}){0,3}[0-9.]{0,3}").fullmatch
_QUOTE = "Put the URL, and each value with blanks in it, into quotes."
_LEAVE_OUT = "Leave it out if the request does not need it. Else describe the service in a connector file."


@frozen(repr=False)
class CurlRequest:
    """The request of a command; its values may hold a key, so they are not shown.

    :ivar headers: that of C{-u} among them, with what stands there as it is.
    :ivar data: the body; L{None}: there is none.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    data: str | None


def read_command(command: Sequence[str]) -> CurlRequest:
    """Read a command: the words of it, or the whole as one of them.

    :raises NotImported: it is none that is understood; no value of it is repeated.
    """
    text = "\n".join(command)
    if len(text) > MOST_CHARACTERS:
        raise NotImported(f"The command has more than {MOST_CHARACTERS} characters.")
    words = _split(text) if len(command) == 1 else command
    if not words or words[0] != "curl":
        raise NotImported("The command does not begin with curl.")
    found = _read_options(words[1:])
    urls, data = found["url"], found.get("data")
    if len(urls) != 1:
        raise NotImported(f"The curl command has {len(urls) or 'no'} URL{'s' if urls else ''}; one is read.", _QUOTE)
    if any(each.startswith("@") for each in data or ()):
        raise NotImported("The curl command sends a file (@…).", "Put the body itself behind -d.")
    headers = [_read_header(each) for each in found.get("header", ())]
    headers += [("Authorization", f"Basic {each}") for each in found.get("user", ())]
    return CurlRequest(
        method=found.get("request", ["POST" if data else "GET"])[-1].upper(),
        url=urls[0],
        headers=headers,
        data="&".join(data or ()) or None,
    )


def _split(text: str) -> Sequence[str]:
    """Split a command as a shell does, lines that end with a backslash joined, up to what processes its answer."""
    try:
        words = shlex.split(text.replace("\\\r\n", "").replace("\\\n", ""))
    except ValueError:
        raise NotImported("A quote in the command is not closed.", "Copy the whole command.") from None
    words = words[1:] if words[:1] == ["$"] else words  # the prompt of a page
    return words[: words.index("|")] if "|" in words else words


def _read_options(words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the values by what they mean."""
    try:
        options, urls = gnu_getopt([*words], _SHORT, _LONG)
    except GetoptError as error:
        if "argument" in error.msg:
            raise NotImported("An option of the curl command lacks its value, or has one too many.", _QUOTE) from None
        option = f"{'-' if len(error.opt) == 1 else '--'}{error.opt}" if _OPTION(error.opt) else "An option"
        raise NotImported(f"{option} of the curl command is not understood.", _LEAVE_OUT) from None
    found: dict[str, list[str]] = {"url": urls}
    for option, value in options:
        name = option.lstrip("-")
        found.setdefault(_MEANINGS.get(name, name), []).append(value)
    return found


def _read_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or name.startswith("@"):
        raise NotImported("A header of the curl command is not of the form -H 'Name: value'.")
    return name.strip(), value.strip()
