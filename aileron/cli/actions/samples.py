"""First actions: ready files for the services that ship with Aileron, and one made for a REST API of the user's own."""

from __future__ import annotations

import re
from importlib.resources import files

from attrs import frozen

from aileron.addresses import BaseUrl, is_loopback, read_base_url
from aileron.drafting import Draft, Wanted, text_of

_CONNECTOR = """\
[connector]
name = "{fqn}"
version = "1.0.0"
description = "The API of {host}."
base_url = {{ default = "{origin}", bindable = false }}
hosts = ["{place}"]
{private}
[credential]
kind = "api_key"
header = "{header}"
format = "{format}"

[operations.create]
description = "Sends a POST request to {path}."
method = "POST"
path = "{path}"
json = {{ {fields} }}
effect = "write"
idempotent = false
"""
_PRIVATE = "private_network = true\n"
_FIELD = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}").fullmatch
_HEADER = re.compile(r"[A-Za-z0-9-]{1,60}").fullmatch
_MOST_FIELDS = 20


@frozen
class Sample:
    """A service, and the first actions for it.

    :ivar title: what a person chooses it by.
    :ivar connector: its name.
    :ivar credential: which credential it needs, and where that is to be had.
    :ivar actions: name and text of each action's file: the first one does something, another checks the connection.
    :ivar connector_file: likewise of the connector's, where it does not come with the program.
    """

    title: str
    connector: str
    credential: str
    actions: tuple[tuple[str, str], ...]
    connector_file: tuple[str, str] | None = None


def shipped_samples() -> tuple[Sample, ...]:
    """Return those for services that ship with Aileron."""
    return (
        Sample(
            "Slack: post a message",
            "builtin://slack",
            "A bot token (xoxb-…) with the scope chat:write, from https://api.slack.com/apps."
            " Invite the bot to the channel",
            (_read("post-message.md"), _read("check-slack.md")),
        ),
        Sample(
            "GitHub: open an issue",
            "builtin://github",
            'A fine-grained token with "Issues: read and write", from https://github.com/settings/personal-access-tokens',
            (_read("open-issue.md"), _read("check-github.md")),
        ),
    )


def _read(name: str) -> tuple[str, str]:
    return name, (files(__package__) / "samples" / name).read_text("utf-8")


def read_address(text: str) -> BaseUrl:
    """Read the address that a POST request goes to.

    :raises ValueError: what it must be, as the end of a sentence that begins with its name.
    """
    found = read_base_url(text, exact=True)
    if not found.path:
        raise ValueError("must have a path, such as /api/issues")
    return found


def read_fields(text: str) -> tuple[str, ...]:
    """Read the names of the fields that an agent gives, separated by commas.

    :raises ValueError: what they must be, as the end of a sentence.
    """
    names = tuple(each.strip() for each in text.split(","))
    if len(set(names)) < len(names) or len(names) > _MOST_FIELDS or not all(map(_FIELD, names)):
        raise ValueError(f"must be up to {_MOST_FIELDS} different names of a-z, 0-9 and _, separated by commas")
    return names


def read_name(text: str) -> str:
    """Read the name of a service.

    :raises ValueError: what it must be, as the end of a sentence.
    """
    if not _NAME(text):
        raise ValueError("must be of a-z, 0-9 and hyphens")
    return text


def read_header(text: str) -> str:
    """Read the name of the header that carries the key.

    :raises ValueError: what it must be, as the end of a sentence.
    """
    if not _HEADER(text):
        raise ValueError("must be the name of a header, such as Authorization or X-API-Key")
    return text


def make_sample(address: BaseUrl, name: str, about: str, fields: tuple[str, ...], header: str) -> Sample:
    """Make a connector and an action that sends a POST request with these fields in its JSON body.

    :param about: one line that describes the action for the model.
    """
    fqn, origin = f"local://me/{name}", address.origin
    value = "Bearer {key}" if header.lower() == "authorization" else "{key}"
    connector = _CONNECTOR.format(
        fqn=fqn,
        host=origin.host,
        origin=origin.url,
        place=origin.host_and_port,
        private=_PRIVATE if is_loopback(origin.host) else "",
        header=header,
        format=value,
        path=address.path,
        fields=", ".join(f'{each} = "${{in.{each}}}"' for each in fields),
    )
    draft = Draft(
        f"{name}-create",
        fqn,
        "1.0.0",
        "create",
        inputs=tuple(Wanted(each) for each in fields),
        takes=fields,
        about=about,
    )
    key = f"The key that {origin.host} expects in the header {header}, sent as: {value}"
    return Sample(name, fqn, key, ((f"{draft.name}.md", text_of(draft)),), (f"{name}.toml", connector))
