"""A service of the user's own: its connector and its action, made of a C{curl} command or of a URL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.cli._context import CliContext
from aileron.cli._output import note
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.importing import check_written
from aileron.cli.actions.services import ASKED, DESTRUCTIVE, READ, ReadyAction, ReadyService
from aileron.cli.actions.trusting import ask
from aileron.credentials import only
from aileron.home import read_private
from aileron.values import READ as READS

if TYPE_CHECKING:
    from aileron.importing import ApiOperation, CurlCommand, WrittenFiles

_FIELD = re.compile(r"[a-z][a-z0-9_]{0,59}").fullmatch
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}").fullmatch
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}").fullmatch
_MOST_FIELDS, _MOST_ALIKE = 20, 100
_FILE_BYTES = 1024 * 1024
_NO_KEY = (
    "Add the header that carries it, such as -H 'Authorization: Bearer $KEY'. "
    "For a service without a key, use aileron connector import."
)


@frozen
class OwnService:
    """The settings of a service of the user's own, beside the request itself.

    :ivar name: of the service; empty: it follows from the host.
    :ivar header: that carries the key, where there is only a URL.
    :ivar in_arguments: whether the request stands in the arguments of the process, which others can read.
    """

    name: str = ""
    header: str = "Authorization"
    in_arguments: bool = False


read_name = only(_NAME, "must be of a-z, 0-9 and hyphens")
read_header = only(_HEADER, "must be the name of a header, such as Authorization or X-API-Key")


def read_fields(text: str) -> tuple[str, ...]:
    """Read the names of the fields that an agent gives, separated by commas.

    :raises ValueError: what they must be, as the end of a sentence.
    """
    names = tuple(each.strip() for each in text.split(","))
    if len(set(names)) < len(names) or len(names) > _MOST_FIELDS or not all(map(_FIELD, names)):
        raise ValueError(f"must be up to {_MOST_FIELDS} different names of a-z, 0-9 and _, separated by commas")
    return names


def is_request(words: Sequence[str]) -> bool:
    """Tell whether words are a C{curl} command or a URL."""
    begins = words[0].split(maxsplit=1)[:1]
    is_command = begins == ["curl"] or (len(words) == 1 and words[0].startswith("$ curl "))
    return is_command or (len(words) == 1 and words[0].startswith(("https://", "http://")))


def describe_own(cli: CliContext, words: Sequence[str], own: OwnService) -> ReadyService:
    """Make a connector and an action of a command, or of a URL, whose fields are asked for.

    :raises NotImported: nothing can be made of it.
    """
    from aileron.importing import CurlCommand, NotImported

    is_url = words[0].startswith("http")
    command = CurlCommand.read(_write_command(cli, words[0], own.header) if is_url else words)
    written, operation = _write(cli, command, own.name)
    credential = command.credential
    if credential is None:
        raise NotImported("The command carries no key.", _NO_KEY)
    check_written(written, CONNECTORS)
    if credential.is_real and own.in_arguments:
        note("The command seems to hold a real key. It is not used here, but other programs could read it: in the list")
        note("of processes, and in your shell's history. Remove it from there, and next time write $KEY in its place.")
    (action,) = written.actions
    name, short = action.name.removesuffix(".md"), written.connector.name.removesuffix(".toml")
    gated = DESTRUCTIVE if operation.destructive else ASKED
    kind = READ if operation.effect == READS and not operation.asked else gated
    return ReadyService(
        title=command.title,
        connector=f"local://me/{short}",
        steps=(f"Get the key that {command.title} expects {credential.form}",),
        secret=credential.label,
        actions=(ReadyAction(name, action.text, operation.description, kind),),
        chosen=(name,),
        connector_file=(written.connector.name, written.connector.text),
    )


def _write_command(cli: CliContext, url: str, header: str) -> Sequence[str]:
    """Write the command that sends a POST request to a URL with fields that are asked for.

    :raises NotImported: it is no URL for that.
    """
    from aileron.importing import CurlCommand, NotImported

    if CurlCommand.read(("curl", url)).url.path in ("", "/"):
        raise NotImported("The URL must have a path, such as /api/issues.")
    fields = ask(cli, "Fields of its JSON body", read_fields, "title, body")
    form = "Bearer $KEY" if header.lower() == "authorization" else "$KEY"
    return ("curl", url, "-H", f"{header}: {form}", "--json", json.dumps(dict.fromkeys(fields, "")))


def _write(cli: CliContext, command: CurlCommand, name: str) -> tuple[WrittenFiles, ApiOperation]:
    """Write the files, under the name that was given or the first that no other service has.

    :raises NotImported: the command cannot be expressed, or the name is another service's.
    """
    from aileron.importing import NotImported, write_connector

    usual = name or command.short_name
    for each in [usual, *(f"{usual}-{number}" for number in range(2, _MOST_ALIKE))]:
        description = command.describe(f"local://me/{each}", command.list_operations())
        written = write_connector(description)
        for why in written.refused.values():
            raise NotImported(f"The request cannot be expressed: {why}.")
        there = read_private(cli.home.connectors / written.connector.name, _FILE_BYTES)
        if there is None or there == written.connector.text.encode():
            if each != usual:
                note("You have another service named {usual}; this one is named {name}.", usual=usual, name=each)
            return written, description.operations[0]
        if name:
            break
    raise NotImported(f"You have another service named {usual}.", "Choose another name, with --name.")
