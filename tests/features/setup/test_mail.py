"""Connecting a mail account: a few answers make its connector's file, and the actions fit what it can do."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from aileron.actions import parse
from aileron.connectors import check, read_descriptions
from aileron.features.setup.services import ASKED, READ, read_service
from aileron.model.connectors import READ as READS
from aileron.model.connectors import ConnectorDescription
from tests.cli.daemon import PASSPHRASE
from tests.cli.test_binding import binding
from tests.cli.test_trust import TrustCase, item

CHECK = "/v1/actions/check-smtp/run"
CHOSEN = ("check-smtp", "search-mail", "read-mail", "send-mail", "save-draft")
OTHER = ("ada@mail.example", "", "smtp.mail.example:587", "imap.mail.example:993", "ada")


class MailTests(TrustCase):
    """C{aileron setup --choose smtp} at a terminal."""

    def setUp(self) -> None:
        super().setUp()
        self.serve()
        self.home.secrets.write_text("{}")
        self.site.answer("GET", "/v1/bindings", {"items": []})
        scope = {"hosts": ["smtp.gmail.com:465"], "base_url": "smtps://smtp.gmail.com:465", "header": "AUTH"}
        self.site.answer("POST", "/v1/bindings/target", {"scope": {**scope, "format": "Basic {key}"}})
        self.site.answer("POST", "/v1/bindings/setup", lambda body: binding(connector=body["connector"]))
        self.site.answer("POST", CHECK, {"result": {"output": {"address": "ada@gmail.com"}}})

    def connected(self, *answers: str) -> tuple[int, str, str]:
        """Run it with these answers about the account, and the usual ones to the rest."""
        self.lying(*(item(name, path=str(self.home.actions / f"{name}.md")) for name in CHOSEN))
        self.typed = [*answers, "", PASSPHRASE, "y", "app-canary"]
        return self.command("connect", "smtp")

    def described(self) -> tuple[ConnectorDescription, Mapping[str, object]]:
        """The file that was written, which must be sound."""
        path = self.home.connectors / "smtp.toml"
        self.assertEqual([], check(path))
        (found,) = [each for each, _ in read_descriptions(self.home.connectors) if each.name == "local://me/smtp"]
        return found, tomllib.loads(path.read_text("utf-8"))

    def test_known_provider(self) -> None:
        """An address says which provider it is, which is not asked; how to get an app password is shown."""
        code, out, err = self.connected("ada@gmail.com", "")
        self.assertEqual((code, self.typed), (0, []), err)
        described, written = self.described()
        self.assertEqual(("smtp.gmail.com:465", "imap.gmail.com:993"), described.hosts)
        self.assertEqual({"from": "ada@gmail.com", "user": "ada@gmail.com", "save_sent": False}, written["mail"])
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual(("local://me/smtp", "ada@gmail.com:app-canary"), (bound["connector"], bound["secret"]))
        for part in ("https://myaccount.google.com/apppasswords", "Ask the agent to use send-mail"):
            self.assertIn(part, out)
        self.assertNotIn("canary", out + err)

    def test_another_provider(self) -> None:
        """For any other provider the servers are asked for: TLS from the first byte at its ports, else asked for."""
        code, _, err = self.connected(*OTHER)
        self.assertEqual((code, self.typed), (0, []), err)
        _, written = self.described()
        self.assertEqual({"host": "smtp.mail.example", "port": 587, "tls": "starttls"}, written["smtp"])
        self.assertEqual({"host": "imap.mail.example", "port": 993, "tls": "implicit"}, written["imap"])
        (bound,) = self.site.bodies("POST", "/v1/bindings/setup")
        self.assertEqual("ada:app-canary", bound["secret"])

    def test_each_provider(self) -> None:
        """The file of every provider that is listed is sound."""
        for number, each in enumerate(read_service("smtp").providers[:-1], 1):
            for answers in ((f"ada@{each.domains[-1]}", ""), ("ada@own.example", str(number), "")):
                code, _, err = self.connected(*answers)
                if each.instead:
                    self.assertEqual((code, list(self.home.connectors.iterdir())), (1, []))
                    self.assertIn(f"aileron setup {each.instead}", err)
                    self.assertIn("Nothing was connected", err)
                    continue
                self.assertEqual(0, code, err)
                self.assertEqual((each.smtp, each.imap), self.described()[0].hosts)
                (self.home.connectors / "smtp.toml").unlink()

    def test_this_machine(self) -> None:
        """A server on this machine needs no TLS, and the file declares that it is here."""
        code, _, err = self.connected("ada@mail.example", "", "127.0.0.1:2525", "[::1]:1143", "")
        self.assertEqual((code, self.typed), (0, []), err)
        described, written = self.described()
        self.assertEqual(("127.0.0.1:2525", "[::1]:1143"), described.hosts)
        self.assertEqual("none", written["smtp"]["tls"])  # type: ignore[index]

    def test_asked_again(self) -> None:
        """An answer that cannot be one is asked for again."""
        address = ("ada", "ada@mail.example\\", "ada@mail.example")
        servers = ("9", "5", "smtp.mail.example", "https://x:1", OTHER[2], OTHER[3], "a:b", "ada")
        code, _, err = self.connected(*address, *servers)
        self.assertEqual((code, self.typed, err.count("The answer must")), (0, [], 6), err)

    def test_again(self) -> None:
        """A file that is there is kept, and nothing of it is asked again."""
        self.connected("ada@gmail.com", "")
        before = (self.home.connectors / "smtp.toml").read_bytes()
        code, out, err = self.connected()
        self.assertEqual((code, self.typed), (0, []), err)
        self.assertIn("is kept as it is", out)
        self.assertEqual(before, (self.home.connectors / "smtp.toml").read_bytes())
        self.assertEqual("ada@gmail.com:app-canary", self.site.bodies("POST", "/v1/bindings/setup")[1]["secret"])

    def test_edited(self) -> None:
        """A file that was edited so that it does not say who logs in is kept too; the credential is entered whole."""
        self.connected("ada@gmail.com", "")
        path = self.home.connectors / "smtp.toml"
        path.write_text(path.read_text().replace('user = "ada@gmail.com"\n', ""))
        code, _, err = self.connected()
        self.assertEqual((code, self.typed), (0, []), err)
        self.assertEqual("app-canary", self.site.bodies("POST", "/v1/bindings/setup")[1]["secret"])

    def test_actions(self) -> None:
        """Each operation has an action that fits it; reads are free, and what writes is asked."""
        self.connected("ada@gmail.com", "")
        described, _ = self.described()
        inputs = {each.name: given for each, given in read_descriptions(self.home.connectors)}["local://me/smtp"]
        used = set()
        for each in read_service("smtp").actions:
            action = parse(each.text.encode(), f"{each.name}.md")
            (step,) = action.steps
            operation = described.operations[step.operation]
            self.assertEqual(described.name, step.connector)
            self.assertEqual(operation.effect != READS, action.approval.gated)
            self.assertEqual(READ if operation.effect == READS else ASKED, each.kind)
            self.assertLessEqual(set(step.inputs), set(inputs[step.operation]))
            self.assertLessEqual(len(action.description), 200)
            used.add(step.operation)
        self.assertEqual(used, set(described.operations))

    def test_dry_run(self) -> None:
        """A dry run shows the actions, asks nothing and changes nothing."""
        code, out, _ = self.command("connect", "smtp", "--dry-run")
        self.assertEqual((code, list(Path(self.home.connectors).iterdir())), (0, []))
        self.assertIn("send-mail.md", out)
