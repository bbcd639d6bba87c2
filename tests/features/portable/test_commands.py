"""The commands of portable decisions: what they write, what they bring, and what they refuse before they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aileron.cli import qr
from aileron.testing import SoftwareSshKey
from tests.cli.daemon import RUN, CommandCase, approval

TEXT = "Approve this?\nThe decision:\n[1]\n"
SIGNATURE = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"
EXPORT = f"/v1/action-approvals/{RUN}/export"
KEYS = "/v1/operator/approvers"


class PortableCommandCase(CommandCase):
    """A daemon that exports one request."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("ail_l_local")
        self.site.answer("GET", f"/v1/action-approvals/{RUN}", approval())
        exported = {"text": TEXT, "digest": "sha256:0", "until": "2030-01-01T00:00:00.000000Z"}
        self.site.answer("POST", EXPORT, exported)
        self.site.answer("POST", "/v1/signed-decisions", approval())
        self.directory = Path(self.mktemp())
        self.directory.mkdir()

    def put(self, name: str, text: str) -> Path:
        """Write a file."""
        path = self.directory / name
        path.write_text(text)
        return path


class ExportTests(PortableCommandCase):
    """C{aileron approval export}."""

    def test_text(self) -> None:
        """The text is printed to the byte, and no passphrase is asked for."""
        code, out, err = self.command("approval", "export", RUN, "--deny", "--reason", "no")
        self.assertEqual((code, out, err), (0, TEXT, ""))
        self.assertEqual(self.site.bodies("POST", EXPORT), [{"approved": False, "reason": "no", "short": False}])

    def test_file(self) -> None:
        """A new file is written, only for its owner; one that is there stays."""
        path = self.directory / "request.txt"
        code, out, _ = self.command("approval", "export", RUN, "--output", str(path))
        self.assertEqual((code, path.read_text(), path.stat().st_mode & 0o777), (0, TEXT, 0o600))
        self.assertIn("ssh-keygen -Y sign -n decision.v1@aileron", out)
        path.write_text("mine")
        code, _, err = self.command("approval", "export", RUN, "--output", str(path))
        self.assertNotEqual(code, 0)
        self.assertIn("left as it is", err)
        self.assertEqual(path.read_text(), "mine")

    def test_code(self) -> None:
        """A QR code is drawn; of a request that is too long for the terminal its short form, and that is said."""
        code, out, err = self.command("approval", "export", RUN, "--qr")
        self.assertEqual((code, err), (0, ""))
        self.assertGreater(out.count("\n"), 10)
        self.site.answer("POST", EXPORT, {"text": "x" * 600, "digest": "sha256:0", "until": "2030-01-01T00:00:00Z"})
        code, _, err = self.command("approval", "export", RUN, "--qr")
        self.assertNotEqual(code, 0)
        self.assertIn("no details", err)
        self.assertIn("wider than this terminal", err)
        self.assertEqual([each["short"] for each in self.site.bodies("POST", EXPORT)], [False, False, True])

    def test_code_needs_the_library(self) -> None:
        """Without the library nothing is exported."""
        self.patch(qr, "find_package", lambda _: None)
        code, _, err = self.command("approval", "export", RUN, "--qr")
        self.assertNotEqual(code, 0)
        self.assertIn("extra `phone`", err)
        self.assertEqual(self.site.bodies("POST", EXPORT), [])


class ImportTests(PortableCommandCase):
    """C{aileron approval import}."""

    def imported(self, *words: str) -> Any:
        """What was sent."""
        code, _, err = self.command("approval", "import", *words)
        self.assertEqual(code, 0, err)
        return self.site.bodies("POST", "/v1/signed-decisions")[-1]

    def test_beside(self) -> None:
        """The signature is found beside the file, or at its end."""
        path = self.put("request.txt", TEXT)
        self.put("request.txt.sig", SIGNATURE)
        told = {"text": TEXT, "signature": SIGNATURE}
        self.assertEqual(self.imported(str(path)), told)
        self.assertEqual(self.imported(str(self.put("both.txt", TEXT + SIGNATURE))), told)

    def test_refused(self) -> None:
        """What has no signature, is no text, or is too large is not sent."""
        binary = self.directory / "binary"
        binary.write_bytes(b"\xff")
        paths = [self.put("bare", TEXT), self.put("large", "x" * 600_000), binary, self.directory / "none"]
        for path in paths:
            code, _, err = self.command("approval", "import", str(path))
            self.assertNotEqual(code, 0, path)
            self.assertIn("Nothing was decided", err)
        self.assertEqual(self.site.bodies("POST", "/v1/signed-decisions"), [])


class ApproverTests(PortableCommandCase):
    """C{aileron approver}."""

    def setUp(self) -> None:
        super().setUp()
        self.key = SoftwareSshKey(application="ssh:")
        self.told = {
            "id": "key_1",
            "name": "mine",
            "kind": self.key.kind,
            "fingerprint": "SHA256:x",
            "hardware": True,
            "made_at": "2026-01-01T00:00:00.000000Z",
        }
        self.site.answer("POST", KEYS, self.told)
        self.site.answer("GET", KEYS, {"items": [self.told]})
        self.site.answer("DELETE", f"{KEYS}/key_1", self.told)

    def test_add(self) -> None:
        """A security key is added under its comment; a plain key only where that is said."""
        path = self.put("k.pub", f"{self.key.public_key} me@here\n")
        code, out, err = self.as_operator("approver", "add", "--ssh-key", str(path))
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Added mine", out)
        plain = SoftwareSshKey().public_key
        path = self.put("plain.pub", plain)
        code, _, err = self.as_operator("approver", "add", "--ssh-key", str(path))
        self.assertNotEqual(code, 0)
        self.assertIn("--plain", err)
        self.assertEqual(self.as_operator("approver", "add", "--ssh-key", str(path), "--plain")[0], 0)
        self.assertEqual(
            self.site.bodies("POST", KEYS),
            [{"name": "me@here", "public_key": self.key.public_key}, {"name": "plain", "public_key": plain}],
        )

    def test_refused(self) -> None:
        """A private key, and what is no key, is not sent."""
        for text in ("-----BEGIN OPENSSH PRIVATE KEY-----\n", "ssh-rsa AAAA", ""):
            code, _, err = self.as_operator("approver", "add", "--ssh-key", str(self.put("k", text)))
            self.assertNotEqual(code, 0)
            self.assertIn("Nothing was added", err)
        self.assertEqual(self.site.bodies("POST", KEYS), [])

    def test_list(self) -> None:
        """Keys are listed without a passphrase, and removed with one."""
        code, out, _ = self.command("approver", "list")
        self.assertEqual(code, 0)
        self.assertIn("key_1", out)
        code, out, _ = self.as_operator("approver", "remove", "key_1")
        self.assertEqual((code, "Removed mine" in out), (0, True))
        code, _, err = self.command("approver", "remove", "key_2")
        self.assertNotEqual(code, 0)
        self.assertIn("There is no SSH key key_2", err)
