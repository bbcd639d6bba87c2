"""Agents publish packages with their own npm, twine and cargo, without a token; each publish is shown and approved."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import attrs
from twisted.internet.interfaces import IProtocolFactory
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.extent import seldom
from tests.functional import canary, command_lines
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.operated import PASSPHRASE
from tests.functional.reactor import until
from tests.functional.test_own_tools import Inside, OwnToolsTestCase

TOKEN = "npm_canary_2207716"
USERS_TOKEN = "npm_canary_of_the_user_31"
_NPM_HOST, _CRATES, _CRATES_INDEX, _CRATES_FILES = (
    *("registry.npmjs.org", "crates.io", "index.crates.io", "static.crates.io"),
)
_PYPI = ("upload.pypi.org", "pypi.org", "files.pythonhosted.org")
_NPM, _CARGO = (shutil.which(name) for name in ("npm", "cargo"))
_TWINE = command_lines.program("twine")
_PUBLISH = "cd package && npm_config_cache=/tmp/npm npm publish 2>&1"


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a C{.tar.gz}."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


class Registries(Resource):
    """All three registries, each with one package: C{acme-app} 1.2.0.

    :ivar effects: what was published, in order.
    :ivar refused: requests with another credential.
    :ivar lags: whether what was published is not listed yet.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.effects: list[str] = []
        self.refused: list[str] = []
        self.lags = True

    def render(self, request: Request) -> Any:
        """Answer one request."""
        host = (request.getHeader("Host") or "").partition(":")[0]
        method, path = request.method.decode(), request.path.decode()
        assert request.content is not None
        body = request.content.read()
        request.setHeader("Content-Type", "application/json")
        if host == _NPM_HOST:
            return self._answer_npm(request, method, path, body)
        return self._answer_others(request, host, method, path, body)

    def _answer_npm(self, request: Request, method: str, path: str, body: bytes) -> bytes:
        if request.getHeader("Authorization") != f"Bearer {TOKEN}":
            self.refused.append(f"{method} {path}")
            request.setResponseCode(401)
            return b'{"error": "Unauthorized"}'
        if method == "PUT":
            published = json.loads(body)
            self.effects.append(f"{path} {list(published['versions'])} {published['dist-tags']}")
            request.setResponseCode(201)
            return b'{"ok": "created new package", "success": true}'
        if path == "/acme-app/-/acme-app-1.2.0.tgz":
            return _OLD
        manifest = {
            "name": "acme-app",
            "version": "1.2.0",
            "dist": {"tarball": f"https://{_NPM_HOST}/acme-app/-/acme-app-1.2.0.tgz"},
        }
        if path == "/acme-app/latest":
            return json.dumps(manifest).encode()
        versions: dict[str, Any] = {"1.2.0": manifest}
        if self.effects and not self.lags:
            versions["1.3.0"] = {**manifest, "version": "1.3.0"}
        if path == "/acme-app":
            return json.dumps({"name": "acme-app", "dist-tags": {"latest": "1.2.0"}, "versions": versions}).encode()
        request.setResponseCode(404)
        return b'{"error": "Not found"}'

    def _answer_others(self, request: Request, host: str, method: str, path: str, body: bytes) -> bytes:
        if method in ("PUT", "POST"):
            given = request.getHeader("Authorization") or ""
            pair = base64.b64encode(f"__token__:{TOKEN}".encode()).decode()
            if given not in (TOKEN, f"Basic {pair}"):
                self.refused.append(f"{method} {path}")
            self.effects.append(f"{method} {path} {hashlib.sha256(body).hexdigest()}")
            return b'{"warnings": {"invalid_categories": [], "invalid_badges": [], "other": []}}'
        if (host, path) == (_CRATES_INDEX, "/config.json"):
            return json.dumps({"dl": f"https://{_CRATES_FILES}/crates", "api": f"https://{_CRATES}"}).encode()
        if (host, path) == (_CRATES_INDEX, "/ac/me/acme-app") and self.effects:
            listed = {"name": "acme-app", "vers": "1.3.0", "deps": [], "features": {}, "yanked": False}
            return json.dumps({**listed, "cksum": "0" * 64}).encode()
        request.setResponseCode(404)
        return b"{}"


