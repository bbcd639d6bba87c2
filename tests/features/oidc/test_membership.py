"""Who a person is here, by the claims of an ID token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.oidc._membership import find_role, make_account_id, make_name
from aileron.features.oidc.values import OidcSettings
from aileron.model.people import NAME, RESERVED, Role

SETTINGS = OidcSettings(
    "https://login.example.org",
    "aileron",
    roles={"watch": Role.VIEWER, "ops": Role.APPROVER, "boss": Role.ADMINISTRATOR},
)
ADDRESS: Mapping[str, Any] = {"email": "alice@example.org", "email_verified": True}


class NameTests(SynchronousTestCase):
    """The names and IDs of accounts."""

    def test_id(self) -> None:
        """The ID follows from the issuer and the subject together."""
        one = make_account_id("https://a.example", "u-1")
        self.assertRegex(one, r"^oidc_[0-9a-f]{32}$")
        others = (("https://a.example", "u-2"), ("https://b.example", "u-1"), ("https://a.exampleu", "-1"))
        self.assertEqual(len({one, *(make_account_id(*each) for each in others)}), 4)

    def test_chosen(self) -> None:
        """A person who chooses a name at the provider gets another one here, which ends with the subject's ID."""
        account_id = make_account_id("https://a.example", "u-1")
        for chosen in ("alice", "operator", "administrator", "you"):
            name = make_name(account_id, {"preferred_username": chosen})
            self.assertEqual(name, f"{chosen}-{account_id[5:13]}")
            self.assertNotIn(name, RESERVED)

    def test_words(self) -> None:
        """The name is plain, whatever the provider says."""
        account_id = "oidc_" + "0" * 32
        told: tuple[tuple[Mapping[str, Any], str], ...] = (
            ({"preferred_username": "Zoë.O'Neil@example.org"}, "zoe-o-neil"),
            ({"preferred_username": 5, "email": "bob@example.org"}, "bob"),
            ({"preferred_username": "山田", "name": "Taro Yamada"}, "taro-yamada"),
            ({"name": "42"}, "person"),
            ({}, "person"),
        )
        for claims, words in told:
            self.assertEqual(make_name(account_id, claims), f"{words}-00000000")

    @given(st.dictionaries(st.sampled_from(["preferred_username", "email", "name"]), st.text(max_size=300)))
    def test_any(self, claims: dict[str, Any]) -> None:
        """Each name is one that an account can have."""
        name = make_name(make_account_id("https://a.example", "u-1"), claims)
        self.assertTrue(re.fullmatch(NAME, name), name)


class RoleTests(SynchronousTestCase):
    """The role that a person has."""

    def test_groups(self) -> None:
        """The highest role of the listed groups counts, by their exact names."""
        told: tuple[tuple[Any, Role | None], ...] = (
            (["ops"], Role.APPROVER),
            (["boss", "watch", "ops"], Role.ADMINISTRATOR),
            (["watch", 5, None, ["boss"], {"boss": 1}], Role.VIEWER),
            ("ops", Role.APPROVER),
            (["OPS", "ops ", "/ops"], None),
            ([], None),
            (None, None),
            ({"ops": True}, None),
            (7, None),
        )
        for groups, role in told:
            self.assertIs(find_role(SETTINGS, {"groups": groups}), role, groups)
        self.assertIsNone(find_role(SETTINGS, {}))

    def test_place(self) -> None:
        """The groups are at a path, or in a claim whose name has dots."""
        path = evolve(SETTINGS, groups_claim="realm_access.roles")
        self.assertIs(find_role(path, {"realm_access": {"roles": ["ops"]}}), Role.APPROVER)
        self.assertIsNone(find_role(path, {"realm_access": ["ops"]}))
        url = evolve(SETTINGS, groups_claim="https://example.org/groups")
        self.assertIs(find_role(url, {"https://example.org/groups": ["ops"]}), Role.APPROVER)

    def test_address(self) -> None:
        """A listed address gives its role, whatever its case is; a group may give a higher one."""
        settings = evolve(SETTINGS, emails={"alice@example.org": Role.APPROVER})
        self.assertIs(find_role(settings, {**ADDRESS, "email": "Alice@Example.org"}), Role.APPROVER)
        self.assertIs(find_role(settings, {**ADDRESS, "groups": ["boss"]}), Role.ADMINISTRATOR)
        self.assertIsNone(find_role(settings, {**ADDRESS, "email": "bob@example.org"}))

    def test_unverified(self) -> None:
        """An address that the provider has not verified gives nothing."""
        settings = evolve(SETTINGS, emails={"alice@example.org": Role.APPROVER})
        for verified in (False, None, "true", 1, "false"):
            self.assertIsNone(find_role(settings, {**ADDRESS, "email_verified": verified}), verified)
        self.assertIsNone(find_role(settings, {"email": "alice@example.org"}))

    def test_kelvin(self) -> None:
        """Large letters are the same as small ones, but not the sign of a kelvin, which is a `k` in small letters."""
        settings = evolve(SETTINGS, emails={"mark@example.org": Role.ADMINISTRATOR})
        self.assertIs(find_role(settings, {**ADDRESS, "email": "Mark@Example.org"}), Role.ADMINISTRATOR)
        self.assertIsNone(find_role(settings, {**ADDRESS, "email": "mar\u212a@example.org"}))

    def test_domain(self) -> None:
        """With listed domains, everybody needs a verified address of one of them, whatever their groups are."""
        settings = evolve(SETTINGS, domains=("example.org",))
        told = {**ADDRESS, "groups": ["ops"]}
        self.assertIs(find_role(settings, told), Role.APPROVER)
        changes: tuple[Mapping[str, Any], ...] = (
            {"email": "alice@evil.example"},
            {"email": "alice@sub.example.org"},
            {"email": "alice@example.org@evil.example"},
            {"email_verified": False},
            {"email": None},
            {"hd": "evil.example"},
        )
        for changed in changes:
            self.assertIsNone(find_role(settings, {**told, **changed}), changed)

    def test_google(self) -> None:
        """With Google, the domain must manage the account: a private account may have any verified address."""
        settings = evolve(SETTINGS, issuer="https://accounts.google.com", domains=("example.org",))
        told = {**ADDRESS, "groups": ["ops"]}
        self.assertIsNone(find_role(settings, told))
        self.assertIs(find_role(settings, {**told, "hd": "example.org"}), Role.APPROVER)
