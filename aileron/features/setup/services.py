"""The services that come with Aileron: where to get a credential for each, and its ready actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from attrs import frozen

from aileron.base.toml import read_toml
from aileron.model.places import UrlTemplate, UrlVariable

READ, ASKED, DESTRUCTIVE = "not needed", "asks you", "asks you; changes or deletes"

_BUILTIN = files("aileron").joinpath("connectors", "builtin")
_FENCE = "+++\n"


@frozen
class ReadyAction:
    """A ready action file.

    :ivar about: its first sentence for the model.
    :ivar kind: whether it needs approval, in words: L{READ}, L{ASKED} or L{DESTRUCTIVE}.
    """

    name: str
    text: str
    about: str
    kind: str = ASKED


@frozen
class MailProvider:
    """A provider of mail accounts.

    :ivar domains: mail domains known to belong to the provider.
    :ivar smtp: host and port, or empty if the user must enter them.
    :ivar imap: host and port, or empty if the user must enter them.
    :ivar save_sent: whether Aileron stores sent messages in the mailbox of sent messages.
    :ivar steps: how the user gets the credential.
    :ivar instead: the service that connects such accounts, if the servers accept no password.
    """

    title: str
    domains: Sequence[str]
    smtp: str
    imap: str
    save_sent: bool
    steps: Sequence[str]
    instead: str = ""


@frozen
class ReadyService:
    """A service that can be connected.

    :ivar connector: the connector's name.
    :ivar steps: how the user gets the credential.
    :ivar secret: the service's name for the credential.
    :ivar chosen: the names of the actions that are added by default.
    :ivar check: the action that tests the connection, without arguments, or empty if there is none.
    :ivar address: the default base URL if a binding may set another one; empty if a binding must set one; None if no
        binding can.
    :ivar template: the base URL if it has variables, else None.
    :ivar connector_file: name and text of the connector's file, if it does not ship with Aileron, or None.
    :ivar providers: mail providers to choose from. The connector's file is written for the servers of the chosen one.
    :ivar user: the login name, or empty. If it is set, the secret is the password alone.
    """

    title: str
    connector: str
    steps: Sequence[str]
    secret: str
    actions: Sequence[ReadyAction]
    chosen: Sequence[str]
    check: str = ""
    address: str | None = None
    template: UrlTemplate | None = None
    connector_file: tuple[str, str] | None = None
    providers: Sequence[MailProvider] = ()
    user: str = ""


def find_services(words: Sequence[str] = ()) -> Mapping[str, tuple[str, str]]:
    """Return title and purpose of each service by its name, ordered by title.

    :param words: only services whose name, title, purpose or actions contain all of them.
    """
    found = {}
    for directory in _BUILTIN.joinpath("actions").iterdir():
        data = _read_toml("actions", directory.name, "setup.toml")
        text = " ".join([directory.name, data["title"], data["about"], *data["actions"]]).lower()
        if all(word.lower() in text for word in words):
            found[directory.name] = data["title"], data["about"]
    return dict(sorted(found.items(), key=lambda each: each[1][0].lower()))


def read_service(name: str) -> ReadyService:
    """Read a service by a name that L{find_services} returns."""
    data = _read_toml("actions", name, "setup.toml")
    own = "connector" not in data  # else its file is written by setup
    connector = _read_toml(f"{name}.toml") if own else {"connector": {"name": data["connector"]}, "operations": {}}
    base_url = connector["connector"].get("base_url", {"bindable": False})
    return ReadyService(
        title=data["title"],
        connector=connector["connector"]["name"],
        steps=data["steps"],
        secret=data["secret"],
        actions=tuple(_read_actions(name, data["actions"], connector["operations"])),
        chosen=data["chosen"],
        check=data["check"],
        address=base_url.get("default", "") if isinstance(base_url, dict) and base_url["bindable"] else None,
        template=_read_template(base_url, connector.get("variables", {})),
        providers=tuple(MailProvider(**each) for each in data.get("providers", ())),
    )


def _read_template(base_url: Any, variables: Mapping[str, Any]) -> UrlTemplate | None:
    found = tuple(UrlVariable(name=name, **each) for name, each in variables.items())
    return UrlTemplate(base_url, found) if found else None


def _read_actions(service: str, names: Sequence[str], operations: Mapping[str, Any]) -> Iterator[ReadyAction]:
    for name in names:
        text = _BUILTIN.joinpath("actions", service, f"{name}.md").read_text("utf-8")
        _, head, body = text.split(_FENCE, 2)
        action = read_toml(head).values
        operation = operations.get(action["execute"][0]["op"], {})
        kind = DESTRUCTIVE if operation.get("destructive") else ASKED if action["approval"]["required"] else READ
        yield ReadyAction(name, text, body.split("\n\n", 1)[1].partition(". ")[0].strip().rstrip("."), kind)


def _read_toml(*path: str) -> Mapping[str, Any]:
    return read_toml(_BUILTIN.joinpath(*path).read_text("utf-8")).values
