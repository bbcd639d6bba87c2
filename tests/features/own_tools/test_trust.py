"""The files by which programs in a sandbox trust the authority of their session."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from ssl import PROTOCOL_TLS_CLIENT, SSLContext

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools.trust import ADDING, PLACE, REPLACING, SystemRoots, TrustFiles, lay_out_trust
from aileron.model.errors import NotFound
from tests.features.gateway.certificates import Authority
from tests.features.own_tools.tls import openssl_connects

SYSTEM, SESSION, COMPANY, EXTRA = (Authority.made(name) for name in ("system", "session", "company", "extra"))


class TrustTests(SynchronousTestCase):
    """A system with one authority, as Debian has it."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).resolve()
        self.certs = self.root / "etc" / "certs"
        self.certs.mkdir(parents=True)
        self.bundle = self.put("etc/certs/ca-certificates.crt", SYSTEM)
        (self.certs / "java").mkdir()
        (self.certs / "java" / "cacerts").write_bytes(b"a keystore")
        self.system = SystemRoots((str(self.bundle),), str(self.certs))
        self.said: list[str] = []

    def put(self, name: str, *authorities: Authority, before: str = "") -> Path:
        """Write a file with the certificates of these authorities."""
        path = self.root / name
        path.write_text(before + "".join(each.pem for each in authorities))
        return path

    @contextmanager
    def laid_out(self, **environment: str) -> Iterator[TrustFiles]:
        """Lay out the trust of a user with this environment."""
        with lay_out_trust(SESSION.pem, environment, self.said.append, self.system) as files:
            yield files

    def in_file(self, files: TrustFiles, variable: str) -> str:
        """Return the contents of the file that a variable names in the sandbox."""
        return self.outside(files.mounts, files.variables[variable]).read_text()

    def outside(self, mounts: Mapping[str, str], path: str) -> Path:
        """Return our path of a path in the sandbox."""
        place = max((each for each in mounts if path == each or path.startswith(f"{each}/")), key=len)
        return Path(mounts[place] + path.removeprefix(place))

    def test_bundle(self) -> None:
        """Files that replace a program's authorities have the system's and the session's; others have the session's."""
        with self.laid_out() as files:
            for name in REPLACING:
                self.assertEqual(self.in_file(files, name), SYSTEM.pem + SESSION.pem)
            for name in ADDING:
                self.assertEqual(self.in_file(files, name), SESSION.pem)
        self.assertEqual(self.said, [])

    def test_users_own(self) -> None:
        """What the user's variables name is trusted as before, and nothing but certificates is taken from there."""
        company, key = self.put("company.pem", COMPANY, before="a private key\n"), self.put("extra.pem", EXTRA)
        directory = self.root / "own"
        directory.mkdir()
        third = Authority.made("third")
        self.put("own/0.pem", third)
        with self.laid_out(
            REQUESTS_CA_BUNDLE=str(company), NODE_EXTRA_CA_CERTS=str(key), SSL_CERT_DIR=f"{directory}:/no/such"
        ) as files:
            whole = self.in_file(files, "SSL_CERT_FILE")
            for each in (SYSTEM, SESSION, COMPANY, EXTRA, third):
                self.assertEqual(whole.count(each.pem), 1)
            self.assertNotIn("private", whole)
            self.assertEqual(self.in_file(files, "DENO_CERT"), EXTRA.pem + SESSION.pem)
        (line,) = self.said
        self.assertIn("/no/such, which SSL_CERT_DIR names", line)

    def test_unusable(self) -> None:
        """A file that is missing, too large or no file is left out, which the user reads."""
        pipe, large = self.root / "pipe", self.root / "large"
        os.mkfifo(pipe)
        large.write_bytes(b"-" * (4 * 1024 * 1024 + 1))
        with self.laid_out(
            SSL_CERT_FILE=str(pipe), CURL_CA_BUNDLE=str(large), PIP_CERT=str(self.root / "missing")
        ) as files:
            self.assertEqual(self.in_file(files, "SSL_CERT_FILE"), SYSTEM.pem + SESSION.pem)
        for name, why in (("SSL_CERT_FILE", "no file"), ("CURL_CA_BUNDLE", "more than"), ("PIP_CERT", "No such file")):
            self.assertTrue(any(name in line and why in line for line in self.said), self.said)

    def test_directory(self) -> None:
        """OpenSSL finds the session's authority in the copy of the system's directory, which has the rest too."""
        server = self.root / "server.pem"
        server.write_bytes(SESSION.issue("api.example.com"))
        with self.laid_out() as files:
            for place in (str(self.certs), files.variables["SSL_CERT_DIR"]):
                directory = self.outside(files.mounts, place)
                client = SSLContext(PROTOCOL_TLS_CLIENT)
                client.load_verify_locations(capath=str(directory))
                self.assertTrue(openssl_connects(client, str(server), "api.example.com"))
                self.assertEqual((directory / "ca-certificates.crt").read_text(), SYSTEM.pem + SESSION.pem)
                self.assertEqual((directory / "java" / "cacerts").read_bytes(), b"a keystore")
        self.assertEqual(self.bundle.read_text(), SYSTEM.pem)

    def test_bundle_elsewhere(self) -> None:
        """A bundle that lies outside of the directory, as on Fedora, is covered at its own place."""
        elsewhere = self.root / "etc" / "extracted.pem"
        self.bundle.rename(elsewhere)
        self.bundle.symlink_to(elsewhere)
        self.system = evolve(self.system, bundles=(str(self.bundle), str(elsewhere), str(self.root / "missing")))
        with self.laid_out() as files:
            self.assertEqual(set(files.mounts), {PLACE, str(self.certs), str(elsewhere)})
            for path in (str(elsewhere), str(self.bundle)):
                self.assertEqual(self.outside(files.mounts, path).read_text(), SYSTEM.pem + SESSION.pem)

    def test_deleted(self) -> None:
        """The files are in a directory that only this user can read, and are deleted at the end."""
        with self.laid_out() as files:
            place = Path(files.mounts[PLACE])
            self.assertEqual(place.stat().st_mode & 0o777, 0o700)
        self.assertFalse(place.exists())

    def test_further_variables(self) -> None:
        """Variables of programs that trust the bundle without them are replaced only if the user has set them."""
        with self.laid_out(npm_config_cafile=str(self.put("npm.pem", COMPANY))) as files:
            self.assertIn(COMPANY.pem, self.in_file(files, "npm_config_cafile"))
            self.assertNotIn("NIX_SSL_CERT_FILE", files.variables)

    def test_no_roots(self) -> None:
        """Where the system has no authorities nothing is laid out: programs would trust no other host."""
        self.bundle.unlink()
        with self.assertRaises(NotFound):
            self.laid_out().__enter__()
