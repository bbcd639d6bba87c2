"""Reads a C{curl} command line: its URL, method, headers and body."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from getopt import GetoptError, gnu_getopt
from urllib.parse import quote

from attrs import frozen

from .description import NotImported

MOST_CHARACTERS = 16 * 1024
"""The maximal length of a command. C{shlex} needs time that grows with the square of a word's length."""

_SHORT = "X:H:d:u:GsSLivfgN#46"
_LONG = (
    "request= header= data= data-raw= data-binary= data-urlencode= json= url= user= get silent show-error "
    "location include verbose fail fail-with-body globoff no-buffer compressed http1.1 http2 http3 tlsv1.2 tlsv1.3 "
    "ipv4 ipv6"
).split()
_DATA = dict.fromkeys(("d", "json", "data-raw", "data-binary", "data-urlencode"), "data")
_MEANINGS = {"X": "request", "H": "header", "u": "user", "G": "get", **_DATA}
_OPTION = re.compile(r"[A-Za-z]|[a-z]{2,20}(?:-[a-z]{1,20}){0,3}[0-9.]{0,3}").fullmatch
_CARET = re.compile(r"\^[ \t]{0,9}\r?(?:\n|\Z)|\^\"")
_NO_BREAK = re.compile("[\u00a0\u2007\u202f]")
_BODY_HERE = "Put the body itself behind -d, in single quotes."
_SHELL = (
    (re.compile("<<"), "a here-document (<<)", _BODY_HERE),
    (re.compile(r"<\Z|<\("), "an input redirection (<)", _BODY_HERE),
    (re.compile("[0-9&]?>"), "an output redirection (>)", "Leave it out: the answer is returned to the agent."),
    (
        re.compile(r"(?:&&|\|\||;)|&\Z"),
        "another command (&&, || or ;)",
        "One curl command is read: leave out the others.",
    ),
)
_QUOTE = "Put the URL, and each value with blanks in it, into quotes."
_LEAVE_OUT = "Leave it out if the request does not need it. Else describe the service in a connector file."


@frozen(repr=False)
class CurlRequest:
    """The request of a C{curl} command. Its values may contain a key, so the representation omits them.

    :ivar headers: names and values. The option C{-u} becomes a header Authorization with its value not encoded.
    :ivar data: the body, or None if the command sends none.
    """

    method: str
    url: str
    headers: Sequence[tuple[str, str]]
    data: str | None


def read_command(command: Sequence[str]) -> CurlRequest:
    """Parse a C{curl} command.

    :param command: the command's words, or the whole command as a single word.
    :raises NotImported: if the command is not understood. The message repeats no value of the command.
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
    url, sent = urls[0], "&".join(data or ()) or None
    if "get" in found and sent is not None:
        before, hash_sign, behind = url.partition("#")
        url, sent = f"{before}{'&' if '?' in before else '?'}{sent}{hash_sign}{behind}", None
    headers = [_read_header(each) for each in found.get("header", ())]
    headers += [("Authorization", f"Basic {each}") for each in found.get("user", ())]
    return CurlRequest(
        method=found.get("request", ["POST" if data and "get" not in found else "GET"])[-1].upper(),
        url=url,
        headers=headers,
        data=sent,
    )


def _split(text: str) -> Sequence[str]:
    """Split a command into words as a shell does: join continued lines, and stop at the first pipe.

    :raises NotImported: if a quote is not closed, or the command needs a shell or the Windows command prompt.
    """
    try:
        words = shlex.split(text.replace("\\\r\n", "").replace("\\\n", ""))
    except ValueError:
        raise NotImported("A quote in the command is not closed.", "Copy the whole command.") from None
    words = words[1:] if words[:1] == ["$"] else words  # a shell prompt that was copied along
    words = words[: words.index("|")] if "|" in words else words
    if _CARET.search(text):
        problem = "The command is written for the command prompt of Windows: it has ^ where a line goes on."
        raise NotImported(problem, "Copy the command for bash, or leave out each ^ at the end of a line.")
    _refuse_shell(words)
    return words


def _refuse_shell(words: Sequence[str]) -> None:
    """Check that no word needs a shell.

    :raises NotImported: if one does; the message names the construct.
    """
    for each in words:
        if each.startswith("\u00a0") or (_NO_BREAK.search(each) and ("://" in each or each.startswith(("-", "curl")))):
            problem = "The command has a space that does not break (U+00A0), as pages put them."
            raise NotImported(problem, "Put a usual space in its place.")
        for pattern, name, advice in _SHELL:
            if pattern.match(each):
                raise NotImported(f"The command has {name}, which only a shell understands.", advice)


def _read_options(words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return the values of all options by meaning, such as C{header}, and the URLs as C{url}.

    :raises NotImported: if an option is unknown or lacks its value.
    """
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
        given = _encode(value) if name == "data-urlencode" else value
        found.setdefault(_MEANINGS.get(name, name), []).append(given)
    return found


def _encode(text: str) -> str:
    """Percent-encode the value of C{--data-urlencode}: C{content}, C{=content} or C{name=content}.

    Return C{@} if the value names a file.
    """
    name, equals, content = text.partition("=")
    if "@" in name:
        return "@"  # a file, which the caller refuses
    return f"{name}{equals and name and '='}{quote(content)}" if equals else quote(text)


def _read_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or name.startswith("@"):
        raise NotImported("A header of the curl command is not of the form -H 'Name: value'.")
    return name.strip(), value.strip()
