"""The transit engine of HashiCorp Vault or OpenBao as a key source, against a double of the engine."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.blocking import ServiceReply, ServiceSilent
from aileron.cli.context import CliContext
from aileron.features.key_sources.transit.client import TransitClient
from aileron.features.key_sources.transit.secret_file import read_secret
from aileron.features.key_sources.transit.settings import TransitLogin, TransitSettings, read_settings
from aileron.features.key_sources.transit.source import TransitSource
from aileron.home.paths import Home
from aileron.model.errors import AileronError, Forbidden, InvalidRequest, NetworkError
from aileron.model.interfaces.vault import IKeySource
from aileron.model.vault import KeySource, KeySourceKind
from aileron.testing import KeySourceContract
from aileron.vault import DataKey, keys
from aileron.vault._vault_file import VaultFile
from tests.cli.daemon import CommandCase
from tests.vault.case import NOON, PASSPHRASE, OpenCase

from .transit_double import (
    ENCRYPT_TOKEN,
    JWT,
    KEY_NAME,
    ROLE_ID,
    SECRET_ID,
    TOKEN,
    URL,
    TransitDouble,
    page,
    reply,
)

SECRET = bytes(range(32))
SEALED = f"vault:v1:{base64.b64encode(bytes(60)).decode()}"


def write_secret(directory: Path, text: str = TOKEN, name: str = "token") -> Path:
    """Write a file that only this user can read."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return path


class SecretFileTests(SynchronousTestCase):
    """The file with a token."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.path = write_secret(self.directory)

    def test_read(self) -> None:
        """The line is returned without its end, also through a link; a missing or empty file may be written yet."""
        link = self.directory / "link"
        link.symlink_to(self.path)
        for path in (self.path, link):
            self.assertEqual(read_secret(path), TOKEN)
        self.assertRaises(NetworkError, read_secret, self.directory / "later")
        self.path.write_text("\n")
        self.assertRaises(NetworkError, read_secret, self.path)

    def test_open_to_others(self) -> None:
        """A file that others can read or write is refused, and so is what is no file."""
        for mode in (0o640, 0o604, 0o620, 0o700):
            self.path.chmod(mode)
            if os.geteuid() == 0 and mode == 0o640:
                self.assertEqual(read_secret(self.path), TOKEN)
            else:
                self.assertRaises(Forbidden, read_secret, self.path)
        self.assertRaises(Forbidden, read_secret, self.directory)
        os.mkfifo(self.directory / "queue", 0o600)
        self.assertRaises(Forbidden, read_secret, self.directory / "queue")

    def test_of_another_user(self) -> None:
        """A file that belongs neither to root nor to this user is refused."""
        other = os.geteuid() + 1
        if os.geteuid() == 0:
            os.chown(self.path, other, -1)
        else:
            self.patch(os, "geteuid", lambda: other)
        self.assertRaises(Forbidden, read_secret, self.path)

    def test_line(self) -> None:
        """What is no single line of visible ASCII is refused, without being repeated."""
        for text in ("a b", "canary\nX-Other: 1", "canary\r\nb", "ä", "x" * 20_000):
            self.path.write_text(text)
            error = self.assertRaises(InvalidRequest, read_secret, self.path)
            assert isinstance(error, InvalidRequest)
            self.assertNotIn("canary", error.message)


class SettingsTests(SynchronousTestCase):
    """The settings in the vault's file."""

    def test_stored(self) -> None:
        """What is stored is read again; a part that is empty is not stored."""
        whole = TransitSettings(
            URL,
            KEY_NAME,
            "/run/id",
            TransitLogin.APPROLE,
            "team/transit",
            "ns1",
            "/etc/ca.pem",
            ROLE_ID,
            "roles",
            SEALED,
        )
        plain = TransitSettings(URL, KEY_NAME, "/run/token", ciphertext=SEALED)
        for each in (whole, plain):
            self.assertEqual(read_settings(each.to_stored()), each)
        self.assertEqual(set(plain.to_stored()), {"url", "key", "secret_file", "login", "mount", "ciphertext"})
        self.assertEqual(plain.server, "vault.example.org:8200")

    def test_malformed(self) -> None:
        """Unknown, missing and malformed settings are refused, and plain HTTP to another machine."""
        stored = TransitSettings(URL, KEY_NAME, "/run/token", ciphertext=SEALED).to_stored()
        for changed in (
            {"url": "http://vault.example.org"},
            {"url": "https://me:pw@vault.example.org"},
            {"key": "a/b"},
            {"key": ""},
            {"ciphertext": ""},
            {"ciphertext": "vault:v0:AAAA"},
            {"login": "ldap"},
            {"role": "r"},
            {"login": "approle"},
            {"other": "x"},
        ):
            self.assertRaises(ValueError, read_settings, {**stored, **changed})
        self.assertRaises(ValueError, read_settings, {"url": URL})
        TransitSettings("http://127.0.0.1:8200", KEY_NAME, "/run/token")

    def test_paths(self) -> None:
        """No path leads elsewhere."""
        plain = TransitSettings(URL, KEY_NAME, "/run/token")
        for name, text in (
            ("mount", ""),
            ("mount", "../sys"),
            ("mount", "a//b"),
            ("mount", "a/"),
            ("mount", "a?b"),
            ("login_mount", "a/../b"),
            ("namespace", "a\r\nb"),
            ("secret_file", "token"),
            ("secret_file", ""),
            ("secret_file", "/run/../etc/shadow"),
            ("ca_file", "ca.pem"),
        ):
            self.assertRaises(ValueError, lambda name=name, text=text: evolve(plain, **{name: text}))


