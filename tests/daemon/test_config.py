"""The configuration file: read strictly, obeyed only if trusted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.json import digest_of_bytes
from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import AuditSettings, Config, read_config
from aileron.daemon._config_file import ConfigFile
from aileron.daemon._listening import Bound
from aileron.daemon._settings import DaemonSettings
from aileron.features import FeatureSet
from aileron.features.notices.values import ChannelSettings, NoticeSettings
from aileron.home.paths import Home, prepare
from aileron.model.audit import Actor
from aileron.model.authority import PendingLimits
from aileron.model.errors import InvalidRequest
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import Trusted, TrustKind
from aileron.model.vault import VaultState
from aileron.testing import MemoryTrust, MemoryVault
from tests.extent import examples

_WHOLE = """\
# where the container's own network reaches us
listen: tcp:8081:interface=0.0.0.0
operator_listen: "tcp:8082"
hosts: [aileron.internal, box]
agent_uids: [1001, 1002]
pending:
  per_session: 5
  per_action: 7
"""


class ConfigCase(SynchronousTestCase):
    """Reads configurations."""

    def refused(self, text: str, line: int | None, word: str) -> None:
        """Assert that a text is refused, with the line and a word of the reason."""
        error = self.assertRaises(NotConfig, read_config, text, FeatureSet())
        self.assertEqual(error.line, line, error)
        self.assertIn(word, error.problem)


class ReadingTests(ConfigCase):
    """What is a configuration."""

    def test_whole(self) -> None:
        """Every key is read; a limit that is not said stays the product's, and an empty file says nothing."""
        limits = PendingLimits(5, PendingLimits().per_home, 7)
        listens = ("tcp:8081:interface=0.0.0.0", "tcp:8082")
        said = Config(*listens, "fresh", ("aileron.internal", "box"), (1001, 1002), pending=limits)
        self.assertEqual(read_config(_WHOLE, FeatureSet()), said)
        for text in ("", "# nothing\n", "---\n"):
            self.assertEqual(read_config(text, FeatureSet()), Config())
        bound = Bound((), 8081, ("127.0.0.1:8081",), "http://127.0.0.1:8081")
        self.assertEqual(bound.add_names(()), bound)
        self.assertEqual(bound.add_names(("box",)).hosts, ("127.0.0.1:8081", "box:8081"))

    def test_operator_host(self) -> None:
        """The pages have a name of their own at each start, unless plain localhost is wanted."""
        for text, host in (("", "fresh"), ("operator_host: fresh", "fresh"), ("operator_host: localhost", "localhost")):
            self.assertEqual(read_config(text, FeatureSet()).operator_host, host)
        for text in ("127.0.0.1", "''", "[localhost]", "Localhost", "null"):
            self.refused(f"\noperator_host: {text}\n", 2, "operator_host must be fresh or localhost")

    def test_audit(self) -> None:
        """Where the record is anchored is read, and how long its contents are kept."""
        text = "audit:\n  keep_payloads_days: 90\n  anchor:\n    file: /mnt/a\n    webhook: https://example.com/a\n"
        self.assertEqual(
            read_config(text, FeatureSet()).audit, AuditSettings(Path("/mnt/a"), "https://example.com/a", 90)
        )
        self.assertEqual(
            read_config("audit: {keep_payloads_days: 1}", FeatureSet()).audit, AuditSettings(keep_payloads_days=1)
        )
        for days in ("0", "-1", "1.5", "forever", "36501"):
            self.refused(f"audit:\n  keep_payloads_days: {days}\n", 2, "keep_payloads_days")
        self.refused("audit:\n  anchor:\n    file: relative\n", 3, "absolute")
        self.refused("audit:\n  anchor:\n    webhook: ftp://x\n", 3, "address")
        self.refused("audit:\n  keep: 1\n", 2, "unknown key")

    def test_unknown(self) -> None:
        """A key that is not known, or said twice, is refused at its line, and never repeated."""
        self.refused("listen: tcp:1\nlisten_on: canary\n", 2, "unknown key")
        self.refused("pending:\n  per_session: 1\n  per_day: 2\n", 3, "per_action")
        self.refused("hosts: []\n\nhosts: []\n", 3, "twice")
        self.refused("? [a, b]\n: 1\n", 1, "unknown key")

    def test_types(self) -> None:
        """A value of another type is refused at its key's line, or its own in a list."""
        for text in ("listen: 8080", "listen: ''", "listen: [tcp:1]", "listen: no-endpoint", "listen: null"):
            self.refused(f"\n{text}\n", 2, "endpoint")
        for text in ("hosts: box", "hosts: {a: b}"):
            self.refused(text, 1, "list")
        for text in (
            "hosts: [Box]",
            "hosts: [box:80]",
            "hosts:\n  - '*'",
            "hosts: [1]",
            "hosts: [box.]",
            f"hosts: [{'a' * 254}]",
        ):
            self.refused(text, text.count("\n") + 1, "lower case")
        self.refused("agent_uids: 1001", 1, "list")
        self.refused("clients: cursor", 1, "list")
        for text in ("[Cursor]", "['']", "['*']", "[a b]", "[1]", f"[{'x' * 33}]"):
            self.refused(f"clients: {text}", 1, "name")
        self.assertEqual(read_config("clients: [cursor, zed-2]", FeatureSet()).clients, {"cursor", "zed-2"})
        for text in ("0", "-1", "nobody", "'5'", "4294967295"):
            self.refused(f"agent_uids: [{text}]", 1, "whole number")
        for text in ("0", "-1", "1.5", "'5'", "true", "1000001", "٣", "9" * 5000, "0x10"):
            self.refused(f"pending: {{per_home: {text}}}", 1, "whole number")
        self.refused("pending: 5", 1, "mapping")
        self.refused("- listen\n", 1, "mapping")

    def test_connector_packages(self) -> None:
        """Packages of connectors are named as Python names them."""
        for text in ("acme", "{a: b}"):
            self.refused(f"connector_packages: {text}", 1, "list")
        for text in ("['']", "[.acme]", "[acme.]", "[acme..x]", "[a-b]", "[1a]", "[1]", "[a/b]", f"[{'x' * 202}]"):
            self.refused(f"connector_packages: {text}", 1, "Python package")
        found = read_config("connector_packages: [acme.connectors, _own]", FeatureSet()).connector_packages
        self.assertEqual(found, ("acme.connectors", "_own"))

    def test_no_yaml(self) -> None:
        """What is no YAML, or more than one document, is refused; a tag of Python's makes nothing."""
        self.refused("listen: [\n", 2, "no YAML")
        self.refused("a: 1\n---\nb: 2\n", 2, "no YAML")
        self.refused("listen: !!python/object/apply:os.system ['true']", 1, "endpoint")
        self.refused("[" * 5000, None, "deep")
        self.refused("\x00", None, "no YAML")

    @settings(deadline=None, max_examples=examples(100))
    @given(st.text(st.sampled_from("listen:pd g_so[]{}\n-&*!'\"#1\t|>?")))
    def test_wild(self, text: str) -> None:
        """Any text is a configuration or a refusal."""
        try:
            self.assertIsInstance(read_config(text, FeatureSet()), Config)
        except NotConfig as error:
            self.assertTrue(error.problem)


