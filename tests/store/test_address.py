"""Which URLs of a database are accepted, and what a connection is made of."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import InvalidRequest
from aileron.store import read_address

_HERE = "/var/run/postgresql"


class AddressTests(SynchronousTestCase):
    def refused(self, url: str) -> str:
        return str(self.assertRaises(InvalidRequest, read_address, url).message)

    def test_parts(self) -> None:
        """The parts of a URL are those of the connection, decoded."""
        found = read_address("postgresql://a%40b@db.example.org:5433/ai%20leron?sslrootcert=/etc/ca.pem").parameters
        self.assertEqual(
            found,
            {
                "host": "db.example.org",
                "port": "5433",
                "user": "a@b",
                "dbname": "ai leron",
                "sslmode": "verify-full",
                "sslrootcert": "/etc/ca.pem",
            },
        )
        found = read_address(f"postgres:///aileron?host={_HERE}").parameters
        self.assertEqual(found, {"host": _HERE, "dbname": "aileron", "sslmode": "prefer"})

    def test_tls(self) -> None:
        """A server on another machine is verified, whatever the URL says; one on this machine may be without TLS."""
        for host in ("db.example.org", "10.0.0.1", "0.0.0.0", "localhost.example.org"):
            self.assertEqual(read_address(f"postgresql://{host}/a").parameters["sslmode"], "verify-full")
            self.assertIn("sslrootcert", read_address(f"postgresql://{host}/a").parameters)
            for mode in ("disable", "allow", "prefer", "require", "Verify-Full", "x"):
                self.assertIn("sslmode", self.refused(f"postgresql://{host}/a?sslmode={mode}"))
            self.assertEqual(
                read_address(f"postgresql://{host}/a?sslmode=verify-ca").parameters["sslmode"], "verify-ca"
            )
        for host in ("localhost", "127.0.0.1", "[::1]"):
            self.assertEqual(read_address(f"postgresql://{host}/a?sslmode=disable").parameters["sslmode"], "disable")

    def test_refused(self) -> None:
        """No password, no unknown or repeated parameter, no second host, no other form."""
        self.assertNotIn("canary", self.refused("postgresql://u:canary@h/a"))
        for url in (
            "",
            "sqlite:///a",
            "mysql://h/a",
            "postgresql://h",
            "postgresql://h/",
            "postgresql:///a",
            "postgresql://h/a/b",
            "postgresql://h:99999/a",
            "postgresql://h/a#b",
            "postgresql://h,i/a",
            "postgresql://h/a?password=x",
            "postgresql://h/a?options=-c%20x",
            "postgresql://h/a?service=x",
            "postgresql://h/a?sslcert=/a&sslcert=/b",
            "postgresql://h/a?sslcert",
            "postgresql://h/a?sslcert=",
            "postgresql:///a?host=/x,/y",
            "postgresql://h/a%00",
            "postgresql://h/" + "a" * 3000,
        ):
            self.refused(url)

    def test_password(self) -> None:
        """The password is asked for each time, and shows nowhere."""
        passwords = iter(("canary-1", "canary-2"))
        address = read_address("postgresql://h/a", lambda: next(passwords))
        self.assertEqual(address.with_password()["password"], "canary-1")
        self.assertEqual(address.with_password()["password"], "canary-2")
        self.assertNotIn("password", address.parameters)
        self.assertNotIn("canary", repr(address))