_OLD = pack(
    {
        "package/package.json": b'{"name": "acme-app", "version": "1.2.0"}\n',
        "package/index.js": b"module.exports = 1;\n",
    }
)


class PublishingTestCase(OwnToolsTestCase):
    """A user whose agent publishes to a registry, which is a double."""

    skip: str | None = None
    registry = "npm"
    hosts: tuple[str, ...] = (_NPM_HOST,)
    secret = TOKEN

    async def begin(self, hold_seconds: int = 2) -> None:
        """Have a daemon, the registry's token bound, and the service added."""
        self.registries = Registries()
        site = cast(IProtocolFactory, Site(self.registries))
        self.behind = (await Internet.open(self, self.hosts, {HTTPS: site})).prefix
        await self.operator("vault", "init")
        await self.set_config(f"own_tools: {{hold_seconds: {hold_seconds}}}\n")
        words = ("binding", "setup", f"builtin://{self.registry}", "--secret-fd", "4")
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
        bound = attrs.evolve(command, feeds={**command.feeds, 4: self.secret.encode()})
        self._expect(await self.run_command(bound), 0)
        await self.operator("own-tools", "add", self.registry, "--yes")

    def enter(self, *options: str, **environment: str) -> Inside:
        """Launch the agent."""
        inside = ("aileron", "launch", "--sandbox", "--own-tools", self.registry, *options, "opencode")
        command, programs = self.home.script(*inside), self.write_agent()
        theirs = {"PATH": f"{programs}:{command.environment['PATH']}", **environment}
        return Inside(self, self.start(attrs.evolve(command, environment={**command.environment, **theirs})))

    def put(self, files: Mapping[str, str]) -> None:
        """Put files into the project."""
        for name, content in files.items():
            path = self.home.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def is_published(self, count: int = 1) -> bool:
        """Return whether so many versions were published."""
        return len(self.registries.effects) >= count

    async def park(self, inside: Inside, script: str) -> tuple[str, Mapping[str, Any], str]:
        """Run a command that publishes, and return what it said, its approval, and what is shown of that."""
        parked = await inside.run(script)
        self.assertIn("waits for", parked.stdout.lower(), parked)
        self.assertNotEqual(parked.exit_code, 0, parked)
        (approval,) = await self.pending()
        self.assertEqual(self.registries.effects, [])
        return parked.stdout + parked.stderr, approval, json.dumps(await self.told("approval", "show", approval["id"]))


class NpmTests(PublishingTestCase):
    """npm."""

    skip = None if _NPM else "npm is not installed"

    async def test_publish(self) -> None:
        """A publish waits, and is shown with what changed; once approved it is done, and repeated commands do nothing.

        The user's own token is not in the sandbox.
        """
        (self.home.user / ".npmrc").write_text(f"//{_NPM_HOST}/:_authToken={USERS_TOKEN}\nfund=false\n")
        await self.begin()
        self.put(
            {
                "package/package.json": json.dumps({"name": "acme-app", "version": "1.3.0"}),
                "package/index.js": "module.exports = 2;\n",
                "package/new.js": "// new\n",
            }
        )
        inside = self.enter()
        looked = await inside.run(f"cat {self.home.user}/.npmrc $NPM_CONFIG_USERCONFIG; env")
        self.assertIn(f"fund=false\n//{_NPM_HOST}/:_authToken=aileron-placeholder\n", looked.stdout)
        self.assertNotIn(USERS_TOKEN, looked.stdout)
        said, approval, shown = await self.park(inside, _PUBLISH)
        self.assertIn("waits for the user's approval: http://", said)
        self.assertIn(f"/approvals/{approval['id']}", said)
        for expected in (
            f"Publish acme-app 1.3.0 to {_NPM_HOST}",
            "package/new.js (7 bytes)",
            "-module.exports = 1;\\n+module.exports = 2;",
            "new.js | +1 -0",
            "Tag: latest",
        ):
            self.assertIn(expected, shown)
        await self.approve(approval["id"])
        await until(self.reactor, self.is_published, 30, "the effect")
        repeated = await inside.run(_PUBLISH)
        self.assertEqual((repeated.exit_code, "+ acme-app@1.3.0" in repeated.stdout), (0, True), repeated)
        self.registries.lags = False
        again = await inside.run(_PUBLISH)
        self.assertIn("cannot publish over the previously published versions", again.stdout)
        await inside.end()
        self.assertEqual(self.registries.effects, ["/acme-app ['1.3.0'] {'latest': '1.3.0'}"])
        self.assertEqual(self.registries.refused, [])
        self.assertEqual(canary.in_files(self.home.aileron, TOKEN), [])


