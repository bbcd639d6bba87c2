"""The digests of accounts in the vault's file."""

from __future__ import annotations

from aileron.model.errors import VaultDamaged, VaultLocked
from aileron.model.people import REMOVED, Owner
from aileron.vault import KdfParameters, stretch
from aileron.vault._format import VERSION, version_of

from .case import OpenCase

KEPT = {"per_1": "sha256:" + "ab" * 32}


class PeopleTests(OpenCase):
    """An open vault with the digest of an account."""

    def setUp(self) -> None:
        super().setUp()
        self.vault.keep_people(KEPT)

    def test_kept(self) -> None:
        """They last through a restart. Earlier releases refuse a file that has them."""
        self.assertEqual(self.unlocked().people(), KEPT)
        self.assertEqual(version_of(self.path.read_bytes()), VERSION)

    def test_none(self) -> None:
        """A vault without accounts is as it was."""
        self.vault.keep_people({})
        self.assertEqual(version_of(self.path.read_bytes()), 1)
        self.assertNotIn("people", self.path.read_text())

    def test_locked(self) -> None:
        """A lock changes none of them, and allows no change."""
        self.lock()
        self.assertEqual(self.vault.people(), KEPT)
        self.assertRaises(VaultLocked, self.vault.keep_people, {})

    def test_forged(self) -> None:
        """A file into which something else wrote a digest is refused."""
        text = self.path.read_text().replace("ab" * 32, "cd" * 32)
        self.path.write_text(text)
        self.assertRaises(VaultDamaged, self.unlocked)

    def test_removed(self) -> None:
        """An account is removed if it has no digest, or the mark of a person who may not come back."""
        self.vault.keep_people({**KEPT, "oidc_1": f"{REMOVED}alice"})
        found = [self.vault.is_removed(Owner(each, "alice")) for each in ("per_1", "per_2", "oidc_1")]
        self.assertEqual(found, [False, True, True])

    def test_void(self) -> None:
        """An older vault that was put back puts no account in force."""
        self.vault.void()
        self.assertEqual(self.vault.people(), {})


class StretchTests(OpenCase):
    """The key that is derived from a person's passphrase."""

    def test_passphrase(self) -> None:
        """It depends on the passphrase and on the salt."""
        one, other = KdfParameters(bytes(16)), KdfParameters(b"1" * 16)
        found = {stretch("alpha", one), stretch("alpha", other), stretch("beta", one)}
        self.assertEqual(len(found), 3)
        self.assertIn(stretch("alpha", one), found)
