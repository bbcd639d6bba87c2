"""Reads a command line of C{curl}: its URL, its method, its headers and what it sends."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click
from attrs import field, frozen

from ._description import NotImported

MOST_CHARACTERS = 16 * 1024
"""Of a whole command; the standard library splits text in time that grows with the square of a word."""

_IGNORED = (
    "-s --silent",
    "-S --show-error",
    "-L --location",
    "-i --include --show-headers",
    "-v --verbose",
    "-f --fail",
    "--fail-with-body",
    "-N --no-buffer",
    "-g --globoff",
    "-# --progress-bar",
    "--no-progress-meter",
    "--compressed",
    "--http1.1",
    "--http2",
    "--http3",
    "--tlsv1.2",
    "--tlsv1.3",
    "-4 --ipv4",
    "-6 --ipv6",
)
_IGNORED_WITH_VALUE = (
    "-o --output",
    "-w --write-out",
    "-m --max-time",
    "--connect-timeout",
    "--retry",
    "-A --user-agent",
)
_OPTION = re.compile(r"--?[A-Za-z][a-z-]{0,30}(?:[0-9](?:\.[0-9])?)?").fullmatch


@frozen
class CurlRequest:
    """The request of a command; its values may hold a key.

    :ivar method: in capitals.
    :ivar headers: names and values, in order.
    :ivar data: the body, or with C{-G} the end of the query; L{None}: there is none.
    :ivar is_json: whether C{--json} said it.
    :ivar in_query: whether C{-G} puts the data into the query.
    :ivar user: of C{-u}; L{None}: it has none.
    """

    method: str
    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    data: str | None = field(repr=False)
    is_json: bool
    in_query: bool
    user: str | None = field(repr=False)


def split_command(text: str) -> list[str]:
    """Split a command as a shell does, lines that end with a backslash joined; what processes its answer is left out.

    :raises NotImported: it is too long, or a quote is not closed.
    """
    if len(text) > MOST_CHARACTERS:
        raise NotImported(f"The command has more than {MOST_CHARACTERS} characters.")
    try:
        words = shlex.split(text.replace("\\\r\n", "").replace("\\\n", ""))
    except ValueError:
        raise NotImported("A quote in the command is not closed.", "Copy the whole command.") from None
    words = words[1:] if words[:1] == ["$"] else words  # the prompt of a page
    return words[: words.index("|")] if "|" in words else words


def read_request(words: Sequence[str]) -> CurlRequest:
    """Read the words of a command, the first of which is C{curl}.

    :raises NotImported: it is none that is understood; no value of it is repeated.
    """
    _refuse_improper(words)
    found = _read_options(words[1:])
    urls = (*found["urls"], *found["url"])
    if len(urls) != 1:
        raise NotImported(f"The curl command has {len(urls) or 'no'} URL{'s' if urls else ''}; one is read.", _QUOTE)
    data, json = found["data"], found["json"]
    if data and json:
        raise NotImported("The curl command has both -d and --json.", "Leave one of them out.")
    if any(each.startswith("@") for each in (*data, *json)):
        raise NotImported("The curl command sends a file (@…).", "Put the body itself behind -d.")
    body = "".join(json) if json else "&".join(data) if data else None
    usual = "HEAD" if found["head"] else "POST" if body is not None and not found["get"] else "GET"
    headers = [_read_header(each) for each in found["header"]]
    headers += [("Authorization", f"Bearer {each}") for each in found["bearer"]]
    return CurlRequest(
        method=(found["request"] or usual).upper(),
        url=urls[0],
        headers=tuple(headers),
        data=body,
        is_json=bool(json),
        in_query=found["get"],
        user=found["user"],
    )


_QUOTE = "Put the URL, and each value with blanks in it, into quotes."


def _refuse_improper(words: Sequence[str]) -> None:
    text = "\n".join(words)
    if len(text) > MOST_CHARACTERS:
        raise NotImported(f"The command has more than {MOST_CHARACTERS} characters.")
    if any("\ud800" <= each <= "\udfff" for each in text) or "\0" in text:
        raise NotImported("The command is not proper text.")
    if not words or words[0] != "curl":
        raise NotImported("The command does not begin with curl.")


def _read_options(words: Sequence[str]) -> Mapping[str, Any]:
    try:
        return _CURL.make_context("curl", [*words]).params
    except click.NoSuchOption as error:
        name = error.option_name if _OPTION(error.option_name) else "An option"
        raise NotImported(
            f"{name} of the curl command is not understood.",
            "Leave it out if the request does not need it. Else describe the service in a connector file.",
        ) from None
    except click.UsageError:
        raise NotImported("An option of the curl command lacks its value, or has one too many.", _QUOTE) from None


def _read_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or text.startswith("@"):
        raise NotImported("A header of the curl command is not of the form -H 'Name: value'.")
    return name.strip(), value.strip()


def _options() -> list[click.Parameter]:
    several = [("header", "-H --header"), ("data", "-d --data --data-ascii --data-raw --data-binary")]
    several += [("json", "--json"), ("url", "--url"), ("bearer", "--oauth2-bearer")]
    one, flags = [("request", "-X --request"), ("user", "-u --user")], [("get", "-G --get"), ("head", "-I --head")]
    flags += [(f"flag{at}", each) for at, each in enumerate(_IGNORED)]
    one += [(f"value{at}", each) for at, each in enumerate(_IGNORED_WITH_VALUE)]
    return [
        click.Argument(["urls"], nargs=-1, type=click.UNPROCESSED),
        *(click.Option([*each.split(), name], multiple=True, type=click.UNPROCESSED) for name, each in several),
        *(click.Option([*each.split(), name], type=click.UNPROCESSED) for name, each in one),
        *(click.Option([*each.split(), name], is_flag=True) for name, each in flags),
    ]


_CURL = click.Command("curl", params=_options(), add_help_option=False)
