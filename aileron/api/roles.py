"""The least role that a person needs for each route. A route that is not listed needs an administrator."""

from __future__ import annotations

from collections.abc import Mapping

from aileron.model.errors import Forbidden
from aileron.model.people import Role

LEAST_ROLES: Mapping[str, Role] = {
    "follow_events": Role.VIEWER,
    "list_pending": Role.VIEWER,
    "logout": Role.VIEWER,
    "show_pending": Role.VIEWER,
    "list_own_passkeys": Role.VIEWER,
    "ask_own_passkey": Role.VIEWER,
    "offer_own_passkey": Role.VIEWER,
    "add_own_passkey": Role.VIEWER,
    "remove_own_passkey": Role.VIEWER,
    "connect_agent": Role.APPROVER,
    "decide": Role.APPROVER,
    "deny_session": Role.APPROVER,
    "edit": Role.APPROVER,
    "pause": Role.APPROVER,
    "snooze": Role.APPROVER,
    "withdraw": Role.APPROVER,
}
"""The least role by the name of the route, for the routes that a person who is no administrator may call."""

OPERATOR_ONLY = frozenset({"ask_for_list", "ask_passkey", "register_browser", "remove_browser", "show_push_key"})
"""The routes that no account may call, whatever its role: they are about the operator's passkeys and phones."""

ACCOUNT_ONLY = frozenset(
    {"list_own_passkeys", "ask_own_passkey", "offer_own_passkey", "add_own_passkey", "remove_own_passkey"}
)
"""The routes that only a person with an account may call: they are about their own account."""


def find_least_role(route: str) -> Role:
    """Return the least role for a route, by the route's name."""
    # guard of roles: a route that is not listed needs an administrator
    #    -> features.people.test_roles.TableTests.test_unlisted,
    #    instead return LEAST_ROLES.get(route, Role.VIEWER)
    return LEAST_ROLES.get(route, Role.ADMINISTRATOR)


def require_role(route: str, role: Role | None) -> None:
    """Check that a person with this role may call a route.

    :param role: the role of the account, or None for a caller without one, who may call what is not about an account.
    :raises Forbidden: if the role is not enough, or no account may call the route, or only an account may.
    """
    if role is None:
        # guard of roles: only a person with an account manages passkeys of an account
        #    -> features.people.test_passkeys.RouteTests.test_operator
        if route in ACCOUNT_ONLY:
            raise Forbidden("Only a person with an account has these passkeys. Yours: aileron passkey list")
        return
    least = find_least_role(route)
    if route in OPERATOR_ONLY:
        raise Forbidden("Accounts cannot do this: it needs a passkey of the operator.", {"role": role.value})
    if not role.covers(least):
        raise Forbidden(f"Your role is {role.value}. This needs the role {least.value}.", {"role": role.value})