class TransitCase(SynchronousTestCase):
    """A double, and a client with the daemons' token."""

    def setUp(self) -> None:
        self.double = TransitDouble()
        self.directory = Path(self.mktemp()).absolute()
        self.settings = TransitSettings(URL, KEY_NAME, str(write_secret(self.directory)))
        self.settings = evolve(self.settings, ciphertext=self.client().encrypt(SECRET, ENCRYPT_TOKEN))
        self.double.log.clear()

    def client(self, vault: str = "V1") -> TransitClient:
        """Return a client of the double."""
        return TransitClient(self.settings, vault, self.double.post)

    def decrypt(self, vault: str = "V1") -> bytes:
        """Return what the double decrypts with the token of the file."""
        client = self.client(vault)
        return client.decrypt(client.log_in())

    def fails(self, kind: type[AileronError], word: str) -> None:
        """Check that nothing is decrypted, and that the reason has no secret."""
        error = self.assertRaises(kind, self.decrypt)
        assert isinstance(error, AileronError)
        self.assertIn(word, error.message)
        self.assertTrue(error.message.endswith("."))
        for secret in (TOKEN, SECRET.hex(), base64.b64encode(SECRET).decode()):
            self.assertNotIn(secret, repr(error))
        self.assertNotIn(TOKEN, repr(self.client()))


