"""Reads the table C{[credential]} of a connector file for a service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from aileron.base.tables import FileTable
from aileron.credentials import DISCOVER, KINDS, PRIVATE_NETWORK, RESOURCE, CredentialKind, SettingRule
from aileron.model.connectors import CredentialNeed
from aileron.model.places import fill

from ._headers import credential_format, header_name


def read_credential(
    table: FileTable | None,
    variables: Mapping[str, str],
    *,
    private_network: bool,
    header: str = "",
    logins: Collection[str] = KINDS,
    resource: str = "",
) -> CredentialNeed | None:
    """Read the credential that a connector needs. Faults are added to the table.

    If C{table} is None, or its kind of credential is missing or not permitted, return None.

    :param variables: the variables of the base URL, with examples of their values.
    :param header: the header to use if the file cannot choose it, for credentials that log in.
    :param logins: the permitted kinds of credential.
    :param resource: the only resource for which tokens are requested (RFC 8707): the URL of an MCP server.
    """
    if table is None:
        return None
    kind = KINDS.get(table.choice("kind", logins))
    if kind is None:
        table.skip(*table.values)  # the kind is unknown, so its keys are too
        return None
    settings = _settings(table, kind, variables)
    settings |= _implied(kind, private_network=private_network, resource=resource)
    try:
        kind.check_settings(settings)
    except ValueError as error:
        table.faults.add((*table.path, "kind"), str(error))
    if header:
        table.close()
        return CredentialNeed(kind.name, header, kind.format, settings)
    header, credential = kind.header, kind.format
    in_url = [key for key in ("query", "path") if key in kind.settings and key in table.values]
    if in_url:
        header = ""
        for key in sorted({"header", "format", *in_url[1:]} & table.values.keys()):
            table.skip(key)
            table.fault(key, f"must not stand beside `{in_url[0]}`")
    elif kind.placed:
        header = table.read("header", header_name, header, required=not header)
        credential = table.read("format", credential_format, credential)
    table.close()
    return CredentialNeed(kind.name, header, credential, settings)


def _settings(table: FileTable, kind: CredentialKind, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a kind of credential, without empty ones. Faults are added to the table.

    :param variables: examples of the base URL's variables, to which settings may refer.
    """
    found = {}
    for name, rule in kind.settings.items():
        if rule.flag:
            found[name] = "true" if table.flag(name, default=False) else ""
        elif rule.several:
            found[name] = " ".join(table.texts(name, required=False))
        else:
            found[name] = table.read(name, _reading(rule, variables), "")
    return {name: text for name, text in found.items() if text}


def _implied(kind: CredentialKind, *, private_network: bool, resource: str) -> Mapping[str, str]:
    """Return the settings that other parts of the file imply: a private network, and the resource of tokens."""
    network = {PRIVATE_NETWORK: "true"} if kind.exchanges and private_network else {}
    return network | ({RESOURCE: resource} if resource and DISCOVER in kind.settings else {})


def _reading(rule: SettingRule, variables: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        example = fill(text, variables)
        found = rule.read(example)
        return found if example == text else text

    return read
