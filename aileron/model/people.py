"""The accounts of the people who use one daemon together, and their roles."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from aileron.base.converter import Member, differ, to_json
from aileron.base.json import JSON, digest, timestamp

NAME = r"^[a-z][a-z0-9-]{0,31}$"
"""The pattern of an account's name. It has no dot, which ends the name in the ID of a login."""


class Role(StrEnum):
    """The roles of people. Each may do what those before it may.

    C{VIEWER}: sees requests and runs.  C{APPROVER}: also decides.  C{ADMINISTRATOR}: also manages accounts.
    """

    VIEWER = "viewer"
    APPROVER = "approver"
    ADMINISTRATOR = "administrator"

    def covers(self, least: Role) -> bool:
        """Return whether this role may do what needs at least the role C{least}."""
        order = tuple(Role)
        return order.index(self) >= order.index(least)


GROUP = "group:"
"""The beginning of a name in a rule that stands for a group of accounts, such as C{group:finance}."""

MOST_GROUPS = 16
"""The most groups of one account."""

MOST_NEEDED = 10
"""The most approvals that a rule can require."""

OPERATOR = "operator"
"""The name of the operator among those who may approve. No account has it. The operator has the role administrator."""


RESERVED = frozenset({OPERATOR, "you", *Role})
"""The names that no account may have. In a rule they stand for a role, or for the operator, and pages and commands
write C{you} for the operator."""


BY_PROVIDER = "oidc_"
"""The beginning of the IDs of accounts that sign in with a provider. The rest follows from the provider's subject."""


REMOVED = "removed:"
"""The beginning of what the vault stores in place of a digest for an account that the operator removed, if the account
signed in with a provider. The account's name follows. The next sign-in of the same subject would have the same ID."""


@frozen
class ApproverRule:
    """A rule about the people who may approve, and how many of them must.

    :ivar by: lists of names of accounts, roles and groups. The person needs one name of each list.
    :ivar not_requester: True if the person for whom the request was made may not approve it.
    :ivar count: how many different people must approve before the run begins.
    """

    by: tuple[tuple[str, ...], ...] = ()
    not_requester: bool = False
    count: int = 1

    @property
    def digest(self) -> str | None:
        """The digest of the rule, or None if everybody who may decide may approve alone."""
        return None if self == ApproverRule() else digest(to_json(self))

    @property
    def asks_others(self) -> bool:
        """True if the rule names people, or asks for several: then others than the requester may approve."""
        return bool(self.by) or self.count > 1

    def find_objection(self, name: str, role: Role, groups: Collection[str] = (), *, is_requester: bool) -> str | None:
        """Return why a person may not approve, as a sentence, or None if the person may.

        :param name: the name of the account, or C{operator}.
        :param groups: the groups of the account.
        :param is_requester: True if the request was made for this person.
        """
        # guard of roles: the requester approves nothing that the rule excepts
        #    -> runner.test_approvers.RuleTests.test_not_requester
        if self.not_requester and is_requester:
            return "This action needs an approval by somebody else than the requester."
        passes_for = {name, role.value, *(f"{GROUP}{group}" for group in groups)}
        for names in self.by:
            # guard of roles: only those whom the rule names approve -> runner.test_approvers.RuleTests.test_named
            if passes_for.isdisjoint(names):
                return f"This action needs an approval by: {', '.join(names)}."
        return None


@frozen
class Owner:
    """The account to which an agent's session belongs. A run has the owner of its session.

    :ivar account: the account's ID, which another account of the same name does not have.
    """

    account: str
    name: str


@frozen
class OperatorRule:
    """A rule of the operator's in C{config.yaml}, beside those of action files.

    :ivar action: the name of an action, or the beginning of names and C{*}.
    """

    action: str
    rule: ApproverRule

    def covers(self, action: str) -> bool:
        """Return whether the rule is about an action."""
        return action.startswith(self.action[:-1]) if self.action.endswith("*") else action == self.action


_is_name = re.compile(NAME).fullmatch


def is_approver(name: str) -> bool:
    """Return whether a rule can have this name: an account's, C{operator}, a role that decides, or C{group:NAME}."""
    return name != Role.VIEWER and _is_name(name.removeprefix(GROUP)) is not None


@frozen
class Invitation:
    """A link by which a person sets the passphrase of an account, once.

    :ivar code_digest: SHA-256 of the code in the link, in hexadecimal.
    """

    code_digest: str = field(repr=False)
    ends_at: datetime