class DecryptTests(TransitCase):
    """What the engine answers, and what becomes of it."""

    def test_decrypted(self) -> None:
        """The token is in a header, and neither it nor the ciphertext is in the path."""
        self.settings = evolve(self.settings, namespace="team")
        self.assertEqual(self.decrypt(), SECRET)
        ((path, headers),) = self.double.log
        self.assertEqual(path, f"/v1/transit/decrypt/{KEY_NAME}")
        self.assertEqual((headers["X-Vault-Token"], headers["X-Vault-Namespace"]), (TOKEN, "team"))

    def test_other_vault(self) -> None:
        """A ciphertext that was made for another vault is refused by the engine."""
        self.assertRaises(InvalidRequest, self.decrypt, "V2")

    def test_tampered(self) -> None:
        """A changed ciphertext, another key and another mount are refused for good."""
        good = self.settings
        last = good.ciphertext.removesuffix("==").removesuffix("=")[:-2]
        for changed in ({"ciphertext": SEALED}, {"ciphertext": f"{last}AA"}, {"key": "other"}, {"mount": "other"}):
            self.settings = evolve(good, **changed)
            self.fails(InvalidRequest, "transit server vault.example.org:8200")

    def test_expired(self) -> None:
        """A token that has expired, or may not decrypt, is refused for good; the file is read at each use."""
        self.double.tokens[TOKEN] = ()
        self.fails(Forbidden, "expired")
        self.double.tokens["hvs.new"] = ("decrypt",)
        write_secret(self.directory, "hvs.new")
        self.assertEqual(self.decrypt(), SECRET)

    def test_away(self) -> None:
        """A sealed, standby or busy server, and one that does not answer, may answer later; then it does."""
        for status in (412, 429, 472, 473, 500, 502, 503, 504, 418):
            self.double.status = status
            self.fails(NetworkError, f"status {status}")
        self.double.status = None
        self.double.replies = [ServiceSilent("did not answer within 5 seconds")]
        self.fails(NetworkError, "did not answer within 5 seconds")
        self.assertEqual(self.decrypt(), SECRET)

    def test_redirect(self) -> None:
        """A redirect is not followed: there is one request, and the token goes nowhere else."""
        for status in (301, 302, 307, 308):
            self.double.log.clear()
            self.double.replies = [reply({"data": {"plaintext": base64.b64encode(SECRET).decode()}}, status)]
            self.fails(NetworkError, "redirects")
            self.assertEqual(len(self.double.log), 1)

    def test_no_json(self) -> None:
        """A page, or JSON of another form, is no answer."""
        plain = base64.b64encode(SECRET).decode()
        good = json.dumps({"data": {"plaintext": plain}}).encode()
        for answer in (
            page(),
            ServiceReply(200, "text/html", good),
            ServiceReply(200, "application/json", b"{"),
            ServiceReply(200, "application/json", b'{"data": {"plaintext": "AA=="}, "data": {}}'),
            reply([]),
            reply({"data": []}),
            reply({"data": {"plaintext": 1}}),
            reply({"data": {"plaintext": "no base64!"}}),
            reply({"data": {"plaintext": plain + "\n"}}),
        ):
            self.double.replies = [answer]
            self.fails(NetworkError, "no valid answer")

    def test_other_length(self) -> None:
        """A plaintext of another length is not this vault's secret."""
        for data in (b"", SECRET[:31], SECRET + b"x"):
            self.double.replies = [reply({"data": {"plaintext": base64.b64encode(data).decode()}})]
            self.fails(InvalidRequest, "something else")


class LoginTests(TransitCase):
    """The ways to a token."""

    def test_roles(self) -> None:
        """AppRole and Kubernetes log in with the secret of the file, at the usual path or another one."""
        for login, secret in ((TransitLogin.APPROLE, SECRET_ID), (TransitLogin.KUBERNETES, JWT)):
            self.double.log.clear()
            file = write_secret(self.directory, secret, login)
            self.settings = evolve(self.settings, login=login, role=ROLE_ID, secret_file=str(file))
            self.assertEqual(self.decrypt(), SECRET)
            paths = [path for path, _ in self.double.log]
            self.assertEqual(paths, [f"/v1/auth/{login}/login", f"/v1/transit/decrypt/{KEY_NAME}"])
            self.assertNotIn("X-Vault-Token", self.double.log[0][1])
        self.settings = evolve(self.settings, login_mount="other")
        self.fails(Forbidden, "refused the login")
        self.double.status = 503
        self.fails(NetworkError, "sealed")

    def test_line(self) -> None:
        """A token that is no single line is not used."""
        file = write_secret(self.directory, SECRET_ID, "id")
        self.settings = evolve(self.settings, login=TransitLogin.APPROLE, role=ROLE_ID, secret_file=str(file))
        for token in ("", "a\r\nX-Other: 1", "ä", "x" * 20_000):
            self.double.replies = [reply({"auth": {"client_token": token}})]
            self.fails(NetworkError, "no valid answer")


