"""The user's own service: a connector and an action, made from a C{curl} command or a URL."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from aileron.base.toml import read_toml
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.files import ACTIONS
from aileron.cli.actions.trusting import ask
from aileron.cli.context import CliContext
from aileron.cli.output import note
from aileron.home.paths import Home
from aileron.home.private_files import read_private
from aileron.model.connectors import READ as READS

from .services import ASKED, DESTRUCTIVE, READ, ReadyAction, ReadyService

if TYPE_CHECKING:
    from aileron.features.importing.curl import CurlCommand
    from aileron.features.importing.files import WrittenFiles

_FIELD = re.compile(r"[a-z][a-z0-9_]{0,59}").fullmatch
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}").fullmatch
_MOST_FIELDS, _MOST_BYTES = 20, 1024 * 1024
_NO_KEY = (
    "Add the header that carries it, such as -H 'Authorization: Bearer $KEY', or put $TOKEN in its place in the path; "
    "a key in the body is not supported. For a service without a key, use aileron connector import."
)


def is_request(words: Sequence[str]) -> bool:
    """Return whether words are a C{curl} command or a URL."""
    begins = words[0].split(maxsplit=2)[:2]
    is_command = begins[:1] == ["curl"] or begins == ["$", "curl"]
    return is_command or (len(words) == 1 and words[0].startswith(("https://", "http://")))


def describe_own(cli: CliContext, words: Sequence[str], name: str, *, in_arguments: bool) -> ReadyService:
    """Create a connector and an action from a command, or from a URL and fields that the user enters.

    :param name: the name of the service, or empty to derive it from the host.
    :param in_arguments: whether the words are arguments of this process, which other processes can read.
    :raises NotImported: if no connector can be made of the words.
    :raises CommandError: if a file would have errors.
    """
    from aileron.features.importing.curl import CurlCommand
    from aileron.features.importing.description import NotImported

    command = CurlCommand.read(_write_command(cli, words[0]) if words[0].startswith("http") else words)
    credential = command.credential
    if credential is None:
        raise NotImported("The command carries no key.", _NO_KEY)
    written, effect = _write(cli, command, name or _ask_name(cli, command))
    if credential.is_real and in_arguments:
        note("The command seems to hold a real key. It is not used here, but other programs could read it: in the list")
        note("of processes, and in your shell's history. Remove it from there, and next time write $KEY in its place.")
    (action,) = written.actions
    short = action.name.removesuffix(".md")
    host = command.base_url.partition("://")[2]
    return ReadyService(
        title=host,
        connector=f"local://me/{written.connector.name.removesuffix('.toml')}",
        steps=(f"Get the key that {host} expects {credential.form}",),
        secret="USER:PASSWORD" if credential.found.keys["kind"] == "basic" else "Key",
        actions=(ReadyAction(short, action.text, "", effect),),
        chosen=(short,),
        connector_file=(written.connector.name, written.connector.text),
        check=short if effect == READ and not _requires_inputs(action.text) else "",
    )


def _ask_name(cli: CliContext, command: CurlCommand) -> str:
    """Ask for the service's short name. Return an empty text if the user accepts the default, derived from the host."""
    from aileron.features.importing.readers import connector_name

    usual = connector_name(command.title).rpartition("/")[2]

    def read(text: str) -> str:
        if not _NAME(text):
            raise ValueError("must be a short name of a-z, 0-9 and hyphens")
        return text

    chosen = ask(cli, "Short name of the service", read, usual)
    return "" if chosen == usual else chosen


def _requires_inputs(action: str) -> bool:
    inputs = read_toml(action.split("+++")[1]).values.get("inputs", ())
    return any(each.get("required", True) for each in inputs)


def _write_command(cli: CliContext, url: str) -> Sequence[str]:
    """Return the command that sends a POST request to a URL, with the fields that the user enters.

    :raises NotImported: if the URL cannot be used.
    """
    from aileron.features.importing.curl import CurlCommand
    from aileron.features.importing.description import NotImported

    if CurlCommand.read(("curl", url)).list_operations()[0].path == "/":
        raise NotImported("The URL must have a path, such as /api/issues.")
    fields = ask(cli, "Fields of its JSON body", _read_fields, "title, body")
    return ("curl", url, "-H", "Authorization: Bearer $KEY", "-d", json.dumps(dict.fromkeys(fields, "")))


def _read_fields(text: str) -> Sequence[str]:
    names = [each.strip() for each in text.split(",")]
    if len({*names}) < len(names) or len(names) > _MOST_FIELDS or not all(map(_FIELD, names)):
        raise ValueError(f"must be up to {_MOST_FIELDS} different names of a-z, 0-9 and _, separated by commas")
    return names


def _write(cli: CliContext, command: CurlCommand, name: str) -> tuple[WrittenFiles, str]:
    """Make the files of the user's own service, under a name that no other service has. Nothing is stored.

    :return: the files, and whether the action needs approval, as in L{ReadyAction.kind}.
    :raises NotImported: if the command cannot be expressed, or another service has the given name.
    :raises CommandError: if a file has errors.
    """
    from aileron.features.importing.commands import check_written
    from aileron.features.importing.description import NotImported
    from aileron.features.importing.files import write_connector
    from aileron.features.importing.readers import connector_name

    usual = f"local://me/{name}" if name else connector_name(command.title)
    for number in count(1):
        each = usual if number == 1 else f"{usual}-{number}"
        description = command.describe(each, command.list_operations())
        written = write_connector(description)
        for why in written.refused.values():
            raise NotImported(f"The request cannot be expressed: {why}.")
        if _is_free(cli.home, written):
            break
        if name:
            raise NotImported(f"You have another service named {name}.", "Choose another name, with --name.")
    if each != usual:
        note("You have another service named {usual}; this one is named {name}.", usual=usual, name=each)
    check_written(written, CONNECTORS)
    (operation,) = description.operations
    gated = DESTRUCTIVE if operation.destructive else ASKED
    return written, READ if operation.effect == READS and not operation.asked else gated


def _is_free(home: Home, written: WrittenFiles) -> bool:
    """Return whether the connector exists with equal text, or neither the connector nor its actions exist."""
    there = read_private(home.connectors / written.connector.name, _MOST_BYTES)
    if there is not None:
        return there == written.connector.text.encode()
    return not any(ACTIONS.directory(home).joinpath(each.name).exists() for each in written.actions)