@frozen
class Verifier:
    """A passphrase as it is stored: a key that Argon2id derives from it, and the parameters of the derivation.

    :ivar salt: the salt, in hexadecimal.
    :ivar key: the derived key, in hexadecimal.
    """

    salt: str = field(repr=False)
    key: str = field(repr=False)
    iterations: int
    memory_kib: int
    lanes: int


@frozen
class AccountPasskey:
    """One passkey of an account.

    :ivar id: the credential's ID, as unpadded base64url.
    :ivar public_key: the public key in COSE format (RFC 9052), as unpadded base64url.
    :ivar count: the authenticator's signature counter when the passkey was made, or 0 if it has none.
    :ivar site: the WebAuthn rpId of the public name that the passkey was made for.
    :ivar synced: True if the passkey may be copied to other devices (flag BE).
    """

    id: str
    name: str
    public_key: str
    added_at: datetime
    count: int
    site: str
    synced: bool


@frozen
class PasskeyUse:
    """The last use of a passkey of an account.

    :ivar passkey: the passkey's ID.
    :ivar count: the authenticator's signature counter after it, or 0 if it has none.
    """

    passkey: str
    count: int
    used_at: datetime


@frozen
class PersonAccount:
    """The account of one person.

    :ivar id: a random ID, which another account of the same name does not have, or the ID of a provider's subject.
    :ivar revision: a number that grows with each change.
    :ivar verifier: the stored passphrase, or None if none was set yet.
    :ivar invitation: the link that sets the passphrase, or None if it was used.
    :ivar groups: the groups of the account, sorted. Rules can name them.
    :ivar passkeys: the passkeys of the account, oldest first.
    :ivar login_revision: the revision of the last change that ended the logins, or None if that is the present one. A
        change of the passkeys ends none.
    """

    id: str
    name: str
    role: Role
    revision: int
    created_at: datetime
    verifier: Verifier | None = field(default=None, repr=False)
    invitation: Invitation | None = None
    groups: tuple[str, ...] = ()
    passkeys: tuple[AccountPasskey, ...] = ()
    login_revision: int | None = None

    @property
    def is_by_provider(self) -> bool:
        """True if the account signs in with a provider, which also gives the role, and never with a passphrase."""
        return self.id.startswith(BY_PROVIDER)

    @property
    def digest(self) -> str:
        """The text that the vault stores for an account in force: L{login_digest}, then the digest of the passkeys.

        Together they cover the whole account. An account whose passkeys were never changed has the first alone.
        """
        if self.login_revision is None and not self.passkeys:
            return self.login_digest
        passkeys: list[JSON] = [to_json(each) for each in self.passkeys]
        return f"{self.login_digest} {digest({'id': self.id, 'revision': self.revision, 'passkeys': passkeys})}"

    @property
    def login_digest(self) -> str:
        """The digest of the account without its passkeys. A login ends when it changes."""
        # an account without groups has the digest that earlier versions computed
        groups: dict[str, JSON] = {"groups": list(self.groups)} if self.groups else {}
        return digest(
            {
                **groups,
                "id": self.id,
                "name": self.name,
                "role": self.role.value,
                "revision": self.revision if self.login_revision is None else self.login_revision,
                "created_at": timestamp(self.created_at),
                "verifier": None if self.verifier is None else to_json(self.verifier),
                "invitation": None if self.invitation is None else to_json(self.invitation),
            }
        )

    @property
    def login(self) -> AccountLogin:
        """The account as a login names it."""
        return AccountLogin(self.id, self.name, self.role, self.login_digest, self.groups)

    @property
    def owner(self) -> Owner:
        """The account as the owner of a session."""
        return Owner(self.id, self.name)


@frozen
class AccountLogin:
    """The account of a login, as it was when the person signed in.

    :ivar account: the account's ID.
    :ivar digest: the L{PersonAccount.login_digest}, which was in force then.
    """

    account: str
    name: str
    role: Role
    digest: str = field(repr=False)
    groups: tuple[str, ...] = ()

    def is_of(self, in_force: str | None) -> bool:
        """Return whether the account is in force as it was when the person signed in.

        :param in_force: what the vault stores for the account, or None if nothing. See L{PersonAccount.digest}.
        """
        return in_force is not None and in_force.partition(" ")[0] == self.digest


# They are written into the database, which an account as a whole is not: no answer may have them.
differ(Invitation, code_digest=Member())
differ(AccountLogin, digest=Member())
differ(Verifier, salt=Member(), key=Member())
