"""The JSON Schema of connector files of the kind C{mail}."""

from __future__ import annotations

from aileron.connectors._json_schema import (
    FLAG,
    TEXT,
    TEXTS,
    Schema,
    choice,
    head_of,
    number,
    table,
)
from aileron.credentials import KINDS

from . import spec as _account


def make_schema() -> Schema:
    """Return the JSON Schema of connector files of the kind C{mail}."""
    tls = choice((_account.IMPLICIT, _account.STARTTLS, _account.NONE))
    server = table({"host": TEXT, "port": number("integer", 1, 65535), "tls": tls}, ("host", "port"))
    mail = {"from": TEXT, "user": TEXT, "sent": TEXT, "drafts": TEXT, "save_sent": FLAG}
    logins = []
    for name in _account.LOGINS:
        rules = KINDS[name].settings
        settings = {key: TEXTS if rule.several else TEXT for key, rule in rules.items()}
        logins.append(table({"kind": {"const": name}, **settings}, ("kind",)))
    root = {
        "connector": head_of("mail", {"private_network": FLAG}),
        "credential": {"oneOf": logins},
        "mail": table(mail, ("from",)),
        "smtp": server,
        "imap": server,
    }
    return table(root, ("connector", "mail", "smtp"))
