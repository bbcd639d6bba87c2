"""Uploads of agents' own tools: C{gh} publishes a release with a file, one approval at a time, each sent once."""

from __future__ import annotations

import json
from functools import partial
from hashlib import sha256
from pathlib import Path

import attrs

from tests.extent import seldom
from tests.functional import canary
from tests.functional.github import HOST, UPLOADS
from tests.functional.operated import PASSPHRASE
from tests.functional.reactor import until
from tests.functional.test_own_tools import TOKEN, OwnToolsTestCase

CONNECTOR = f"""
[connector]
name = "local://me/github-uploads"
version = "1.0.0"
base_url = {{ default = "https://{UPLOADS}", bindable = false }}
hosts = ["{UPLOADS}:443"]

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"

[own_tools]
service = "github-uploads"
variables = {{ GH_TOKEN = "aileron-placeholder" }}
headers = ["Authorization"]
errors = "message"
raw = "ask"

[operations.upload_asset]
method = "POST"
path = "/repos/${{in.owner}}/${{in.repo}}/releases/${{in.release}}/assets"
query = {{ name = "${{in.name}}" }}
file = {{ media_type = "application/octet-stream", base64 = "${{in.content}}" }}
effect = "write"
idempotent = false
destructive = false
"""
_RELEASE = "gh release create v1 file.bin -R acme/web -t One -n Notes"


class UploadTests(OwnToolsTestCase):
    """A user whose agent publishes at GitHub, which has a host of its own for uploads."""

    async def begin(self, hold_seconds: int = 2) -> None:
        """Have both services, each with the token."""
        await self.open_internet(self.github, HOST, UPLOADS)
        await self.operator("vault", "init")
        await self.set_config(f"own_tools: {{hold_seconds: {hold_seconds}}}\n")
        path = self.home.root / "github-uploads.toml"
        path.write_text(CONNECTOR)
        await self.operator("connector", "add", str(path), "--yes")
        for name in ("builtin://github", "local://me/github-uploads"):
            command = self.home.with_passphrase(PASSPHRASE, "aileron", "binding", "setup", name, "--secret-fd", "4")
            bound = attrs.evolve(command, feeds={**command.feeds, 4: TOKEN.encode()})
            self._expect(await self.run_command(bound), 0)
        for service in ("github", "github-uploads"):
            await self.operator("own-tools", "add", service, "--yes")

    @property
    def stored(self) -> list[Path]:
        """The stored contents of uploads."""
        directory = self.home.aileron / "tool-contents"
        return [*directory.iterdir()] if directory.exists() else []

    @seldom
    async def test_release(self) -> None:
        """Each run of the command stops at its next write, until all are approved; gh's clean-up is never a run."""
        await self.begin()
        inside = self.enter(services="github,github-uploads")
        content = bytes(range(256)) * (12 * 1024)
        (self.home.project / "file.bin").write_bytes(content)
        upload = f"POST /repos/acme/web/releases/1/assets {sha256(content).hexdigest()}"
        effects = ["POST /repos/acme/web/releases One", upload, "PATCH /repos/acme/web/releases/1"]
        for number, effect in enumerate(effects):
            parked = await inside.run(_RELEASE)
            self.assertNotEqual(parked.exit_code, 0, parked)
            (approval,) = await self.pending()
            self.assertIn("waits for the user's approval", parked.stderr, parked)
            shown = await self.operator("approval", "show", approval["id"])
            if effect == upload:
                for expected in (sha256(content).hexdigest(), str(len(content)), "application/octet-stream"):
                    self.assertIn(expected, shown.stdout)
                self.assertEqual([path.stat().st_size for path in self.stored], [len(content)])
            await self.approve(approval["id"])
            await until(self.reactor, partial(self.has_effects, number + 1), 30, effect)
        finished = await inside.run(_RELEASE)
        self.assertEqual((finished.exit_code, "releases/tag/v1" in finished.stdout), (0, True), finished)
        await inside.end()
        self.assertEqual(self.github.effects, effects)
        self.assertEqual(self.github.refused, [])
        runs = (await self.told("run", "list"))["items"]
        self.assertEqual((len(runs), {each["status"] for each in runs}), (3, {"completed"}))
        refused = [each for each in await self.audit() if each["type"] == "own_tools.refused"]
        self.assertIn("DELETE", {each["payload"]["method"] for each in refused})
        self.assertEqual(canary.in_files(self.home.aileron, TOKEN), [])
        self.assertNotIn(TOKEN, json.dumps(refused))