class FileTests(SynchronousTestCase):
    """Which configuration is in force."""

    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        prepare(self.home)
        self.trust = MemoryTrust()

    def write(self, text: str, *, trusted: bool = False) -> None:
        """Put a file there, and trust it."""
        self.home.config.write_text(text)
        if trusted:
            digest = digest_of_bytes(text.encode())
            self.trust.put([Trusted(TrustKind.CONFIG, "config.yaml", digest, datetime.now(UTC), "ops_1")])

    def found(self) -> ConfigFile:
        """A new life's."""
        return ConfigFile(self.home, self.trust, FeatureSet())

    def problem(self, file: ConfigFile) -> str:
        """What the only problem of it is."""
        (error,) = file.problems()
        self.assertEqual(error.file, str(self.home.config))
        return error.message

    def test_absent(self) -> None:
        """Without a file nothing is said and nothing is wrong; a link is not followed."""
        file = self.found()
        self.assertTrue(verifyObject(IConfigFile, file))
        self.assertEqual((file.config, file.candidates(), file.problems()), (Config(), (), ()))
        self.home.config.symlink_to("/etc/hostname")
        file = self.found()
        self.assertEqual((file.candidates(), len(file.problems())), ((), 1))

    def test_distrusted(self) -> None:
        """A file that is not trusted any more, as the vault of several daemons says, is not started with."""
        self.write(_WHOLE, trusted=True)
        file = self.found()
        file.require_trusted()
        self.trust.remove(TrustKind.CONFIG, "config.yaml")
        self.assertRaises(InvalidRequest, file.require_trusted)

    def test_untrusted(self) -> None:
        """A sound file that nobody trusts is shown, not obeyed; trusted later it counts from the next start."""
        self.write(_WHOLE)
        file = self.found()
        self.assertEqual(file.config, Config())
        self.assertIn("not trusted", self.problem(file))
        (candidate,) = file.candidates()
        assert candidate is not None
        self.assertEqual((candidate.text, candidate.digest), (_WHOLE, digest_of_bytes(_WHOLE.encode())))
        self.write(_WHOLE)
        file = self.found()
        self.write(_WHOLE, trusted=True)
        self.assertEqual(file.config, Config())
        self.assertIn("next start", self.problem(file))
        self.assertEqual(self.found().config, read_config(_WHOLE, FeatureSet()))

    def test_trusted(self) -> None:
        """A trusted file is obeyed from the start on; with one byte more not any longer, from the next start."""
        self.write(_WHOLE, trusted=True)
        file = self.found()
        self.assertEqual((file.config, file.problems()), (read_config(_WHOLE, FeatureSet()), ()))
        self.write(_WHOLE, trusted=True)
        file = self.found()
        self.write(_WHOLE + "\n")
        self.assertEqual(file.config, read_config(_WHOLE, FeatureSet()))
        self.assertIn("not trusted", self.problem(file))
        self.assertEqual(self.found().config, Config())

    def test_unsound(self) -> None:
        """A file with a fault is told with its line and cannot be trusted; if it was before, it refuses the start."""
        self.write("hosts: []\nnonsense: 1\n")
        file = self.found()
        (error,) = file.problems()
        self.assertEqual((error.line, file.candidates(), file.config), (2, (), Config()))
        self.home.config.write_bytes(b"\xff")
        self.assertIn("UTF-8", self.problem(file))
        self.write("hosts: []\nnonsense: 1\n", trusted=True)
        error = self.assertRaises(InvalidRequest, self.found)
        self.assertIn(f"{self.home.config}:2: ", error.message)


