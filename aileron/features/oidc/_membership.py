"""Derives from an ID token's claims who a person is here: the account's ID, its name, and the role."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from hashlib import sha256
from string import ascii_lowercase, ascii_uppercase

from aileron.base.json import JSON, canonical
from aileron.model.people import BY_PROVIDER, Role

from .values import OidcSettings

_GOOGLE = "https://accounts.google.com"
_ID_LETTERS, _SUFFIX_LETTERS, _MOST_LETTERS = 32, 8, 23
_OTHERS = re.compile(r"[^a-z0-9]+")
_NAMES = ("preferred_username", "email", "name")
_NOBODY = "person"
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def make_account_id(issuer: str, subject: str) -> str:
    """Return the ID of the account of a provider's subject."""
    return BY_PROVIDER + sha256(canonical([issuer, subject])).hexdigest()[:_ID_LETTERS]


def make_name(account_id: str, claims: Mapping[str, JSON]) -> str:
    """Return the name of a new account.

    It ends with a part of the account's ID. So nobody who may choose a name at the provider can choose a name here that
    an action's file names.
    """
    told = (claims.get(each) for each in _NAMES)
    words = (_make_words(each) for each in told if isinstance(each, str))
    suffix = account_id.removeprefix(BY_PROVIDER)[:_SUFFIX_LETTERS]
    # guard of sign-in: nobody chooses a name that a rule lists
    #    -> features.oidc.test_membership.NameTests.test_chosen
    return f"{next(filter(None, words), _NOBODY)}-{suffix}"


def _make_words(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text[:256].partition("@")[0]).encode("ascii", "ignore").decode().lower()
    return _OTHERS.sub("-", plain).strip("-").lstrip("0123456789-")[:_MOST_LETTERS].strip("-")


def find_role(settings: OidcSettings, claims: Mapping[str, JSON]) -> Role | None:
    """Return the highest role that the person's groups or verified address give, or None if they give none."""
    email = _read_email(claims)
    # guard of sign-in: only verified addresses of the listed domains
    #    -> features.oidc.test_membership.RoleTests.test_domain
    if settings.domains and not _is_of_domain(settings, claims, email):
        return None
    found = [settings.roles[each] for each in _read_groups(settings.groups_claim, claims) if each in settings.roles]
    if email in settings.emails:
        found.append(settings.emails[email])
    return max(found, key=tuple(Role).index, default=None)


def _read_email(claims: Mapping[str, JSON]) -> str:
    """Return the person's address in small letters, or an empty text unless the provider has verified it."""
    email = claims.get("email")
    # guard of sign-in: an address that nobody verified gives no role
    #    -> features.oidc.test_membership.RoleTests.test_unverified, instead if not isinstance(email, str)
    if not isinstance(email, str) or claims.get("email_verified") is not True:
        return ""
    # guard of sign-in: of two addresses that differ in more than A to Z, one does not pass for the other
    #    -> features.oidc.test_membership.RoleTests.test_kelvin, instead return email.lower()
    return email.translate(_SMALL)


def _is_of_domain(settings: OidcSettings, claims: Mapping[str, JSON], email: str) -> bool:
    """Return whether the address is in a listed domain.

    Google verifies addresses of any domain, also of one that has another owner by now. The claim C{hd} names the domain
    that manages the account, so with Google it must be there and listed.
    """
    manager = claims.get("hd", None if settings.issuer == _GOOGLE else settings.domains[0])
    return email.rpartition("@")[2] in settings.domains and manager in settings.domains


def _read_groups(name: str, claims: Mapping[str, JSON]) -> Iterator[str]:
    found: JSON = claims.get(name)
    if found is None:
        found = {**claims}
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    groups = found if isinstance(found, list) else [found]
    return (each for each in groups if isinstance(each, str))