class TwineTests(PublishingTestCase):
    """twine."""

    registry, hosts, secret = "pypi", _PYPI, f"__token__:{TOKEN}"
    skip = None if _TWINE.exists() else "twine is not installed"

    @seldom
    async def test_upload(self) -> None:
        """An upload waits, and twine says where; once approved it is done, and the repetition is told so."""
        await self.begin()
        stem = "acme_app-1.3.0"
        metadata = b"Metadata-Version: 2.1\nName: acme-app\nVersion: 1.3.0\n"
        (self.home.project / f"{stem}.tar.gz").write_bytes(
            pack({f"{stem}/PKG-INFO": metadata, f"{stem}/setup.py": b""})
        )
        inside = self.enter()
        upload = f"{_TWINE} upload --non-interactive --disable-progress-bar {stem}.tar.gz 2>&1"
        said, approval, shown = await self.park(inside, upload)
        self.assertIn(f"/approvals/{approval['id']}", "".join(said.split()))
        for expected in (f"Publish acme-app 1.3.0 to {self.hosts[0]}", f"{stem}/PKG-INFO ({len(metadata)} bytes)"):
            self.assertIn(expected, shown)
        await self.approve(approval["id"])
        await until(self.reactor, self.is_published, 30, "the effect")
        repeated = await inside.run(upload)
        self.assertEqual(repeated.exit_code, 0, repeated)
        await inside.end()
        self.assertEqual((len(self.registries.effects), self.registries.refused), (1, []))


class CargoTests(PublishingTestCase):
    """cargo."""

    registry, hosts = "crates", (_CRATES, _CRATES_INDEX, _CRATES_FILES)
    skip = None if _CARGO else "cargo is not installed"

    @seldom
    async def test_publish(self) -> None:
        """A publish waits, and cargo says where; once approved it is done, and cargo finds it when it runs again."""
        await self.begin()
        manifest = '[package]\nname = "acme-app"\nversion = "1.3.0"\ndescription = "x"\nlicense = "MIT"\n'
        self.put({"crate/Cargo.toml": manifest, "crate/src/lib.rs": "// new\n"})
        inside = self.enter("--egress", f"{_CRATES_INDEX},{_CRATES_FILES}")
        rustup = Path(os.environ.get("RUSTUP_HOME", Path.home() / ".rustup"))
        environment = f"CARGO_HOME=/tmp/cargo CARGO_TARGET_DIR=/tmp/target RUSTUP_HOME={rustup}"
        publish = f"cd crate && {environment} {_CARGO} publish --no-verify --allow-dirty 2>&1"
        said, approval, shown = await self.park(inside, publish)
        self.assertIn(f"/approvals/{approval['id']}", said)
        for expected in (f"Publish acme-app 1.3.0 to {_CRATES}", "acme-app-1.3.0/src/lib.rs (7 bytes)"):
            self.assertIn(expected, shown)
        await self.approve(approval["id"])
        await until(self.reactor, self.is_published, 30, "the effect")
        repeated = await inside.run(publish)
        self.assertIn("already exists", repeated.stdout)
        await inside.end()
        self.assertEqual((len(self.registries.effects), self.registries.refused), (1, []))