class Listed:
    """A trust service that lists what it is asked to trust."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    async def trust(self, items: Sequence[Any], actor: Actor) -> tuple[()]:
        """Remember them."""
        self.items += items
        return ()


class ConfirmedTests(FileTests):
    """A configuration that the operator trusts with the start, since no daemon starts without it."""

    def start(self, confirmed: str | None) -> tuple[ConfigFile, list[Any]]:
        """Return the configuration of a daemon that is started so, and what it then trusts."""
        file, service = ConfigFile(self.home, self.trust, FeatureSet(), confirmed), Listed()
        self.successResultOf(Deferred.fromCoroutine(file.trust_confirmed(cast("Any", service))))
        return file, service.items

    def test_confirmed(self) -> None:
        """The confirmed file is in force and is trusted; one that is trusted already is not trusted again."""
        self.write(_WHOLE)
        digest = digest_of_bytes(_WHOLE.encode())
        file, trusted = self.start(digest)
        self.assertEqual(file.config, read_config(_WHOLE, FeatureSet()))
        self.assertEqual(trusted, [(TrustKind.CONFIG, "config.yaml", digest)])
        self.write(_WHOLE, trusted=True)
        self.assertEqual(self.start(digest)[1], [])

    def test_replaced(self) -> None:
        """A file with another digest than the confirmed one has no effect, and nothing is trusted."""
        self.write(_WHOLE)
        file, trusted = self.start("sha256:0")
        self.assertEqual((file.config, trusted), (Config(), []))

    def test_no_key(self) -> None:
        """Without a key that opened the vault, nothing is confirmed."""
        settings = DaemonSettings(self.home, None, confirmed="sha256:0")
        self.assertIsNone(settings.confirmed_with(MemoryVault(VaultState.LOCKED)))
        self.assertEqual(settings.confirmed_with(MemoryVault(VaultState.UNLOCKED)), "sha256:0")


WHOLE = """\
notifications:
  contents: true
  desktop: true
  webhooks:
    office:
      url: https://example.com/hook
      signed: true
    local:
      url: http://127.0.0.1:8800/hook
  apprise: [phone, mail]
