"""A store on a server that is reached by TCP, with TLS and a password."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.certificates import Validity, make_authority, make_key, make_leaf
from aileron.base.unthreaded import UnthreadedPool
from aileron.model.errors import StoreUnavailable
from aileron.store import Tuning, read_address
from aileron.testing import unopened_store
from tests.extent import seldom
from tests.functional.ports import free_port
from tests.functional.postgresql import make_server

PASSWORD = "tls-password-4815162342"
_VALID = Validity(datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC) + timedelta(days=1))


class TlsTests(SynchronousTestCase):
    """The server's certificate and name are verified, and the password does not leave before."""

    def setUp(self) -> None:
        self.server, self.port = make_server(), free_port()
        self.home = Path(self.mktemp())
        self.home.mkdir()
        with self.server.connect() as admin:
            admin.execute(f"ALTER ROLE aileron PASSWORD '{PASSWORD}'")
        self.authority = self.certify()
        self.server.control("restart", settings=f"-c listen_addresses=127.0.0.1 -c port={self.port} -c ssl=on")
        self.addCleanup(self.server.control, "restart")

    def certify(self) -> Path:
        """Give the server a certificate for C{localhost}, and return the file with its authority."""
        key, leaf_key = make_key(), make_key()
        authority = make_authority("Tests", ["localhost"], key, _VALID)
        leaf = make_leaf("localhost", leaf_key, authority, key, _VALID)
        data = self.server.directory / "data"
        owner = data.stat()
        for name, content in {
            "server.crt": leaf.public_bytes(Encoding.PEM),
            "server.key": leaf_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "pg_hba.conf": b"local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n",
        }.items():
            path = data / name
            path.write_bytes(content)
            path.chmod(0o600)
            os.chown(path, owner.st_uid, owner.st_gid)
        found = self.home / "authority.pem"
        found.write_bytes(authority.public_bytes(Encoding.PEM))
        return found

    def begin(self, host: str, authority: Path, password: str = PASSWORD) -> Deferred[None]:
        """Open a store by TCP."""
        url = f"postgresql://aileron@{host}:{self.port}/postgres?sslmode=verify-full&sslrootcert={authority}"
        store = unopened_store(
            read_address(url, lambda: password), threads=lambda *_: UnthreadedPool(), tuning=Tuning(busy_seconds=0)
        )
        self.addCleanup(lambda: Deferred.fromCoroutine(store.close()))
        return Deferred.fromCoroutine(store.open())

    def refuse(self, host: str, authority: Path, password: str = PASSWORD) -> str:
        """The words of a refusal."""
        message = self.failureResultOf(self.begin(host, authority, password), StoreUnavailable).value.message
        self.assertNotIn(PASSWORD, message)
        return str(message)

    @seldom
    def test_verified(self) -> None:
        """The right authority and name are accepted; another name, another authority and a wrong password are not."""
        self.successResultOf(self.begin("localhost", self.authority))
        self.assertIn("certificate", self.refuse("127.0.0.1", self.authority))
        other = self.home / "other.pem"
        other.write_bytes(make_authority("Other", ["localhost"], make_key(), _VALID).public_bytes(Encoding.PEM))
        self.assertIn("certificate", self.refuse("localhost", other))
        self.assertIn("password", self.refuse("localhost", self.authority, "wrong"))
