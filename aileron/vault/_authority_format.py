"""How standing grants, passkeys and their rule are written and read.

What an argument must be is written as one text each: a MAC over canonical JSON does not tell 1 from 1.0, a grant does.
"""

from __future__ import annotations

from aileron.values import JSON, Grant, Passkey, PasskeyRule, Predicate, PredicateKind, compact, loads_strict, timestamp

from ._fields import Fields


def grant_json(grant: Grant) -> dict[str, JSON]:
    """All that there is of a grant."""
    return {
        "id": grant.id,
        "action": grant.action,
        "predicates": [
            {"argument": each.argument, "kind": each.kind.value, "given": compact(each.given)}
            for each in grant.predicates
        ],
        "exact": compact(grant.exact),
        "uses": grant.uses,
        "used": grant.used,
        "not_after": timestamp(grant.not_after),
        "session": grant.session_id,
        "bound": dict(grant.bound),
        "run": grant.run_id,
        "made_at": timestamp(grant.made_at),
        "made_by": grant.made_by,
        "used_at": None if grant.used_at is None else timestamp(grant.used_at),
        "revoked_at": None if grant.revoked_at is None else timestamp(grant.revoked_at),
    }


def grant_of(fields: Fields) -> Grant:
    """The grant.

    :raises ValueError: it is none.
    """
    grant = Grant(
        id=fields.text("id"),
        action=fields.text("action"),
        predicates=tuple(_predicate(each) for each in fields.list("predicates")),
        exact=_object(fields.text("exact")),
        uses=fields.number("uses"),
        used=fields.number("used"),
        not_after=fields.moment("not_after"),
        session_id=fields.optional_text("session"),
        bound=fields.texts_by_name("bound"),
        run_id=fields.text("run"),
        made_at=fields.moment("made_at"),
        made_by=fields.text("made_by"),
        used_at=fields.optional_moment("used_at"),
        revoked_at=fields.optional_moment("revoked_at"),
    )
    fields.end()
    return grant


def _predicate(fields: Fields) -> Predicate:
    predicate = Predicate(
        fields.text("argument"), PredicateKind(fields.text("kind")), loads_strict(fields.text("given").encode())
    )
    fields.end()
    return predicate


def _object(text: str) -> dict[str, JSON]:
    value = loads_strict(text.encode())
    if not isinstance(value, dict):
        raise ValueError("an object is missing")
    return value


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
