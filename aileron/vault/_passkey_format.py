"""How passkeys and their rule are written and read."""

from __future__ import annotations

from aileron.values import JSON, Passkey, PasskeyRule, timestamp

from ._fields import Fields


def passkey_json(key: Passkey, public_key: str) -> dict[str, JSON]:
    """All that there is of a passkey.

    :param public_key: as text.
    """
    return {
        "id": key.id,
        "name": key.name,
        "public_key": public_key,
        "made_at": timestamp(key.made_at),
        "count": key.count,
    }


def passkey_of(fields: Fields) -> Passkey:
    """The passkey.

    :raises ValueError: it is none.
    """
    id_, name, public_key = fields.text("id"), fields.text("name"), fields.data("public_key")
    key = Passkey(id_, name, public_key, fields.moment("made_at"), fields.number("count"))
    fields.end()
    return key


def rule_json(rule: PasskeyRule) -> dict[str, JSON]:
    """All that a rule says."""
    return {"everything": rule.everything, "actions": list(rule.actions)}


def rule_of(fields: Fields) -> PasskeyRule:
    """The rule.

    :raises ValueError: it is none.
    """
    rule = PasskeyRule(fields.flag("everything"), tuple(fields.texts("actions")))
    fields.end()
    return rule
