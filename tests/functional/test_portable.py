"""Requests decided by the real ssh-keygen, with a key that a person holds elsewhere."""

import subprocess
from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread

from tests.functional.operated import GATED, OperatedTestCase


class PortableTests(OperatedTestCase):
    """A home with an enrolled key, and a request that is pending."""

    async def ssh(self, *words: str) -> None:
        """Run ssh-keygen or another program of OpenSSH in the directory of the keys."""

        def run() -> None:
            subprocess.run(words, cwd=self.keys, check=True, capture_output=True, timeout=30, stdin=subprocess.DEVNULL)

        await deferToThread(run)

    async def prepare(self, kind: str = "ed25519") -> str:
        """Enrol a key, and return the id of a request."""
        await self.furnish()
        self.keys = Path(self.mktemp()).absolute()
        self.keys.mkdir()
        await self.make_key("key", kind)
        session = await self.session()
        reply = await self.run_action(session, GATED)
        return str(reply.body["run_id"])

    async def make_key(self, name: str, kind: str = "ed25519") -> None:
        """Make a key and enrol it."""
        await self.ssh("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", name)
        await self.operator("approver", "add", "--plain", "--ssh-key", str(self.keys / f"{name}.pub"))

    async def sign(self, run_id: str, name: str = "key", *, purpose: str = "decision.v1@aileron", **more: Any) -> Path:
        """Export a request and sign it."""
        path = self.keys / f"{name}-{purpose}.txt"
        for each in (path, path.with_name(f"{path.name}.sig")):
            each.unlink(missing_ok=True)
        await self.command("approval", "export", run_id, "--output", str(path))
        await self.ssh("ssh-keygen", "-q", "-Y", "sign", "-n", purpose, "-f", name, *more.get("options", ()), str(path))
        return path

    async def test_decided(self) -> None:
        """A request is exported, signed, and imported without a passphrase; it is done once and proved."""
        run_id = await self.prepare()
        path = await self.sign(run_id)
        done = await self.command("approval", "import", str(path))
        self.assertIn(run_id, done.stdout)
        await self.posted()
        verified = await self.command("audit", "verify")
        self.assertIn("1", verified.stdout)
        records = await self.audit("--type", "approval.approved")
        self.assertEqual(records[0]["payload"]["signed"]["kind"], "ssh")
        again = await self.command("approval", "import", str(path), code=1)
        self.assertIn("used before", again.stderr)

    async def test_kinds(self) -> None:
        """Each kind of plain key signs as the real program makes it."""
        run_id = await self.prepare("ecdsa")
        path = await self.sign(run_id)
        await self.command("approval", "import", str(path))
        await self.posted()

    async def test_refused(self) -> None:
        """The real program's signatures for another purpose, with another hash, and by a removed key are refused."""
        run_id = await self.prepare()
        path = await self.sign(run_id, purpose="file")
        refused = await self.command("approval", "import", str(path), code=1)
        self.assertIn("not made for this purpose", refused.stderr)
        path = await self.sign(run_id, options=("-O", "hashalg=sha256"))
        refused = await self.command("approval", "import", str(path), code=1)
        self.assertIn("another hash", refused.stderr)
        path = await self.sign(run_id)
        (key,) = (await self.told("approver", "list"))["items"]
        await self.operator("approver", "remove", key["id"])
        refused = await self.command("approval", "import", str(path), code=1)
        self.assertIn("not enrolled", refused.stderr)
        self.assertEqual(self.workspace.messages, [])
