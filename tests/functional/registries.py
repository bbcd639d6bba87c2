"""Package registries and a git server on loopback, over TLS: what package managers need of them, as files."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any, cast

from attrs import frozen
from twisted.internet.interfaces import IOpenSSLServerConnectionCreator
from twisted.internet.ssl import PrivateCertificate
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.server import Site
from twisted.web.static import File

from tests.features.gateway.certificates import Authority
from tests.functional.loopback import LoopbackSite
from tests.functional.reactor import IKitReactor

_SAID = "installed by the proxy"


@frozen
class Registries:
    """A directory that is served.

    :ivar site: serves it.
    :ivar authority: a file with the certificate of whom clients are to trust.
    """

    site: LoopbackSite
    authority: Path

    @classmethod
    def listen(cls, reactor: IKitReactor, root: Path, authority: Path) -> Registries:
        """Serve the registries of one package, C{demo}, from C{root}."""
        root.mkdir()
        certificate: Any = PrivateCertificate.loadPEM(Authority.made().issue("localhost"))
        options = cast(IOpenSSLServerConnectionCreator, certificate.options())
        factory: Any = TLSMemoryBIOFactory(options, False, Site(File(str(root), defaultType="application/json")))
        site = LoopbackSite(reactor, factory, reactor.listenTCP(0, factory, interface="127.0.0.1"))
        authority.write_text(Authority.made().pem)
        made = cls(site, authority)
        made._fill(root)
        return made

    @property
    def host(self) -> str:
        """The host, with its port."""
        return f"localhost:{self.site.port}"

    @property
    def url(self) -> str:
        """Where it is."""
        return f"https://{self.host}"

    def environment(self) -> dict[str, str]:
        """The variables by which clients trust it, and ask for it by the proxy, though it is this machine."""
        names = ("GIT_SSL_CAINFO", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "CARGO_HTTP_CAINFO")
        return {
            **dict.fromkeys((*names, "SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(self.authority)),
            **dict.fromkeys(("no_proxy", "NO_PROXY", "npm_config_noproxy"), "127.0.0.1"),
        }

    def entry(self, project: Path) -> str:
        """The entry of C{egress.toml} that lets a project reach it, though it is this machine."""
        place, hosts = json.dumps(str(project)), json.dumps([self.host])
        return f"[[allow]]\nproject = {place}\nhosts = {hosts}\nprivate_network = true\n"

    def _fill(self, root: Path) -> None:
        self._git(root)
        self._pypi(root)
        self._npm(root)
        self._cargo(root)
        (root / "go" / "demo" / "@v").mkdir(parents=True)
        (root / "go" / "demo" / "@v" / "list").write_text(f"{_SAID} go\n")

    def _git(self, root: Path) -> None:
        """A repository by git's plain files."""
        work = root.parent / "upstream"
        work.mkdir()
        (work / "said.txt").write_text(_SAID)
        identity = {
            f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        environment = {**identity, "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(work)}
        for command in (
            ["init", "-q"],
            ["add", "said.txt"],
            ["commit", "-qm", "one"],
            ["clone", "-q", "--bare", ".", str(root / "demo.git")],
            ["-C", str(root / "demo.git"), "update-server-info"],
        ):
            subprocess.run(["git", *command], cwd=work, env=environment, check=True, capture_output=True)
        shutil.rmtree(work)

    def _pypi(self, root: Path) -> None:
        """A wheel and the page that names it (PEP 503)."""
        page = root / "simple" / "demo"
        page.mkdir(parents=True)
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as wheel:
            wheel.writestr("demo.py", f"SAID = {_SAID!r}\n")
            wheel.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
            wheel.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr("demo-1.0.dist-info/RECORD", "demo.py,,\n")
        (page / "demo-1.0-py3-none-any.whl").write_bytes(content.getvalue())
        (page / "index.html").write_text('<a href="demo-1.0-py3-none-any.whl">demo-1.0-py3-none-any.whl</a>')

    def _npm(self, root: Path) -> None:
        """A package and its document."""
        said = f"module.exports = {json.dumps(_SAID)}\n"
        archive = _tar("package", {"package.json": '{"name": "demo", "version": "1.0.0"}', "index.js": said})
        (root / "npm" / "files").mkdir(parents=True)
        (root / "npm" / "files" / "demo-1.0.0.tgz").write_bytes(archive)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode("ascii")
        dist = {"tarball": f"{self.url}/npm/files/demo-1.0.0.tgz", "integrity": integrity}
        version = {"name": "demo", "version": "1.0.0", "dist": dist}
        document = {"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        (root / "npm" / "demo").write_text(json.dumps(document))

    def _cargo(self, root: Path) -> None:
        """A crate and its sparse index."""
        manifest = '[package]\nname = "demo"\nversion = "1.0.0"\nedition = "2021"\n'
        archive = _tar("demo-1.0.0", {"Cargo.toml": manifest, "src/lib.rs": f'pub const SAID: &str = "{_SAID}";\n'})
        crates, index = root / "crates" / "demo" / "1.0.0", root / "index" / "de" / "mo"
        crates.mkdir(parents=True)
        index.mkdir(parents=True)
        (crates / "download").write_bytes(archive)
        (root / "index" / "config.json").write_text(json.dumps({"dl": f"{self.url}/crates"}))
        digest = hashlib.sha256(archive).hexdigest()
        entry = {"name": "demo", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}
        (index / "demo").write_text(json.dumps(entry) + "\n")


def _tar(directory: str, files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            about = tarfile.TarInfo(f"{directory}/{name}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
    return content.getvalue()