"""


def notices_of(text: str) -> NoticeSettings:
    """What a text says."""
    found = read_config(text, FeatureSet()).of_features.get("notifications", NoticeSettings())
    assert isinstance(found, NoticeSettings)
    return found


class NoticesTests(ConfigCase):
    def test_whole(self) -> None:
        """Everything is read; what is not said is not told."""
        channels = (
            ChannelSettings("office", "https://example.com/hook", signed=True),
            ChannelSettings("local", "http://127.0.0.1:8800/hook"),
            ChannelSettings("phone"),
            ChannelSettings("mail"),
        )
        self.assertEqual(notices_of(WHOLE), NoticeSettings(contents=True, desktop=True, channels=channels))
        self.assertEqual(notices_of(""), NoticeSettings())
        self.assertEqual(notices_of("notifications: {}"), NoticeSettings())
        self.assertEqual(notices_of("notifications: {desktop: false}"), NoticeSettings())

    def test_desktop(self) -> None:
        """The desktop's program may be another, by its whole path."""
        said = notices_of("notifications: {desktop: {command: /opt/tell}}")
        self.assertEqual(said, NoticeSettings(desktop=True, desktop_command=Path("/opt/tell")))
        self.refused("notifications:\n  desktop:\n    command: tell\n", 3, "absolute")
        self.refused("notifications:\n  desktop: maybe\n", 2, "mapping")

    def test_secrets(self) -> None:
        """Which channels want a secret, and for what it is sealed: an address for itself, a key for its webhook."""
        said = notices_of(WHOLE)
        self.assertEqual([each.name for each in said.channels if each.needs_secret], ["office", "phone", "mail"])
        self.assertEqual(said.bound_by("notice://phone"), ChannelSettings("phone"))
        for fqn in ("notice://local", "notice://canary", "gateway://phone"):
            self.assertIsNone(said.bound_by(fqn))
        scopes = {each.scope() for each in said.channels}
        self.assertIn(None, scopes)
        self.assertEqual(len({scope.base_url for scope in scopes if scope}), 2)

    def test_webhook(self) -> None:
        """A webhook's address is plain: https, or to this machine, without a query where a secret could stand."""
        for url, word in (
            ("http://example.com/hook", "https"),
            ("https://example.com/hook?token=canary", "query"),
            ("https://user:canary@example.com/hook", "user"),
            ("canary", "must"),
        ):
            text = f"notifications:\n  webhooks:\n    office:\n      url: {url}\n"
            self.refused(text, 4, word)
            self.assertNotIn("canary", str(self.assertRaises(NotConfig, read_config, text, FeatureSet())))
        self.refused("notifications:\n  webhooks:\n    office: {signed: true}\n", 3, "url")

    def test_names(self) -> None:
        """Each channel has a plain name of its own; the desktop's is taken, and an unknown key refused."""
        self.refused("notifications:\n  apprise:\n    - Phone\n", 3, "name")
        self.refused("notifications:\n  apprise: [desktop]\n", 2, "desktop")
        self.refused("notifications:\n  apprise: 'ntfy://canary'\n", 2, "vault")
        self.refused("notifications:\n  apprise: [a, a]\n", 2, "of its own")
        names = ", ".join(f"n{number}" for number in range(17))
        self.refused(f"notifications:\n  apprise: [{names}]\n", 2, "at most")
        self.refused("notifications:\n  email: me\n", 2, "unknown key")