class SourceTests(KeySourceContract, OpenCase):
    """The engine as a key source of a vault."""

    def setUp(self) -> None:
        super().setUp()
        self.double = TransitDouble()
        self.concealed = 0
        self.token_file = write_secret(Path(self.mktemp()).absolute())
        self.add()

    def add(self, secret: bytes = SECRET) -> KeySource:
        """Add the double to the vault."""
        settings = TransitSettings(URL, KEY_NAME, str(self.token_file))
        client = TransitClient(settings, keys.vault_id(self.path), self.double.post)
        sealed = evolve(settings, ciphertext=client.encrypt(secret, ENCRYPT_TOKEN))
        made = keys.make_derived_source(
            self.path, self.key(), "transit", NOON, secret, sealed.to_stored(), KeySourceKind.TRANSIT
        )
        return self.vault.key_sources.add(*made)

    def source(self) -> TransitSource:
        """Return the source of a command."""
        home = Home(Path(self.mktemp()).absolute())
        home.root.mkdir()
        home.secrets.write_bytes(self.path.read_bytes())
        environ = {"AILERON_HOME": str(home.root)}

        def conceal() -> None:
            self.concealed += 1

        return TransitSource(CliContext(environ, post=self.double.post, conceal=conceal))

    def make_source(self) -> IKeySource:
        return self.source()

    def make_absent(self) -> IKeySource:
        for each in self.vault.key_sources.list():
            self.vault.key_sources.remove(each.id)
        return self.source()

    def make_refused(self) -> IKeySource:
        self.token_file.chmod(0o644)
        return self.source()

    def opened(self) -> DataKey | None:
        """Return the key that the source gives."""
        return keys.open_by_source(self.path, [self.source()])

    def test_opens(self) -> None:
        """It opens the vault; the file has neither the secret nor the private key."""
        key = self.opened()
        assert key is not None
        self.assertEqual(key._secret, self.secret)
        private = self.source().read()
        assert private is not None
        self.assertNotEqual(private, SECRET)
        for secret in (SECRET, private):
            self.assertNotIn(secret.hex(), self.path.read_text())
            self.assertNotIn(base64.b64encode(secret).decode(), self.path.read_text())

    def test_concealed(self) -> None:
        """The process closes itself to others before it reads the token."""
        self.source().read()
        self.assertEqual(self.concealed, 1)

    def test_away(self) -> None:
        """A server that cannot be asked now is told from one that refuses; one that is away counts more."""
        self.double.status = 503
        self.assertRaises(NetworkError, self.opened)
        self.double.status = None
        self.add(b"s" * 32)
        self.double.replies = [reply({"errors": []}, 403), reply({"errors": []}, 503)]
        self.assertRaises(NetworkError, self.opened)
        self.double.replies = [reply({"errors": []}, 403)]
        self.assertIsNotNone(self.opened())

    def test_other_secret(self) -> None:
        """A secret of another source opens nothing, and is told."""
        self.double.replies = [reply({"data": {"plaintext": base64.b64encode(bytes(32)).decode()}})]
        error = self.assertRaises(InvalidRequest, self.opened)
        assert isinstance(error, InvalidRequest)
        self.assertIn("another key source", error.message)

    def test_another_passphrase(self) -> None:
        """After a change of the passphrase the engine opens the new key: it is not asked for that."""
        self.double.log.clear()
        keys.change_passphrase(self.path, PASSPHRASE, "another one of words 77").wipe()
        self.assertEqual(self.double.log, [])
        self.assertIsNotNone(self.opened())

    def test_altered(self) -> None:
        """Changed settings in the vault's file open nothing, even if the engine answers."""
        document = VaultFile(self.path).read()
        assert document is not None
        (entry,) = document.key_sources
        changed = {**entry.source.settings, "url": "https://other.example.org"}
        altered = evolve(entry, source=evolve(entry.source, settings=changed))
        VaultFile(self.path).write(evolve(document, key_sources=(altered,)))
        self.assertRaises(AileronError, self.opened)


class AddTests(CommandCase):
    """C{aileron vault key-source add NAME --url URL}."""

    def setUp(self) -> None:
        super().setUp()
        self.double = TransitDouble()
        self.double.tokens[TOKEN] = ("decrypt", "encrypt")
        directory = Path(self.mktemp()).absolute()
        self.token_file = write_secret(directory)
        self.encrypt_file = write_secret(directory, ENCRYPT_TOKEN, "encrypt")
        keys.create(self.home.secrets, "Canary battery staple 42").wipe()
        self.words = ("vault", "key-source", "add", "transit", "--url", URL, "--key", KEY_NAME)
        self.site.answer("POST", "/v1/vault/key-sources", {})
        self.serve()

    def cli_context(self) -> CliContext:
        return evolve(super().cli_context(), post=self.double.post)

    def add(self, *more: str) -> tuple[int, str, str]:
        """Add the engine."""
        return self.as_operator(*self.words, *more)

    def sent(self) -> list[str]:
        """What the daemon was sent to be stored."""
        return [json.dumps(body) for body in self.site.bodies("POST", "/v1/vault/key-sources")]

    def test_added(self) -> None:
        """The daemon gets the ciphertext and the settings, and no secret; the person is told which file is read."""
        code, out, err = self.add("--token-file", str(self.token_file), "--encrypt-token-file", str(self.encrypt_file))
        self.assertEqual((code, err), (0, ""))
        (sent,) = self.sent()
        for part in ("vault:v1:", URL, str(self.token_file)):
            self.assertIn(part, sent)
        for secret in (TOKEN, ENCRYPT_TOKEN, str(self.encrypt_file)):
            self.assertNotIn(secret, sent + out)
        self.assertIn(str(self.token_file), out)
        used = [(path.split("/")[3], headers["X-Vault-Token"]) for path, headers in self.double.log]
        self.assertEqual(used, [("encrypt", ENCRYPT_TOKEN), ("decrypt", TOKEN)])

    def test_proved(self) -> None:
        """Nothing is stored unless the daemons' token decrypts the secret again."""
        cipher, plain = {"data": {"ciphertext": SEALED}}, {"data": {"plaintext": base64.b64encode(bytes(32)).decode()}}
        for replies, word in (
            ([reply(cipher), reply(plain)], "something else"),
            ([reply(cipher), reply({}, 403)], "refused the token"),
            ([reply({"data": {"ciphertext": "none"}})], "no ciphertext"),
            ([reply({}, 503)], "sealed"),
            ([reply({}, 400)], "associated data"),
        ):
            self.double.replies = list(replies)
            code, _, err = self.add("--token-file", str(self.token_file))
            self.assertEqual(code, 1)
            self.assertIn(word, err)
            self.assertIn("Nothing was added", err)
        self.assertEqual(self.sent(), [])

    def test_usage(self) -> None:
        """Options that do not go together are refused before anything is asked."""
        file = str(self.token_file)
        for more in (
            (),
            ("--token-file", file, "--kubernetes", "r"),
            ("--approle", "r"),
            ("--secret-id-file", file),
            ("--jwt-file", file),
            ("--token-file", file, "--mount", "../sys"),
            ("--token-file", file, "--security-key"),
        ):
            code, _, err = self.command(*self.words, *more)
            self.assertEqual(code, 2, (more, err))
        for words in (("--key", "k"), ("--token-file", file), ("--url", "http://example.org", "--token-file", file)):
            self.assertEqual(self.command("vault", "key-source", "add", "x", *words)[0], 2)
        self.assertEqual(self.double.log, [])

    def test_roles(self) -> None:
        """A role is stored with the file of its secret."""
        file = write_secret(self.token_file.parent, SECRET_ID, "id")
        code, _, err = self.add("--approle", ROLE_ID, "--secret-id-file", str(file), "--ca-file", "ca.pem")
        self.assertEqual((code, err), (0, ""))
        (sent,) = self.sent()
        self.assertIn(f'"role": "{ROLE_ID}"', sent)
        self.assertIn(str(Path("ca.pem").absolute()), sent)
        self.assertNotIn(SECRET_ID, sent)
        jwt = write_secret(self.token_file.parent, JWT, "jwt")
        self.assertEqual(self.add("--kubernetes", ROLE_ID, "--jwt-file", str(jwt))[0], 0)
